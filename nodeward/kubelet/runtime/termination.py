"""What a container said when it ended: its termination message, from its file or the end of its log.

In go the paths on the node, out comes the text for `state.terminated.message`, never longer than Kubernetes allows.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from typing import Final

#: The longest message taken from the file, in bytes.
MOST_FROM_FILE: Final = 4096
#: The most taken from the log, with the policy FallbackToLogsOnError.
MOST_FROM_LOG: Final = 2048
MOST_LINES: Final = 80
_TAIL: Final = 64 * 1024


def termination_message(file: str, log: str, policy: str, exit_code: int) -> str:
    """The message; empty when there is none, or what there is cannot be read."""
    text = _head(file, MOST_FROM_FILE) if file else b""
    if not text and log and exit_code and policy == "FallbackToLogsOnError":
        text = _end_of_log(log)
    return text.decode("utf-8", "replace")


def _head(path: str, most: int) -> bytes:
    """The beginning of a file. What a container left there need not be a file: nothing else is opened."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return b""
    try:
        return os.read(handle, most) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(handle)


def _end_of_log(path: str) -> bytes:
    """The last lines a container wrote, without what the log says about them."""
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            start = max(file.tell() - _TAIL, 0)
            file.seek(start)
            lines = file.read().splitlines()
    except OSError:
        return b""
    if start:
        lines = lines[1:]
    last: deque[bytes] = deque(maxlen=MOST_LINES)
    for line in lines:
        parts = line.split(b" ", 3)
        if len(parts) == 4:
            last.append(parts[3] + (b"" if parts[2].startswith(b"P") else b"\n"))
    return b"".join(last)[-MOST_FROM_LOG:]

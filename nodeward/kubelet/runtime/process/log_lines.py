"""A container's output as Kubernetes keeps it, both streams in one file.

A line of it: `2026-11-15T12:00:00.123456789Z stdout F what the container wrote`.

What must stay true: a line longer than `LONGEST`, or without an end when its stream ends, is written in parts marked
P; a file that was renamed or removed (that is all rotation takes) is opened anew; a full disk loses lines and stops
nobody. Imported by the supervisors, of which there is one a container: nothing heavy here.
"""

from __future__ import annotations

import os
import time
from typing import Final

from nodeward.base.duration import SECOND_NS

#: What one line of the file holds at most, as container runtimes have it.
LONGEST: Final = 16 * 1024


class LogFile:
    """The file, opened anew when somebody moved it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = -1
        self._identity = (0, 0)
        self._open()

    def _open(self) -> None:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        self._handle = os.open(
            self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640
        )
        found = os.fstat(self._handle)
        self._identity = (found.st_dev, found.st_ino)

    def write(self, data: bytes) -> None:
        try:
            if not self._is_in_place():
                self.close()
                self._open()
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError:
            return  # the disk is full or gone; the container goes on

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
            self._identity = (0, 0)

    def _is_in_place(self) -> bool:
        try:
            found = os.stat(self._path)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == self._identity


class Stream:
    """One of the two outputs, cut into lines."""

    def __init__(self, name: str, file: LogFile) -> None:
        self._name = name.encode()
        self._file = file
        self._rest = b""

    def feed(self, data: bytes, now_ns: int) -> None:
        """Some output came; `now_ns` is the wall time."""
        *lines, rest = (self._rest + data).split(b"\n")
        head = _moment(now_ns) + b" " + self._name
        out = bytearray()
        for line in lines:
            last = max(len(line) - 1, 0) // LONGEST * LONGEST
            for at in range(0, last, LONGEST):
                out += head + b" P " + line[at : at + LONGEST] + b"\n"
            out += head + b" F " + line[last:] + b"\n"
        kept = len(rest) % LONGEST
        for at in range(0, len(rest) - kept, LONGEST):
            out += head + b" P " + rest[at : at + LONGEST] + b"\n"
        self._rest = rest[len(rest) - kept :]
        if out:
            self._file.write(bytes(out))

    def end(self, now_ns: int) -> None:
        """The stream is over: what has no end is written without."""
        if self._rest:
            self._file.write(_moment(now_ns) + b" " + self._name + b" P " + self._rest + b"\n")
            self._rest = b""


def _moment(now_ns: int) -> bytes:
    seconds, below = divmod(now_ns, SECOND_NS)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{below:09d}Z".encode()

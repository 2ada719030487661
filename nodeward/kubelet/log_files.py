"""Container log files: where they are, how a line is read, and where the last lines begin.

Output is kept in the format of the CRI, `TIME STREAM TAG text`, a line for a line of output; a long one comes in parts,
all but the last tagged P. Pure functions, and one that reads backwards from the end of a file.
"""

from __future__ import annotations

import re
from typing import BinaryIO, Final, NamedTuple

from nodeward.api.core_v1.pod import Pod
from nodeward.base.timestamp import parse_rfc3339

_BLOCK: Final = 64 << 10
_STREAMS: Final = {b"stdout": 1, b"stderr": 2}
_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")


class LogLine(NamedTuple):
    """One line of a log file. `text` ends with a line break unless more of the line follows."""

    stamp: bytes
    #: 1 is stdout, 2 stderr
    stream: int
    text: bytes

    @property
    def is_end(self) -> bool:
        """Whether a new line begins after this."""
        return not self.text or self.text.endswith(b"\n")


def pod_log_directory(root: str, pod: Pod) -> str:
    """Where the logs of a pod are, as everywhere in Kubernetes."""
    meta = pod.metadata
    return f"{root}/{meta.namespace}_{meta.name}_{meta.uid}"


def container_log_path(directory: str, container: str, attempt: int) -> str:
    """The log of one instance of a container, in the directory of its pod."""
    return f"{directory}/{container}/{attempt}.log"


def parse_line(line: bytes) -> LogLine | None:
    """One line with its line break; None if it is not a log line."""
    parts = line.split(b" ", 3)
    if len(parts) != 4:
        return None
    stamp, name, tags, text = parts
    stream = _STREAMS.get(name)
    if stream is None or _STAMP.fullmatch(stamp) is None:
        return None
    if tags.split(b":", 1)[0] == b"P":
        text = text.removesuffix(b"\n")
    return LogLine(stamp, stream, text)


def stamp_ns(stamp: bytes) -> int:
    """The time of a line, in nanoseconds."""
    try:
        return parse_rfc3339(stamp.decode("ascii"))
    except ValueError:
        return 0  # the 31st of February


def shown_stamp(stamp: bytes) -> bytes:
    """The time as it is shown: always with nine digits."""
    found = _STAMP.fullmatch(stamp)
    if found is None:
        return stamp
    seconds, fraction, zone = found.groups()
    return b"%b.%b%b" % (seconds, (fraction or b"").ljust(9, b"0"), zone)


def tail_start(file: BinaryIO, lines: int) -> int:
    """Where the last `lines` lines of a file begin. Reads no more than it must."""
    end = file.seek(0, 2)
    if lines <= 0:
        return end
    if end:
        file.seek(end - 1)
        if file.read(1) == b"\n":
            end -= 1  # the break that ends the last line begins none
    position, wanted = end, lines
    while position > 0:
        start = max(position - _BLOCK, 0)
        file.seek(start)
        block = file.read(position - start)
        found = block.count(b"\n")
        if found < wanted:
            wanted -= found
            position = start
            continue
        at = len(block)
        for _ in range(wanted):
            at = block.rindex(b"\n", 0, at)
        return start + at + 1
    return 0

"""Reading a container's log: from where it was asked, for as long as it grows, no more than was asked.

`read_log` gives a container's output piece by piece, each with the stream it was written to. What must stay true: the
whole file is never in memory; a file that was moved away (rotated) is read to its end before the new one; a container
that has ended is read to its end, then the log is over.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import ExitStack
from os import fstat, stat
from typing import BinaryIO, Final

from nodeward.base.errors import WorldError
from nodeward.kubelet.log_files import LogLine, parse_line, shown_stamp, stamp_ns, tail_start
from nodeward.kubelet.runtime.interface import LogOptions
from nodeward.machinery.clock import Clock

#: How often a log that is followed is looked at.
FOLLOW_SECONDS: Final = 0.1
_BLOCK: Final = 64 << 10
#: A line that is longer is passed over: no runtime writes such.
_MOST_LINE: Final = 1 << 20
_NAMES: Final = {1: "stdout", 2: "stderr"}


class Selection:
    """Which lines, and how they are shown. Knows how much may still be given."""

    def __init__(self, options: LogOptions) -> None:
        self._since_ns = options.since_ns
        self._has_timestamps = options.has_timestamps
        self._streams = options.streams
        self._bytes_left = options.limit_bytes
        self._lines_left = None if options.follow else options.tail_lines
        self._is_new_line = True

    def is_full(self) -> bool:
        return self._bytes_left == 0 or self._lines_left == 0

    def show(self, line: LogLine) -> bytes:
        """What is given of a line; nothing, if it is not wanted."""
        is_new, self._is_new_line = self._is_new_line, line.is_end
        if self._lines_left is not None:
            self._lines_left -= 1
        if _NAMES[line.stream] not in self._streams:
            return b""
        if self._since_ns and stamp_ns(line.stamp) < self._since_ns:
            return b""
        text = line.text
        if self._has_timestamps and is_new:
            text = shown_stamp(line.stamp) + b" " + text
        if self._bytes_left is not None:
            text = text[: self._bytes_left]
            self._bytes_left -= len(text)
        return text


async def read_log(
    path: str,
    options: LogOptions,
    clock: Clock,
    is_running: Callable[[], bool] = lambda: False,
    *,
    from_end: bool = False,
) -> AsyncGenerator[tuple[int, bytes], None]:
    """The output of a container, as (stream, bytes). `is_running` says whether more may come.

    `from_end`: only what is written from now on. Raises WorldError when there is no log.
    """
    selection = Selection(options)
    with ExitStack() as files:
        file = files.enter_context(_open(path))
        lines = _Lines(file)
        if from_end:
            file.seek(0, 2)
        elif options.tail_lines is not None:
            file.seek(tail_start(file, options.tail_lines))
        while not selection.is_full():
            # Asked before reading: whatever it wrote before it ended is there when we read.
            may_grow = options.follow and is_running()
            has_any = False
            for line in lines.next():
                has_any = True
                text = selection.show(line)
                if text:
                    yield line.stream, text
                if selection.is_full():
                    return
            if has_any or lines.has_more:
                await clock.yield_now()
                continue
            newer = _replacement(path, file) if options.follow else None
            if newer is not None:
                file = files.enter_context(newer)
                lines = _Lines(file)
                continue
            if not may_grow:
                break
            await clock.sleep(FOLLOW_SECONDS)
        rest = lines.rest()
        if rest is not None and not selection.is_full():
            text = selection.show(rest)
            if text:
                yield rest.stream, text


class _Lines:
    """The lines of a file that may grow."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = b""
        #: a block was read that held no whole line
        self.has_more = False

    def next(self) -> Iterator[LogLine]:
        """The lines of the next block, those that are whole."""
        block = self._file.read(_BLOCK)
        self.has_more = bool(block)
        if not block:
            return
        *lines, self._left = (self._left + block).split(b"\n")
        for line in lines:
            parsed = parse_line(line + b"\n")
            if parsed is not None:
                yield parsed
        if len(self._left) > _MOST_LINE:
            self._left = b""

    def rest(self) -> LogLine | None:
        """A last line without its end."""
        return parse_line(self._left) if self._left else None


def _open(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except OSError as error:
        raise WorldError(
            f'failed to open log file "{path}": {(error.strerror or str(error)).lower()}'
        ) from error


def _replacement(path: str, file: BinaryIO) -> BinaryIO | None:
    """The file that has taken the place of the one being read, which was moved away; None if none has yet."""
    try:
        now, before = stat(path), fstat(file.fileno())
        if (now.st_dev, now.st_ino) != (before.st_dev, before.st_ino):
            return open(path, "rb")
    except OSError:
        pass
    return None

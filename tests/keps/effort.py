"""What a piece of work costs, counted instead of timed: no load of the machine changes these numbers.

`calls` names the Python functions that ran, `steps` counts the bytecode instructions, loops included, and a `Digits`
counts how often it was read as a number.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls(work: Callable[[], Any]) -> list[str]:
    """The names of the Python functions that run, in order."""
    seen: list[str] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            seen.append(frame.f_code.co_name)

    before = sys.getprofile()
    # The collector may run at any moment, and calls those who want to know of it.
    gc.disable()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return seen


def steps(work: Callable[[], Any]) -> int:
    """How many bytecode instructions run, here and in every Python function that is called."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        count += event == "opcode"
        return note

    before = sys.gettrace()
    gc.disable()
    sys.settrace(note)
    try:
        work()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


class Digits(str):
    """Text that counts in `Digits.reads` how often anybody turned one of them into a number."""

    reads = 0

    def __int__(self) -> int:
        Digits.reads += 1
        return int(str(self))

    @classmethod
    def read_by(cls, work: Callable[[], Any]) -> int:
        """How many reads the work takes."""
        before = cls.reads
        work()
        return cls.reads - before

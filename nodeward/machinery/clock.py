"""Time and randomness: the only module that may ask the real world for either.

A component gets a `Clock` and, if it needs luck, a `Chance` in its constructor. In production those are `RealClock`
and `RealChance`; in rehearsals and tests `VirtualClock` (time jumps to the next timer, see `virtual_loop`) and
`SeededChance` (the same seed gives the same names, uids and jitter).

What must stay true: instants are whole nanoseconds; wall time (`now_ns`) is for writing into objects, monotonic
time (`monotonic_ns`) for measuring, and the two have different zero points so that mixing them shows at once;
waiting takes seconds, as `asyncio` does. While a virtual clock is held its time stands still.

Handed to every component by whoever assembles it.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Final, Protocol, TypeVar

from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import invariant

_T = TypeVar("_T")

#: Where virtual time starts unless told otherwise: 2026-01-01T00:00:00Z.
VIRTUAL_START_NS: Final = 1_767_225_600 * SECOND_NS

#: Characters of generated names: no vowels (no words by accident), nothing easily mistaken for something else.
NAME_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


class Timer(Protocol):
    """Something that will happen unless cancelled."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The time, and ways to wait for it."""

    def now_ns(self) -> int:
        """Return the wall time: nanoseconds since 1970-01-01T00:00:00Z."""

    def monotonic_ns(self) -> int:
        """Return nanoseconds since some fixed moment; never goes back. Only differences mean something."""

    async def sleep(self, seconds: float) -> None:
        """Wait. Zero or less still lets everybody else run once."""

    async def yield_now(self) -> None:
        """Let everybody who is ready run once, without time passing."""

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        """Call `callback` on the loop after `seconds`, unless the returned timer is cancelled first."""

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        """`async with clock.timeout(5)`: cancel the body after `seconds` and raise `TimeoutError`."""

    def hold(self, reason: str = "") -> AbstractContextManager[None]:
        """Hold virtual time during a wait for something the loop cannot see: a thread, another process.

        Virtual time must not jump meanwhile, or a timeout fires while the work is under way. On the real clock
        this does nothing. Enter and leave on the loop's thread.
        """


class RealClock:
    """The machine's time."""

    __slots__ = ("_offset_ns",)

    def __init__(self) -> None:
        # A random zero point: whoever mixes monotonic readings of two processes, or with wall time, notices.
        self._offset_ns = int.from_bytes(os.urandom(6), "big")

    def now_ns(self) -> int:
        return time.time_ns()

    def monotonic_ns(self) -> int:
        return time.monotonic_ns() + self._offset_ns

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def yield_now(self) -> None:
        await asyncio.sleep(0)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return asyncio.get_running_loop().call_later(seconds, callback)

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        return asyncio.timeout(seconds)

    def hold(self, reason: str = "") -> AbstractContextManager[None]:
        return _NOT_HELD


_NOT_HELD: Final = nullcontext()


class VirtualClock:
    """Time that stands still while anybody works and jumps when everybody waits. Moved by its `VirtualLoop` alone."""

    __slots__ = ("_loop", "elapsed_ns", "holds", "start_ns")

    #: Far from both zero and wall time.
    MONOTONIC_START_NS: Final = 7_000_000 * SECOND_NS

    def __init__(self, start_ns: int = VIRTUAL_START_NS) -> None:
        self.start_ns: Final = start_ns
        self.elapsed_ns = 0
        #: Who holds the clock now, oldest first.
        self.holds: dict[_Hold, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the loop that moves this clock; one loop only."""
        invariant(self._loop is None, "a virtual clock belongs to one loop")
        self._loop = loop

    def now_ns(self) -> int:
        return self.start_ns + self.elapsed_ns

    def monotonic_ns(self) -> int:
        return self.MONOTONIC_START_NS + self.elapsed_ns

    async def sleep(self, seconds: float) -> None:
        self._own_loop()
        await asyncio.sleep(seconds)

    async def yield_now(self) -> None:
        await asyncio.sleep(0)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return self._own_loop().call_later(seconds, callback)

    def timeout(self, seconds: float | None) -> asyncio.Timeout:
        self._own_loop()
        return asyncio.timeout(seconds)

    def hold(self, reason: str = "") -> AbstractContextManager[None]:
        return _Hold(self, reason)

    def _own_loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        # On any other loop the wait would take real time and this clock would not move.
        invariant(loop is self._loop, "a virtual clock can only be waited for on its own loop (run_virtual)")
        return loop


class _Hold:
    """One reason for virtual time to stand still. Used once."""

    __slots__ = ("_clock", "reason")

    def __init__(self, clock: VirtualClock, reason: str) -> None:
        self._clock = clock
        self.reason = reason

    def __enter__(self) -> None:
        self._clock.holds[self] = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        del self._clock.holds[self]


class Chance(Protocol):
    """A source of randomness."""

    def uuid(self) -> str:
        """Return a fresh random UUID (version 4), in lower case with dashes."""

    def name_suffix(self, length: int = 5) -> str:
        """Return random characters fit for the end of a generated name."""

    def uniform(self, low: float, high: float) -> float:
        """Return a number between `low` and `high`."""

    def randrange(self, stop: int) -> int:
        """Return a whole number from 0 up to, not including, `stop`."""

    def choice(self, options: Sequence[_T]) -> _T:
        """Choose one of `options`, which are not empty."""

    def randbytes(self, count: int) -> bytes:
        """Return `count` random bytes."""

    def child(self, name: str) -> Chance:
        """Return a source of its own for the part called `name`, so that draws of one part do not shift another's."""


_VARIANT: Final = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def _uuid_text(random_bytes: bytes) -> str:
    digits = random_bytes.hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{_VARIANT[digits[16]]}{digits[17:20]}-{digits[20:]}"


_LETTERS: Final = len(NAME_ALPHABET)
_EVEN: Final = 256 - 256 % _LETTERS


class RealChance:
    """The operating system's randomness, good enough for secrets, asked for a page at a time."""

    __slots__ = ("_at", "_page", "_random")

    def __init__(self) -> None:
        self._random = random.SystemRandom()
        self._page = b""
        self._at = 0

    def uuid(self) -> str:
        return _uuid_text(self._take(16))

    def name_suffix(self, length: int = 5) -> str:
        letters: list[str] = []
        while len(letters) < length:
            # Bytes beyond the last whole alphabet would favour its first letters.
            letters += [NAME_ALPHABET[byte % _LETTERS] for byte in self._take(length) if byte < _EVEN]
        return "".join(letters[:length])

    def _take(self, count: int) -> bytes:
        if self._at + count > len(self._page):
            self._page, self._at = os.urandom(max(4096, count)), 0
        self._at += count
        return self._page[self._at - count : self._at]

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def randrange(self, stop: int) -> int:
        return self._random.randrange(stop)

    def choice(self, options: Sequence[_T]) -> _T:
        return self._random.choice(options)

    def randbytes(self, count: int) -> bytes:
        return os.urandom(count)

    def child(self, name: str) -> Chance:
        return self


class SeededChance:
    """A reproducible source: same seed, same calls, same results, on every machine."""

    __slots__ = ("_random", "_seed")

    def __init__(self, seed: int | str) -> None:
        self._seed = str(seed)
        # A text seed is digested with SHA-512: independent of PYTHONHASHSEED, and close seeds are far apart.
        self._random = random.Random(self._seed)

    def uuid(self) -> str:
        return _uuid_text(self._random.randbytes(16))

    def name_suffix(self, length: int = 5) -> str:
        return "".join(self._random.choices(NAME_ALPHABET, k=length))

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def randrange(self, stop: int) -> int:
        return self._random.randrange(stop)

    def choice(self, options: Sequence[_T]) -> _T:
        return self._random.choice(options)

    def randbytes(self, count: int) -> bytes:
        return self._random.randbytes(count)

    def child(self, name: str) -> Chance:
        return SeededChance(f"{self._seed}/{name}")

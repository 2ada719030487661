"""Many deadlines, few timers: what is due in the same tenth of a second is called together.

Thousands of nodes and probes wait for something all the time; one timer of the clock for each would be most of what
a fleet does. A callback is never called early, and at most one grid step late. There is no cancelling: whoever set a
deadline that no longer matters finds out when called. A callback that raises costs no other its turn.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.machinery.clock import Clock, Timer

GRID_NS: Final = 100_000_000


class TimerWheel:
    """Deadlines on the monotonic clock, kept for all nodes and pods of a host."""

    def __init__(self, clock: Clock, grid_ns: int = GRID_NS) -> None:
        self._clock = clock
        self._grid_ns = grid_ns
        self._due: dict[int, list[Callable[[], None]]] = {}
        self._slots: list[int] = []
        self._timer: Timer | None = None
        self._timer_slot = 0
        self._is_stopped = False

    def __len__(self) -> int:
        return sum(map(len, self._due.values()))

    def at(self, when_ns: int, callback: Callable[[], None]) -> None:
        """Call back at a time of the monotonic clock, or very soon if it is over."""
        if self._is_stopped:
            return
        slot = -(-when_ns // self._grid_ns)
        waiting = self._due.get(slot)
        if waiting is None:
            self._due[slot] = [callback]
            heapq.heappush(self._slots, slot)
            self._set_timer()
        else:
            waiting.append(callback)

    def stop(self) -> None:
        """Nothing is called any more."""
        self._is_stopped = True
        self._due.clear()
        self._slots.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        if not self._slots or self._is_stopped:
            return
        slot = self._slots[0]
        if self._timer is not None:
            if self._timer_slot <= slot:
                return
            self._timer.cancel()
        wait_ns = max(slot * self._grid_ns - self._clock.monotonic_ns(), 0)
        self._timer_slot = slot
        self._timer = self._clock.call_later(wait_ns / SECOND_NS, self._turn)

    def _turn(self) -> None:
        self._timer = None
        now_ns = self._clock.monotonic_ns()
        try:
            while self._slots and self._slots[0] * self._grid_ns <= now_ns:
                self._call(heapq.heappop(self._slots))
        finally:
            self._set_timer()

    def _call(self, slot: int) -> None:
        callbacks = self._due.pop(slot)
        called = 0
        try:
            for callback in callbacks:
                if self._is_stopped:
                    break
                called += 1
                callback()
        finally:
            for callback in callbacks[called:]:
                self.at(slot * self._grid_ns, callback)

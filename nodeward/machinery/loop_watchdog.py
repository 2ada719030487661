"""A watchdog of the event loop: says in the log what held the loop for more than 100 ms.

Everything a process does shares one event loop; whoever holds it stops everybody else. The loop beats every 50 ms; a
thread looks on. When a beat is late it notes what the loop's thread is doing, and when the beat comes the pause is
logged with that place, the time, and how much of the time the thread really computed: a process that was stopped, or a
machine that is busy with others, is told from work that is too long. A place is logged once a minute.

Started by the command line for every long-running command; tests read `longest_held_seconds`.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import sys
import threading
from types import FrameType
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.machinery.clock import Clock

LOG: Final = logging.getLogger(__name__)

#: A loop that was held for this long is worth a line.
HELD_SECONDS: Final = 0.1
_BEAT_SECONDS: Final = 0.05
#: A place is named at most this often.
_AGAIN_SECONDS: Final = 60
#: Places remembered.
_PLACES: Final = 1000


class LoopWatchdog:
    """Watches the loop it is started on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._beat_handle: asyncio.TimerHandle | None = None
        self._thread_id = 0
        self._is_stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._beat_ns = 0
        self._cpu_seconds = 0.0
        self._seen = ""
        self._told_ns: dict[str, int] = {}
        #: the longest time the loop's thread computed between two beats
        self.longest_held_seconds = 0.0

    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread_id = threading.get_ident()
        self._beat_ns, self._cpu_seconds = self._clock.monotonic_ns(), _cpu_seconds()
        self._beat_handle = self._loop.call_later(_BEAT_SECONDS, self._beat)
        self._thread = threading.Thread(target=self._watch, name="loop-watchdog", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._is_stopped.set()
        if self._beat_handle is not None:
            self._beat_handle.cancel()

    # -- on the loop

    def _beat(self) -> None:
        now_ns, cpu = self._clock.monotonic_ns(), _cpu_seconds()
        paused = (now_ns - self._beat_ns) / SECOND_NS - _BEAT_SECONDS
        computed = cpu - self._cpu_seconds
        self.longest_held_seconds = max(self.longest_held_seconds, computed)
        if paused > HELD_SECONDS:
            self._report(now_ns, paused, computed)
        self._beat_ns, self._cpu_seconds, self._seen = now_ns, cpu, ""
        if self._loop is not None:
            self._beat_handle = self._loop.call_later(_BEAT_SECONDS, self._beat)

    def _report(self, now_ns: int, paused: float, computed: float) -> None:
        if computed < HELD_SECONDS:
            LOG.info(
                "the event loop did not run for %.2f s: the process was stopped, or others had the CPU",
                paused,
            )
            return
        place = self._seen or "something that was over before it was seen"
        told = self._told_ns.get(place)
        if told is not None and now_ns - told < _AGAIN_SECONDS * SECOND_NS:
            return
        if len(self._told_ns) >= _PLACES:
            self._told_ns.clear()
        self._told_ns[place] = now_ns
        LOG.warning("the event loop was held for %.2f s (%.2f s of computing) by %s", paused, computed, place)

    # -- in the thread

    def _watch(self) -> None:
        while not self._is_stopped.wait(_BEAT_SECONDS):
            late = (self._clock.monotonic_ns() - self._beat_ns) / SECOND_NS - _BEAT_SECONDS
            if late > HELD_SECONDS / 2 and not self._seen:
                frame = sys._current_frames().get(self._thread_id)
                self._seen = _place(frame)


def _place(frame: FrameType | None) -> str:
    """Name where a thread is: the innermost of our functions, and those that called it."""
    found: list[str] = []
    while frame is not None and len(found) < 6:
        code = frame.f_code
        if "/nodeward/" in code.co_filename or "\\nodeward\\" in code.co_filename:
            name = code.co_filename.rpartition("nodeward/")[2]
            found.append(f"{code.co_qualname} ({name}:{frame.f_lineno})")
        frame = frame.f_back
    return ", called by ".join(found)


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return used.ru_utime + used.ru_stime

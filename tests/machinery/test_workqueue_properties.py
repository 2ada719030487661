"""Whatever is added in whatever order: no key is worked on twice at once, and none is lost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.machinery.workqueue import WorkQueue

Step = tuple[str, str, float]

steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "urgent", "after", "failed", "forget", "wait", "cancel"]),
        st.sampled_from("abcd"),
        st.sampled_from([0.0, 0.001, 0.5, 1.0, 1.5, 7.0]),
    ),
    max_size=60,
)


@dataclass
class Log:
    """What happened, in order: keys needed, started and finished."""

    events: list[tuple[str, str]] = field(default_factory=list)

    def keys_never_started_after_being_needed(self) -> list[str]:
        open_needs: dict[str, None] = {}
        for kind, key in self.events:
            if kind == "needed":
                open_needs[key] = None
            elif kind == "started":
                open_needs.pop(key, None)
        return list(open_needs)

    def keys_started_twice_at_once(self) -> list[str]:
        running: dict[str, None] = {}
        twice: list[str] = []
        for kind, key in self.events:
            if kind == "started":
                if key in running:
                    twice.append(key)
                running[key] = None
            elif kind == "finished":
                del running[key]
        return twice


async def play(clock: VirtualClock, script: list[Step], workers: int, work_seconds: float) -> Log:
    queue = WorkQueue[str](clock)
    log = Log()

    async def worker() -> None:
        while (key := await queue.get()) is not None:
            log.events.append(("started", key))
            try:
                await clock.sleep(work_seconds)
            finally:
                log.events.append(("finished", key))
                queue.done(key)

    tasks = [asyncio.create_task(worker()) for _ in range(workers)]
    for kind, key, seconds in script:
        if kind == "wait":
            await clock.sleep(seconds)
            continue
        if kind == "cancel":
            # A worker that waits for a key is replaced.
            idle = asyncio.create_task(queue.get())
            await clock.yield_now()
            if idle.done() and (taken := idle.result()) is not None:
                log.events.append(("started", taken))
                log.events.append(("finished", taken))
                queue.done(taken)
            idle.cancel()
            continue
        if kind == "forget":
            queue.forget(key)
            continue
        log.events.append(("needed", key))
        if kind == "after":
            queue.add_after(key, seconds)
        elif kind == "failed":
            queue.add_rate_limited(key)
        else:
            queue.add(key, priority=1 if kind == "urgent" else 0)
    await clock.sleep(3000)
    await queue.drain()
    await asyncio.gather(*tasks)
    stats = queue.stats()
    assert (stats.depth, stats.processing) == (0, 0)
    return log


@settings(max_examples=150)
@given(steps, st.integers(1, 4), st.sampled_from([0.0, 0.3, 2.0]))
def test_no_key_is_worked_on_twice_at_once_and_none_is_lost(
    script: list[Step], workers: int, work_seconds: float
) -> None:
    log = run_virtual(lambda clock: play(clock, script, workers, work_seconds))
    assert log.keys_started_twice_at_once() == []
    assert log.keys_never_started_after_being_needed() == []

"""The work queue hands out each key once at a time, in order, and loses none."""

from __future__ import annotations

import asyncio

import pytest

from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import InvariantBroken
from nodeward.machinery.backoff import Curve, KeyedBackoff
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.machinery.workqueue import WorkQueue


def take_all(queue: WorkQueue[str]) -> list[str]:
    taken: list[str] = []
    while (key := queue.get_nowait()) is not None:
        taken.append(key)
        queue.done(key)
    return taken


def test_keys_come_in_the_order_they_were_added_and_only_once() -> None:
    queue = WorkQueue[str](VirtualClock())
    for key in ("b", "a", "b", "c", "a"):
        queue.add(key)
    assert len(queue) == 3
    assert take_all(queue) == ["b", "a", "c"]


def test_a_key_added_while_a_worker_has_it_comes_again_once_after_done() -> None:
    queue = WorkQueue[str](VirtualClock())
    queue.add("a")
    assert queue.get_nowait() == "a"
    queue.add("a")
    queue.add("a")
    assert queue.get_nowait() is None
    queue.done("a")
    assert take_all(queue) == ["a"]


def test_higher_priorities_come_first_and_adding_again_only_raises() -> None:
    queue = WorkQueue[str](VirtualClock())
    queue.add("low", -5)
    queue.add("first")
    queue.add("second")
    queue.add("third")
    queue.add("third", 10)
    queue.add("third", 1)
    queue.add("second", -10)
    assert len(queue) == 4
    assert take_all(queue) == ["third", "first", "second", "low"]


def test_a_key_that_was_raised_and_finished_queues_up_behind_the_others_next_time() -> None:
    queue = WorkQueue[str](VirtualClock())
    queue.add("a")
    queue.add("b")
    queue.add("a", 1)
    assert queue.get_nowait() == "a"
    queue.done("a")
    queue.add("a")
    assert take_all(queue) == ["b", "a"]


def test_a_time_that_was_moved_forward_does_not_count_later() -> None:
    async def program(clock: VirtualClock) -> list[float]:
        queue = WorkQueue[str](clock)
        seen: list[float] = []
        queue.add_after("a", 60)
        queue.add_after("a", 10)
        for _ in range(2):
            key = await queue.get()
            assert key is not None
            seen.append(clock.elapsed_ns / SECOND_NS)
            queue.done(key)
            queue.add_after("a", 100)
        return seen

    assert run_virtual(program) == [10.0, 110.0]


def test_a_priority_raised_while_a_worker_has_the_key_counts_after_done() -> None:
    queue = WorkQueue[str](VirtualClock())
    queue.add("a")
    queue.get_nowait()
    queue.add("b", 1)
    queue.add("a")
    queue.add("a", 2)
    queue.done("a")
    assert take_all(queue) == ["a", "b"]


def test_a_delayed_key_comes_exactly_when_due_and_the_earlier_time_counts() -> None:
    async def program(clock: VirtualClock) -> list[tuple[str | None, float]]:
        queue = WorkQueue[str](clock)
        queue.add_after("late", 3600)
        queue.add_after("late", 7200)
        queue.add_after("soon", 1800, priority=3)
        queue.add_after("soon", 60)
        queue.add_after("now", 0)
        seen = []
        for _ in range(3):
            key = await queue.get()
            seen.append((key, clock.elapsed_ns / SECOND_NS))
        await clock.sleep(10_000)
        assert len(queue) == 0
        return seen

    assert run_virtual(program) == [("now", 0.0), ("soon", 60.0), ("late", 3600.0)]


def test_delayed_keys_due_together_come_by_priority() -> None:
    async def program(clock: VirtualClock) -> list[str]:
        queue = WorkQueue[str](clock)
        queue.add_after("plain", 1)
        queue.add_after("urgent", 1, priority=1)
        await clock.sleep(1)
        return take_all(queue)

    assert run_virtual(program) == ["urgent", "plain"]


def test_failures_wait_longer_each_time_until_forgotten() -> None:
    async def program(clock: VirtualClock) -> list[float]:
        queue = WorkQueue[str](clock)
        waits: list[float] = []
        for turn in range(5):
            if turn == 4:
                assert queue.num_requeues("a") == 4
                queue.forget("a")
                assert queue.num_requeues("a") == 0
            before = clock.monotonic_ns()
            queue.add_rate_limited("a")
            key = await queue.get()
            waits.append((clock.monotonic_ns() - before) / SECOND_NS)
            assert key is not None
            queue.done(key)
        return waits

    assert run_virtual(program) == [0.005, 0.01, 0.02, 0.04, 0.005]


def test_the_backoff_can_be_chosen() -> None:
    async def program(clock: VirtualClock) -> float:
        queue = WorkQueue[str](clock, backoff=KeyedBackoff(Curve(initial=10, cap=10)))
        queue.add_rate_limited("a")
        await queue.get()
        return clock.elapsed_ns / SECOND_NS

    assert run_virtual(program) == 10.0


def test_shut_down_workers_finish_what_waits_and_then_stop() -> None:
    async def program(clock: VirtualClock) -> list[str]:
        queue = WorkQueue[str](clock)
        seen: list[str] = []

        async def worker() -> None:
            while (key := await queue.get()) is not None:
                await clock.sleep(1)
                seen.append(key)
                queue.done(key)

        queue.add("a")
        queue.add("b")
        queue.add_after("delayed", 0.5)
        workers = [asyncio.create_task(worker()) for _ in range(4)]
        await clock.yield_now()
        queue.add("a")
        queue.shut_down()
        assert queue.shutting_down
        queue.add("too late")
        queue.add_after("too late", 1)
        queue.add_rate_limited("too late")
        await asyncio.gather(*workers)
        return seen

    assert run_virtual(program) == ["a", "b", "a"]


def test_draining_waits_for_the_last_worker() -> None:
    async def program(clock: VirtualClock) -> None:
        queue = WorkQueue[str](clock)

        async def worker() -> None:
            while (key := await queue.get()) is not None:
                await clock.sleep(10)
                queue.done(key)

        for key in "abc":
            queue.add(key)
        task = asyncio.create_task(worker())
        await asyncio.gather(queue.drain(), queue.drain())
        assert clock.elapsed_ns == 30 * SECOND_NS
        await task
        await queue.drain()

    run_virtual(program)


def test_shutting_down_ends_a_drain_under_way() -> None:
    async def program(clock: VirtualClock) -> None:
        queue = WorkQueue[str](clock)
        queue.add("nobody works on this")
        drain = asyncio.create_task(queue.drain())
        await clock.yield_now()
        assert not drain.done()
        queue.shut_down()
        await drain

    run_virtual(program)


def test_a_cancelled_getter_takes_no_key_with_it() -> None:
    async def program(clock: VirtualClock) -> None:
        queue = WorkQueue[str](clock)
        getters = [asyncio.create_task(queue.get()) for _ in range(3)]
        await clock.yield_now()
        queue.add("a")
        getters[0].cancel()  # woken already
        getters[1].cancel()  # woken by the first in vain
        assert await getters[2] == "a"

    run_virtual(program)


def test_getters_that_give_up_leave_nothing_behind() -> None:
    async def program(clock: VirtualClock) -> None:
        queue = WorkQueue[str](clock)
        for _ in range(50):
            with pytest.raises(TimeoutError):
                async with clock.timeout(1):
                    await queue.get()
        assert len(queue._getters) == 0
        queue.add("a")
        assert await queue.get() == "a"

    run_virtual(program)


def test_finishing_a_key_nobody_has_is_a_bug() -> None:
    with pytest.raises(InvariantBroken, match="no worker has"):
        WorkQueue[str](VirtualClock()).done("a")


def test_the_counters_count() -> None:
    async def program(clock: VirtualClock) -> None:
        queue = WorkQueue[str](clock, name="pods")
        for key in ("a", "b", "c", "a"):
            queue.add(key)
        queue.add_after("d", 100)
        queue.add_rate_limited("e")
        await queue.get()
        await clock.sleep(2)
        await queue.get()
        await clock.sleep(1)
        stats = queue.stats()
        assert (queue.name, stats.depth, stats.processing) == ("pods", 2, 2)
        assert (stats.adds, stats.retries) == (4, 2)
        assert (stats.unfinished_seconds, stats.longest_running_seconds) == (4.0, 3.0)
        assert WorkQueue[str](clock).stats().longest_running_seconds == 0.0

    run_virtual(program)

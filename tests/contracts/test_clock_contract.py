"""What every clock promises. The real one waits milliseconds here, the virtual one hours."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from nodeward.base.duration import SECOND_NS
from nodeward.machinery.clock import Clock, RealClock
from nodeward.machinery.virtual_loop import run_virtual

Program = Callable[[Clock, float], Coroutine[Any, Any, None]]
Run = Callable[[Program], None]


def run_on_real_clock(program: Program) -> None:
    asyncio.run(program(RealClock(), 0.02))


def run_on_virtual_clock(program: Program) -> None:
    run_virtual(lambda clock: program(clock, 3600.0))


@pytest.fixture(params=[run_on_real_clock, run_on_virtual_clock], ids=["real", "virtual"])
def run(request: pytest.FixtureRequest) -> Run:
    runner: Run = request.param
    return runner


def test_sleeping_moves_both_times_by_at_least_as_much(run: Run) -> None:
    async def program(clock: Clock, unit: float) -> None:
        wall, steady = clock.now_ns(), clock.monotonic_ns()
        await clock.sleep(unit)
        assert clock.monotonic_ns() - steady >= int(unit * 0.99e9)
        assert clock.now_ns() - wall >= int(unit * 0.9e9)

    run(program)


def test_wall_time_and_monotonic_time_cannot_be_mistaken_for_each_other(run: Run) -> None:
    async def program(clock: Clock, unit: float) -> None:
        assert abs(clock.now_ns() - clock.monotonic_ns()) > SECOND_NS * 86400

    run(program)


def test_sleepers_wake_in_the_order_of_their_deadlines(run: Run) -> None:
    async def program(clock: Clock, unit: float) -> None:
        woken: list[int] = []

        async def sleeper(units: int) -> None:
            await clock.sleep(units * unit)
            woken.append(units)

        await asyncio.gather(sleeper(3), sleeper(1), sleeper(2))
        assert woken == [1, 2, 3]

    run(program)


def test_yielding_lets_others_run(run: Run) -> None:
    async def program(clock: Clock, unit: float) -> None:
        seen: list[str] = []

        async def other() -> None:
            seen.append("other")

        task = asyncio.create_task(other())
        await clock.yield_now()
        seen.append("me")
        await task
        assert seen == ["other", "me"]

    run(program)


def test_a_callback_comes_when_due_and_a_cancelled_one_never(run: Run) -> None:
    async def program(clock: Clock, unit: float) -> None:
        seen: list[str] = []
        clock.call_later(unit, lambda: seen.append("kept"))
        clock.call_later(unit / 2, lambda: seen.append("cancelled")).cancel()
        assert seen == []
        await clock.sleep(unit * 2)
        assert seen == ["kept"]

    run(program)


def test_a_timeout_interrupts_what_takes_longer(run: Run) -> None:
    async def program(clock: Clock, unit: float) -> None:
        before = clock.monotonic_ns()
        with pytest.raises(TimeoutError):
            async with clock.timeout(unit):
                await asyncio.Event().wait()
        assert clock.monotonic_ns() - before >= int(unit * 0.99e9)

    run(program)


def test_a_timeout_leaves_alone_what_is_done_in_time(run: Run) -> None:
    async def program(clock: Clock, unit: float) -> None:
        async with clock.timeout(unit) as timeout:
            await clock.yield_now()
        async with clock.timeout(None):
            await clock.sleep(unit)
        assert not timeout.expired()

    run(program)


def test_holding_nests_and_ends(run: Run) -> None:
    async def program(clock: Clock, unit: float) -> None:
        with clock.hold("outer"), clock.hold("inner"):
            await clock.yield_now()
        before = clock.monotonic_ns()
        await clock.sleep(unit)
        assert clock.monotonic_ns() > before

    run(program)


def test_a_thread_that_is_slower_than_the_timeout_in_virtual_time_is_still_in_time(run: Run) -> None:
    async def program(clock: Clock, unit: float) -> None:
        ready = asyncio.Event()
        loop = asyncio.get_running_loop()
        async with clock.timeout(unit + 5):
            await asyncio.to_thread(loop.call_soon_threadsafe, ready.set)
            with clock.hold("the event"):
                await ready.wait()

    run(program)

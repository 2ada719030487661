"""The wheel calls back in time, together, and whatever one of those it calls does."""

from __future__ import annotations

import asyncio
from typing import Any

from nodeward.kubelet.timer_wheel import GRID_NS, TimerWheel
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual


def test_it_is_never_early_and_at_most_one_step_late() -> None:
    async def main(clock: VirtualClock) -> None:
        wheel, late = TimerWheel(clock), []
        begin_ns = clock.monotonic_ns()
        for wait_ns in (1, GRID_NS // 3, GRID_NS, 7 * GRID_NS + 1, 0):
            due_ns = begin_ns + wait_ns
            wheel.at(due_ns, lambda due_ns=due_ns: late.append(clock.monotonic_ns() - due_ns))  # type: ignore[misc]
        await clock.sleep(2)
        assert len(late) == 5
        assert all(0 <= each <= GRID_NS for each in late)
        assert len(wheel) == 0

    run_virtual(main)


def test_a_callback_that_raises_costs_no_other_its_turn() -> None:
    async def main(clock: VirtualClock) -> None:
        raised: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        wheel, called = TimerWheel(clock), []

        def bad() -> None:
            raise ValueError("bad")

        now_ns = clock.monotonic_ns()
        wheel.at(now_ns + 1, lambda: called.append("before"))
        wheel.at(now_ns + 1, bad)
        wheel.at(now_ns + 1, lambda: called.append("beside"))
        wheel.at(now_ns + 5 * GRID_NS, lambda: called.append("after"))
        await clock.sleep(2)
        assert called == ["before", "beside", "after"]
        assert [str(each["exception"]) for each in raised] == ["bad"]

    run_virtual(main)


def test_once_stopped_it_calls_nobody_not_even_those_of_the_same_moment() -> None:
    async def main(clock: VirtualClock) -> None:
        wheel, called = TimerWheel(clock), []
        now_ns = clock.monotonic_ns()
        wheel.at(now_ns + 1, wheel.stop)
        wheel.at(now_ns + 1, lambda: called.append("beside"))
        await clock.sleep(2)
        wheel.at(clock.monotonic_ns(), lambda: called.append("after"))
        await clock.sleep(2)
        assert called == []
        assert len(wheel) == 0

    run_virtual(main)

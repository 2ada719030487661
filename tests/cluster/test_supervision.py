"""Components that end by themselves are started again, later each time, and not after somebody has stopped them."""

from __future__ import annotations

import asyncio

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.cluster.component import FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS, STEADY_SECONDS, Component
from nodeward.features import Gates
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.cluster.whole import plan, whole_cluster
from tests.scheduler.running import pod


class Part:
    """A component that ends when it is told to."""

    def __init__(self) -> None:
        self.end: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_stopped = False

    async def stop(self) -> None:
        self.is_stopped = True


def component(clock: VirtualClock, made: list[Part], broken: list[bool]) -> Component[Part]:
    def make(gates: Gates) -> Part:
        made.append(Part())
        return made[-1]

    async def start(part: Part) -> None:
        if broken and broken.pop():
            raise OSError("no room")

    async def ended(part: Part) -> None:
        await asyncio.shield(part.end)

    return Component("part", Gates.of("1.37"), make, start, Part.stop, ended=ended, clock=clock)


def test_one_that_ends_is_started_again_later_each_time(caplog: pytest.LogCaptureFixture) -> None:
    async def main(clock: VirtualClock) -> None:
        made: list[Part] = []
        it = component(clock, made, [])
        await it.start()
        delay = FIRST_DELAY_SECONDS
        for number in range(1, 9):
            made[-1].end.set_exception(RuntimeError(f"mistake {number}"))
            await clock.sleep(delay - 0.01)
            assert (len(made), it.is_running) == (number, False)
            assert made[-1].is_stopped
            await clock.sleep(0.02)
            assert (len(made), it.is_running) == (number + 1, True)
            delay = min(2 * delay, LONGEST_DELAY_SECONDS)
        await clock.sleep(STEADY_SECONDS + 1)
        made[-1].end.set_result(None)
        await clock.sleep(FIRST_DELAY_SECONDS + 0.01)
        assert it.running is made[-1]
        await it.stop()
        assert made[-1].is_stopped

    run_virtual(main)
    assert "part has ended and is started again in 1 s: RuntimeError: mistake 1" in caplog.text


def test_one_that_does_not_start_again_is_tried_again() -> None:
    async def main(clock: VirtualClock) -> None:
        made: list[Part] = []
        broken: list[bool] = []
        it = component(clock, made, broken)
        await it.start()
        broken.extend([True, True])
        made[-1].end.set_result(None)
        await clock.sleep(10)
        assert len(made) == 4
        assert it.running is made[-1]
        assert [each.is_stopped for each in made] == [True, True, True, False]
        await it.stop()

    run_virtual(main)


def test_one_that_was_stopped_stays_stopped() -> None:
    async def main(clock: VirtualClock) -> None:
        made: list[Part] = []
        it = component(clock, made, [])
        await it.start()
        await it.stop()
        made[-1].end.set_result(None)
        await clock.sleep(1000)
        assert (len(made), it.is_running) == (1, False)

    run_virtual(main)


def test_a_scheduler_that_breaks_in_a_running_cluster_is_replaced() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, fleet=plan({"name": "n", "nodes": 1}), fleet_map="f") as cluster:
            await clock.sleep(5)
            first = cluster.scheduler.running
            assert first is not None
            first._break(RuntimeError("a plugin has a bug"))
            await clock.sleep(5)
            assert cluster.scheduler.running is not first
            client = cluster.client("test")
            await client.create(pod("p"))
            await clock.sleep(5)
            assert (await client.get(Pod, "p", "default")).spec.node_name == "n-0"

    run_virtual(main)

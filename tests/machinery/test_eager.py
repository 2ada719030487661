"""A coroutine that has nothing to wait for is over at once; one that has goes on as a task."""

from __future__ import annotations

import asyncio

import pytest

from nodeward.base.invariant import InvariantBroken
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.eager import EagerTasks, own_task
from nodeward.machinery.virtual_loop import run_virtual


class Told:
    """What was said, in order."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.tasks = EagerTasks(lambda error: self.words.append(f"failed: {error}"), (ValueError,))

    def __call__(self, word: str) -> None:
        self.words.append(word)


def test_a_coroutine_that_waits_for_nothing_is_over_when_start_returns() -> None:
    told = Told()

    async def work() -> None:
        told("done")

    told.tasks.start(work())
    assert told.words == ["done"]
    assert len(told.tasks) == 0


def test_a_coroutine_that_waits_goes_on_as_a_task() -> None:
    async def main(clock: VirtualClock) -> None:
        told = Told()

        async def work() -> None:
            told("begun")
            await clock.sleep(1)
            told("slept")
            await clock.sleep(1)
            told("done")

        told.tasks.start(work())
        told("returned")
        assert len(told.tasks) == 1
        await clock.sleep(3)
        assert told.words == ["begun", "returned", "slept", "done"]
        assert len(told.tasks) == 0

    run_virtual(main)


@pytest.mark.parametrize("waits", [False, True])
def test_an_expected_error_is_told_before_and_after_a_wait(waits: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        told = Told()

        async def work() -> None:
            if waits:
                await clock.sleep(1)
            raise ValueError("no")

        told.tasks.start(work())
        await clock.sleep(2)
        assert told.words == ["failed: no"]

    run_virtual(main)


@pytest.mark.parametrize("waits", [False, True])
def test_an_unexpected_error_is_logged_and_costs_nobody_else(
    waits: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(clock: VirtualClock) -> None:
        told = Told()

        async def work() -> None:
            if waits:
                await clock.sleep(1)
            raise KeyError("bug")

        told.tasks.start(work())
        await clock.sleep(2)
        assert told.words == []

    run_virtual(main)
    assert "KeyError: 'bug'" in caplog.text


def test_a_broken_invariant_stops_the_caller() -> None:
    async def work() -> None:
        raise InvariantBroken("bug")

    with pytest.raises(InvariantBroken):
        Told().tasks.start(work())


def test_stop_cancels_what_waits_and_starts_nothing_more() -> None:
    async def main(clock: VirtualClock) -> None:
        told = Told()

        async def work() -> None:
            try:
                await clock.sleep(100)
            finally:
                told("cleaned")

        told.tasks.start(work())
        await clock.yield_now()
        told.tasks.start(work())  # cancelled before its task's first step
        await told.tasks.stop()
        assert told.words == ["cleaned", "cleaned"]
        told.tasks.start(work())
        assert told.words == ["cleaned", "cleaned"]

    run_virtual(main)


def test_a_timeout_works_in_a_function_that_has_its_own_task() -> None:
    async def main(clock: VirtualClock) -> None:
        told = Told()

        @own_task
        async def limited() -> None:
            async with clock.timeout(1):
                await clock.sleep(100)

        async def work() -> None:
            try:
                await limited()
            except TimeoutError:
                told("late")

        asyncio.get_running_loop().call_soon(lambda: told.tasks.start(work()))
        await clock.sleep(2)
        assert told.words == ["late"]

    run_virtual(main)

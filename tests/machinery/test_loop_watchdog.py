"""The watchdog names what held the event loop, and says nothing of a loop that waits."""

from __future__ import annotations

import asyncio
import logging
import resource

import pytest

from nodeward.machinery.clock import RealClock
from nodeward.machinery.loop_watchdog import HELD_SECONDS, LoopWatchdog
from nodeward.rules.selectors import parse_labels
from tests.patience import PATIENCE_SECONDS

SELECTOR = "a in (" + ",".join(f"v{number}" for number in range(900)) + ")"


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return used.ru_utime + used.ru_stime


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if "the event loop was held" in each.getMessage()]


async def until_beaten(watchdog: LoopWatchdog) -> None:
    clock = RealClock()
    for _ in range(int(PATIENCE_SECONDS / 0.01)):
        if watchdog.longest_held_seconds >= 5 * HELD_SECONDS:
            return
        await clock.sleep(0.01)
    raise AssertionError("the loop does not beat any more")


def test_what_held_the_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        watchdog = LoopWatchdog(RealClock())
        watchdog.start()
        for _ in range(2):
            watchdog.longest_held_seconds = 0.0
            until = cpu_seconds() + 8 * HELD_SECONDS
            while cpu_seconds() < until:
                for _ in range(20):
                    parse_labels(SELECTOR)
            await until_beaten(watchdog)
        watchdog.stop()

    caplog.set_level(logging.WARNING)
    asyncio.run(main())
    found = lines(caplog)
    assert found
    assert "parse_labels (rules/selectors.py:" in found[0]
    assert "of computing" in found[0]


def test_a_loop_that_waits_is_not_held(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        watchdog = LoopWatchdog(RealClock())
        watchdog.start()
        for _ in range(20):
            await RealClock().sleep(0.02)
        watchdog.stop()
        assert watchdog.longest_held_seconds < HELD_SECONDS

    asyncio.run(main())
    assert lines(caplog) == []

"""For all tests: Hypothesis judges findings and not durations, reports carry marks, and the run has one seed."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

from tests.keps.proving import pytest_itemcollected
from tests.rounds import SEED_VARIABLE, settle_seed

__all__ = ["pytest_itemcollected"]

# On top of what Hypothesis chooses by itself: in CI that is the same examples in every run.
settings.register_profile(
    "nodeward", settings.default, deadline=None, suppress_health_check=(HealthCheck.too_slow,)
)
settings.load_profile("nodeward")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with slow tests first: workers that begin with the longest files end at about the same time."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_configure() -> None:
    settle_seed()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"chance of this run: {SEED_VARIABLE}={settle_seed()}")

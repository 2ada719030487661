"""For all tests: Hypothesis judges what a test finds, not how long it took on a busy machine; reports carry marks."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.keps.proving import pytest_itemcollected

__all__ = ["pytest_itemcollected"]

# On top of what Hypothesis chooses by itself: in CI that is the same examples in every run.
settings.register_profile(
    "nodeward", settings.default, deadline=None, suppress_health_check=(HealthCheck.too_slow,)
)
settings.load_profile("nodeward")

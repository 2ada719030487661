"""Numbers that users may give as a share of something: `maxSurge: 25%`."""

from __future__ import annotations

from nodeward.api.fields import IntOrString
from nodeward.api.validation.workload_counts import amount


def scaled(value: IntOrString | None, total: int, *, round_up: bool) -> int:
    """The number meant; a percentage is taken of `total`. None is 0."""
    if not isinstance(value, str):
        return value or 0
    parts = amount(value) * total
    return -(-parts // 100) if round_up else parts // 100

"""Numbers that users may give as a share of something: `maxSurge: 25%`.

Called by controllers and validation.
"""

from __future__ import annotations

from nodeward.api.fields import IntOrString


def amount(value: IntOrString | None) -> int:
    """Return the number in front of the percent sign, or the number itself; 0 for text that is neither."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    return int(digits) if digits.isascii() and digits.isdecimal() else 0


def scaled(value: IntOrString | None, total: int, *, round_up: bool) -> int:
    """Return the number meant; a percentage is taken of `total`. None is 0."""
    if not isinstance(value, str):
        return value or 0
    parts = amount(value) * total
    return -(-parts // 100) if round_up else parts // 100

"""Rounds quantities up to thousandths, the finest that is stored, in place."""

from __future__ import annotations

from typing import Final

from nodeward.base.quantity import Quantity

_MILLI_IN_NANOS: Final = 10**6


def round_up(resources: dict[str, Quantity]) -> None:
    for name, quantity in resources.items():
        if quantity.nanos % _MILLI_IN_NANOS:
            resources[name] = Quantity.of_milli(quantity.milli_value, quantity.format)

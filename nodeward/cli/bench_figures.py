"""One measured number, and what it was measured on."""

from __future__ import annotations

import msgspec


class Figure(msgspec.Struct, frozen=True):
    """`-o json` prints a list of these."""

    name: str
    value: float
    unit: str
    conditions: str

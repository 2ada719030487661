"""Members by names that are known: `device.attributes["gpu.example.com"].memory` as one closure.

Used by `planner.py`; most of what selectors do is this. The fast way only works where every step succeeds. What goes
wrong is done again step by step, which finds the right error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from nodeward.cel.qualify import member, missing_key
from nodeward.cel.values import Value

#: One place per variable.
Frame: TypeAlias = list[Any]
Closure: TypeAlias = Callable[[Frame], Value]


def member_of(operand: Closure, name: str) -> Closure:
    """Return a closure for one member."""

    def select(frame: Frame) -> Value:
        value = operand(frame)
        try:
            return value[name]
        except KeyError:
            raise missing_key(name) from None
        except TypeError:
            return member(value, name)

    return select


def member_chain(place: int, names: list[str], step: Closure) -> Closure:
    """Return a closure for up to three members of the variable at a place; `step` is used where it fails."""
    if len(names) > 3:
        return step
    first, second, third = [*names, "", ""][:3]

    def one(frame: Frame) -> Value:
        try:
            return frame[place][first]
        except (KeyError, TypeError):
            return step(frame)

    def two(frame: Frame) -> Value:
        try:
            return frame[place][first][second]
        except (KeyError, TypeError):
            return step(frame)

    def three(frame: Frame) -> Value:
        try:
            return frame[place][first][second][third]
        except (KeyError, TypeError):
            return step(frame)

    return (one, two, three)[len(names) - 1]

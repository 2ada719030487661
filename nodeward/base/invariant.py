"""Checks that stay on in production: a broken one is our bug, and the component that found it stops.

Used by every component.
"""

from __future__ import annotations

from nodeward.base.errors import NodewardError


class InvariantBroken(NodewardError):
    """Something that must always be true is not. Never retried."""


def invariant(condition: bool, message: str) -> None:
    """Stop with `InvariantBroken` unless `condition` holds. Unlike `assert`, never optimised away."""
    if not condition:
        raise InvariantBroken(message)

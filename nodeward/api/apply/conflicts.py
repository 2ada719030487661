"""Apply conflicts: fields two managers set to different values, and the 409 that lists them.

The texts are those kubectl shows: one conflict in a line, several grouped by manager.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nodeward.api.apply.field_set import FieldSet, Path, has, paths, show
from nodeward.api.apply.managers import ManagerIdentity
from nodeward.api.errors import ApiError, apply_conflict
from nodeward.api.meta import StatusCause
from nodeward.base.fielderror import quote


class Conflict(NamedTuple):
    """A field that another manager owns and the applied configuration changes."""

    owner: ManagerIdentity
    path: Path


def conflicts_with(owned: dict[ManagerIdentity, FieldSet]) -> list[Conflict]:
    """Return one conflict for each field of each owner, owners in the order messages name them."""
    by_name = sorted(owned, key=lambda identity: identity.text)
    return [Conflict(identity, path) for identity in by_name for path in paths(owned[identity])]


def not_in(conflicts: Sequence[Conflict], allowed: FieldSet) -> list[Conflict]:
    """Return the conflicts about other fields than these."""
    return [conflict for conflict in conflicts if not has(allowed, conflict.path)]


def refusal(conflicts: Sequence[Conflict]) -> ApiError:
    """Make the error for an apply that was not forced."""
    causes = [
        StatusCause(reason="FieldManagerConflict", message=f"conflict with {_named(owner)}", field=show(path))
        for owner, path in conflicts
    ]
    return apply_conflict(causes, _message(conflicts))


def _message(conflicts: Sequence[Conflict]) -> str:
    if len(conflicts) == 1:
        [(owner, path)] = conflicts
        return f"Apply failed with 1 conflict: conflict with {_named(owner)}: {show(path)}"
    lines = []
    last: ManagerIdentity | None = None
    for owner, path in conflicts:
        if owner != last:
            lines.append(f"conflicts with {_named(owner)}:")
            last = owner
        lines.append(f"- {show(path)}")
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _named(owner: ManagerIdentity) -> str:
    text = quote(owner.manager)
    if owner.subresource:
        text += f" with subresource {quote(owner.subresource)}"
    return f"{text} using {owner.api_version}" if owner.operation == "Update" else text

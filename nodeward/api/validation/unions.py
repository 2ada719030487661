"""Unions: of several fields exactly one, or at most one, is set.

`members` maps the JSON name of each field to whether it is set, in the order the type lists them.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodeward.base.fielderror import FieldError, invalid
from nodeward.base.fieldpath import FieldPath


def _listed(members: Mapping[str, bool]) -> str:
    return ", ".join(f"`{name}`" for name in members)


def _chosen(members: Mapping[str, bool]) -> list[str]:
    return [name for name, is_set in members.items() if is_set]


def validate_exactly_one(path: FieldPath, members: Mapping[str, bool]) -> list[FieldError]:
    chosen = _chosen(members)
    if not chosen:
        return [invalid(path, "", f"must specify one of: {_listed(members)}")]
    if len(chosen) == 1:
        return []
    return [invalid(path, f"{{{', '.join(chosen)}}}", f"must specify exactly one of: {_listed(members)}")]


def validate_at_most_one(path: FieldPath, members: Mapping[str, bool]) -> list[FieldError]:
    chosen = _chosen(members)
    if len(chosen) < 2:
        return []
    return [invalid(path, f"{{{', '.join(chosen)}}}", f"must specify at most one of: {_listed(members)}")]

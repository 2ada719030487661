"""Unions: of several fields exactly one is set.

`members` maps the JSON name of each field to whether it is set, in the order the type lists them.
"""

from __future__ import annotations

from collections.abc import Mapping

from nodeward.base.fielderror import FieldError, invalid
from nodeward.base.fieldpath import FieldPath


def validate_exactly_one(path: FieldPath, members: Mapping[str, bool]) -> list[FieldError]:
    chosen = [name for name, is_set in members.items() if is_set]
    if len(chosen) == 1:
        return []
    listed = ", ".join(f"`{name}`" for name in members)
    if not chosen:
        return [invalid(path, "", f"must specify one of: {listed}")]
    return [invalid(path, f"{{{', '.join(chosen)}}}", f"must specify exactly one of: {listed}")]

"""The promise every kind makes to the request path: how its objects are checked, and when.

A validator only looks: it never changes an object (defaults and field stripping happen before). It returns every
fault it finds, in the order Kubernetes reports them; an empty list means the object may be stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from nodeward.api.context import Context
from nodeward.api.meta import KubeObject
from nodeward.base.fielderror import FieldError

#: May the name be used? The messages that stand behind `metadata.name: Invalid value: "...":`; none if it may.
NameRule: TypeAlias = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Validator:
    """One kind's rules. `create(obj, ctx)`, `update(new, old, ctx)`, `status(new, old, ctx)` (None: no status),
    `warnings(new, old | None, ctx)` (texts for the Warning header; None: the kind never warns)."""

    create: Callable[[Any, Context], list[FieldError]]
    update: Callable[[Any, Any, Context], list[FieldError]]
    status: Callable[[Any, Any, Context], list[FieldError]] | None
    name: NameRule
    warnings: Callable[[Any, Any, Context], list[str]] | None = None


#: What the registry is: kind to rules.
Validators: TypeAlias = dict[type[KubeObject], Validator]


def distinct(errors: list[FieldError]) -> list[FieldError]:
    """Each fault once, where it was first found: rules for all times and rules for changes often say the same."""
    if len(errors) < 2:
        return errors
    return list({str(error): error for error in reversed(errors)}.values())[::-1]

"""How the rules of a kind are put together: metadata, then the kind's own rules, in the order of its answers.

Most kinds are `kind(name rule, own rules)`; where Kubernetes asks in another order, `update` lists the steps. A step
takes the new object, the old one (None when it is being made) and the context, and returns field errors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from nodeward.api.context import Context
from nodeward.base.fielderror import FieldError
from nodeward.rules.names import path_segment_name
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from nodeward.validation.validator import NameRule, Validator

Step: TypeAlias = Callable[[Any, Any, Context], list[FieldError]]


def made(name: NameRule, *, namespaced: bool) -> Step:
    """The step that checks metadata as on create."""
    return lambda new, old, ctx: validate_metadata(new.metadata, name, namespaced=namespaced)


def changed(new: Any, old: Any, ctx: Context) -> list[FieldError]:
    """The step that checks what may change in metadata."""
    return validate_metadata_update(new.metadata, old.metadata)


def asked(*create: Step) -> Validator:
    """A kind that asks and is never stored."""
    return kind(path_segment_name, changed, create=create, update=())


def kind(
    name: NameRule,
    rules: Step,
    *,
    namespaced: bool = True,
    create: tuple[Step, ...] | None = None,
    update: tuple[Step, ...] | None = None,
    status: Step | tuple[Step, ...] | None = None,
    warnings: Callable[[Any, Any, Context], list[str]] | None = None,
) -> Validator:
    """On create the name and the rules, on update what may change in metadata and the rules, unless steps are given.
    A single step for `status` is asked after what may change in metadata."""
    on_create = create if create is not None else (made(name, namespaced=namespaced), rules)
    on_update = update if update is not None else (changed, rules)
    on_status = status if isinstance(status, tuple) else () if status is None else (changed, status)

    def check_create(obj: Any, ctx: Context) -> list[FieldError]:
        return [error for step in on_create for error in step(obj, None, ctx)]

    def check_update(new: Any, old: Any, ctx: Context) -> list[FieldError]:
        return [error for step in on_update for error in step(new, old, ctx)]

    def check_status(new: Any, old: Any, ctx: Context) -> list[FieldError]:
        return [error for step in on_status for error in step(new, old, ctx)]

    return Validator(
        create=check_create,
        update=check_update,
        status=None if status is None else check_status,
        name=name,
        warnings=warnings,
    )

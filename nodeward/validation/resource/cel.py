"""Expressions in new objects: selectors of devices and derived attributes must compile and must not cost too much.

Called by the rules for claims, templates and classes. Stored expressions are not looked at again: they were fine when
they were new.
"""

from __future__ import annotations

from collections.abc import Callable

from nodeward.api.context import Context
from nodeward.base.fielderror import FieldError, forbidden, internal, invalid
from nodeward.base.fieldpath import FieldPath
from nodeward.cel.declarations import CelEnvironment
from nodeward.cel.device import (
    COST_LIMIT,
    LONGEST_SELECTOR,
    compile_derived_attribute,
    compile_selector,
    new_expressions,
)
from nodeward.cel.program import CompileErrors, Program
from nodeward.validation.checks import check_size


def validate_selector_expression(expression: str, path: FieldPath, ctx: Context) -> list[FieldError]:
    """Check the expression of a selector."""
    return _validate(expression, path, ctx, compile_selector)[0]


def validate_derived_expression(
    expression: str, path: FieldPath, ctx: Context
) -> tuple[list[FieldError], int]:
    """Check the expression of a derived attribute; return the errors and what it costs at most."""
    return _validate(expression, path, ctx, compile_derived_attribute)


def _validate(
    expression: str, path: FieldPath, ctx: Context, compile_it: Callable[[str, CelEnvironment], Program]
) -> tuple[list[FieldError], int]:
    if errors := check_size(expression, path, LONGEST_SELECTOR):
        return errors, 0
    environment = new_expressions(
        has_sharing=ctx.on("DRAConsumableCapacity"), has_lists=ctx.on("DRAListTypeAttributes")
    )
    try:
        program = compile_it(expression, environment)
    except CompileErrors as error:
        if error.is_internal:
            return [internal(path, str(error))], 0
        return [invalid(path, expression, str(error))], 0
    if program.max_cost > COST_LIMIT:
        return [forbidden(path, "too complex, exceeds cost limit")], program.max_cost
    return [], program.max_cost

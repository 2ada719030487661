"""Expressions in new objects: selectors of devices and derived attributes must compile and must not cost too much.

Called by the rules for claims, templates and classes. Stored expressions are not looked at again: they were fine when
they were new. The engine is imported with the first expression: most servers never see one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nodeward.api.context import Context
from nodeward.base.fielderror import FieldError, forbidden, internal, invalid
from nodeward.base.fieldpath import FieldPath
from nodeward.validation.checks import check_size

if TYPE_CHECKING:
    from nodeward.cel.program import Program

_TOO_COSTLY: Final = "too complex, exceeds cost limit"
_ALL_TOO_COSTLY: Final = (
    "too complex, total cost of derived attribute CEL expressions in the claim exceeds cost limit"
)


def validate_selector_expression(expression: str, path: FieldPath, ctx: Context) -> list[FieldError]:
    """Check the expression of a selector."""
    return _validate(expression, path, ctx, is_derived=False)[0]


def validate_derived_expression(
    expression: str, path: FieldPath, ctx: Context
) -> tuple[list[FieldError], int]:
    """Check the expression of a derived attribute; return the errors and what it costs at most."""
    return _validate(expression, path, ctx, is_derived=True)


def validate_total_cost(cost: int, path: FieldPath) -> list[FieldError]:
    """Check what all derived attributes of a claim cost together."""
    if cost == 0:
        return []
    from nodeward.cel.device import COST_LIMIT

    return [forbidden(path, _ALL_TOO_COSTLY)] if cost > COST_LIMIT else []


def _validate(
    expression: str, path: FieldPath, ctx: Context, *, is_derived: bool
) -> tuple[list[FieldError], int]:
    from nodeward.cel.device import COST_LIMIT, LONGEST_SELECTOR
    from nodeward.cel.program import CompileErrors

    if errors := check_size(expression, path, LONGEST_SELECTOR):
        return errors, 0
    try:
        program = _compile(expression, ctx, is_derived=is_derived)
    except CompileErrors as error:
        if error.is_internal:
            return [internal(path, str(error))], 0
        return [invalid(path, expression, str(error))], 0
    if program.max_cost > COST_LIMIT:
        return [forbidden(path, _TOO_COSTLY)], program.max_cost
    return [], program.max_cost


def _compile(expression: str, ctx: Context, *, is_derived: bool) -> Program:
    from nodeward.cel.device import compile_derived_attribute, compile_selector, new_expressions

    environment = new_expressions(
        has_sharing=ctx.on("DRAConsumableCapacity"), has_lists=ctx.on("DRAListTypeAttributes")
    )
    return (compile_derived_attribute if is_derived else compile_selector)(expression, environment)

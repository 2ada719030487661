"""What a checked call runs: one overload, a choice among several, or a value known at compile time.

Called by both planners for every call of a declared function that has no evaluation of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from nodeward.cel import arithmetic as a
from nodeward.cel.checker import CheckedTree
from nodeward.cel.declarations import Function, Implementation, dispatch, guard
from nodeward.cel.library.named_formats import NamedFormat
from nodeward.cel.library.regular_expressions import compile_regex
from nodeward.cel.library.semvers import Semver
from nodeward.cel.library.standard import CONSTANT_FOLDED
from nodeward.cel.qualify import check_key, go_type
from nodeward.cel.syntax_tree import FunctionCall
from nodeward.cel.values import EvaluationAborted, EvaluationError, Uint, Value, no_overload


class HasValue(Protocol):
    """A closure whose value is known."""

    value: Value


class PlanError(ValueError):
    """A constant part of the expression fails, so that no program can be made of it."""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How to carry out a call.

    `operands` are the types the first argument must have (empty: any). `is_variadic`: arguments after one that fails
    are not evaluated. `constant` and `members` replace the call: a known value, or the items of a constant list.
    """

    name: str
    overload: str
    run: Implementation
    operands: frozenset[type] = frozenset()
    is_variadic: bool = False
    constant: tuple[Value] | None = None
    members: frozenset[Value] | None = None

    def refusal(self, value: Value) -> EvaluationError:
        """Return the error for a first argument of a type the function does not take."""
        return (
            no_overload() if type(value) in a.RECEIVERS else EvaluationError(f"no such overload: {self.name}")
        )


def check_constant_key(key: HasValue | None) -> None:
    """Raise PlanError for a constant that nothing can have as a key."""
    if key is not None:
        try:
            check_key(key.value)
        except EvaluationError as error:
            raise PlanError(str(error)) from None


def is_member(value: Value, members: frozenset[Value]) -> bool:
    """Tell whether a value is one of the plain values of a constant list."""
    if type(value) in _WITHOUT_HASH:
        raise EvaluationAborted(f"internal error: runtime error: hash of unhashable type {go_type(value)}")
    return type(value).__hash__ is not None and (type(value) is bool, value) in members


#: As upstream, where the evaluation panics.
_WITHOUT_HASH: Final = frozenset({bytes, Semver, NamedFormat})
_PLAIN: Final = frozenset({bool, int, Uint, float, str})


def plan_call(checked: CheckedTree, node: FunctionCall, constants: list[HasValue | None]) -> CallPlan:
    """Return how to carry out the call; `constants` are the arguments whose value is known."""
    function = checked.environment.functions[node.function]
    found = checked.overloads[node.id]
    overload = found[0] if len(found) == 1 else ""
    plan = _plan(function, overload, len(constants))
    if plan.overload == "in_list" and constants[1] is not None:
        return _membership(plan, constants[1].value)
    if function.name in CONSTANT_FOLDED and len(constants) == 1 and constants[0] is not None:
        try:
            return CallPlan(plan.name, overload, plan.run, constant=(plan.run(constants[0].value),))
        except EvaluationError as error:
            raise PlanError(str(error)) from None
    if function.name in _REGEXES and len(constants) > 1 and constants[1] is not None:
        return _with_pattern(plan, constants[1].value)
    return plan


def _plan(function: Function, overload: str, count: int) -> CallPlan:
    name = function.name
    if name == "@not_strictly_false":
        return CallPlan(name, overload, lambda value: value)
    if function.shared is not None:
        return CallPlan(name, overload, function.shared, function.operands)
    bound = [each for each in function.overloads if each.implementation is not None]
    chosen = next((each for each in bound if each.id == overload), None)
    if chosen is None and len(bound) == 1:
        chosen = bound[0]
    if chosen is not None:
        return CallPlan(name, overload, guard(function, chosen), is_variadic=count > 2)
    return CallPlan(name, overload, dispatch(function), is_variadic=True)


def _membership(plan: CallPlan, items: Value) -> CallPlan:
    if not items:
        return CallPlan(plan.name, plan.overload, plan.run, constant=(False,))
    if any(type(item) not in _PLAIN for item in items):
        return plan
    # Numbers of different types that are equal also hash alike in Python; only bool needs to be kept apart.
    members = frozenset((type(item) is bool, item) for item in items)
    return CallPlan(plan.name, plan.overload, plan.run, members=members)


def _with_pattern(plan: CallPlan, pattern: Value) -> CallPlan:
    """Compile a constant pattern once."""
    if type(pattern) is not str:
        return plan
    try:
        regex = compile_regex(pattern)
    except EvaluationError as error:
        raise PlanError(str(error)) from None

    def match(text: Value, _pattern: Value) -> bool:
        if type(text) is not str:
            raise no_overload()
        return regex.is_match(text)

    def find(text: Value, _pattern: Value) -> str:
        if type(text) is not str:
            raise no_overload()
        return regex.find(text)

    def find_all(text: Value, _pattern: Value, limit: Value = -1) -> list[str]:
        if type(text) is not str or type(limit) is not int:
            raise no_overload()
        return regex.find_all(text, limit)

    run = {"matches": match, "find": find, "findAll": find_all}[plan.name]
    return CallPlan(plan.name, plan.overload, run, is_variadic=True)


_REGEXES: Final = frozenset({"matches", "find", "findAll"})

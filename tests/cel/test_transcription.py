"""Arithmetic and logic agree with a plain transcription of the language's rules, however they are evaluated."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.cel.device import STORED_EXPRESSIONS
from nodeward.cel.program import compile_expression
from nodeward.cel.values import EvaluationError

_LARGEST = 2**63 - 1
VARIABLES: dict[str, Any] = {"device": {}}


class Failed(Exception):
    """The transcription's error."""


def int_of(value: int) -> int:
    if -(2**63) <= value <= _LARGEST:
        return value
    raise Failed("integer overflow")


def divide(left: int, right: int) -> int:
    if right == 0:
        raise Failed("division by zero")
    quotient = abs(left) // abs(right)
    return int_of(quotient if (left < 0) == (right < 0) else -quotient)


def modulo(left: int, right: int) -> int:
    if right == 0:
        raise Failed("modulus by zero")
    if (left, right) == (-(2**63), -1):
        raise Failed("integer overflow")
    return abs(left) % abs(right) * (-1 if left < 0 else 1)


NUMBERS = {
    "+": lambda left, right: int_of(left + right),
    "-": lambda left, right: int_of(left - right),
    "*": lambda left, right: int_of(left * right),
    "/": divide,
    "%": modulo,
}
ORDERS = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
}

_LITERALS = st.one_of(st.integers(-3, 3), st.integers(-(2**63), _LARGEST))
_INTS = st.recursive(
    st.tuples(st.just("int"), _LITERALS),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(sorted(NUMBERS)), inner, inner), st.tuples(st.just("neg"), inner)
    ),
    max_leaves=6,
)
_BOOLS = st.recursive(
    st.one_of(
        st.tuples(st.just("bool"), st.booleans()),
        st.tuples(st.sampled_from(sorted(ORDERS)), _INTS, _INTS),
    ),
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(("&&", "||")), inner, inner),
        st.tuples(st.just("!"), inner),
        st.tuples(st.just("?"), inner, inner, inner),
        st.tuples(st.sampled_from(("all", "exists")), st.lists(inner, max_size=4)),
    ),
    max_leaves=10,
)


def written(tree: Any) -> str:
    kind, *parts = tree
    match kind:
        case "int":
            return str(parts[0])
        case "bool":
            return "true" if parts[0] else "false"
        case "neg":
            return f"-({written(parts[0])})"
        case "!":
            return f"!({written(parts[0])})"
        case "?":
            return f"(({written(parts[0])}) ? ({written(parts[1])}) : ({written(parts[2])}))"
        case "all" | "exists":
            chosen = " : ".join(f"i == {index} ? {written(each)}" for index, each in enumerate(parts[0]))
            return f"lists.range({len(parts[0])}).{kind}(i, ({chosen + ' : ' if chosen else ''}false))"
        case _:
            return f"({written(parts[0])} {kind} {written(parts[1])})"


def value(tree: Any) -> Any:
    kind, *parts = tree
    if kind in ("int", "bool"):
        return parts[0]
    if kind == "neg":
        return int_of(-value(parts[0]))
    if kind == "!":
        return not value(parts[0])
    if kind == "?":
        return value(parts[1]) if value(parts[0]) else value(parts[2])
    if kind in ("&&", "||"):
        return absorbing(parts, decisive=kind == "||")
    if kind in ("all", "exists"):
        return absorbing(parts[0], decisive=kind == "exists")
    left, right = value(parts[0]), value(parts[1])
    return NUMBERS[kind](left, right) if kind in NUMBERS else ORDERS[kind](left, right)


def absorbing(terms: list[Any], *, decisive: bool) -> bool:
    """A decisive term wins; otherwise the first error."""
    failure: Failed | None = None
    for term in terms:
        try:
            found = value(term)
        except Failed as error:
            failure = failure or error
            continue
        if found is decisive:
            return bool(found)
    if failure is not None:
        raise failure
    return not decisive


@settings(max_examples=300, deadline=None)
@given(_BOOLS)
def test_an_expression_has_the_value_or_the_error_of_the_transcription(tree: Any) -> None:
    try:
        expected: Any = value(tree)
    except Failed as error:
        expected = str(error)
    program = compile_expression(written(tree), STORED_EXPRESSIONS)
    assert outcome(lambda: program.evaluate(VARIABLES, 2**64)) == expected
    assert outcome(lambda: program.evaluate_with_cost(VARIABLES, 2**64)[0]) == expected


@settings(max_examples=200, deadline=None)
@given(_BOOLS)
def test_no_evaluation_costs_more_than_estimated(tree: Any) -> None:
    program = compile_expression(written(tree), STORED_EXPRESSIONS)
    cost: int | None
    try:
        cost = program.evaluate_with_cost(VARIABLES, 2**64)[1]
    except EvaluationError as error:
        cost = error.cost
    assert cost is not None
    assert cost <= program.max_cost


def outcome(run: Any) -> Any:
    try:
        return run()
    except EvaluationError as error:
        return str(error)

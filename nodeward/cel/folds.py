"""Comprehensions of the fast planner: one loop per kind of macro.

Called by `planner.py`. Every comprehension comes from a macro; what its accumulator starts with tells which. Errors are
absorbed as `&&` and `||` do in `all` and `exists`; in the others one error decides the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from nodeward.cel.library.lists import insert_entry
from nodeward.cel.macros import UNUSED
from nodeward.cel.member_chains import Closure, Frame
from nodeward.cel.qualify import go_type
from nodeward.cel.syntax_tree import Comprehension, FunctionCall, ListLiteral, Literal, Node
from nodeward.cel.values import (
    CelMap,
    EvaluationAborted,
    EvaluationError,
    Value,
    find_key,
    no_overload,
)

if TYPE_CHECKING:
    from nodeward.cel.planner import FastPlanner


def fold(planner: FastPlanner, node: Comprehension) -> Closure:
    """Return the closure of a comprehension."""
    if node.variable == UNUSED:
        return _bind(planner, node)
    items = planner.plan(node.items)
    place = planner.slots.push(node.variable)
    second = planner.slots.push(node.second_variable) if node.second_variable else -1
    body = _body(planner, node)
    for _ in range(1 + (second >= 0)):
        planner.slots.pop()
    turns = planner.slots.turns
    loop = _with_two(items, place, second, turns) if second >= 0 else _with_one(items, place, turns)
    return body(loop)


class TurnsSpent(EvaluationAborted):
    """The loops of an expression took more turns than are allowed without counting costs."""


def _with_one(items: Closure, place: int, turns: int) -> Callable[[Frame], Iterable[None]]:
    def loop(frame: Frame) -> Iterable[None]:
        for item in iterate(items(frame)):
            frame[place] = item
            _take_turn(frame, turns)
            yield

    return loop


def _with_two(items: Closure, place: int, second: int, turns: int) -> Callable[[Frame], Iterable[None]]:
    def loop(frame: Frame) -> Iterable[None]:
        for first, other in iterate_pairs(items(frame)):
            frame[place], frame[second] = first, other
            _take_turn(frame, turns)
            yield

    return loop


def _take_turn(frame: Frame, turns: int) -> None:
    frame[turns] -= 1
    if frame[turns] < 0:
        raise TurnsSpent


def iterate(value: Value) -> Iterable[Value]:
    """Return the items of a list or the keys of a map."""
    if isinstance(value, list | tuple | dict | CelMap):
        return value
    raise EvaluationError(f"got '{go_type(value)}', expected iterable type")


def iterate_pairs(value: Value) -> Iterable[tuple[Value, Value]]:
    """Return the items of a list with their index, or the entries of a map."""
    if isinstance(value, list | tuple):
        return enumerate(value)
    if isinstance(value, dict | CelMap):
        return ((key, find_key(value, key)[0]) for key in value)
    raise EvaluationError(f"unsupported comprehension range type: {go_type(value)}")


def _body(planner: FastPlanner, node: Comprehension) -> Callable[[Any], Closure]:
    initial = node.initial
    if isinstance(initial, Literal):
        if isinstance(initial.value, bool):
            predicate = planner.plan(_argument(node.step, 1))
            return lambda loop: _quantifier(loop, predicate, decisive=not initial.value)
        predicate = planner.plan(_argument(node.step, 0))
        return lambda loop: _exactly_one(loop, predicate)
    condition: Closure | None = None
    step = node.step
    if isinstance(step, FunctionCall) and step.function == "_?_:_":
        condition = planner.plan(step.arguments[0])
        step = step.arguments[1]
    assert isinstance(step, FunctionCall)
    if isinstance(initial, ListLiteral):
        made = step.arguments[1]
        assert isinstance(made, ListLiteral)
        transform = planner.plan(made.elements[0])
        return lambda loop: _collect(loop, condition, transform, list, list.append)
    if len(step.arguments) == 3:
        key, value = planner.plan(step.arguments[1]), planner.plan(step.arguments[2])
        return lambda loop: _collect(
            loop,
            condition,
            lambda frame: (key(frame), value(frame)),
            CelMap,
            lambda into, pair: _put(into, *pair),
        )
    entry = planner.plan(step.arguments[1])
    return lambda loop: _collect(loop, condition, entry, CelMap, _put_all)


def _argument(node: Node, index: int) -> Node:
    assert isinstance(node, FunctionCall)
    return node.arguments[index]


def _put(into: CelMap, key: Value, value: Value) -> None:
    if into.find(key) is not None:
        insert_entry(into, key, value)  # raises
    into.insert(key, value)


def _put_all(into: CelMap, update: Value) -> None:
    if not isinstance(update, dict | CelMap):
        raise no_overload()
    for key in update:
        _put(into, key, find_key(update, key)[0])


def _quantifier(loop: Callable[[Frame], Iterable[None]], predicate: Closure, *, decisive: bool) -> Closure:
    def run(frame: Frame) -> bool:
        failure: EvaluationError | None = None
        for _ in loop(frame):
            try:
                value = predicate(frame)
            except EvaluationAborted:
                raise
            except EvaluationError as error:
                failure = failure or error
                continue
            if value is decisive:
                return bool(value)
            if value is not (not decisive):
                failure = failure or no_overload()
        if failure is not None:
            raise failure
        return not decisive

    return run


def _exactly_one(loop: Callable[[Frame], Iterable[None]], predicate: Closure) -> Closure:
    def run(frame: Frame) -> bool:
        failure: EvaluationError | None = None
        count = 0
        for _ in loop(frame):
            is_hit = _condition(predicate, frame)
            if isinstance(is_hit, EvaluationError):
                failure = is_hit
            else:
                count += is_hit
        if failure is not None:
            raise failure
        return count == 1

    return run


def _condition(closure: Closure, frame: Frame) -> bool | EvaluationError:
    try:
        value = closure(frame)
    except EvaluationAborted:
        raise
    except EvaluationError as error:
        return error
    return bool(value) if value is True or value is False else no_overload()


def _collect(
    loop: Callable[[Frame], Iterable[None]],
    condition: Closure | None,
    transform: Closure,
    make: Callable[[], Any],
    add: Callable[[Any, Value], None],
) -> Closure:
    def run(frame: Frame) -> Value:
        result = make()
        if condition is None:
            for _ in loop(frame):
                add(result, transform(frame))
            return result
        failure: EvaluationError | None = None
        for _ in loop(frame):
            is_taken = _condition(condition, frame)
            if isinstance(is_taken, EvaluationError):
                failure = is_taken
            elif is_taken and failure is None:
                try:
                    add(result, transform(frame))
                except EvaluationAborted:
                    raise
                except EvaluationError as error:
                    failure = error
        if failure is not None:
            raise failure
        return result

    return run


def _bind(planner: FastPlanner, node: Comprehension) -> Closure:
    """Return the closure of `cel.bind`: a name whose value is computed when first asked for."""
    from nodeward.cel.planner import UNSET

    initial = planner.plan(node.initial)
    place = planner.slots.push(node.accumulator, initial)
    result = planner.plan(node.result)
    planner.slots.pop()

    def run(frame: Frame) -> Value:
        frame[place] = UNSET
        return result(frame)

    return run

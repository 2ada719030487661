"""What an environment declares: functions with their overloads, variables, and object types with fields.

Libraries make `Function`s; `CelEnvironment` puts them together with variables and macros. The checker resolves calls
against it, the planners take implementations from it. An environment is built once and never changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from nodeward.cel import cel_types as t
from nodeward.cel.cel_types import CelType, TypeKind
from nodeward.cel.macros import Macros
from nodeward.cel.values import CelMap, EvaluationError, Value, find_key, type_name, type_of_value

Implementation: TypeAlias = Callable[..., Value]


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function; `implementation` is called when the arguments have these types."""

    id: str
    arguments: tuple[CelType, ...]
    result: CelType
    implementation: Implementation | None = None
    is_member: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its overloads, or one implementation for all of them.

    `operands` are the Python types the first argument of a shared implementation may have (empty: any).
    `is_guarded` is false when a single overload checks its arguments itself.
    """

    name: str
    overloads: tuple[Overload, ...]
    shared: Implementation | None = None
    operands: frozenset[type] = frozenset()
    is_guarded: bool = True


@dataclass(frozen=True, slots=True)
class ObjectType:
    """An object type: its fields' types by name."""

    type: CelType
    fields: Mapping[str, CelType]


@dataclass(frozen=True)
class CelEnvironment:
    """Everything an expression may refer to."""

    functions: Mapping[str, Function]
    variables: Mapping[str, CelType] = field(default_factory=dict)
    objects: Mapping[str, ObjectType] = field(default_factory=dict)
    #: Names of types that can be written in an expression: `int`, `net.IP`.
    types: Mapping[str, CelType] = field(default_factory=dict)
    macros: Macros = field(default_factory=Macros)
    #: The largest size of what a path through the variables leads to; None when unknown.
    size_of_path: Callable[[tuple[str, ...]], int | None] = lambda _path: None

    def extended(self, **changes: Any) -> CelEnvironment:
        """Return an environment with some parts replaced."""
        return replace(self, **changes)


def merge_functions(groups: Iterable[Iterable[Function]]) -> dict[str, Function]:
    """Put the functions of several libraries together; overloads of one name add up."""
    merged: dict[str, Function] = {}
    for group in groups:
        for function in group:
            known = merged.get(function.name)
            if known is None:
                merged[function.name] = function
            else:
                merged[function.name] = replace(known, overloads=known.overloads + function.overloads)
    return merged


def accepts(expected: CelType, value: Value) -> bool:
    """Tell whether a value may be passed where this type is declared; of a list the first element decides."""
    if expected.is_dynamic or expected.kind is TypeKind.PARAM:
        return True
    if expected.name != type_of_value(value).name:
        return False
    if expected.kind is TypeKind.LIST:
        return not value or accepts(expected.parameters[0], value[0])
    if expected.kind is TypeKind.MAP:
        return not value or _accepts_entry(expected, value)
    return True


def _accepts_entry(expected: CelType, mapping: dict[str, Value] | CelMap) -> bool:
    key = next(iter(mapping))
    return accepts(expected.parameters[0], key) and accepts(expected.parameters[1], find_key(mapping, key)[0])


def no_such_overload(name: str, arguments: tuple[Value, ...]) -> EvaluationError:
    return EvaluationError(f"no such overload: {name}({', '.join(type_name(each) for each in arguments)})")


def guard(function: Function, overload: Overload) -> Implementation:
    """Return the overload's implementation behind a check of its arguments."""
    implementation, expected, name = overload.implementation, overload.arguments, function.name
    assert implementation is not None
    if not function.is_guarded or all(each.is_dynamic or each.kind is TypeKind.PARAM for each in expected):
        return implementation
    return _guarded(implementation, expected, name)


def _guarded(run: Implementation, expected: tuple[CelType, ...], name: str) -> Implementation:
    # Where the Python types alone decide, those that were accepted once are remembered.
    by_type = not any(each.kind in (TypeKind.LIST, TypeKind.MAP) for each in expected)
    known: set[tuple[type, ...]] = set()

    def check(arguments: tuple[Value, ...]) -> None:
        for kind, value in zip(expected, arguments, strict=True):
            if not accepts(kind, value):
                raise no_such_overload(name, arguments)
        if by_type:
            known.add(tuple(map(type, arguments)))

    def unary(value: Value) -> Value:
        if (type(value),) not in known:
            check((value,))
        return run(value)

    def binary(left: Value, right: Value) -> Value:
        if (type(left), type(right)) not in known:
            check((left, right))
        return run(left, right)

    def variadic(*arguments: Value) -> Value:
        check(arguments)
        return run(*arguments)

    by_count: dict[int, Implementation] = {1: unary, 2: binary}
    return by_count.get(len(expected), variadic)


def dispatch(function: Function) -> Implementation:
    """Return an implementation that takes the first overload that fits the arguments."""
    overloads = [each for each in function.overloads if each.implementation is not None]

    by_type = not any(
        kind.kind in (TypeKind.LIST, TypeKind.MAP) for each in overloads for kind in each.arguments
    )
    known: dict[tuple[type, ...], Implementation] = {}

    def dispatched(*arguments: Value) -> Value:
        types = tuple(map(type, arguments))
        if (run := known.get(types)) is not None:
            return run(*arguments)
        for overload in overloads:
            expected = overload.arguments
            if len(expected) != len(arguments) or overload.implementation is None:
                continue
            if all(accepts(kind, value) for kind, value in zip(expected, arguments, strict=True)):
                if by_type:
                    known[types] = overload.implementation
                return overload.implementation(*arguments)
        raise no_such_overload(function.name, arguments)

    return dispatched


def simple_types() -> dict[str, CelType]:
    """Return the types of the language by the name they are written with."""
    plain = (
        t.BOOL,
        t.BYTES,
        t.DOUBLE,
        t.DURATION,
        t.INT,
        t.NULL,
        t.STRING,
        t.TIMESTAMP,
        t.TYPE,
        t.UINT,
        t.LIST,
        t.MAP,
    )
    messages = {
        "google.protobuf.Any": t.ANY,
        "google.protobuf.Value": t.DYN,
        "google.protobuf.Struct": t.map_of(t.STRING, t.DYN),
        "google.protobuf.ListValue": t.LIST,
    }
    short = {"duration": t.DURATION, "timestamp": t.TIMESTAMP}
    return {each.name: each for each in plain} | messages | short | t.WRAPPERS

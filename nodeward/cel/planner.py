"""A checked tree into closures: the fast way to evaluate, without counting costs.

Called by `program.py`. A closure takes the frame, a list with one place per variable, and returns a value or raises
EvaluationError. What must stay true: for every input the value, or the message of the error, is the one that
`tracking.py` gives.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final

from nodeward.cel import arithmetic as a
from nodeward.cel.cel_types import TypeKind
from nodeward.cel.checker import CheckedTree
from nodeward.cel.conversions import show
from nodeward.cel.folds import fold
from nodeward.cel.functions import CallPlan, check_constant_key, is_member, plan_call
from nodeward.cel.member_chains import Closure, Frame, member_chain, member_of
from nodeward.cel.qualify import check_key, has_member, member, optional_member
from nodeward.cel.syntax_tree import (
    Comprehension,
    FunctionCall,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    StructLiteral,
)
from nodeward.cel.values import (
    CelMap,
    EvaluationAborted,
    EvaluationError,
    OptionalValue,
    Uint,
    Value,
    compare_equal,
    equal,
    no_overload,
)

#: What a message that wraps a plain value holds when nothing is set.
ZEROS: Final = {
    TypeKind.BOOL: False,
    TypeKind.BYTES: b"",
    TypeKind.DOUBLE: 0.0,
    TypeKind.INT: 0,
    TypeKind.STRING: "",
    TypeKind.UINT: Uint(0),
}
#: A variable of `cel.bind` that nobody has asked for yet.
UNSET: Final = object()


class Constant:
    """A closure that always gives the same value."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __call__(self, _frame: Frame) -> Value:
        return self.value


#: Functions that are computed once when their arguments are known.
_PARSERS: Final = frozenset({"quantity", "semver", "ip", "cidr", "url"})


class Slots:
    """Places in the frame: the variables of the environment, the turns of loops left, variables of comprehensions."""

    def __init__(self, names: list[str]) -> None:
        self.globals = {name: place for place, name in enumerate(names)}
        self.turns = len(names)
        self.count = len(names) + 1
        self._locals: list[tuple[str, int, Closure | None]] = []

    def push(self, name: str, initial: Closure | None = None) -> int:
        place = self.count
        self.count += 1
        self._locals.append((name, place, initial))
        return place

    def pop(self) -> None:
        self._locals.pop()

    def find(self, name: str) -> tuple[int, Closure | None] | None:
        for known, place, initial in reversed(self._locals):
            if known == name:
                return place, initial
        return None


class FastPlanner:
    """Makes the closures of one tree."""

    def __init__(self, checked: CheckedTree) -> None:
        self._checked = checked
        self.slots = Slots(list(checked.environment.variables))

    def plan(self, node: Node) -> Closure:
        match node:
            case Literal():
                return Constant(node.value)
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case FunctionCall():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case StructLiteral():
                return self._wrapper(node)
            case Comprehension():
                return fold(self, node)

    def _ident(self, node: Ident) -> Closure:
        if (named := self._checked.type_values.get(node.id)) is not None:
            return Constant(named)
        local = None if node.name.startswith(".") else self.slots.find(node.name)
        if local is None:
            place = self.slots.globals[node.name.removeprefix(".")]
            return lambda frame: frame[place]
        place, initial = local
        if initial is None:
            return lambda frame: frame[place]
        return _bound(place, initial)

    def _select(self, node: Select) -> Closure:
        if node.is_test:
            operand, name = self.plan(node.operand), node.name
            return lambda frame: has_member(operand(frame), name)
        return self._member(node, node.operand, node.name)

    def _member(self, node: Node, operand: Node, name: str) -> Closure:
        """Return the member of a value by a name that is known; a chain of them is one closure."""
        step = member_of(self.plan(operand), name)
        chain = self._chain(node)
        return step if chain is None else member_chain(chain[0], chain[1], step)

    def _chain(self, node: Node) -> tuple[int, list[str]] | None:
        """Return the place of a variable and the names that lead from it to the node, if that is all it is."""
        names: list[str] = []
        while not isinstance(node, Ident):
            if isinstance(node, Select) and not node.is_test:
                names.append(node.name)
                node = node.operand
            elif (key := _constant_index(node)) is not None:
                names.append(key)
                node = node.arguments[0]  # type: ignore[union-attr]
            else:
                return None
        if node.id in self._checked.type_values:
            return None
        local = None if node.name.startswith(".") else self.slots.find(node.name)
        if local is None:
            return self.slots.globals[node.name.removeprefix(".")], names[::-1]
        return None if local[1] is not None else (local[0], names[::-1])

    # --- calls

    def _call(self, node: FunctionCall) -> Closure:
        if (key := _constant_index(node)) is not None:
            return self._member(node, node.arguments[0], key)
        operands = [*([] if node.target is None else [node.target]), *node.arguments]
        arguments = [self.plan(each) for each in operands]
        special = _SPECIAL.get(node.function)
        if special is not None:
            return special(*arguments)
        plan = plan_call(self._checked, node, [_constant(each) for each in arguments])
        if plan.constant is not None:
            return Constant(plan.constant[0])
        if plan.members is not None:
            return _membership(arguments[0], plan.members)
        closure = _strict(plan, arguments)
        if node.function in _PARSERS and all(isinstance(each, Constant) for each in arguments):
            with suppress(EvaluationError):
                value = closure([])
                return lambda _frame: value
        return closure

    def _list(self, node: ListLiteral) -> Closure:
        elements = [self.plan(each) for each in node.elements]
        if node.optional:
            return _optional_list(elements, node.optional)
        if all(isinstance(each, Constant) for each in elements):
            return Constant([each(None) for each in elements])  # type: ignore[arg-type]
        return lambda frame: [each(frame) for each in elements]

    def _map(self, node: MapLiteral) -> Closure:
        entries = [(self.plan(each.key), self.plan(each.value), each.is_optional) for each in node.entries]

        def make(frame: Frame) -> CelMap:
            result = CelMap()
            for key_of, value_of, is_optional in entries:
                key, value = key_of(frame), value_of(frame)
                if is_optional:
                    value = optional_entry(key, value)
                    if not value.has_value:
                        result.remove(key)
                        continue
                    value = value.value
                result.insert(key, value)
            return result

        if all(isinstance(part, Constant) for key, value, _ in entries for part in (key, value)):
            return Constant(make([]))
        return make

    def _wrapper(self, node: StructLiteral) -> Closure:
        """Return the plain value of a message that wraps one."""
        zero = ZEROS[self._checked.type(node).kind]
        if not node.fields:
            return Constant(zero)
        value = self.plan(node.fields[-1].value)
        if not node.fields[-1].is_optional:
            return value
        return lambda frame: found.value if (found := value(frame)).has_value else zero


def _constant_index(node: Node) -> str | None:
    """Return the name in `operand["name"]`."""
    if not isinstance(node, FunctionCall) or node.function != "_[_]":
        return None
    key = node.arguments[1]
    return key.value if isinstance(key, Literal) and type(key.value) is str else None


def _constant(closure: Closure) -> Constant | None:
    return closure if isinstance(closure, Constant) else None


def _bound(place: int, initial: Closure) -> Closure:
    """Return the value of a bound name; it is computed when first asked for."""

    def read(frame: Frame) -> Value:
        value = frame[place]
        if value is UNSET:
            try:
                value = initial(frame)
            except EvaluationAborted:
                raise
            except EvaluationError as error:
                value = error
            frame[place] = value
        if isinstance(value, EvaluationError):
            raise value
        return value

    return read


def _optional_list(elements: list[Closure], optional: frozenset[int]) -> Closure:
    def make(frame: Frame) -> list[Value]:
        result: list[Value] = []
        for index, element in enumerate(elements):
            value = element(frame)
            if index in optional:
                value = optional_element(value)
                if not value.has_value:
                    continue
                value = value.value
            result.append(value)
        return result

    return make


def optional_element(value: Value) -> OptionalValue:
    if type(value) is not OptionalValue:
        raise EvaluationError(
            f"cannot initialize optional list element from non-optional value {show(value)}"
        )
    return value


def optional_entry(key: Value, value: Value) -> OptionalValue:
    if type(value) is not OptionalValue:
        raise EvaluationError(
            f"cannot initialize optional entry '{show(key)}' from non-optional value {show(value)}"
        )
    return value


def _membership(item: Closure, members: frozenset[Value]) -> Closure:
    def test(frame: Frame) -> bool:
        return is_member(item(frame), members)

    return test


def _strict(plan: CallPlan, arguments: list[Closure]) -> Closure:
    """Evaluate the arguments, then the function."""
    run, kinds, name = plan.run, plan.operands, plan.name
    if len(arguments) == 2:
        first, second = arguments
        if name in _COMPARISONS and isinstance(second, Constant):
            return _compare_with(first, second.value, run, name)
        if not kinds:
            return lambda frame: run(first(frame), second(frame))

        def binary(frame: Frame) -> Value:
            left = first(frame)
            right = second(frame)
            if type(left) in kinds:
                return run(left, right)
            raise plan.refusal(left)

        return binary
    if len(arguments) == 1:
        (only,) = arguments
        if not kinds:
            return lambda frame: run(only(frame))

        def unary(frame: Frame) -> Value:
            value = only(frame)
            if type(value) in kinds:
                return run(value)
            raise plan.refusal(value)

        return unary
    return lambda frame: run(*[each(frame) for each in arguments])


_COMPARISONS: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_"})


def _compare_with(item: Closure, bound: Value, run: Callable[..., Value], name: str) -> Closure:
    """Compare with a constant: of the same type at once, of another by the general way."""
    kind = type(bound)

    def general(value: Value) -> Value:
        if type(value) in a.COMPARABLE:
            return run(value, bound)
        raise EvaluationError(f"no such overload: {name}")

    if kind not in (int, str):
        return lambda frame: general(item(frame))
    by_name: dict[str, Closure] = {
        "_<_": lambda frame: value < bound if type(value := item(frame)) is kind else general(value),
        "_<=_": lambda frame: value <= bound if type(value := item(frame)) is kind else general(value),
        "_>_": lambda frame: value > bound if type(value := item(frame)) is kind else general(value),
        "_>=_": lambda frame: value >= bound if type(value := item(frame)) is kind else general(value),
    }
    return by_name[name]


# --- operators with an evaluation of their own


def _and(left: Closure, right: Closure) -> Closure:
    def both(frame: Frame) -> Value:
        try:
            first = left(frame)
        except EvaluationAborted:
            raise
        except EvaluationError as error:
            return _absorb(error, right, frame, False)
        if first is True:
            second = right(frame)
            if second is True or second is False:
                return second
            raise no_overload()
        if first is False:
            return False
        return _absorb(no_overload(), right, frame, False)

    return both


def _or(left: Closure, right: Closure) -> Closure:
    def either(frame: Frame) -> Value:
        try:
            first = left(frame)
        except EvaluationAborted:
            raise
        except EvaluationError as error:
            return _absorb(error, right, frame, True)
        if first is False:
            second = right(frame)
            if second is True or second is False:
                return second
            raise no_overload()
        if first is True:
            return True
        return _absorb(no_overload(), right, frame, True)

    return either


def _absorb(error: EvaluationError, right: Closure, frame: Frame, decisive: bool) -> Value:
    """The left side failed: only a decisive value of the right side saves the whole."""
    try:
        second = right(frame)
    except EvaluationAborted:
        raise
    except EvaluationError:
        raise error from None
    if second is not decisive:
        raise error
    return decisive


def _conditional(condition: Closure, chosen: Closure, otherwise: Closure) -> Closure:
    def choose(frame: Frame) -> Value:
        value = condition(frame)
        if value is True:
            return chosen(frame)
        if value is False:
            return otherwise(frame)
        raise no_overload()

    return choose


def _equals(left: Closure, right: Closure) -> Closure:
    if isinstance(right, Constant) and type(right.value) in (str, int):
        wanted, kind = right.value, type(right.value)

        def equals_constant(frame: Frame) -> Value:
            value = left(frame)
            return value == wanted if type(value) is kind else equal(value, wanted)

        return equals_constant
    return lambda frame: equal(left(frame), right(frame))


def _not_equals(left: Closure, right: Closure) -> Closure:
    return lambda frame: compare_equal(left(frame), right(frame)) is not True


def _index(operand: Closure, key: Closure) -> Closure:
    check_constant_key(_constant(key))
    return lambda frame: member(operand(frame), check_key(key(frame)))


def _optional_index(operand: Closure, key: Closure) -> Closure:
    check_constant_key(_constant(key))
    return lambda frame: optional_member(operand(frame), check_key(key(frame)))


def _optional_or(left: Closure, right: Closure) -> Closure:
    def either(frame: Frame) -> Value:
        value = left(frame)
        if type(value) is not OptionalValue:
            raise no_overload()
        return value if value.has_value else right(frame)

    return either


def _optional_or_value(left: Closure, right: Closure) -> Closure:
    def either(frame: Frame) -> Value:
        value = left(frame)
        if type(value) is not OptionalValue:
            raise no_overload()
        return value.value if value.has_value else right(frame)

    return either


_SPECIAL: Final[dict[str, Callable[..., Closure]]] = {
    "_&&_": _and,
    "_||_": _or,
    "_?_:_": _conditional,
    "_==_": _equals,
    "_!=_": _not_equals,
    "_[_]": _index,
    "_[?_]": _optional_index,
    "_?._": _optional_index,
    "or": _optional_or,
    "orValue": _optional_or_value,
}

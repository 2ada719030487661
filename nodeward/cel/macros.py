"""Macros: calls that are replaced by other nodes before anything is checked.

`has`, the comprehensions with one variable (`all`, `exists`, `exists_one`, `map`, `filter`) and with two, `optMap`,
`optFlatMap`, `sortBy` and `cel.bind`. Called by the parser for every call. The place of a new node is the place of the
call. A macro may multiply its receiver (`optMap`), so the number of nodes it may copy is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from nodeward.cel.syntax_tree import (
    Comprehension,
    FunctionCall,
    Ident,
    ListLiteral,
    Literal,
    MapLiteral,
    Node,
    Select,
    node_count,
)
from nodeward.cel.tree_builder import TreeBuilder

ACCUMULATOR: Final = "@result"
_OLD_ACCUMULATOR: Final = "__result__"
#: The iteration variable of a comprehension that only binds a name.
UNUSED: Final = "#unused"
_SORT_INPUT: Final = "@__sortBy_input__"
# Unlike upstream: a chain of `optMap` doubles its receiver at every link, which no length of text bounds.
_MOST_NODES: Final = 50_000


class MacroError(ValueError):
    """An argument is not what the macro needs; `number` is the node it complains about."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


class _Place:
    """Makes nodes at the place of the call that is replaced."""

    def __init__(self, builder: TreeBuilder, number: int) -> None:
        self._builder = builder
        self._offset = builder.offsets.get(number, -1)

    def _number(self) -> int:
        return self._builder.number(self._offset)

    def literal(self, value: object) -> Literal:
        return Literal(self._number(), value)

    def ident(self, name: str) -> Ident:
        return Ident(self._number(), name)

    def result(self) -> Ident:
        return self.ident(ACCUMULATOR)

    def list(self, *elements: Node) -> ListLiteral:
        return ListLiteral(self._number(), list(elements))

    def map(self) -> MapLiteral:
        return MapLiteral(self._number(), [])

    def call(self, function: str, *arguments: Node) -> FunctionCall:
        return FunctionCall(self._number(), function, None, list(arguments))

    def member(self, function: str, target: Node, *arguments: Node) -> FunctionCall:
        return FunctionCall(self._number(), function, target, list(arguments))

    def test(self, operand: Node, name: str) -> Select:
        return Select(self._number(), operand, name, is_test=True)

    def copy(self, node: Node) -> Node:
        if self._builder.count + node_count(node) > _MOST_NODES:
            raise MacroError(node.id, f"expression has more than {_MOST_NODES} nodes after expanding macros")
        return self._builder.copy(node, self._offset)

    def fold(
        self,
        items: Node,
        variables: tuple[str, str],
        initial: Node,
        condition: Node,
        step: Node,
        result: Node,
    ) -> Comprehension:
        names = (*variables, ACCUMULATOR)
        return Comprehension(self._number(), items, *names, initial, condition, step, result)

    def bind(
        self, name: str, value: Node, step: Node | None, result: Callable[[], Node] | Node
    ) -> Comprehension:
        items, condition = self.list(), self.literal(False)
        step = step or self.ident(name)
        found = result() if callable(result) else result
        return Comprehension(self._number(), items, UNUSED, "", name, value, condition, step, found)


_Expander: TypeAlias = Callable[[_Place, Node | None, list[Node]], Node | None]


class Macros:
    """The macros of an environment by name, number of arguments and whether they have a receiver."""

    def __init__(self, *, has_bind: bool = True) -> None:
        self._expanders = dict(_STANDARD)
        if has_bind:
            self._expanders["bind", 3, True] = _bind

    def expand(
        self, builder: TreeBuilder, number: int, function: str, target: Node | None, arguments: list[Node]
    ) -> Node | None:
        """Return what replaces the call; None when it is no macro. Raises MacroError for wrong arguments."""
        expander = self._expanders.get((function, len(arguments), target is not None))
        return None if expander is None else expander(_Place(builder, number), target, arguments)


def _variable(node: Node, message: str) -> str:
    if not isinstance(node, Ident):
        raise MacroError(node.id, message)
    if node.name in (ACCUMULATOR, _OLD_ACCUMULATOR):
        raise MacroError(node.id, "iteration variable overwrites accumulator variable")
    return node.name


def _variables(arguments: list[Node]) -> tuple[str, str]:
    for argument in arguments[:2]:
        if not isinstance(argument, Ident):
            raise MacroError(argument.id, "argument must be a simple name")
    first, second = arguments[0], arguments[1]
    assert isinstance(first, Ident) and isinstance(second, Ident)  # noqa: PT018
    if first.name == second.name:
        raise MacroError(second.id, f"duplicate variable name: {first.name}")
    return _variable(first, ""), _variable(second, "")


def _has(place: _Place, _target: Node | None, arguments: list[Node]) -> Node:
    argument = arguments[0]
    if not isinstance(argument, Select):
        raise MacroError(argument.id, "invalid argument to has() macro")
    return place.test(argument.operand, argument.name)


def _names(arguments: list[Node], is_double: bool) -> tuple[tuple[str, str], list[Node]]:
    if is_double:
        return _variables(arguments), arguments[2:]
    return (_variable(arguments[0], "argument must be a simple name"), ""), arguments[1:]


def _all(is_double: bool) -> _Expander:
    def expand(place: _Place, target: Node | None, arguments: list[Node]) -> Node:
        names, rest = _names(arguments, is_double)
        initial = place.literal(True)
        condition = place.call("@not_strictly_false", place.result())
        step = place.call("_&&_", place.result(), rest[0])
        return place.fold(_receiver(target), names, initial, condition, step, place.result())

    return expand


def _exists(is_double: bool) -> _Expander:
    def expand(place: _Place, target: Node | None, arguments: list[Node]) -> Node:
        names, rest = _names(arguments, is_double)
        initial = place.literal(False)
        condition = place.call("@not_strictly_false", place.call("!_", place.result()))
        step = place.call("_||_", place.result(), rest[0])
        return place.fold(_receiver(target), names, initial, condition, step, place.result())

    return expand


def _exists_one(is_double: bool) -> _Expander:
    def expand(place: _Place, target: Node | None, arguments: list[Node]) -> Node:
        names, rest = _names(arguments, is_double)
        initial, condition = place.literal(0), place.literal(True)
        one_more = place.call("_+_", place.result(), place.literal(1))
        step = place.call("_?_:_", rest[0], one_more, place.result())
        result = place.call("_==_", place.result(), place.literal(1))
        return place.fold(_receiver(target), names, initial, condition, step, result)

    return expand


def _map(place: _Place, target: Node | None, arguments: list[Node]) -> Node:
    names = (_variable(arguments[0], "argument is not an identifier"), "")
    return _collect(place, _receiver(target), names, arguments[1:])


def _transform_list(place: _Place, target: Node | None, arguments: list[Node]) -> Node:
    return _collect(place, _receiver(target), _variables(arguments), arguments[2:])


def _collect(place: _Place, items: Node, names: tuple[str, str], rest: list[Node]) -> Node:
    """Fold into a list: `rest` is a transformation, or a filter and a transformation."""
    initial, condition = place.list(), place.literal(True)
    step = place.call("_+_", place.result(), place.list(rest[-1]))
    if len(rest) == 2:
        step = place.call("_?_:_", rest[0], step, place.result())
    return place.fold(items, names, initial, condition, step, place.result())


def _filter(place: _Place, target: Node | None, arguments: list[Node]) -> Node:
    names = (_variable(arguments[0], "argument is not an identifier"), "")
    initial, condition = place.list(), place.literal(True)
    step = place.call("_+_", place.result(), place.list(arguments[0]))
    step = place.call("_?_:_", arguments[1], step, place.result())
    return place.fold(_receiver(target), names, initial, condition, step, place.result())


def _transform_map(is_entry: bool) -> _Expander:
    def expand(place: _Place, target: Node | None, arguments: list[Node]) -> Node:
        names, rest = _variables(arguments), arguments[2:]
        key = [] if is_entry else [place.ident(names[0])]
        step = place.call("cel.@mapInsert", place.result(), *key, rest[-1])
        if len(rest) == 2:
            step = place.call("_?_:_", rest[0], step, place.result())
        return place.fold(_receiver(target), names, place.map(), place.literal(True), step, place.result())

    return expand


def _optional_map(name: str, is_flat: bool) -> _Expander:
    def expand(place: _Place, target: Node | None, arguments: list[Node]) -> Node:
        receiver = _receiver(target)
        if not isinstance(variable := arguments[0], Ident):
            raise MacroError(variable.id, f"{name}() variable name must be a simple identifier")
        value = place.member("value", place.copy(receiver))
        mapped: Node = place.bind(variable.name, value, None, arguments[1])
        if not is_flat:
            mapped = place.call("optional.of", mapped)
        condition = place.member("hasValue", receiver)
        return place.call("_?_:_", condition, mapped, place.call("optional.none"))

    return expand


def _sort_by(place: _Place, target: Node | None, arguments: list[Node]) -> Node:
    receiver = _receiver(target)
    if isinstance(receiver, Literal | MapLiteral):
        kinds = "a list, identifier, comprehension, call or select expression"
        raise MacroError(receiver.id, f"sortBy can only be applied to {kinds}")
    step = place.ident(_SORT_INPUT)
    keys = _map(place, place.copy(step), arguments)
    sorting = place.member("@sortByAssociatedKeys", place.copy(step), keys)
    return place.bind(_SORT_INPUT, receiver, step, sorting)


def _bind(place: _Place, target: Node | None, arguments: list[Node]) -> Node | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    if not isinstance(variable := arguments[0], Ident):
        raise MacroError(variable.id, "cel.bind() variable names must be simple identifiers")
    return place.bind(variable.name, arguments[1], None, arguments[2])


def _receiver(target: Node | None) -> Node:
    assert target is not None
    return target


_STANDARD: Final[dict[tuple[str, int, bool], _Expander]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _all(False),
    ("all", 3, True): _all(True),
    ("exists", 2, True): _exists(False),
    ("exists", 3, True): _exists(True),
    ("exists_one", 2, True): _exists_one(False),
    ("exists_one", 3, True): _exists_one(True),
    ("existsOne", 3, True): _exists_one(True),
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map(False),
    ("transformMap", 4, True): _transform_map(False),
    ("transformMapEntry", 3, True): _transform_map(True),
    ("transformMapEntry", 4, True): _transform_map(True),
    ("optMap", 2, True): _optional_map("optMap", False),
    ("optFlatMap", 2, True): _optional_map("optFlatMap", True),
    ("sortBy", 2, True): _sort_by,
}

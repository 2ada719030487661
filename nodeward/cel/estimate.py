"""The most an evaluation can cost, found without running it.

Called by `program.py` once per expression. The sizes of literals are known; those of variables
come from the environment (`size_of_path`); what has no bound makes the cost 2**64-1. The numbers are those of cel-go
and the API server, which refuses expressions by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from nodeward.cel import cel_types as t
from nodeward.cel.call_estimates import CallEstimate, CallToEstimate, Operand, estimate_library_call
from nodeward.cel.cel_types import TypeKind
from nodeward.cel.checker import CheckedTree
from nodeward.cel.macros import ACCUMULATOR
from nodeward.cel.ranges import (
    LARGEST,
    LIST_COST,
    MAP_COST,
    ONE,
    REGEX,
    STRUCT_COST,
    TRAVERSAL,
    UNKNOWN,
    ZERO,
    Range,
    exactly,
)
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

_NOTHING: Final = Range(LARGEST, 0)


def estimate_cost(checked: CheckedTree) -> int:
    """Return the worst cost of the expression."""
    return _Coster(checked).cost(checked.tree.root).high


@dataclass(frozen=True, slots=True)
class _Entries:
    """Sizes of what a list or map holds."""

    kind: TypeKind
    key: Range
    value: Range

    def union(self, other: _Entries | None) -> _Entries | None:
        if other is None:
            return None
        return _Entries(self.kind, self.key.union(other.key), self.value.union(other.value))


@dataclass(frozen=True, slots=True)
class _Local:
    """A variable of a comprehension."""

    path: tuple[str, ...]
    size: Range | None
    entries: _Entries | None = None


class _Coster:
    def __init__(self, checked: CheckedTree) -> None:
        self._checked = checked
        self._size_of_path = checked.environment.size_of_path
        self._paths: dict[int, tuple[str, ...]] = {}
        self._sizes: dict[int, Range] = {}
        self._entries: dict[int, _Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Range:
        match node:
            case Literal():
                return ZERO
            case Ident():
                local = self._local(node.name)
                self._paths[node.id] = (node.name,) if local is None else local.path
                return ONE
            case Select():
                return self._select(node)
            case FunctionCall():
                return self._call(node)
            case ListLiteral():
                return self._list(node)
            case MapLiteral():
                return self._map(node)
            case StructLiteral():
                costs = [self.cost(each.value) for each in node.fields]
                return _total(costs).plus(exactly(STRUCT_COST))
            case Comprehension():
                return self._comprehension(node)

    # --- what is known of nodes

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _path(self, node: Node) -> tuple[str, ...]:
        if isinstance(node, Ident) and (local := self._local(node.name)) is not None:
            return local.path
        return self._paths.get(node.id, ())

    def _size(self, node: Node) -> Range | None:
        """Return the size of a node's value, or None when it is not known."""
        if (known := self._sizes.get(node.id)) is not None:
            return known
        if (written := _written_size(node)) is not None:
            return exactly(written)
        path = self._path(node)
        if path and (bound := self._size_of_path(path)) is not None:
            self._sizes[node.id] = Range(0, bound)
            return self._sizes[node.id]
        if t.is_scalar(self._checked.type(node)):
            return ONE
        if isinstance(node, Ident) and (local := self._local(node.name)) is not None:
            return local.size
        return None

    def _size_or_unknown(self, node: Node) -> Range:
        return self._size(node) or UNKNOWN

    def _held(self, node: Node) -> _Entries | None:
        """Return the sizes of what a list or map holds."""
        if (known := self._entries.get(node.id)) is not None:
            return known
        if isinstance(node, Ident) and (local := self._local(node.name)) is not None:
            return local.entries
        return None

    def _copy_sizes(self, to: Node, source: Node) -> None:
        if (size := self._size(source)) is not None:
            self._sizes[to.id] = size
        if (held := self._held(source)) is not None:
            self._entries[to.id] = held

    def _operand(self, node: Node) -> Operand:
        path: tuple[str, ...] | None = self._path(node)
        if path and path[0] == ACCUMULATOR:
            path = None
        return Operand(node, self._checked.type(node), path or None, self._size(node))

    # --- nodes

    def _select(self, node: Select) -> Range:
        total = self.cost(node.operand)
        if node.is_test:
            return total
        if self._checked.type(node.operand).kind in (TypeKind.MAP, TypeKind.STRUCT, TypeKind.PARAM):
            total = total.plus(ONE)
        self._paths[node.id] = (*self._path(node.operand), node.name)
        return total

    def _list(self, node: ListLiteral) -> Range:
        total, item = ZERO, ZERO if not node.elements else _NOTHING
        for element in node.elements:
            total = total.plus(self.cost(element))
            item = item.union(self._size_or_unknown(element))
        self._entries[node.id] = _Entries(TypeKind.LIST, ONE, item)
        return total.plus(exactly(LIST_COST))

    def _map(self, node: MapLiteral) -> Range:
        total = ZERO
        keys = values = ZERO if not node.entries else _NOTHING
        for entry in node.entries:
            total = total.plus(self.cost(entry.key)).plus(self.cost(entry.value))
            keys = keys.union(self._size_or_unknown(entry.key))
            values = values.union(self._size_or_unknown(entry.value))
        self._entries[node.id] = _Entries(TypeKind.MAP, keys, values)
        return total.plus(exactly(MAP_COST))

    def _comprehension(self, node: Comprehension) -> Range:
        total = self.cost(node.items).plus(self.cost(node.initial))
        is_binding = (
            isinstance(node.items, ListLiteral)
            and not node.items.elements
            and isinstance(node.condition, Literal)
            and node.condition.value is False
        )
        initial = _Local(self._path(node.initial), self._size(node.initial), self._held(node.initial))
        self._push(node.accumulator, initial)
        if is_binding:
            total = total.plus(self.cost(node.result))
            self._pop(node.accumulator)
            self._copy_sizes(node, node.result)
            return total
        names = self._push_variables(node)
        turn = self.cost(node.condition).plus(self.cost(node.step))
        for name in names:
            self._pop(name)
        total = total.plus(self.cost(node.result))
        self._pop(node.accumulator)
        turns = self._size_or_unknown(node.items)
        if isinstance(node.initial, Literal):
            if (size := self._size(node.initial)) is not None:
                self._sizes[node.id] = size
        elif isinstance(node.initial, ListLiteral | MapLiteral):
            self._sizes[node.id] = turns
            if (held := self._held(node.step)) is not None:
                self._entries[node.id] = held
        return total.plus(turns.times(turn))

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _pop(self, name: str) -> None:
        self._locals[name].pop()

    def _push_variables(self, node: Comprehension) -> list[str]:
        held, path = self._held(node.items), self._path(node.items)
        is_list = (self._checked.type(node.items).kind if held is None else held.kind) is TypeKind.LIST
        key = None if held is None else held.key
        value = None if held is None else held.value
        if not node.second_variable:
            step = "@items" if is_list else "@keys"
            self._push(node.variable, _Local((*path, step), value if is_list else key))
            return [node.variable]
        self._push(node.variable, _Local((*path, "@indices" if is_list else "@keys"), key))
        self._push(node.second_variable, _Local((*path, "@items" if is_list else "@values"), value))
        return [node.variable, node.second_variable]

    # --- calls

    def _call(self, node: FunctionCall) -> Range:
        if node.function == "dyn":
            cost = self.cost(node.arguments[0])
            self._copy_sizes(node, node.arguments[0])
            return cost.plus(ONE)
        costs = [self.cost(each) for each in node.arguments]
        arguments = [self._operand(each) for each in node.arguments]
        total, target = ZERO, None
        if node.target is not None:
            total = self.cost(node.target)
            target = self._operand(node.target)
        call, size = _NOTHING, None
        for overload in self._checked.overloads[node.id]:
            this = CallToEstimate(node.function, overload, target, arguments, self._size_of_path)
            cost, result = self._one_overload(node, this, costs)
            call = call.union(cost)
            if result is not None:
                size = result if size is None else size.union(result)
            if overload in ("index_list", "index_map"):
                held = self._held(node.arguments[0])
                size = None if held is None else held.value
                step = "@items" if overload == "index_list" else "@values"
                self._paths[node.id] = (*self._path(node.arguments[0]), step)
            if size is None:
                size = self._size(node)
        if size is not None:
            self._sizes[node.id] = size
        return total.plus(call)

    def _one_overload(self, node: FunctionCall, call: CallToEstimate, costs: list[Range]) -> CallEstimate:
        """Return the cost of a call under one overload, with its arguments, and the size of its result."""
        if (found := estimate_library_call(call)) is not None:
            return found[0].plus(_total(costs)), found[1]
        special = self._logic(node, call, costs)
        if special is not None:
            return special
        cost, size = self._standard(node, call)
        return cost.plus(_total(costs)), size

    def _logic(self, node: FunctionCall, call: CallToEstimate, costs: list[Range]) -> CallEstimate | None:
        if call.overload in ("logical_or", "logical_and"):
            return Range(costs[0].low, costs[0].plus(costs[1]).high), None
        if call.overload != "conditional":
            return None
        _, chosen, otherwise = call.arguments
        size = (chosen.size or UNKNOWN).union(otherwise.size or UNKNOWN)
        first, second = self._held(node.arguments[1]), self._held(node.arguments[2])
        held = None if first is None else first.union(second)
        if held is not None:
            self._entries[node.id] = held
        return costs[0].plus(costs[1].union(costs[2])), size

    def _standard(self, node: FunctionCall, call: CallToEstimate) -> CallEstimate:
        """Return the cost of a standard function by its overload; most cost one."""
        overload = call.overload
        sizes = [each.size or UNKNOWN for each in call.arguments]
        target = UNKNOWN if call.target is None else call.target.size or UNKNOWN
        if overload == "string_format":
            return target.scaled(TRAVERSAL), None
        if overload == "string_to_bytes":
            return sizes[0].scaled(TRAVERSAL), Range(sizes[0].low, sizes[0].high * 4 % 2**64)
        if overload == "bytes_to_string":
            return sizes[0].scaled(TRAVERSAL), Range(sizes[0].low // 4, sizes[0].high)
        if overload == "strings_quote":
            return sizes[0].scaled(TRAVERSAL), Range(sizes[0].low + 2, (sizes[0].high * 2 + 2) % 2**64)
        if overload in ("starts_with_string", "ends_with_string"):
            return sizes[0].scaled(TRAVERSAL), None
        if overload == "in_list":
            return sizes[1].scaled(1), None
        if overload in ("matches", "matches_string"):
            text, pattern = (target, sizes[0]) if call.target is not None else (sizes[0], sizes[1])
            return text.plus(ONE).scaled(TRAVERSAL).times(pattern.scaled(REGEX)), None
        if overload == "contains_string":
            return target.scaled(TRAVERSAL).times(sizes[0].scaled(TRAVERSAL)), None
        if overload in ("add_string", "add_bytes", "add_list"):
            return self._concatenation(node, overload, sizes)
        if overload in _COMPARED:
            most = min(sizes[0].high, sizes[1].high)
            return Range(1 if most > 0 else 0, most).scaled(TRAVERSAL), None
        return ONE, None

    def _concatenation(self, node: FunctionCall, overload: str, sizes: list[Range]) -> CallEstimate:
        size = sizes[0].plus(sizes[1])
        first, second = (self._held(each) for each in node.arguments)
        held = None if first is None else first.union(second)
        if held is not None:
            self._entries[node.id] = held
        return ONE if overload == "add_list" else size.scaled(TRAVERSAL), size


_COMPARED: Final = frozenset({"equals", "not_equals"}) | {
    f"{word}_{kind}"
    for word in ("less", "greater", "less_equals", "greater_equals")
    for kind in ("string", "bytes")
}


def _total(costs: list[Range]) -> Range:
    total = ZERO
    for cost in costs:
        total = total.plus(cost)
    return total


def _written_size(node: Node) -> int | None:
    """Return the size of what the expression writes down."""
    if isinstance(node, Literal):
        return len(node.value) if isinstance(node.value, str | bytes) else 1
    if isinstance(node, ListLiteral):
        return len(node.elements)
    if isinstance(node, MapLiteral):
        return len(node.entries)
    return None

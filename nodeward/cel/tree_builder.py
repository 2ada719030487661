"""Numbers for the nodes of a tree, and where they stand in the text.

Shared by the parser and the macros, which copy nodes and make new ones at the place of the call they replace.
"""

from __future__ import annotations

from nodeward.cel.syntax_tree import (
    Comprehension,
    FunctionCall,
    Ident,
    ListLiteral,
    Literal,
    MapEntry,
    MapLiteral,
    Node,
    Select,
    StructField,
    StructLiteral,
)


class TreeBuilder:
    """Hands out numbers and remembers the offset of each."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self._next = 1

    @property
    def count(self) -> int:
        """How many nodes there are."""
        return self._next - 1

    def number(self, offset: int) -> int:
        number = self._next
        self._next += 1
        self.offsets[number] = offset
        return number

    def forget(self, number: int) -> None:
        """Drop the number of a call that a macro replaced."""
        self.offsets.pop(number, None)
        if number == self._next - 1:
            self._next -= 1

    def copy(self, node: Node, place: int) -> Node:
        """Copy a tree under new numbers; entries of maps get the place of the macro."""
        number = self.number(self.offsets.get(node.id, 0))
        match node:
            case Literal():
                return Literal(number, node.value)
            case Ident():
                return Ident(number, node.name)
            case Select():
                return Select(number, self.copy(node.operand, place), node.name, node.is_test)
            case FunctionCall():
                arguments = [self.copy(each, place) for each in node.arguments]
                target = None if node.target is None else self.copy(node.target, place)
                return FunctionCall(number, node.function, target, arguments)
            case ListLiteral():
                return ListLiteral(number, [self.copy(each, place) for each in node.elements], node.optional)
            case MapLiteral():
                return MapLiteral(number, [self._copy_entry(each, place) for each in node.entries])
            case StructLiteral():
                return StructLiteral(
                    number, node.type_name, [self._copy_field(each, place) for each in node.fields]
                )
            case Comprehension():
                parts = (node.items, node.initial, node.condition, node.step, node.result)
                items, initial, condition, step, result = (self.copy(part, place) for part in parts)
                names = (node.variable, node.second_variable, node.accumulator)
                return Comprehension(number, items, *names, initial, condition, step, result)

    def _copy_entry(self, entry: MapEntry, place: int) -> MapEntry:
        number = self.number(place)
        return MapEntry(number, self.copy(entry.key, place), self.copy(entry.value, place), entry.is_optional)

    def _copy_field(self, field: StructField, place: int) -> StructField:
        return StructField(self.number(place), field.name, self.copy(field.value, place), field.is_optional)

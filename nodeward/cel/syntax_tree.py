"""The syntax tree of an expression, after macros were expanded.

Built by `parser.py` and `macros.py`, annotated by `checker.py`, read by the estimate and the planners. Every node has a
number; the tree keeps, per number, where in the text it stands. Only the checker changes nodes: it replaces names by
their full form.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

#: Literal values as Python has them; unsigned integers are `values.Uint`.
LiteralValue: TypeAlias = Any


@dataclass(slots=True, eq=False)
class Literal:
    id: int
    value: LiteralValue


@dataclass(slots=True, eq=False)
class Ident:
    id: int
    name: str


@dataclass(slots=True, eq=False)
class Select:
    """`operand.name`, or `has(operand.name)`."""

    id: int
    operand: Node
    name: str
    is_test: bool = False


@dataclass(slots=True, eq=False)
class FunctionCall:
    """A function or operator; `target` is the receiver of a member function."""

    id: int
    function: str
    target: Node | None
    arguments: list[Node]


@dataclass(slots=True, eq=False)
class ListLiteral:
    id: int
    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True, eq=False)
class MapEntry:
    id: int
    key: Node
    value: Node
    is_optional: bool = False


@dataclass(slots=True, eq=False)
class MapLiteral:
    id: int
    entries: list[MapEntry]


@dataclass(slots=True, eq=False)
class StructField:
    id: int
    name: str
    value: Node
    is_optional: bool = False


@dataclass(slots=True, eq=False)
class StructLiteral:
    id: int
    type_name: str
    fields: list[StructField]


@dataclass(slots=True, eq=False)
class Comprehension:
    """A fold: `accumulator` starts as `initial` and becomes `step` per item while `condition` holds."""

    id: int
    items: Node
    variable: str
    second_variable: str
    accumulator: str
    initial: Node
    condition: Node
    step: Node
    result: Node


Node: TypeAlias = (
    Literal | Ident | Select | FunctionCall | ListLiteral | MapLiteral | StructLiteral | Comprehension
)


@dataclass(slots=True)
class SyntaxTree:
    """A whole expression: its root, and where every node starts in the text (by number)."""

    root: Node
    offsets: dict[int, int] = field(default_factory=dict)


def children(node: Node) -> list[Node]:
    """Return the nodes directly below this one, from left to right."""
    match node:
        case Select():
            return [node.operand]
        case FunctionCall():
            return [*([] if node.target is None else [node.target]), *node.arguments]
        case ListLiteral():
            return node.elements
        case MapLiteral():
            return [part for entry in node.entries for part in (entry.key, entry.value)]
        case StructLiteral():
            return [each.value for each in node.fields]
        case Comprehension():
            return [node.items, node.initial, node.condition, node.step, node.result]
        case _:
            return []


def descendants(root: Node) -> list[tuple[Node, tuple[Node, ...]]]:
    """Return every node with its ancestors, parents before children."""
    found: list[tuple[Node, tuple[Node, ...]]] = []
    pending: list[tuple[Node, tuple[Node, ...]]] = [(root, ())]
    while pending:
        node, above = pending.pop()
        found.append((node, above))
        pending.extend((child, (*above, node)) for child in reversed(children(node)))
    return found


def depth(root: Node) -> int:
    """Return how many nodes the longest path from the root has."""
    deepest = 0
    pending = [(root, 1)]
    while pending:
        node, level = pending.pop()
        deepest = max(deepest, level)
        pending.extend((child, level + 1) for child in children(node))
    return deepest


def node_count(root: Node) -> int:
    """Return how many nodes the tree has."""
    count, pending = 0, [root]
    while pending:
        count += 1
        pending.extend(children(pending.pop()))
    return count

"""Checks of a well-typed tree: literals that can only fail at run time are refused at compile time.

Called by `program.py` after the checker: durations, timestamps and regular expressions that are written down, lists and
maps of mixed types, and format texts with their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nodeward.cel import cel_types as t
from nodeward.cel.cel_types import CelType
from nodeward.cel.checker import CheckedTree
from nodeward.cel.conversions import text_to_duration, text_to_timestamp
from nodeward.cel.library.regular_expressions import compile_regex
from nodeward.cel.library.text_format import CLAUSES, scan
from nodeward.cel.source import Issues
from nodeward.cel.syntax_tree import FunctionCall, ListLiteral, Literal, MapLiteral, Node, descendants
from nodeward.cel.unification import is_equivalent
from nodeward.cel.values import EvaluationError, Value

_LITERALS: Final[dict[str, Callable[[Value], object]]] = {
    "duration": lambda value: text_to_duration(value) if isinstance(value, str) else None,
    "timestamp": lambda value: text_to_timestamp(value) if isinstance(value, str) else None,
    "matches": lambda value: compile_regex(value) if isinstance(value, str) else None,
}


def validate(checked: CheckedTree, issues: Issues) -> None:
    """Report literals that cannot be right."""
    validator = _Validator(checked, issues)
    nodes = descendants(checked.tree.root)
    for node, _above in nodes:
        if isinstance(node, FunctionCall) and node.function in _LITERALS:
            validator.check_literal(node)
    for node, above in nodes:
        if not isinstance(node, ListLiteral | MapLiteral):
            continue
        if any(isinstance(each, FunctionCall) and each.function == "format" for each in above):
            continue  # what is formatted may be of any type
        if isinstance(node, ListLiteral):
            validator.check_list(node)
        else:
            validator.check_map(node)
    for node, _above in nodes:
        if isinstance(node, FunctionCall) and node.function == "format":
            validator.check_format(node)


class _WrongArgument(Exception):
    """An argument of a format text has a type its clause does not take."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Validator:
    def __init__(self, checked: CheckedTree, issues: Issues) -> None:
        self._checked = checked
        self._issues = issues

    def _report(self, number: int, message: str) -> None:
        self._issues.report(self._checked.tree.offsets.get(number, -1), message)

    def check_literal(self, node: FunctionCall) -> None:
        if not node.arguments or not isinstance(literal := node.arguments[0], Literal):
            return
        try:
            _LITERALS[node.function](literal.value)
        except EvaluationError:
            self._report(literal.id, f"invalid {node.function} argument")

    def check_list(self, node: ListLiteral) -> None:
        first: CelType | None = None
        for index, element in enumerate(node.elements):
            kind = self._checked.type(element)
            if index in node.optional and kind.parameters:
                kind = kind.parameters[0]
            first = first or kind
            if not is_equivalent(first, kind):
                self._mismatch(element, first, kind)
                return

    def check_map(self, node: MapLiteral) -> None:
        first: tuple[CelType, CelType] | None = None
        for entry in node.entries:
            key, value = self._checked.type(entry.key), self._checked.type(entry.value)
            if entry.is_optional and value.parameters:
                value = value.parameters[0]
            first = first or (key, value)
            if not is_equivalent(first[0], key):
                self._mismatch(entry.key, first[0], key)
            if not is_equivalent(first[1], value):
                self._mismatch(entry.value, first[1], value)

    def _mismatch(self, node: Node, expected: CelType, found: CelType) -> None:
        self._report(node.id, f"expected type '{t.display(expected)}' but found '{t.display(found)}'")

    def check_format(self, node: FunctionCall) -> None:
        pattern = node.target
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
            return
        if len(node.arguments) != 1 or not isinstance(items := node.arguments[0], ListLiteral):
            return
        used = 0

        def clause(index: int, letter: str, _precision: int | None) -> str:
            nonlocal used
            used += 1
            self._check_clause(letter, items.elements[index])
            return ""

        try:
            scan(pattern.value, len(items.elements), clause, ends_first=True)
        except _WrongArgument as wrong:
            self._report(wrong.number, str(wrong.__cause__))
            return
        except EvaluationError as error:
            self._report(node.id, str(error))
            return
        if len(items.elements) > used:
            counts = f"(expected {used}, got {len(items.elements)})"
            self._report(node.id, f"too many arguments supplied to string.format {counts}")

    def _check_clause(self, letter: str, node: Node) -> None:
        message, kinds = CLAUSES[letter]
        kind = self._checked.type(node)
        if kind != t.DYN and kind.kind not in kinds:
            error = EvaluationError(f"error during formatting: {message % kind.name}")
            raise _WrongArgument(node.id) from error
        if letter != "s":
            return
        inner: list[Node] = []
        if isinstance(node, ListLiteral):
            inner = node.elements
        elif isinstance(node, MapLiteral):
            inner = [part for entry in node.entries for part in (entry.key, entry.value)]
        for each in inner:
            self._check_clause(letter, each)

"""Label and field selectors: the text form of queries, and the struct form of specs.

`parse_labels("app=web,tier in (a,b),!old")` and `parse_fields("spec.nodeName=n1")` give selectors with `matches`;
`from_label_selector` compiles a `LabelSelector`. Errors are `SelectorError` with the texts kubectl users know.

Called by the API server, the scheduler, controllers and validation; calls `names`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from nodeward.api.meta import LabelSelector
from nodeward.base.errors import NodewardError
from nodeward.base.fielderror import invalid
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import label_key_faults, label_value_faults


class SelectorError(NodewardError, ValueError):
    """The text is not a selector."""


_INTEGER: Final = re.compile("[+-]?[0-9]{1,40}")


def label_number(text: str) -> int | None:
    """Return a label as Go reads a number of 64 bits: signs and leading zeros are fine, unlike in tolerations."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "=" | "in":
                return value is not None and value in self.values
            case "!=" | "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
            case _:
                return value is not None and self._compares(value)

    def _compares(self, value: str) -> bool:
        mine, theirs = label_number(self.values[0]), label_number(value)
        if mine is None or theirs is None:
            return False
        return theirs > mine if self.operator == ">" else theirs < mine

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(self.values)})"
            case _:
                return f"{self.key}{self.operator}{self.values[0]}"


@dataclass(frozen=True, slots=True)
class LabelRequirements:
    """A label selector: all requirements must hold; none of them selects everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)

    @property
    def is_everything(self) -> bool:
        return not self.requirements

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING: Final = LabelRequirements()
#: Most requirements and values of a selector in a query: it is matched against every object, for every watch.
MOST_TERMS: Final = 1_000
#: A part of a field selector, up to a comma that is not escaped.
_PART: Final = re.compile(r"((?:\\.|[^\\,]|\\\Z)*)(?:,|\Z)", re.DOTALL)

_OPERATORS = {"=": "=", "==": "=", "!=": "!=", ">": ">", "<": "<", "in": "in", "notin": "notin"}
_SYMBOLS = ("==", "!=", "=", "!", ">", "<", "(", ")", ",")


def _tokens(text: str) -> list[str]:
    """Words and symbols; the longest symbol that fits wins."""
    tokens: list[str] = []
    position = 0
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        symbol = next((s for s in _SYMBOLS if text.startswith(s, position)), None)
        if symbol is None:
            end = position
            while end < len(text) and not text[end].isspace() and text[end] not in "=!<>(),":
                end += 1
            symbol = text[position:end]
        tokens.append(symbol)
        position += len(symbol)
    return tokens


class _Parser:
    """Reads one label selector, left to right."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._next = 0

    def _peek(self) -> str:
        return self._tokens[self._next] if self._next < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._next += 1
        return token

    @staticmethod
    def _is_word(token: str) -> bool:
        return bool(token) and token[0] not in "=!<>(),"

    def parse(self) -> LabelRequirements:
        requirements: list[Requirement] = []
        while True:
            token = self._peek()
            if not token:
                return LabelRequirements(tuple(requirements))
            if not self._is_word(token) and token != "!":
                raise SelectorError(f"found '{token}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            token = self._take()
            if not token:
                return LabelRequirements(tuple(requirements))
            if token != ",":
                raise SelectorError(f"found '{token}', expected: ',' or 'end of string'")
            token = self._peek()
            if not self._is_word(token) and token != "!":
                raise SelectorError(f"found '{token}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        key = self._take()
        is_absent = key == "!"
        if is_absent:
            key = self._take()
        if not self._is_word(key):
            raise SelectorError(f"found '{key}', expected: identifier")
        faults = label_key_faults(key)
        if faults:
            raise SelectorError(str(invalid(_NOWHERE, key, "; ".join(faults))))
        if is_absent:
            return Requirement(key, "!")
        if self._peek() in ("", ","):
            return Requirement(key, "exists")
        token = self._take()
        operator = _OPERATORS.get(token)
        if operator is None:
            raise SelectorError(f"found '{token}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._set() if operator in ("in", "notin") else self._exact()
        return _checked(Requirement(key, operator, values))

    def _exact(self) -> tuple[str, ...]:
        if self._peek() in ("", ","):
            return ("",)
        token = self._take()
        if not self._is_word(token):
            raise SelectorError(f"found '{token}', expected: identifier")
        return (token,)

    def _set(self) -> tuple[str, ...]:
        token = self._take()
        if token != "(":
            raise SelectorError(f"found '{token}' expected: '('")
        values: set[str] = set()
        expects_value = True
        while True:
            token = self._take()
            if self._is_word(token) and expects_value:
                values.add(token)
                expects_value = False
            elif token in (",", ")"):
                if expects_value:
                    values.add("")
                if token == ")":
                    return tuple(sorted(values))
                expects_value = True
            else:
                expected = "',', or identifier" if expects_value else "',' or ')'"
                raise SelectorError(f"found '{token}', expected: {expected}")


_NOWHERE = FieldPath("<nil>")


def _checked(requirement: Requirement) -> Requirement:
    for position, value in enumerate(requirement.values):
        where = FieldPath(f"values[{position}]")
        if requirement.operator in "<>" and label_number(value) is None:
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            raise SelectorError(str(invalid(where, value, detail)))
        faults = label_value_faults(value)
        if faults:
            raise SelectorError(
                str(invalid(FieldPath(f"values[{position}][{requirement.key}]"), value, "; ".join(faults)))
            )
    return requirement


def parse_labels(text: str) -> LabelRequirements:
    """Return the label selector in a query; empty text selects everything."""
    if not text:
        return EVERYTHING
    if text.count(",") >= MOST_TERMS:
        raise SelectorError(_too_many(text))
    return _Parser(text).parse()


def _too_many(text: str) -> str:
    return f"the selector has {text.count(',') + 1} terms, may not have more than {MOST_TERMS}"


_STRUCT_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def from_label_selector(selector: LabelSelector | None) -> LabelRequirements | None:
    """Return the selector of a spec. None selects nothing (and is given back); an empty one selects everything."""
    if selector is None:
        return None
    requirements = [Requirement(key, "=", (value,)) for key, value in sorted(selector.match_labels.items())]
    for expression in selector.match_expressions:
        operator = _STRUCT_OPERATORS.get(expression.operator)
        if operator is None:
            raise SelectorError(f'"{expression.operator}" is not a valid label selector operator')
        requirements.append(Requirement(expression.key, operator, tuple(sorted(expression.values))))
    return LabelRequirements(tuple(requirements))


def selects(selector: LabelSelector | None, labels: Mapping[str, str]) -> bool:
    """Tell whether a well-formed selector selects these labels; one that is absent selects nothing."""
    compiled = from_label_selector(selector)
    return compiled is not None and compiled.matches(labels)


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A field selector: pairs that must all hold. `(path, value, is_equal)`."""

    terms: tuple[tuple[str, str, bool], ...] = ()

    @property
    def is_everything(self) -> bool:
        return not self.terms

    def matches(self, value_of: Callable[[str], str]) -> bool:
        return all((value_of(path) == value) == is_equal for path, value, is_equal in self.terms)

    def exact(self, path: str) -> str | None:
        """Return the one value `path` must have, if the selector requires one."""
        return next((value for name, value, is_equal in self.terms if name == path and is_equal), None)

    def __str__(self) -> str:
        return ",".join(f"{path}{'=' if is_equal else '!='}{value}" for path, value, is_equal in self.terms)


def parse_fields(text: str, known: Iterable[str]) -> FieldSelector:
    """Return the field selector in a query; a path that is not `known` is an error."""
    if not text:
        return FieldSelector()
    supported = frozenset(known)
    found = any_fields(text)
    for path, _, _ in found.terms:
        if path not in supported:
            raise SelectorError(f"field label not supported: {path}")
    return found


def any_fields(text: str) -> FieldSelector:
    """Return a field selector of whatever paths."""
    terms: list[tuple[str, str, bool]] = []
    if text.count(",") >= MOST_TERMS:
        raise SelectorError(_too_many(text))
    for part in _split_unescaped(text):
        if not part:
            continue
        match = re.match(r"((?:\\.|[^\\=!])*)(!=|==|=)(.*)", part, re.DOTALL)
        if match is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        terms.append((match[1], re.sub(r"\\(.)", r"\1", match[3]), match[2] != "!="))
    return FieldSelector(tuple(terms))


def _split_unescaped(text: str) -> list[str]:
    return [match[1] for match in _PART.finditer(text)]

"""The grammar of expressions as a graph of states, for `syntax_errors.py`.

A rule is a tree of `Token`, `RuleCall`, `Sequence` and so on; building it gives every element a state before it and one
after it. From states follow the tokens that may come next, and what a message says was expected.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final, TypeAlias

from nodeward.cel.lexer import MARKS, TokenKind

K = TokenKind
#: Stands for the end of a rule in sets of next tokens.
RULE_END: Final = -2

_NAMES: Final = {
    **{kind: f"'{text}'" for text, kind in MARKS.items()},
    K.END: "<EOF>",
    K.FLOAT: "NUM_FLOAT",
    K.INT: "NUM_INT",
    K.UINT: "NUM_UINT",
    K.STRING: "STRING",
    K.BYTES: "BYTES",
    K.IDENTIFIER: "IDENTIFIER",
    K.ESCAPED_IDENTIFIER: "ESC_IDENTIFIER",
}


def describe(kinds: frozenset[int]) -> str:
    """Write what was expected: one token, or a set of them."""
    names = [_NAMES[TokenKind(kind)] for kind in sorted(kinds)]
    return names[0] if len(names) == 1 else "{" + ", ".join(names) + "}"


@dataclass(frozen=True, slots=True)
class Expect:
    """One token out of a set."""

    kinds: frozenset[int]


@dataclass(frozen=True, slots=True)
class RuleCall:
    """Another rule; of rules with operators only those that bind at least this tightly."""

    name: str
    precedence: int = 0


@dataclass(frozen=True, slots=True)
class Binds:
    """Only when the rule was called for operators that bind no tighter than this."""

    precedence: int


@dataclass(frozen=True, slots=True)
class InOrder:
    items: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Either:
    items: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Maybe:
    item: Element


@dataclass(frozen=True, slots=True)
class Repeated:
    item: Element
    is_once: bool = False


Element: TypeAlias = Expect | RuleCall | Binds | InOrder | Either | Maybe | Repeated


def _t(*kinds: TokenKind) -> Expect:
    return Expect(frozenset(int(kind) for kind in kinds))


def _r(name: str, precedence: int = 0) -> RuleCall:
    return RuleCall(name, precedence)


def _seq(*items: Element) -> InOrder:
    return InOrder(items)


_MAYBE_DOT: Final = Maybe(_t(K.DOT))
_MAYBE_QUESTION: Final = Maybe(_t(K.QUESTION))
_MAYBE_COMMA: Final = Maybe(_t(K.COMMA))
_FIELD: Final = _seq(_r("optField"), _t(K.COLON), _r("expr"))
_ENTRY: Final = _seq(_r("optExpr"), _t(K.COLON), _r("expr"))
_ARGUMENTS: Final = _seq(_t(K.LEFT_PAREN), Maybe(_r("exprList")), _t(K.RIGHT_PAREN))

RULES: Final[dict[str, Element]] = {
    "start": _seq(_r("expr"), _t(K.END)),
    "expr": _seq(
        _r("conditionalOr"),
        Maybe(_seq(_t(K.QUESTION), _r("conditionalOr"), _t(K.COLON), _r("expr"))),
    ),
    "conditionalOr": _seq(_r("conditionalAnd"), Repeated(_seq(_t(K.OR), _r("conditionalAnd")))),
    "conditionalAnd": _seq(_r("relation"), Repeated(_seq(_t(K.AND), _r("relation")))),
    "relation": _seq(
        _r("calc"),
        Repeated(
            _seq(
                Binds(1),
                _t(K.LESS, K.LESS_EQUALS, K.GREATER_EQUALS, K.GREATER, K.EQUALS, K.NOT_EQUALS, K.IN),
                _r("relation", 2),
            )
        ),
    ),
    "calc": _seq(
        _r("unary"),
        Repeated(
            Either((
                _seq(Binds(2), _t(K.STAR, K.SLASH, K.PERCENT), _r("calc", 3)),
                _seq(Binds(1), _t(K.PLUS, K.MINUS), _r("calc", 2)),
            ))
        ),
    ),
    "unary": Either((
        _r("member"),
        _seq(Repeated(_t(K.EXCLAMATION), is_once=True), _r("member")),
        _seq(Repeated(_t(K.MINUS), is_once=True), _r("member")),
    )),
    "member": _seq(
        _r("primary"),
        Repeated(
            Either((
                _seq(Binds(3), _t(K.DOT), _MAYBE_QUESTION, _r("escapeIdent")),
                _seq(Binds(2), _t(K.DOT), _t(K.IDENTIFIER), *_ARGUMENTS.items),
                _seq(Binds(1), _t(K.LEFT_BRACKET), _MAYBE_QUESTION, _r("expr"), _t(K.RIGHT_BRACKET)),
            ))
        ),
    ),
    "primary": Either((
        _seq(_MAYBE_DOT, _t(K.IDENTIFIER)),
        _seq(_MAYBE_DOT, _t(K.IDENTIFIER), *_ARGUMENTS.items),
        _seq(_t(K.LEFT_PAREN), _r("expr"), _t(K.RIGHT_PAREN)),
        _seq(_t(K.LEFT_BRACKET), Maybe(_r("listInit")), _MAYBE_COMMA, _t(K.RIGHT_BRACKET)),
        _seq(_t(K.LEFT_BRACE), Maybe(_r("mapInitializerList")), _MAYBE_COMMA, _t(K.RIGHT_BRACE)),
        _seq(
            _MAYBE_DOT,
            _t(K.IDENTIFIER),
            Repeated(_seq(_t(K.DOT), _t(K.IDENTIFIER))),
            _t(K.LEFT_BRACE),
            Maybe(_r("fieldInitializerList")),
            _MAYBE_COMMA,
            _t(K.RIGHT_BRACE),
        ),
        _r("literal"),
    )),
    "exprList": _seq(_r("expr"), Repeated(_seq(_t(K.COMMA), _r("expr")))),
    "listInit": _seq(_r("optExpr"), Repeated(_seq(_t(K.COMMA), _r("optExpr")))),
    "fieldInitializerList": _seq(_FIELD, Repeated(_seq(_t(K.COMMA), _FIELD))),
    "optField": _seq(_MAYBE_QUESTION, _r("escapeIdent")),
    "mapInitializerList": _seq(_ENTRY, Repeated(_seq(_t(K.COMMA), _ENTRY))),
    "escapeIdent": Either((_t(K.IDENTIFIER), _t(K.ESCAPED_IDENTIFIER))),
    "optExpr": _seq(_MAYBE_QUESTION, _r("expr")),
    "literal": Either((
        _seq(Maybe(_t(K.MINUS)), _t(K.INT)),
        _t(K.UINT),
        _seq(Maybe(_t(K.MINUS)), _t(K.FLOAT)),
        _t(K.STRING),
        _t(K.BYTES),
        _t(K.TRUE),
        _t(K.FALSE),
        _t(K.NULL),
    )),
}  # fmt: skip


@dataclass(slots=True, eq=False)
class GrammarState:
    """A place in a rule. `steps` lead on: over a token, into a rule (and then on), or for nothing."""

    steps: list[tuple[Expect | RuleCall | Binds | None, GrammarState]] = field(default_factory=list)
    is_end: bool = False


@dataclass(slots=True, eq=False)
class Built:
    """An element with its states: before, after, and where a loop decides to go on."""

    element: Element
    before: GrammarState
    after: GrammarState
    inner: tuple[Built, ...] = ()
    again: GrammarState | None = None


def _build(element: Element) -> Built:
    before, after = GrammarState(), GrammarState()
    match element:
        case Expect() | RuleCall() | Binds():
            before.steps.append((element, after))
            return Built(element, before, after)
        case InOrder():
            parts = tuple(_build(each) for each in element.items)
            for left, right in pairwise(parts):
                left.after.steps.append((None, right.before))
            return Built(element, parts[0].before, parts[-1].after, parts)
        case Either():
            parts = tuple(_build(each) for each in element.items)
            for part in parts:
                before.steps.append((None, part.before))
                part.after.steps.append((None, after))
            return Built(element, before, after, parts)
        case Maybe():
            part = _build(element.item)
            before.steps += [(None, part.before), (None, after)]
            part.after.steps.append((None, after))
            return Built(element, before, after, (part,))
        case Repeated():
            part = _build(element.item)
            again = GrammarState()
            again.steps += [(None, part.before), (None, after)]
            part.after.steps.append((None, again))
            before.steps.append((None, part.before))
            if not element.is_once:
                before.steps.append((None, after))
            return Built(element, before, after, (part,), again)


@lru_cache(maxsize=1)
def graph() -> dict[str, Built]:
    """Return the built rules by name."""
    built = {name: _build(element) for name, element in RULES.items()}
    for rule in built.values():
        rule.after.is_end = True
    return built


@lru_cache(maxsize=4096)
def next_tokens(state: GrammarState) -> frozenset[int]:
    """Return the tokens that may come at a state; `RULE_END` when the rule may end there."""
    found: set[int] = set()
    seen: set[int] = set()
    pending = [state]
    while pending:
        here = pending.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        if here.is_end:
            found.add(RULE_END)
        for step, target in here.steps:
            if isinstance(step, Expect):
                found |= step.kinds
            elif isinstance(step, RuleCall):
                found |= next_tokens(graph()[step.name].before) - {RULE_END}
            else:
                pending.append(target)
    return frozenset(found)

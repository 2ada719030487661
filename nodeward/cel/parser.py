"""Tokens into a syntax tree.

`parse` is called by `program.py` and calls the lexer and the macros. A text without a syntax error is parsed by
recursive descent; for any other text, `syntax_errors.py` finds the words. What must stay true: the work is linear in
the text, and neither nesting nor chains of operators can exhaust Python's stack.
"""

from __future__ import annotations

import re
from typing import Final

from nodeward.cel.lexer import Token, TokenKind, tokenize
from nodeward.cel.literals import LiteralError, unescape
from nodeward.cel.macros import MacroError, Macros
from nodeward.cel.source import NOWHERE, Issues, Source
from nodeward.cel.syntax_errors import report_syntax_errors
from nodeward.cel.syntax_tree import (
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
    SyntaxTree,
    depth,
)
from nodeward.cel.tree_builder import TreeBuilder
from nodeward.cel.values import Uint

#: Unlike upstream, which stops at 250: deeper nesting is refused, as each level costs frames on Python's stack.
DEEPEST_NESTING: Final = 60
#: The deepest tree: nesting and chains of operators and members together. Upstream: 250.
DEEPEST_TREE: Final = 150

RESERVED: Final = frozenset({
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "package", "namespace", "null", "return", "true", "var", "void", "while",
})  # fmt: skip

_K = TokenKind
#: How tightly an operator binds, and its function.
_BINARY: Final = {
    _K.LESS: (1, "_<_"),
    _K.LESS_EQUALS: (1, "_<=_"),
    _K.GREATER_EQUALS: (1, "_>=_"),
    _K.GREATER: (1, "_>_"),
    _K.EQUALS: (1, "_==_"),
    _K.NOT_EQUALS: (1, "_!=_"),
    _K.IN: (1, "@in"),
    _K.PLUS: (2, "_+_"),
    _K.MINUS: (2, "_-_"),
    _K.STAR: (3, "_*_"),
    _K.SLASH: (3, "_/_"),
    _K.PERCENT: (3, "_%_"),
}
_INT: Final = range(-(2**63), 2**63)
_UINT: Final = range(2**64)


class _WrongToken(Exception):
    """The token at hand fits no rule of the grammar."""


class _TooDeep(Exception):
    """Nesting or a chain of operators is longer than allowed."""


def parse(source: Source, macros: Macros, issues: Issues) -> SyntaxTree | None:
    """Return the tree of the expression; None when issues were reported."""
    tokens, spaces = tokenize(source, issues)
    parser = _Parser(tokens, macros, issues)
    try:
        root = parser.parse()
    except _WrongToken:
        report_syntax_errors(source.text, tokens, spaces, parser.token, issues)
        return None
    except _TooDeep as deep:
        issues.report_at(NOWHERE, f"expression recursion limit exceeded: {deep}")
        return None
    if issues:
        return None
    if depth(root) > DEEPEST_TREE:
        issues.report_at(NOWHERE, f"expression recursion limit exceeded: {DEEPEST_TREE}")
        return None
    return SyntaxTree(root, parser.builder.offsets)


class _Parser:
    """Recursive descent over the tokens; one method per level of precedence that nests."""

    def __init__(self, tokens: list[Token], macros: Macros, issues: Issues) -> None:
        self._tokens = tokens
        self._next = 0
        self._nesting = 0
        self._macros = macros
        self._issues = issues
        self.builder = TreeBuilder()

    def parse(self) -> Node:
        root = self._expression()
        self._expect(_K.END)
        return root

    @property
    def token(self) -> Token:
        """The token at hand."""
        return self._tokens[min(self._next, len(self._tokens) - 1)]

    @property
    def _kind(self) -> TokenKind:
        return self._tokens[self._next].kind

    def _advance(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, kind: TokenKind) -> Token | None:
        return self._advance() if self._kind is kind else None

    def _expect(self, kind: TokenKind) -> Token:
        if self._kind is not kind:
            raise _WrongToken
        return self._advance() if kind is not _K.END else self._tokens[self._next]

    def _expression(self) -> Node:
        self._nesting += 1
        if self._nesting > DEEPEST_NESTING:
            raise _TooDeep(DEEPEST_NESTING)
        condition = self._logic(_K.OR, "_||_")
        if question := self._accept(_K.QUESTION):
            number = self.builder.number(question.offset)
            chosen = self._logic(_K.OR, "_||_")
            self._expect(_K.COLON)
            otherwise = self._expression()
            condition = self._call(number, "_?_:_", None, [condition, chosen, otherwise])
        self._nesting -= 1
        return condition

    def _logic(self, operator: TokenKind, function: str) -> Node:
        """Parse a chain of `||` or `&&`; it becomes a balanced tree."""
        terms = [self._logic(_K.AND, "_&&_") if operator is _K.OR else self._binary()]
        numbers: list[int] = []
        while token := self._accept(operator):
            terms.append(self._logic(_K.AND, "_&&_") if operator is _K.OR else self._binary())
            numbers.append(self.builder.number(token.offset))
        return _balance(function, terms, numbers, 0, len(numbers) - 1) if numbers else terms[0]

    def _binary(self, loosest: int = 0) -> Node:
        """Parse operators that bind at least this tightly; those of one level from left to right."""
        left, length = self._unary(), 0
        while (found := _BINARY.get(self._kind)) is not None and found[0] >= loosest:
            length = self._chain(length)
            level, function = found
            number = self.builder.number(self._advance().offset)
            left = self._call(number, function, None, [left, self._binary(level + 1)])
        return left

    def _chain(self, length: int) -> int:
        if length >= DEEPEST_TREE:
            raise _TooDeep(DEEPEST_TREE)
        return length + 1

    def _unary(self) -> Node:
        kind = self._kind
        if kind is not _K.EXCLAMATION and (kind is not _K.MINUS or self._is_signed_number()):
            return self._member()
        first = self._advance()
        count = 1
        while self._kind is kind:
            self._advance()
            count += 1
        if count % 2 == 0:
            return self._member()
        number = self.builder.number(first.offset)
        function = "!_" if kind is _K.EXCLAMATION else "-_"
        return self._call(number, function, None, [self._member()])

    def _is_signed_number(self) -> bool:
        return self._tokens[self._next + 1].kind in (_K.INT, _K.FLOAT)

    def _member(self) -> Node:
        operand, length = self._primary(), 0
        while True:
            if self._kind is _K.DOT:
                length = self._chain(length)
                operand = self._select(operand, self._advance())
            elif self._kind is _K.LEFT_BRACKET:
                length = self._chain(length)
                opening = self._advance()
                number = self.builder.number(opening.offset)
                function = "_[?_]" if self._accept(_K.QUESTION) else "_[_]"
                index = self._expression()
                self._expect(_K.RIGHT_BRACKET)
                operand = self._call(number, function, None, [operand, index])
            else:
                return operand

    def _select(self, operand: Node, dot: Token) -> Node:
        is_optional = self._accept(_K.QUESTION) is not None
        name = self._field_name()
        if not is_optional and name.kind is _K.IDENTIFIER and (opening := self._accept(_K.LEFT_PAREN)):
            number = self.builder.number(opening.offset)
            return self._call(number, name.text, operand, self._arguments())
        field = name.text.strip("`")
        if is_optional:
            key = Literal(self.builder.number(name.offset), field)
            return FunctionCall(self.builder.number(dot.offset), "_?._", None, [operand, key])
        return Select(self.builder.number(dot.offset), operand, field)

    def _field_name(self) -> Token:
        if self._kind not in (_K.IDENTIFIER, _K.ESCAPED_IDENTIFIER):
            raise _WrongToken
        return self._advance()

    def _arguments(self) -> list[Node]:
        arguments: list[Node] = []
        if self._accept(_K.RIGHT_PAREN):
            return arguments
        arguments.append(self._expression())
        while self._accept(_K.COMMA):
            arguments.append(self._expression())
        self._expect(_K.RIGHT_PAREN)
        return arguments

    def _primary(self) -> Node:
        token = self._advance()
        match token.kind:
            case _K.IDENTIFIER:
                return self._name(token, "")
            case _K.DOT:
                return self._name(self._expect(_K.IDENTIFIER), ".", token.offset)
            case _K.LEFT_PAREN:
                inner = self._expression()
                self._expect(_K.RIGHT_PAREN)
                return inner
            case _K.LEFT_BRACKET:
                return self._list(token)
            case _K.LEFT_BRACE:
                return self._map(token)
            case _:
                return self._literal(token)

    def _name(self, name: Token, dot: str, start: int | None = None) -> Node:
        offset = name.offset if start is None else start
        if (message := self._message_name()) is not None:
            return self._struct(dot + name.text + message)
        opening = self._accept(_K.LEFT_PAREN)
        if name.text in RESERVED:
            self._issues.report(offset, f"reserved identifier: {name.text}")
        if opening is None:
            return Ident(self.builder.number(name.offset), dot + name.text)
        number = self.builder.number(opening.offset)
        return self._call(number, dot + name.text, None, self._arguments())

    def _message_name(self) -> str | None:
        """Return the rest of a message's name when `{` follows it, and go there."""
        at, rest = self._next, ""
        while self._tokens[at].kind is _K.DOT and self._tokens[at + 1].kind is _K.IDENTIFIER:
            rest += f".{self._tokens[at + 1].text}"
            at += 2
        if self._tokens[at].kind is not _K.LEFT_BRACE:
            return None
        self._next = at
        return rest

    def _struct(self, name: str) -> Node:
        number = self.builder.number(self._advance().offset)
        fields: list[StructField] = []
        while not self._closes(_K.RIGHT_BRACE, bool(fields)):
            is_optional = self._accept(_K.QUESTION) is not None
            field = self._field_name()
            colon = self._expect(_K.COLON)
            field_number = self.builder.number(colon.offset)
            fields.append(StructField(field_number, field.text.strip("`"), self._expression(), is_optional))
        return StructLiteral(number, name, fields)

    def _list(self, opening: Token) -> Node:
        number = self.builder.number(opening.offset)
        elements: list[Node] = []
        optional: list[int] = []
        while not self._closes(_K.RIGHT_BRACKET, bool(elements)):
            if self._accept(_K.QUESTION):
                optional.append(len(elements))
            elements.append(self._expression())
        return ListLiteral(number, elements, frozenset(optional))

    def _map(self, opening: Token) -> Node:
        number = self.builder.number(opening.offset)
        entries: list[MapEntry] = []
        while not self._closes(_K.RIGHT_BRACE, bool(entries)):
            is_optional = self._accept(_K.QUESTION) is not None
            key = self._expression()
            colon = self._expect(_K.COLON)
            entry = self.builder.number(colon.offset)
            entries.append(MapEntry(entry, key, self._expression(), is_optional))
        return MapLiteral(number, entries)

    def _closes(self, closing: TokenKind, needs_comma: bool) -> bool:
        """Pass the comma between items, or the end of them (a last comma is allowed)."""
        if self._accept(closing):
            return True
        if needs_comma:
            self._expect(_K.COMMA)
            return self._accept(closing) is not None
        if self._kind is _K.COMMA and self._tokens[self._next + 1].kind is closing:
            self._next += 2
            return True
        return False

    def _literal(self, token: Token) -> Node:
        number = self.builder.number(token.offset)
        sign, text = "", token.text
        if token.kind is _K.MINUS and self._kind in (_K.INT, _K.FLOAT):
            token = self._advance()
            sign, text = "-", token.text
        match token.kind:
            case _K.TRUE | _K.FALSE:
                return Literal(number, token.kind is _K.TRUE)
            case _K.NULL:
                return Literal(number, None)
            case _K.INT:
                value = _integer(sign + text)
                self._require(value in _INT, number, "invalid int literal")
                return Literal(number, value)
            case _K.UINT:
                value = _integer(text[:-1])
                self._require(value in _UINT, number, "invalid uint literal")
                return Literal(number, Uint(value % 2**64))
            case _K.FLOAT:
                amount = float(sign + text)
                self._require(abs(amount) != float("inf"), number, "invalid double literal")
                return Literal(number, amount)
            case _K.STRING | _K.BYTES:
                return Literal(number, self._text(token, number))
            case _:
                self._next -= 1
                raise _WrongToken

    def _text(self, token: Token, number: int) -> str | bytes:
        is_bytes = token.kind is _K.BYTES
        try:
            return unescape(token.text[is_bytes:], is_bytes=is_bytes)
        except LiteralError as error:
            self._issues.report(self.builder.offsets[number], str(error))
            return b"" if is_bytes else ""

    def _require(self, holds: bool, number: int, message: str) -> None:
        if not holds:
            self._issues.report(self.builder.offsets[number], message)

    def _call(self, number: int, function: str, target: Node | None, arguments: list[Node]) -> Node:
        """Return a call, or what a macro makes of it."""
        try:
            expanded = self._macros.expand(self.builder, number, function, target, arguments)
        except MacroError as error:
            offset = self.builder.offsets.get(error.number, -1)
            self.builder.forget(number)
            self._issues.report(offset, str(error))
            return Literal(self.builder.number(offset), None)
        if expanded is None:
            return FunctionCall(number, function, target, arguments)
        self.builder.forget(number)
        return expanded


def _balance(function: str, terms: list[Node], numbers: list[int], low: int, high: int) -> Node:
    """Return a balanced tree of the terms, so that long chains stay flat."""
    middle = (low + high + 1) // 2
    left = terms[middle] if middle == low else _balance(function, terms, numbers, low, middle - 1)
    right = terms[middle + 1] if middle == high else _balance(function, terms, numbers, middle + 1, high)
    return FunctionCall(numbers[middle], function, None, [left, right])


_HEXADECIMAL: Final = re.compile(r"(-?)0x([0-9a-fA-F]+)")


def _integer(text: str) -> int:
    if match := _HEXADECIMAL.fullmatch(text):
        return int(match[1] + match[2][-40:].rjust(1, "0"), 16) if len(match[2].lstrip("0")) <= 17 else 2**70
    return int(text) if len(text.lstrip("-0")) <= 21 else 2**70

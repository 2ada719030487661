"""Is a CEL expression well formed? Its syntax only: what the names in it mean is not looked at.

In goes the text, out comes the compiler's message about the first fault, with the place in the text, or nothing.
The grammar is that of the Common Expression Language: conditionals, logic, comparisons, arithmetic, members, calls,
lists, maps and message literals.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NoReturn

#: Unlike upstream, which stops at 250: deeper nesting is refused, as each level costs frames on Python's stack.
_DEEPEST: Final = 100

_TOKEN: Final = re.compile(
    r"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
    |(?P<bytes>[bB](?:[rR])?(?:'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"))
    |(?P<raw>[rR](?:'''[\s\S]*?'''|\"\"\"[\s\S]*?\"\"\"|'[^'\n]*'|"[^"\n]*"))
    |(?P<string>'''(?:\\.|[^\\])*?'''|\"\"\"(?:\\.|[^\\])*?\"\"\"|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*")
    |(?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|\d+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*|`[A-Za-z0-9_.\-/ ]+`)
    |(?P<mark>==|!=|<=|>=|&&|\|\||[<>!?:.,()\[\]{}+\-*/%])
    """,
    re.VERBOSE,
)
_OPERAND: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', "
    "NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
_LITERALS: Final = ("bytes", "raw", "string", "float", "uint", "int")
_BINARY: Final = ("||", "&&", "==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int


class _SyntaxFault(ValueError):
    def __init__(self, at: int, message: str) -> None:
        super().__init__(message)
        self.at = at


def check_cel(expression: str) -> str | None:
    """What the compiler says of the expression's syntax; None if it is fine."""
    try:
        _Parser(_tokens(expression)).parse()
    except _SyntaxFault as fault:
        return f"compilation failed: {_report(expression, fault)}"
    return None


def _report(expression: str, fault: _SyntaxFault) -> str:
    if not expression:  # there is no place to point at
        return f"ERROR: <input>:1:0: Syntax error: {fault}"
    before = expression[: fault.at]
    line = before.count("\n") + 1
    column = fault.at - (before.rfind("\n") + 1)
    source = expression.split("\n")[line - 1]
    where = f"ERROR: <input>:{line}:{column + 1}: Syntax error: {fault}"
    return f"{where}\n | {source}\n | {'.' * column}^"


def _tokens(expression: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            raise _SyntaxFault(at, f"token recognition error at: '{expression[at:]}'")
        kind = match.lastgroup or ""
        if kind != "space":
            tokens.append(_Token(kind, match.group(), at))
        at = match.end()
    tokens.append(_Token("end", "<EOF>", len(expression)))
    return tokens


class _Parser:
    """Goes over the tokens once, from left to right."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def parse(self) -> None:
        self._expression()
        if self._token.kind != "end":
            self._mismatch("<EOF>")

    def _mismatch(self, expected: str) -> NoReturn:
        raise _SyntaxFault(self._token.start, f"mismatched input '{self._token.text}' expecting {expected}")

    def _is(self, *texts: str) -> bool:
        return self._token.kind in ("mark", "name") and self._token.text in texts

    def _accept(self, text: str) -> bool:
        if not self._is(text):
            return False
        self._next += 1
        return True

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            self._mismatch(f"'{text}'")

    def _expression(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _SyntaxFault(self._token.start, f"expression recursion limit exceeded: {_DEEPEST}")
        self._operation()
        if self._accept("?"):
            self._operation()
            self._expect(":")
            self._expression()
        self._depth -= 1

    def _operation(self) -> None:
        # Which operator binds tighter changes the value, never whether the text is well formed.
        self._unary()
        while self._is(*_BINARY):
            self._next += 1
            self._unary()

    def _unary(self) -> None:
        sign = self._token.text
        if self._is("!", "-"):
            while self._accept(sign):
                pass
        self._primary()
        while self._member():
            pass

    def _member(self) -> bool:
        if self._accept("."):
            self._accept("?")
            self._name()
            if self._accept("("):
                self._arguments(")")
            elif self._is("{"):
                self._fields()
            return True
        if self._accept("["):
            self._accept("?")
            self._expression()
            self._expect("]")
            return True
        return False

    def _name(self) -> None:
        if self._token.kind != "name":
            self._mismatch("IDENTIFIER")
        self._next += 1

    def _primary(self) -> None:
        token = self._token
        if token.kind in _LITERALS:
            self._next += 1
        elif self._accept("("):
            self._expression()
            self._expect(")")
        elif self._accept("["):
            self._arguments("]")
        elif self._accept("{"):
            self._entries()
        else:
            self._accept(".")
            if self._token.kind != "name" or self._token.text == "in":
                self._mismatch(_OPERAND)
            self._next += 1
            if self._accept("("):
                self._arguments(")")
            elif self._is("{"):
                self._fields()

    def _arguments(self, closing: str) -> None:
        while not self._accept(closing):
            self._accept("?")
            self._expression()
            if not self._accept(","):
                self._expect(closing)
                return

    def _entries(self) -> None:
        while not self._accept("}"):
            self._accept("?")
            self._expression()
            self._expect(":")
            self._expression()
            if not self._accept(","):
                self._expect("}")
                return

    def _fields(self) -> None:
        self._expect("{")
        while not self._accept("}"):
            self._accept("?")
            self._name()
            self._expect(":")
            self._expression()
            if not self._accept(","):
                self._expect("}")
                return

"""Text into tokens, as the grammar of the Common Expression Language says.

Used by `parser.py`. The longest token wins; what starts no token is an error and is skipped, so that one wrong
character does not hide what follows. White space and comments are left out.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final, NamedTuple

from nodeward.cel.source import Issues, Source


class TokenKind(IntEnum):
    """Kinds in the order of the grammar; messages list what was expected in this order."""

    END = -1
    EQUALS = 1
    NOT_EQUALS = 2
    IN = 3
    LESS = 4
    LESS_EQUALS = 5
    GREATER_EQUALS = 6
    GREATER = 7
    AND = 8
    OR = 9
    LEFT_BRACKET = 10
    RIGHT_BRACKET = 11
    LEFT_BRACE = 12
    RIGHT_BRACE = 13
    LEFT_PAREN = 14
    RIGHT_PAREN = 15
    DOT = 16
    COMMA = 17
    MINUS = 18
    EXCLAMATION = 19
    QUESTION = 20
    COLON = 21
    PLUS = 22
    STAR = 23
    SLASH = 24
    PERCENT = 25
    TRUE = 26
    FALSE = 27
    NULL = 28
    SPACE = 29
    FLOAT = 31
    INT = 32
    UINT = 33
    STRING = 34
    BYTES = 35
    IDENTIFIER = 36
    ESCAPED_IDENTIFIER = 37


class Token(NamedTuple):
    kind: TokenKind
    text: str
    offset: int


MARKS: Final = {
    "==": TokenKind.EQUALS,
    "!=": TokenKind.NOT_EQUALS,
    "in": TokenKind.IN,
    "<": TokenKind.LESS,
    "<=": TokenKind.LESS_EQUALS,
    ">=": TokenKind.GREATER_EQUALS,
    ">": TokenKind.GREATER,
    "&&": TokenKind.AND,
    "||": TokenKind.OR,
    "[": TokenKind.LEFT_BRACKET,
    "]": TokenKind.RIGHT_BRACKET,
    "{": TokenKind.LEFT_BRACE,
    "}": TokenKind.RIGHT_BRACE,
    "(": TokenKind.LEFT_PAREN,
    ")": TokenKind.RIGHT_PAREN,
    ".": TokenKind.DOT,
    ",": TokenKind.COMMA,
    "-": TokenKind.MINUS,
    "!": TokenKind.EXCLAMATION,
    "?": TokenKind.QUESTION,
    ":": TokenKind.COLON,
    "+": TokenKind.PLUS,
    "*": TokenKind.STAR,
    "/": TokenKind.SLASH,
    "%": TokenKind.PERCENT,
    "true": TokenKind.TRUE,
    "false": TokenKind.FALSE,
    "null": TokenKind.NULL,
}

_ESCAPE: Final = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING: Final = (
    rf'(?:"""(?:{_ESCAPE}|[^\\])*?"""'
    rf"|'''(?:{_ESCAPE}|[^\\])*?'''"
    r'|[rR]"""[\s\S]*?"""'
    r"|[rR]'''[\s\S]*?'''"
    rf'|"(?:{_ESCAPE}|[^\\"\n\r])*"'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*'"
    r'|[rR]"[^"\n\r]*"'
    r"|[rR]'[^'\n\r]*')"
)
_TOKEN: Final = re.compile(
    rf"(?P<SPACE>[ \t\r\n\f]+|//[^\n]*)"
    rf"|(?P<BYTES>[bB]{_STRING})"
    rf"|(?P<STRING>{_STRING})"
    r"|(?P<FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<UINT>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])"
    r"|(?P<INT>0x[0-9a-fA-F]+|[0-9]+)"
    r"|(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<ESCAPED_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)"
    r"|(?P<MARK>==|!=|<=|>=|&&|\|\||[<>!?:.,()\[\]{}+\-*/%])"
)
#: How far the lexer reads into what then turns out to be no token.
_BROKEN: Final = re.compile(
    rf'"(?:{_ESCAPE}|[^\\"\n\r])*(?:\\(?:[xX][0-9a-fA-F]?|[0-3][0-7]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}})?)?'
    rf"|'(?:{_ESCAPE}|[^\\'\n\r])*(?:\\(?:[xX][0-9a-fA-F]?|[0-3][0-7]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}})?)?"
    r"|`[A-Za-z0-9_.\-/ ]*"
    r"|[=&|]"
)
_DISPLAY: Final = str.maketrans({"\n": "\\n", "\t": "\\t", "\r": "\\r"})


def tokenize(source: Source, issues: Issues) -> tuple[list[Token], list[Token]]:
    """Return all tokens and the end, and the white space between them; report what is neither."""
    text, at = source.text, 0
    tokens: list[Token] = []
    spaces: list[Token] = []
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            at = _skip(text, at, issues)
            continue
        group, found = match.lastgroup or "", match.group()
        if group == "IDENTIFIER":
            tokens.append(Token(MARKS.get(found, TokenKind.IDENTIFIER), found, at))
        elif group == "MARK":
            tokens.append(Token(MARKS[found], found, at))
        elif group == "SPACE":
            spaces.append(Token(TokenKind.SPACE, found, at))
        else:
            tokens.append(Token(TokenKind[group], found, at))
        at = match.end()
    tokens.append(Token(TokenKind.END, "<EOF>", len(text)))
    return tokens, spaces


def _skip(text: str, at: int, issues: Issues) -> int:
    """Report the characters at this place; return where the lexer goes on."""
    broken = _BROKEN.match(text, at)
    end = min((broken.end() if broken else at) + 1, len(text))
    shown = text[at:end].translate(_DISPLAY)
    issues.report(at, f"Syntax error: token recognition error at: '{shown}'")
    return end

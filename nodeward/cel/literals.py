"""String and bytes literals: the text between the quotes with its escapes resolved.

Called by the parser with a token's text; the lexer has seen to it that quotes match and escapes have their shape.
"""

from __future__ import annotations

import re
from typing import Final


class LiteralError(ValueError):
    """An escape has no meaning here: a code point that does not exist, or `\\u` in bytes."""


_ESCAPE: Final = re.compile(
    r"\\(?:([abfnrtv\\'\"`?])|[xX](..)|u(....)|U(........)|([0-3][0-7]{2}))", re.DOTALL
)
_SIMPLE: Final = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip


def unescape(token: str, *, is_bytes: bool) -> str | bytes:
    """Return the value of a string or bytes literal (without the `b`)."""
    text = token.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    text = text[1:] if is_raw else text
    quotes = 3 if len(text) >= 6 and text[:3] in ("'''", '"""') else 1
    text = text[quotes:-quotes]
    if is_raw or "\\" not in text:
        return text.encode() if is_bytes else text
    return _bytes(text) if is_bytes else _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    if simple := match[1]:
        return _SIMPLE[simple]
    code = int(match[5], 8) if match[5] else int(match[2] or match[3] or match[4], 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _bytes(text: str) -> bytes:
    result, at = bytearray(), 0
    for match in _ESCAPE.finditer(text):
        result += text[at : match.start()].encode()
        if simple := match[1]:
            result += _SIMPLE[simple].encode()
        elif match[3] or match[4]:
            raise LiteralError("unable to unescape string")
        else:
            result.append(int(match[5], 8) if match[5] else int(match[2], 16))
        at = match.end()
    return bytes(result + text[at:].encode())

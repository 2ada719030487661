"""Variables in a file that a container wrote (`fileKeyRef`): `NAME='value'`, a value may span lines, `#` is a comment.

The rules are upstream's and strict: a file with anything else in it before the variable is not read at all.
"""

from __future__ import annotations

import re
from typing import Final

from nodeward.base.errors import WorldError

_ENTRY: Final = re.compile(
    r"[ \t]*(?:"
    r"(?P<nothing>(?:\#[^\n]*)?)"
    r"|(?P<empty>[^\s=\#][^=\n]*(?<![ \t]))=[ \t][^\n]*"
    r"|(?P<name>[^\s=\#][^=\n]*(?<![ \t]))='(?P<value>[^']*)'[ \t]*(?:\#[^\n]*)?"
    r")(?:\n|\Z)"
)


def read_variable(data: bytes, key: str) -> str:
    """The value of a variable in a file's bytes; empty if it is not in the file."""
    text = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    at = 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        if entry is None:
            raise WorldError("couldn't parse env file")
        if entry["name"] == key:
            return entry["value"]
        if entry["empty"] == key:
            return ""
        at = entry.end()
    return ""

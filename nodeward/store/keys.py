"""What a key is, and where a prefix ends: the arithmetic of text keys, shared by the stores.

In: a prefix. Out: the smallest text that is greater than every text beginning with it, so that a prefix is
the half-open range [prefix, end). What must stay true: the result is valid Unicode (no surrogates), as SQLite
is given it.
"""

from __future__ import annotations

from typing import Final

from nodeward.base.invariant import invariant

_LAST: Final = 0x10FFFF
_BEFORE_SURROGATES: Final = 0xD7FF
_AFTER_SURROGATES: Final = 0xE000


def check_key(key: str) -> None:
    """A key is text (no half of a surrogate pair), not empty, without NUL. Whoever made this one has a bug."""
    is_text = key.isascii() or not any(_BEFORE_SURROGATES < ord(letter) < _AFTER_SURROGATES for letter in key)
    invariant(is_text and key != "" and "\x00" not in key, "a key is non-empty text without NUL")


def prefix_end(prefix: str) -> str | None:
    """Return the end of the range of keys that begin with `prefix`; None if there is none (all keys from it on)."""
    for position in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[position])
        if code < _LAST:
            following = _AFTER_SURROGATES if code == _BEFORE_SURROGATES else code + 1
            return prefix[:position] + chr(following)
    return None

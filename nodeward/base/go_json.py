"""JSON byte for byte as Go's encoding/json writes it, where others compare bytes: the data of ControllerRevisions.

The store's codec and the controllers call this. In: trees of plain values. Out: compact text whose strings escape what
Go escapes beyond the JSON standard (<, >, & and the two line separators of Unicode).

What must stay true: what was read from such bytes and is written again gives the same bytes.

Called by `api.codec` and `controllers.controller_revisions`.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final

_ESCAPED: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
#: Integers up to here are the same as floating-point numbers.
_EXACT: Final = 1 << 53
_INT64: Final = 1 << 63


def go_json(tree: Any, *, is_sorted: bool = False) -> bytes:
    """Encode a tree; with `is_sorted`, keys in the order in which Go writes a map, else in the tree's own."""
    text = json.dumps(tree, ensure_ascii=False, separators=(",", ":"), sort_keys=is_sorted, allow_nan=False)
    return text.translate(_ESCAPED).encode()


def with_float_integers(tree: Any) -> Any:
    """Return the tree as Go has it after reading JSON into a map: integers have become floating-point numbers.

    Unlike in Go, an integer that would leave the range of 64 bits on the way stays as it is: Go writes what it cannot
    read again.
    """
    if isinstance(tree, dict):
        return {key: with_float_integers(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [with_float_integers(value) for value in tree]
    if isinstance(tree, int) and not isinstance(tree, bool) and abs(tree) > _EXACT:
        rounded = int(Decimal(repr(float(tree))))
        return rounded if -_INT64 <= rounded < _INT64 else tree
    return tree

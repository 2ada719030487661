"""A memo of what stateful plugins worked out for pods of one signature: the latest few entries per table.

Used by PodTopologySpread and InterPodAffinity, which are asked for every pod but need not work out everything again.
The plugin checks whether an entry still holds.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

#: Entries kept; one may hold a few columns.
MOST: Final = 256


class SignatureMemo:
    """By plugin and signature."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._found: OrderedDict[tuple[object, bytes], Any] = OrderedDict()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, owner: object, signature: bytes | None) -> Any:
        """What was put there; None if nothing was, or it is forgotten, or the pod is not signed yet."""
        if signature is None:
            return None
        key = owner, signature
        found = self._found.get(key)
        if found is not None:
            self._found.move_to_end(key)
        return found

    def put(self, owner: object, signature: bytes | None, value: object) -> None:
        if signature is None:
            return
        self._found[owner, signature] = value
        self._found.move_to_end((owner, signature))
        if len(self._found) > self._most:
            self._found.popitem(last=False)

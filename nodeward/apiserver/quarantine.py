"""Stored objects that are broken: named, left in the store as they are, and not served, so that all others are.

A list joins the bytes of its objects and every component decodes them, so one value that is no JSON object, or the
object of another key, would take everybody down. When the hub loads the store it looks at every value; what fails is
logged with its kind, namespace and name, counted in the metrics, and kept out of the caches.

Called by `hub.py` and, for objects whose fields do not decode, by `security.py`.
"""

from __future__ import annotations

import logging
from typing import Final

import msgspec

LOG: Final = logging.getLogger(__name__)

#: Broken objects that are named; the others are counted.
_NAMED: Final = 100


class _Meta(msgspec.Struct, gc=False):
    name: str = ""
    namespace: str = ""


class _Object(msgspec.Struct, gc=False):
    metadata: _Meta


_DECODE: Final = msgspec.json.Decoder(_Object).decode


class Quarantine:
    """The broken objects of one store."""

    def __init__(self) -> None:
        #: why, by storage key
        self.found: dict[str, str] = {}

    def admits(self, storage_key: str, inner: str, value: bytes) -> bool:
        """Tell whether a value is the object of its key, named `namespace/name` or `name`; if not, remember it."""
        try:
            meta = _DECODE(value).metadata
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self.add(storage_key, str(error))
            return False
        namespace, _, name = inner.rpartition("/")
        if (meta.name, meta.namespace) == (name, namespace):
            self.found.pop(storage_key, None)
            return True
        self.add(storage_key, f"it is the object {meta.namespace}/{meta.name}")
        return False

    def add(self, storage_key: str, why: str) -> None:
        """Remember and report a broken object."""
        if storage_key not in self.found and len(self.found) < _NAMED:
            text = "a stored object is broken and is not served; it stays in the store under %s: %s"
            LOG.error(text, storage_key, why)
        self.found[storage_key] = why

"""What the kubelet must remember over its own death: values on its disk, each with a checksum.

A value goes in as plain JSON and comes out the same, or not at all: a file that was changed, cut short or is not
JSON is set aside under another name and told, never taken for empty. A write is whole or not there (the disk sees to
that), so killing the kubelet at any moment leaves the former value.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from nodeward.base.errors import NodewardError
from nodeward.kubelet.disk import Disk

_DIGEST: Final = "sha256"


class CheckpointCorrupt(NodewardError):
    """A checkpoint that cannot be trusted. Its bytes are kept under `aside`; both names are as people know them."""

    def __init__(self, path: str, aside: str, why: str) -> None:
        self.path: Final = path
        self.aside: Final = aside
        super().__init__(
            f"checkpoint {path} is corrupt: {why}. Its bytes are kept as {aside}. Put a good copy back as {path}, or "
            "drain the node and start again: without it the kubelet does not know what it had given to running pods"
        )


class _File(msgspec.Struct):
    data: msgspec.Raw
    checksum: str


class Checkpoints:
    """The checkpoints in one directory of a disk."""

    def __init__(self, disk: Disk, directory: str = "checkpoints") -> None:
        self._disk = disk
        self._directory = directory

    def write(self, name: str, value: Any) -> None:
        """Keep a value of plain maps, lists, texts and numbers under a name; on the disk when this returns."""
        data = msgspec.json.encode(value, order="deterministic")
        checksum = f"{_DIGEST}:{hashlib.sha256(data).hexdigest()}"
        self._disk.write(self._path(name), msgspec.json.encode(_File(msgspec.Raw(data), checksum)))

    def read(self, name: str) -> Any:
        """The value under a name; None if there is none. `CheckpointCorrupt` if it is not what was written."""
        path = self._path(name)
        stored = self._disk.read(path)
        if stored is None:
            return None
        why = ""
        try:
            file = msgspec.json.decode(stored, type=_File)
            data = bytes(file.data)
            found = f"{_DIGEST}:{hashlib.sha256(data).hexdigest()}"
            if found == file.checksum:
                return msgspec.json.decode(data)
            why = f"its checksum is {found}, it says {file.checksum}"
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            why = f"not what a checkpoint looks like ({error})"
        aside = self._disk.set_aside(path)
        raise CheckpointCorrupt(self._disk.shown(path), self._disk.shown(aside), why)

    def remove(self, name: str) -> None:
        self._disk.remove(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}.json" if self._directory else f"{name}.json"

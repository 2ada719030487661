"""The checkpoint files `allocated_pods_state` and `actuated_pods_state`, in Kubernetes' format.

*Allocated* is what a node has promised a pod, *actuated* what its runtime has accepted; where they differ a resize is
in progress, also after a restart. The `Allocation` of a node writes both. Reading and writing is in upstream's bytes
and checksums, so that a node can move between the two kubelets.

Unlike upstream, a pod is in the files only from its first resize on (docs/decisions/0014): before, what was allocated
is what its status says. So a node on which nobody resizes anything has no such file.

What must stay true: a record is on the disk when `set` returns; a file that cannot be trusted is set aside and stops
the kubelet's start (`CheckpointCorrupt`).
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any, Final

import msgspec

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.base.fnv import fnv1a_32
from nodeward.kubelet.checkpoint import CheckpointCorrupt
from nodeward.kubelet.disk import Disk
from nodeward.kubelet.pods.resource_info import PodResourceInfo, resources_tree

LOG: Final = logging.getLogger(__name__)

ALLOCATED_FILE: Final = "allocated_pods_state"
ACTUATED_FILE: Final = "actuated_pods_state"


class PodResourceState:
    """One of the two files. Raises `CheckpointCorrupt` when it is opened and is not what was written."""

    __slots__ = ("_disk", "_file", "_parts", "_records")

    def __init__(self, disk: Disk, file: str) -> None:
        self._disk = disk
        self._file = file
        stored = disk.read(file)
        self._records: dict[str, PodResourceInfo] = {}
        if stored is not None:
            try:
                self._records = decode(stored)
            except ValueError as error:
                aside = disk.set_aside(file)
                raise CheckpointCorrupt(disk.shown(file), disk.shown(aside), str(error)) from None
        #: every record as the file has it: with a change of one the others are not encoded again
        self._parts: dict[str, bytes] = {uid: _part(uid, info) for uid, info in self._records.items()}

    def __len__(self) -> int:
        return len(self._records)

    def get(self, uid: str) -> PodResourceInfo | None:
        return self._records.get(uid)

    def set(self, uid: str, info: PodResourceInfo) -> None:
        """Keep what a pod has; on the disk when this returns. An OSError leaves what was kept before."""
        if self._records.get(uid) == info:
            return
        part = _part(uid, info)
        self._write({**self._parts, uid: part})
        self._records[uid], self._parts[uid] = info, part

    def remove(self, uid: str) -> None:
        """No error if there is no record of it, or if the disk is full: the next start removes it then."""
        self._drop([uid] if uid in self._records else [])

    def keep_only(self, uids: Collection[str]) -> None:
        """Forget pods that ended while no kubelet was there to see."""
        self._drop([uid for uid in self._records if uid not in uids])

    def _drop(self, gone: list[str]) -> None:
        for uid in gone:
            del self._records[uid], self._parts[uid]
        if gone:
            try:
                self._write(self._parts)
            except OSError as error:
                LOG.warning(
                    "%s keeps records of pods that have ended: %s", self._disk.shown(self._file), error
                )

    def _write(self, parts: dict[str, bytes]) -> None:
        if parts:
            self._disk.write(self._file, _joined(parts))
        else:
            self._disk.remove(self._file)


def encode(records: dict[str, PodResourceInfo]) -> bytes:
    """Return the bytes of a file."""
    return _joined({uid: _part(uid, info) for uid, info in records.items()})


def _part(uid: str, info: PodResourceInfo) -> bytes:
    record = {
        "ContainerResources": {name: resources_tree(each) for name, each in sorted(info.containers.items())},
        "PodLevelResources": None if info.pod_level is None else resources_tree(info.pod_level),
        "EmptyDirVolumeLimits": None,
    }
    return msgspec.json.encode(uid) + b":" + msgspec.json.encode(record)


def _joined(parts: dict[str, bytes]) -> bytes:
    entries = b",".join(parts[uid] for uid in sorted(parts))
    data = b'{"entries":{' + entries + b"}}" if parts else b"{}"
    return msgspec.json.encode({"data": data.decode(), "checksum": checksum(data)})


def decode(stored: bytes) -> dict[str, PodResourceInfo]:
    """Return what the bytes of a file say; a ValueError says why they cannot be trusted."""
    try:
        file = msgspec.json.decode(stored, type=_File)
        data = file.data.encode()
        found = checksum(data)
        if found != file.checksum:
            raise ValueError(f"its checksum is {found}, it says {file.checksum}")
        entries = msgspec.json.decode(data, type=_Data).entries or {}
        return {uid: _record(entry) for uid, entry in entries.items()}
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeError) as error:
        raise ValueError(f"not what a checkpoint looks like ({error})") from None


def checksum(data: bytes) -> int:
    """Return the checksum of the text under `data`."""
    return fnv1a_32(b"(string)" + data)


class _File(msgspec.Struct):
    data: str
    checksum: int


class _Entry(msgspec.Struct):
    containers: dict[str, Any] | None = msgspec.field(name="ContainerResources", default=None)
    pod_level: Any = msgspec.field(name="PodLevelResources", default=None)


class _Data(msgspec.Struct):
    entries: dict[str, _Entry] | None = None


def _record(entry: _Entry) -> PodResourceInfo:
    containers = {
        name: from_tree(tree, ResourceRequirements) for name, tree in (entry.containers or {}).items()
    }
    whole = None if entry.pod_level is None else from_tree(entry.pod_level, ResourceRequirements)
    return PodResourceInfo(containers, whole)

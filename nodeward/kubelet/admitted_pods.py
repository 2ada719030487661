"""The pods a node has said yes to, on its disk: a kubelet that was killed does not take it back.

A restarted kubelet looks at every pod anew, and counts room from nothing: without this book, a pod that has been
running for a week could be refused because another one was looked at first. What must stay true: a pod is in the book
before anything of it is started; a book that cannot be trusted stops the start (`CheckpointCorrupt`), because the
node would not know what it has promised.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.checkpoint import Checkpoints
from nodeward.kubelet.disk import Disk

_NAME: Final = "admitted_pods"


class AdmittedPods:
    """The book of one node. Raises `CheckpointCorrupt` when it is opened and is not what was written."""

    def __init__(self, disk: Disk) -> None:
        self._checkpoints = Checkpoints(disk)
        #: names by uid: the names are for people
        self._pods: dict[str, str] = _pods(self._checkpoints.read(_NAME))

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: Pod) -> None:
        """On the disk when this returns."""
        meta = pod.metadata
        if meta.uid not in self._pods:
            self._pods[meta.uid] = f"{meta.namespace}/{meta.name}"
            self._write()

    def remove(self, uid: str) -> None:
        if self._pods.pop(uid, None) is not None:
            self._write()

    def keep_only(self, uids: Collection[str]) -> None:
        """All pods there are now: the others ended while no kubelet was there to see."""
        kept = {uid: name for uid, name in self._pods.items() if uid in uids}
        if len(kept) != len(self._pods):
            self._pods = kept
            self._write()

    def _write(self) -> None:
        self._checkpoints.write(_NAME, {"pods": self._pods})


def _pods(value: Any) -> dict[str, str]:
    return dict(value["pods"]) if value is not None else {}

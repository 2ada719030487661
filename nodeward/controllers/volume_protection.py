"""Persistent volumes do not go while they are bound to a claim: their finalizer is taken off when they are not.

Admission puts the finalizer on every volume; one that is deleted stays until it is gone. Volumes from before that are
given it here. Keys are names of volumes.

What must stay true: a volume is in use as long as its own status says Bound, whoever writes that; a write is made on
top of the copy it was decided by, so that a volume bound in the meantime keeps its finalizer.

Run by `controllers.runner`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.storage import PersistentVolume
from nodeward.api.errors import ApiError
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.machinery.workqueue import WorkQueue

FINALIZER: Final = "kubernetes.io/pv-protection"
WORKERS: Final = 1


class VolumeProtectionController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="pvprotection")
        self._volumes = context.informers.informer(PersistentVolume)
        self._volumes.add_handler(self._seen, lambda _, new: self._seen(new))

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._handle, workers=WORKERS),)

    def _seen(self, volume: PersistentVolume) -> None:
        if _wanted_finalizers(volume) != volume.metadata.finalizers:
            self._queue.add(volume.metadata.name)

    async def _handle(self, key: str) -> float | None:
        volume = self._volumes.by_key(key)
        if volume is None:
            return None
        wanted = _wanted_finalizers(volume)
        if wanted == volume.metadata.finalizers:
            return None
        meta = msgspec.structs.replace(volume.metadata, finalizers=wanted)
        try:
            await self._client.update(msgspec.structs.replace(volume, metadata=meta))
        except ApiError as error:
            # Gone, or changed by somebody: then it is seen again.
            if error.code not in (404, 409):
                raise
        return None


def _wanted_finalizers(volume: PersistentVolume) -> list[str]:
    finalizers = volume.metadata.finalizers
    if volume.metadata.deletion_timestamp is None:
        return finalizers if FINALIZER in finalizers else [*finalizers, FINALIZER]
    if volume.status.phase == "Bound":
        return finalizers
    return [each for each in finalizers if each != FINALIZER]

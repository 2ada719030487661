"""Persistent volume claims do not go while a pod uses them: their finalizer is taken off when none does any more.

Admission puts the finalizer on every claim; a claim that is deleted stays until it is gone. Keys are claims,
"namespace/name".

What must stay true: before the finalizer goes, the pods are asked of the API itself, since a copy may not know the
newest; pods that are not on a node do not count, since no kubelet starts one whose claim is on its way out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.errors import ApiError
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.volumes import claims_of, ownership_fault

FINALIZER: Final = "kubernetes.io/pvc-protection"
WORKERS: Final = 2
_INDEX: Final = "claims"


class ClaimProtectionController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="pvcprotection")
        self._claims = context.informers.informer(PersistentVolumeClaim)
        self._pods = context.informers.informer(Pod)
        if not self._pods.has_index(_INDEX):
            self._pods.add_index(_INDEX, _keys)
        self._claims.add_handler(self._seen, lambda _, new: self._seen(new))
        self._pods.add_handler(on_update=self._pod_changed, on_delete=self._pod_gone)

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._handle, workers=WORKERS),)

    def _seen(self, claim: PersistentVolumeClaim) -> None:
        if _waits(claim):
            self._queue.add(f"{claim.metadata.namespace}/{claim.metadata.name}")

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        # Only what is going can stop using a claim.
        if new.metadata.uid != old.metadata.uid or new.metadata.deletion_timestamp is not None:
            self._pod_gone(old)

    def _pod_gone(self, pod: Pod) -> None:
        for key in _keys(pod):
            claim = self._claims.by_key(key)
            if claim is not None:
                self._seen(claim)

    async def _handle(self, key: str) -> float | None:
        claim = self._claims.by_key(key)
        if claim is None or not _waits(claim):
            return None
        if any(_uses(pod, claim) for pod in self._pods.by_index(_INDEX, key)):
            return None
        listed = await self._client.list(Pod, claim.metadata.namespace)
        if any(_uses(pod, claim) for pod in listed.items):
            # The informer will tell of its end.
            return None
        left = [each for each in claim.metadata.finalizers if each != FINALIZER]
        meta = msgspec.structs.replace(claim.metadata, finalizers=left)
        try:
            await self._client.update(msgspec.structs.replace(claim, metadata=meta))
        except ApiError as error:
            # Gone, or changed by somebody: then it is seen again.
            if error.code not in (404, 409):
                raise
        return None


def _waits(claim: PersistentVolumeClaim) -> bool:
    return claim.metadata.deletion_timestamp is not None and FINALIZER in claim.metadata.finalizers


def _keys(pod: Pod) -> Iterable[str]:
    return [f"{pod.metadata.namespace}/{use.name}" for use in claims_of(pod)]


def _uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    if not pod.spec.node_name:
        return False
    for use in claims_of(pod):
        if use.name == claim.metadata.name:
            is_over = use.is_ephemeral and (_is_shut_down(pod) or bool(ownership_fault(pod, claim)))
            return not is_over
    return False


def _is_shut_down(pod: Pod) -> bool:
    """Tell whether the kubelet is done with the pod. A claim made for this pod alone need not wait any longer."""
    meta = pod.metadata
    return meta.deletion_timestamp is not None and meta.deletion_grace_period_seconds == 0

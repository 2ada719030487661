"""Making and deleting the pods of a stateful set, and the claims that are there before them and stay after them.

What must stay true: a pod is made only when its claims exist and none of them is on its way out; claims are never
deleted here: who owns them decides (`retention`).

Called by `controller`; calls `identity` and `retention`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeward.api.apps_v1 import StatefulSet
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.errors import ApiError
from nodeward.base.errors import WorldError
from nodeward.controllers.active_namespaces import refused_for_namespace
from nodeward.controllers.controller import ControllerContext
from nodeward.controllers.statefulset.identity import claims_of, labels_of, ordinal_of
from nodeward.controllers.statefulset.retention import corrected_owners, has_other_controller, is_left_over
from nodeward.machinery.recorder import NORMAL, WARNING

_EXISTS: Final = "AlreadyExists"


class ClaimTerminating(WorldError):
    """A claim that a pod needs is being deleted: its successor can be made when it is gone."""


class StatefulPodControl:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._recorder = context.recorder
        self._claims = context.informers.informer(PersistentVolumeClaim)
        self._pod_kind = context.client.kind_of(Pod)

    async def create(self, owner: StatefulSet, pod: Pod) -> bool:
        """Create the claims, then the pod; False if a pod of this name exists already."""
        name, set_name = pod.metadata.name, owner.metadata.name
        try:
            await self._make_claims(owner, pod)
            created = await self._client.create(pod)
        except ClaimTerminating:
            raise
        except (ApiError, WorldError) as error:
            if isinstance(error, ApiError):
                if error.reason == _EXISTS:
                    return False
                if refused_for_namespace(error):
                    raise
            text = f"Create Pod {name} in StatefulSet {set_name} failed error: {error}"
            self._recorder.event(owner, WARNING, "FailedCreate", text)
            raise
        text = f"Create Pod {name} in StatefulSet {set_name} successful"
        self._recorder.event(owner, NORMAL, "SuccessfulCreate", text)
        await self.own_claims(owner, created)
        return True

    async def delete(self, owner: StatefulSet, pod: Pod) -> bool:
        """Begin the end of `pod`; False if it was gone before."""
        meta, set_name = pod.metadata, owner.metadata.name
        try:
            await self._client.delete(self._pod_kind, meta.name, meta.namespace, uid=meta.uid)
        except (ApiError, WorldError) as error:
            if isinstance(error, ApiError) and error.code in (404, 409):
                return False
            text = f"Delete Pod {meta.name} in StatefulSet {set_name} failed error: {error}"
            self._recorder.event(owner, WARNING, "FailedDelete", text)
            raise
        text = f"Delete Pod {meta.name} in StatefulSet {set_name} successful"
        self._recorder.event(owner, NORMAL, "SuccessfulDelete", text)
        return True

    async def look_after(self, owner: StatefulSet, pod: Pod) -> None:
        """Repair an existing pod: its identity labels, claims it still waits for, the owners of its claims."""
        ordinal = ordinal_of(owner, pod)
        if ordinal is None:
            return
        labels = labels_of(pod.metadata.name, ordinal)
        if any(pod.metadata.labels.get(key) != value for key, value in labels.items()):
            body = {"metadata": {"uid": pod.metadata.uid, "labels": labels}}
            meta = pod.metadata
            await self._client.patch(bytes, meta.name, body, namespace=meta.namespace, kind=self._pod_kind)
        if pod.status.phase == "Pending" and pod.metadata.deletion_timestamp is None:
            await self._make_claims(owner, pod)
        await self.own_claims(owner, pod)

    async def own_claims(self, owner: StatefulSet, pod: Pod) -> None:
        """Give the claims of a pod the owners they should have."""
        ordinal = ordinal_of(owner, pod)
        for wanted in claims_of(owner, ordinal) if ordinal is not None else ():
            claim = self._claims.get(wanted.metadata.name, wanted.metadata.namespace)
            owners = corrected_owners(claim, owner, pod) if claim is not None else None
            if claim is None or owners is None:
                continue
            if has_other_controller(claim, owner, pod):
                text = (
                    f"PersistentVolumeClaim {claim.metadata.name} has a conflicting OwnerReference that acts as a"
                    " manging controller, the retention policy is ignored for this claim"
                )
                self._recorder.event(owner, WARNING, "ConflictingController", text)
            meta = msgspec.structs.replace(claim.metadata, owner_references=owners)
            try:
                await self._client.update(msgspec.structs.replace(claim, metadata=meta))
            except ApiError as error:
                # Gone, or changed by somebody: the next look sees it as it is.
                if error.code not in (404, 409):
                    raise

    async def _make_claims(self, owner: StatefulSet, pod: Pod) -> None:
        ordinal = ordinal_of(owner, pod)
        for wanted in claims_of(owner, ordinal) if ordinal is not None else ():
            name, namespace = wanted.metadata.name, wanted.metadata.namespace
            known = self._claims.get(name, namespace)
            if known is not None:
                is_new = not pod.metadata.uid
                if known.metadata.deletion_timestamp is not None:
                    raise ClaimTerminating(f"pvc {name} is being deleted")
                if is_new and is_left_over(known, owner, pod.metadata.name):
                    raise ClaimTerminating(f"pvc {name} is to go with an earlier pod")
                continue
            await self._make_claim(owner, pod, wanted)

    async def _make_claim(self, owner: StatefulSet, pod: Pod, claim: PersistentVolumeClaim) -> None:
        name, where = claim.metadata.name, f"Pod {pod.metadata.name} in StatefulSet {owner.metadata.name}"
        try:
            await self._client.create(claim)
        except ApiError as error:
            if error.reason == _EXISTS:
                return
            if not refused_for_namespace(error):
                text = f"Create Claim {name} for {where} failed error: {error}"
                self._recorder.event(owner, WARNING, "FailedCreate", text)
            raise
        self._recorder.event(owner, NORMAL, "SuccessfulCreate", f"Create Claim {name} {where} success")

"""Having a pod's volumes bound: what was decided is written to the API, then waited for.

The scheduler only reserves: a volume for a claim, or a node for a claim whose volume is to be made. Whoever controls
volumes does the rest; a claim is bound once it says so. Everything is written with the version it was decided on,
so that two schedulers cannot give one volume away twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.errors import ApiError
from nodeward.base.errors import WorldError
from nodeward.machinery.client import PatchType
from nodeward.rules import volumes
from nodeward.scheduler.framework.listers import Listers
from nodeward.scheduler.framework.status import SUCCESS, Status, failed
from nodeward.scheduler.plugins.volumes.assumed import AssumedVolumes
from nodeward.scheduler.plugins.volumes.claim_matching import VolumePlan

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable
    from nodeward.scheduler.framework.context import FrameworkHandle
    from nodeward.scheduler.framework.pod import PodView

#: How often it is looked whether all is bound, in seconds.
LOOK_EVERY: Final = 0.1


@dataclass(slots=True)
class VolumeReservation:
    """What was assumed for one pod on one node."""

    node: str
    volumes: list[tuple[PersistentVolumeClaim, PersistentVolume]] = field(default_factory=list)
    claims: list[PersistentVolumeClaim] = field(default_factory=list)

    def copy(self) -> VolumeReservation:
        return self


def reserve(assumed: AssumedVolumes, plan: VolumePlan, node: str) -> VolumeReservation:
    """Assume what the plan says."""
    found = VolumeReservation(node)
    for claim, volume in plan.matched:
        changed = _reserved(volume, claim)
        if changed is not volume:
            assumed.volumes.assume(changed)
        found.volumes.append((claim, changed))
    for claim in plan.made:
        notes = {**claim.metadata.annotations, volumes.SELECTED_NODE: node}
        selected = _with_annotations(claim, notes)
        assumed.claims.assume(selected)
        found.claims.append(selected)
    return found


def release(assumed: AssumedVolumes, reservation: VolumeReservation) -> None:
    """Take back what was assumed, as far as the API has not told otherwise."""
    for _, volume in reservation.volumes:
        assumed.volumes.restore(volume)
    for claim in reservation.claims:
        assumed.claims.restore(claim)


class VolumeBinder:
    """Writes and waits."""

    def __init__(self, handle: FrameworkHandle, listers: Listers, timeout: float) -> None:
        self._handle = handle
        self._listers = listers
        self._timeout = timeout

    async def bind(self, pod: PodView, reservation: VolumeReservation, table: NodeTable) -> Status:
        """SUCCESS once all claims are bound; else what went wrong."""
        try:
            await self._write(reservation)
        except (ApiError, WorldError) as error:
            return failed(str(error))
        try:
            async with self._handle.clock.timeout(self._timeout):
                with self._handle.set_aside():
                    return await self._wait(pod, reservation, table)
        except TimeoutError:
            return failed("binding volumes: context deadline exceeded")

    async def _wait(self, pod: PodView, reservation: VolumeReservation, table: NodeTable) -> Status:
        while True:
            row = table.row_of(reservation.node)
            node = table.node(row) if row is not None else None
            if node is None:
                return failed(f'binding volumes: failed to get node "{reservation.node}"')
            if table.pod(pod.uid) is None:
                return failed(f'binding volumes: pod does not exist any more: pod "{pod.name}" not found')
            fault = self._look(reservation, node)
            if fault is None:
                return SUCCESS
            if fault:
                return failed(f"binding volumes: {fault}")
            await self._handle.clock.sleep(LOOK_EVERY)

    async def _write(self, reservation: VolumeReservation) -> None:
        client = self._handle.client
        for number, (claim, volume) in enumerate(reservation.volumes):
            meta = volume.metadata
            body = {
                "metadata": {
                    "uid": meta.uid,
                    "resourceVersion": meta.resource_version,
                    "annotations": meta.annotations,
                },
                "spec": {"claimRef": volume.spec.claim_ref},
            }
            written = await client.patch(PersistentVolume, meta.name, body, patch_type=PatchType.MERGE)
            reservation.volumes[number] = claim, written
        for number, claim in enumerate(reservation.claims):
            meta = claim.metadata
            body = {
                "metadata": {
                    "uid": meta.uid,
                    "resourceVersion": meta.resource_version,
                    "annotations": {volumes.SELECTED_NODE: reservation.node},
                }
            }
            reservation.claims[number] = await client.patch(
                PersistentVolumeClaim,
                meta.name,
                body,
                namespace=meta.namespace,
                patch_type=PatchType.MERGE,
            )

    def _look(self, reservation: VolumeReservation, node: Node) -> str | None:
        """None: all is bound; "": not yet; else why it never will be. Only what the API told counts."""
        for claim, written in reservation.volumes:
            name = written.metadata.name
            volume = self._listers.get(PersistentVolume, name)
            if volume is None:
                return f'failed to check binding: persistentvolume "{name}" not found'
            if _is_older(volume, written):
                return ""
            if not volumes.is_reachable(volume, node):
                return _unreachable(volume, node)
            if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
                return f'ClaimRef got reset for pv "{name}"'
            now = self._claim(claim)
            if now is None:
                return f'failed to check binding: persistentvolumeclaim "{claim.metadata.name}" not found'
            if not volumes.is_fully_bound(now):
                return ""
        for claim in reservation.claims:
            fault = self._look_at_made(claim, reservation.node, node)
            if fault is not None:
                return fault
        return None

    def _look_at_made(self, claim: PersistentVolumeClaim, selected: str, node: Node) -> str | None:
        name = claim.metadata.name
        now = self._claim(claim)
        if now is None:
            return f'failed to check provisioning pvc: persistentvolumeclaim "{name}" not found'
        if _is_older(now, claim):
            return ""
        if now.metadata.annotations.get(volumes.SELECTED_NODE) != selected:
            # This is how whoever makes volumes says that it cannot.
            return f'provisioning failed for PVC "{name}"'
        if now.spec.volume_name:
            volume = self._listers.get(PersistentVolume, now.spec.volume_name)
            if volume is None:
                return ""
            if not volumes.is_reachable(volume, node):
                return _unreachable(volume, node)
        return None if volumes.is_fully_bound(now) else ""

    def _claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim | None:
        return self._listers.get(PersistentVolumeClaim, claim.metadata.name, claim.metadata.namespace)


def _reserved(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume with the claim's name on it; the same object if it is there already."""
    meta, before = claim.metadata, volume.spec.claim_ref
    if before is not None and before.uid == meta.uid and volumes.is_reserved_for(volume, claim):
        return volume
    reference = ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )
    changed = msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, claim_ref=reference))
    if volumes.is_reserved_for(volume, claim):
        return changed
    return _with_annotations(changed, {volumes.BOUND_BY_CONTROLLER: "yes", **volume.metadata.annotations})


def _with_annotations(obj: volumes.Storage, annotations: dict[str, str]) -> volumes.Storage:
    meta = msgspec.structs.replace(obj.metadata, annotations=annotations)
    return msgspec.structs.replace(obj, metadata=meta)


def _unreachable(volume: PersistentVolume, node: Node) -> str:
    return (
        f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.metadata.name}": '
        "no matching NodeSelectorTerms"
    )


def _is_older(known: PersistentVolume | PersistentVolumeClaim, written: volumes.Storage) -> bool:
    """Whether what is known is from before what was written."""
    before, after = known.metadata.resource_version, written.metadata.resource_version
    return before.isdecimal() and after.isdecimal() and int(before) < int(after)

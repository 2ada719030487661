"""Which volumes a pod would use on which node.

The claims of a pod are sorted once: bound ones, whose volumes must be reachable; those that wait for a pod, which are
matched with free volumes or left to be made; and those that should be bound already and are not, for which nothing
can be done here. What is found for a node says what must be written to the API if the pod goes there.

Differs from upstream in that scores by storage capacity (an alpha feature) are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.storage_v1 import CSIDriver, CSIStorageCapacity, StorageClass
from nodeward.rules import volumes
from nodeward.rules.selectors import SelectorError, from_label_selector
from nodeward.scheduler.framework.listers import Listers
from nodeward.scheduler.framework.status import Status, failed, unresolvable
from nodeward.scheduler.plugins.volumes.assumed import AssumedVolumes

NOT_REACHABLE: Final = "node(s) didn't match PersistentVolume's node affinity"
NO_MATCH: Final = "node(s) didn't find available persistent volumes to bind"
NO_SPACE: Final = "node(s) did not have enough free storage"
NO_VOLUME: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNBOUND: Final = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True, slots=True)
class PodClaims:
    """A pod's claims. Never changes during a cycle."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    #: the volumes of the bound ones that exist
    volumes: tuple[PersistentVolume, ...] = ()
    #: waiting for a pod, the smallest first, each with the volumes that could serve it, the best first
    waiting: tuple[tuple[PersistentVolumeClaim, tuple[PersistentVolume, ...]], ...] = ()
    #: waiting, and the node they are to be made for is decided
    selected: tuple[tuple[PersistentVolumeClaim, str], ...] = ()

    def copy(self) -> PodClaims:
        return self


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """What must happen so that a pod's volumes are there on one node."""

    matched: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...] = ()
    made: tuple[PersistentVolumeClaim, ...] = field(default=())


class VolumeFinder:
    """Answers from what is known and assumed now."""

    def __init__(self, listers: Listers, assumed: AssumedVolumes, *, with_attributes_class: bool) -> None:
        self._listers = listers
        self._assumed = assumed
        self._with_attributes_class = with_attributes_class

    def claims(self, pod: Pod) -> PodClaims | Status:
        """The pod's claims, or why it cannot go anywhere."""
        found: list[PersistentVolumeClaim] = []
        for use in volumes.claims_of(pod):
            claim = self._assumed.claims.get(use.name, pod.metadata.namespace)
            fault = _fault(pod, use, claim)
            if fault or claim is None:
                return unresolvable(fault)
            found.append(claim)
        bound, waiting = [], []
        for claim in found:
            if volumes.is_fully_bound(claim):
                bound.append(claim)
                continue
            does_wait = self._does_wait(claim)
            if isinstance(does_wait, Status):
                return does_wait
            if not does_wait or claim.spec.volume_name:
                return unresolvable(UNBOUND)
            waiting.append(claim)
        return self._sorted(bound, waiting)

    def _sorted(
        self, bound: Sequence[PersistentVolumeClaim], waiting: Sequence[PersistentVolumeClaim]
    ) -> PodClaims:
        there = [self._assumed.volumes.get(claim.spec.volume_name) for claim in bound]
        selected = tuple(
            (claim, claim.metadata.annotations[volumes.SELECTED_NODE])
            for claim in waiting
            if volumes.SELECTED_NODE in claim.metadata.annotations
        )
        open_ = [claim for claim in waiting if volumes.SELECTED_NODE not in claim.metadata.annotations]
        return PodClaims(
            tuple(bound),
            tuple(each for each in there if each is not None),
            tuple((claim, tuple(self._preferred(claim))) for claim in sorted(open_, key=volumes.size)),
            selected,
        )

    def _does_wait(self, claim: PersistentVolumeClaim) -> bool | Status:
        """Whether the claim is bound only once a pod needs it."""
        name = volumes.class_of_claim(claim)
        storage = self._listers.get(StorageClass, name) if name else None
        if storage is None:
            return False
        if storage.volume_binding_mode is None:
            return failed(f'VolumeBindingMode not set for StorageClass "{name}"')
        return storage.volume_binding_mode == volumes.WAIT_FOR_FIRST_CONSUMER

    def _preferred(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        known = self._assumed.of_class(volumes.class_of_claim(claim))
        return volumes.by_preference(claim, known, with_attributes_class=self._with_attributes_class)

    def plan(self, claims: PodClaims, node: Node) -> VolumePlan | Status:
        """What would have to be done for this node, or why it cannot be used."""
        is_reachable = all(volumes.is_reachable(each, node) for each in claims.volumes)
        is_there = len(claims.volumes) == len(claims.bound)
        matched: list[tuple[PersistentVolumeClaim, PersistentVolume]] = []
        to_make = [claim for claim, _ in claims.selected]
        has_match = all(name == node.metadata.name for _, name in claims.selected)
        has_space = True
        if has_match:
            taken: set[str] = set()
            for claim, preferred in claims.waiting:
                volume = volumes.match(preferred, node, taken)
                if volume is None:
                    to_make.append(claim)
                else:
                    taken.add(volume.metadata.name)
                    matched.append((claim, volume))
            made = self._can_make(to_make, node)
            if isinstance(made, Status):
                return made
            has_match, has_space = made
        reasons = [
            text
            for is_so, text in (
                # A claim whose volume is gone is found before the others are looked at.
                (is_reachable or not is_there, NOT_REACHABLE),
                (has_match, NO_MATCH),
                (has_space, NO_SPACE),
                (is_there, NO_VOLUME),
            )
            if not is_so
        ]
        return unresolvable(*reasons) if reasons else VolumePlan(tuple(matched), tuple(to_make))

    def _can_make(self, claims: Sequence[PersistentVolumeClaim], node: Node) -> tuple[bool, bool] | Status:
        """Whether volumes can be made for the claims and the node; and whether there is space for them."""
        for claim in claims:
            name = volumes.class_of_claim(claim)
            storage = self._listers.get(StorageClass, name)
            if storage is None:
                return failed(f'failed to find storage class "{name}"')
            if storage.provisioner in ("", volumes.NO_PROVISIONER):
                return False, True
            if not volumes.allows_node(storage, node.metadata.labels):
                return False, True
            if not self._has_space(storage, claim, node):
                return True, False
        return True, True

    def _has_space(self, storage: StorageClass, claim: PersistentVolumeClaim, node: Node) -> bool:
        """Whether the driver tells of enough storage near the node; drivers that tell nothing have enough."""
        asked = claim.spec.resources.requests.get("storage")
        driver = self._listers.get(CSIDriver, storage.provisioner)
        if asked is None or driver is None or not driver.spec.storage_capacity:
            return True
        for capacity in self._listers.list(CSIStorageCapacity):
            limit = volume_limit(capacity)
            if capacity.storage_class_name != storage.metadata.name or limit is None or limit < asked.value:
                continue
            if _has_access(capacity, node):
                return True
        return False


def volume_limit(capacity: CSIStorageCapacity) -> int | None:
    """The largest volume that can be made, in bytes."""
    limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return limit.value if limit is not None else None


def _has_access(capacity: CSIStorageCapacity, node: Node) -> bool:
    try:
        selector = from_label_selector(capacity.node_topology)
    except SelectorError:
        return False
    return selector is not None and selector.matches(node.metadata.labels)


def _fault(pod: Pod, use: volumes.ClaimUse, claim: PersistentVolumeClaim | None) -> str:
    """What is wrong with a claim of the pod, or ""."""
    if claim is None:
        if use.is_ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
        return f'persistentvolumeclaim "{use.name}" not found'
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name
        return f'persistentvolumeclaim "{use.name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{use.name}" is being deleted'
    return volumes.ownership_fault(pod, claim) if use.is_ephemeral else ""

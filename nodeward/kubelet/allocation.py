"""The allocation of a node's resources to its pods: who is admitted, what they were given, and when it is free again.

One `Allocation` belongs to one kubelet run of one node. The pod manager asks it to `admit` every pod, the resize
manager to `resize` one; pod workers `release` a pod that has finished. It joins the rules of admission
(`node.admission`), the amounts in use (`node.node_capacity`), the book of admitted pods (`admitted_pods`) and the
records of resized ones (`pod_resource_states`), both on the node's disk.

What must stay true: a pod that was admitted before a restart keeps its place, whoever else is looked at first, and
what it was allocated; a resize that is refused changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import ResourceClaim
from nodeward.kubelet.container_manager import ContainerManager, ResizeRefusal
from nodeward.kubelet.node.admission import Refusal, admit
from nodeward.kubelet.node.features import DeclaredFeatures
from nodeward.kubelet.node.node_capacity import NodeCapacity
from nodeward.kubelet.node.specification import NodeSpecification, bare_node
from nodeward.kubelet.node_services import NodeServices
from nodeward.kubelet.pod_resource_states import ACTUATED_FILE, ALLOCATED_FILE, PodResourceState
from nodeward.kubelet.pods.resource_info import PodResourceInfo, info_of, written_info
from nodeward.kubelet.resize_checks import infeasible

LOG: Final = logging.getLogger(__name__)


class Allocation:
    """What the pods of one node were given."""

    __slots__ = (
        "_actuated",
        "_allocated",
        "_container_manager",
        "_features",
        "_services",
        "_specification",
        "capacity",
    )

    def __init__(
        self,
        specification: NodeSpecification,
        features: DeclaredFeatures,
        services: NodeServices,
        container_manager: ContainerManager,
    ) -> None:
        """Raises `CheckpointCorrupt`."""
        self._specification = specification
        self._features = features
        self._services = services
        self._container_manager = container_manager
        self.capacity = NodeCapacity(with_pod_level=specification.settings.gates.enabled("PodLevelResources"))
        #: of pods that were resized; None until there is one
        self._allocated: PodResourceState | None = None
        self._actuated: PodResourceState | None = None
        if services.has_disk:
            self._allocated, self._actuated = self._open()
            if not len(self._allocated) and not len(self._actuated):
                self._allocated = self._actuated = None

    def _open(self) -> tuple[PodResourceState, PodResourceState]:
        disk = self._services.disk
        return PodResourceState(disk, ALLOCATED_FILE), PodResourceState(disk, ACTUATED_FILE)

    def admit(self, pod: Pod, node: Node | None, claims: Sequence[ResourceClaim] = ()) -> Refusal | None:
        """Decide whether the node takes a pod, and remember the decision; `hold` counts what the pod takes.

        The pod has what is allocated to it, not what it asks for. `claims` are those of its claims that were read.
        """
        admitted = self._services.admitted
        # A pod that was admitted before has its place, whoever else was counted meanwhile.
        is_new = pod.metadata.uid not in admitted
        capacity = self.capacity if is_new else NodeCapacity()
        gates = self._specification.settings.gates
        # As upstream: when CPUs are missing, that is the reason that is given, whatever else is wrong.
        refusal = self._container_manager.admit(pod)
        if refusal is None:
            node = node or bare_node(self._specification)
            refusal = admit(pod, node, capacity, gates, self._features, is_new=is_new, claims=claims)
            # Unlike upstream, which takes CPUs back later. What runs from before a restart keeps its own to the end.
            if refusal is not None and is_new:
                self._container_manager.release(pod.metadata.uid)
        if refusal is None:
            admitted.add(pod)
        else:
            admitted.remove(pod.metadata.uid)
        return refusal

    def hold(self, pod: Pod) -> None:
        """Count what a pod takes, in place of what it took before."""
        self.capacity.add(pod)

    # -- resizes

    def recorded(self, pod: Pod) -> tuple[PodResourceInfo | None, PodResourceInfo | None]:
        """Return what a pod was allocated before a restart and what was actuated; None if that is what it asks for."""
        uid = pod.metadata.uid
        allocated = self._allocated.get(uid) if self._allocated is not None else None
        if allocated is None:
            return (written_info(pod) if pod.status.phase else None), None
        return allocated, self._actuated.get(uid) if self._actuated is not None else None

    def resize(self, pod: Pod, allocated: Pod, node: Node | None) -> ResizeRefusal | None:
        """Allocate what the new version of a pod asks for, to all of its containers or to none.

        `allocated` is the pod with what it has now.
        """
        uid, settings = pod.metadata.uid, self._specification.settings
        refusal = infeasible(pod, allocated, settings.gates, settings.cpu_policy)
        if refusal is not None:
            return refusal
        self.capacity.remove(uid)
        try:
            node = node or bare_node(self._specification)
            found = admit(pod, node, self.capacity, settings.gates, self._features, is_new=False)
            if found is not None:
                return ResizeRefusal(False, found.reason, found.message)
            refusal = self._container_manager.resize(pod)
            if refusal is not None:
                return refusal
            try:
                self._record(pod, allocated)
            except OSError as error:
                # Tried again later: what is not on the disk would be lost with the kubelet.
                return ResizeRefusal(
                    False, "UnexpectedAdmissionError", f"allocation is not recorded: {error}"
                )
            allocated = pod
        finally:
            self.capacity.add(allocated)
        return None

    def _record(self, pod: Pod, before: Pod) -> None:
        if self._allocated is None or self._actuated is None:
            self._allocated, self._actuated = self._open()
        uid = pod.metadata.uid
        if self._actuated.get(uid) is None:
            # First what runs: after a crash between the two files, the resize is seen and tried anew.
            self._actuated.set(uid, info_of(before))
        self._allocated.set(uid, info_of(pod))

    def record_actuated(self, uid: str, info: PodResourceInfo) -> None:
        """Remember what the runtime has accepted for a resized pod; without it, a restart asks for it again."""
        if self._actuated is not None and self._actuated.get(uid) is not None:
            try:
                self._actuated.set(uid, info)
            except OSError as error:
                LOG.warning(
                    "node %s: the end of a resize is not recorded: %s", self._specification.name, error
                )

    # -- the end of pods

    def release(self, uid: str) -> None:
        """Count a pod no more: nothing of it runs."""
        self._forget(uid)
        self._services.admitted.remove(uid)

    def forget(self, uid: str) -> None:
        """Count a pod no more that the API does not know either."""
        self._forget(uid)

    def _forget(self, uid: str) -> None:
        self.capacity.remove(uid)
        self._container_manager.release(uid)
        if self._allocated is not None and self._actuated is not None:
            self._allocated.remove(uid)
            self._actuated.remove(uid)

    def keep_only(self, uids: Collection[str]) -> None:
        """Forget the resizes of pods that are not in `uids`, after a restart."""
        if self._allocated is not None and self._actuated is not None:
            self._allocated.keep_only(uids)
            self._actuated.keep_only(uids)

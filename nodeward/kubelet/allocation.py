"""The allocation of a node's resources to its pods: who is admitted, what they were given, and when it is free again.

One `Allocation` belongs to one kubelet run of one node. The pod manager asks it to `admit` every pod; pod workers
`release` a pod that has finished. It joins the rules of admission (`node.admission`), the amounts in use
(`node.node_capacity`) and the book of admitted pods on the node's disk (`admitted_pods`).

What must stay true: a pod that was admitted before a restart keeps its place, whoever else is looked at first; a
resize that does not fit changes nothing.
"""

from __future__ import annotations

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.container_manager import ContainerManager
from nodeward.kubelet.node.admission import Refusal, admit
from nodeward.kubelet.node.features import DeclaredFeatures
from nodeward.kubelet.node.node_capacity import NodeCapacity, Shortage
from nodeward.kubelet.node.specification import NodeSpecification, bare_node
from nodeward.kubelet.node_services import NodeServices


class Allocation:
    """What the pods of one node were given."""

    __slots__ = ("_container_manager", "_features", "_services", "_specification", "capacity")

    def __init__(
        self,
        specification: NodeSpecification,
        features: DeclaredFeatures,
        services: NodeServices,
        container_manager: ContainerManager,
    ) -> None:
        self._specification = specification
        self._features = features
        self._services = services
        self._container_manager = container_manager
        self.capacity = NodeCapacity(with_pod_level=specification.settings.gates.enabled("PodLevelResources"))

    def admit(self, pod: Pod, node: Node | None) -> Refusal | None:
        """Decide whether the node takes a pod, and remember the decision; `hold` counts what the pod takes."""
        admitted = self._services.admitted
        # A pod that was admitted before has its place, whoever else was counted meanwhile.
        is_new = pod.metadata.uid not in admitted
        capacity = self.capacity if is_new else NodeCapacity()
        gates = self._specification.settings.gates
        # As upstream: when CPUs are missing, that is the reason that is given, whatever else is wrong.
        refusal = self._container_manager.admit(pod)
        if refusal is None:
            node = node or bare_node(self._specification)
            refusal = admit(pod, node, capacity, gates, self._features, is_new=is_new)
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

    def resize(self, pod: Pod, node: Node | None) -> list[Shortage]:
        """Give a pod what its new version asks for, if there is that much; otherwise say what is missing."""
        allocatable = (node or bare_node(self._specification)).status.allocatable
        shortages = self.capacity.resize_shortages(pod, allocatable)
        if not shortages:
            self.capacity.add(pod)
        return shortages

    def release(self, uid: str) -> None:
        """Count a pod no more: nothing of it runs."""
        self.capacity.remove(uid)
        self._container_manager.release(uid)
        self._services.admitted.remove(uid)

    def forget(self, uid: str) -> None:
        """Count a pod no more that the API does not know either."""
        self.capacity.remove(uid)
        self._container_manager.release(uid)

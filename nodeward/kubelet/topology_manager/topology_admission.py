"""Admit a pod: choose its NUMA nodes, container by container or for the whole pod, and allocate its resources there.

The kubelet's admission calls `TopologyManager.admit` for new and resized pods; it asks the hint providers and joins
their answers with the configured policy (`merging`).

What must stay true: texts and reasons are upstream's; what was allocated to a pod before it is refused stays allocated
until the providers clean up, as upstream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import ConfigError, NodewardError
from nodeward.kubelet.topology_manager.hint_provider import AdmitOperation, HintProvider, ResourceRefused
from nodeward.kubelet.topology_manager.hints import TopologyHint
from nodeward.kubelet.topology_manager.merging import NONE, TopologyPolicy
from nodeward.rules.pod_resources import has_pod_level

POD_SCOPE: Final = "pod"
#: Unless option max-allowable-numa-nodes says otherwise.
MOST_NUMA_NODES: Final = 8


class TopologyRefusal(NamedTuple):
    """Why a pod is not admitted."""

    reason: str
    message: str


def unexpected(why: str) -> TopologyRefusal:
    """Return the refusal of a pod for a reason that no manager has a name for."""
    return TopologyRefusal("UnexpectedAdmissionError", f"Allocate failed due to {why}, which is unexpected")


class TopologyManager:
    """The topology manager of one node. `with_pod_level`: feature gate PodLevelResourceManagers is on."""

    def __init__(
        self,
        policy: TopologyPolicy,
        providers: Sequence[HintProvider],
        *,
        scope: str,
        with_pod_level: bool = False,
        most_numa_nodes: int = MOST_NUMA_NODES,
    ) -> None:
        """Raise `ConfigError` on a machine with more NUMA nodes than `most_numa_nodes`: hints double with each."""
        if policy.name != NONE and len(policy.numa_nodes) > most_numa_nodes:
            raise ConfigError(f"unsupported on machines with more than {most_numa_nodes} NUMA Nodes")
        self._policy: Final = policy
        self._providers: Final = providers
        self._is_pod_scope: Final = scope == POD_SCOPE
        self._with_pod_level: Final = with_pod_level
        self._affinity: dict[str, dict[str, TopologyHint]] = {}

    def affinity(self, uid: str) -> Mapping[str, TopologyHint]:
        """Return the hints that were chosen for the containers of a pod."""
        return self._affinity.get(uid, {})

    def restore(self, uid: str, hints: Mapping[str, TopologyHint]) -> None:
        """Keep the hints that a pod had before a resize that was refused."""
        self._affinity[uid] = dict(hints)

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone."""
        self._affinity.pop(uid, None)

    def admit(self, pod: Pod, operation: AdmitOperation = AdmitOperation.ADD) -> TopologyRefusal | None:
        """Allocate the resources of a pod; say why if that cannot be."""
        try:
            if self._policy.name == NONE:
                self._admit_anywhere(pod, operation)
            elif self._is_pod_scope:
                self._admit_pod(pod, operation)
            else:
                self._admit_containers(pod, operation)
        except ResourceRefused as error:
            return TopologyRefusal(error.reason, str(error))
        except NodewardError as error:
            return unexpected(str(error))
        return None

    def _admit_anywhere(self, pod: Pod, operation: AdmitOperation) -> None:
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            for provider in self._providers:
                provider.allocate(pod, container, None, operation)

    def _admit_containers(self, pod: Pod, operation: AdmitOperation) -> None:
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            hints = [provider.hints(pod, container, operation) for provider in self._providers]
            merged = self._policy.merge(hints)
            if not merged.is_admitted:
                raise self._no_locality(pod, "with a container-level topology manager")
            self._keep(pod, container.name, merged.hint)
            for provider in self._providers:
                provider.allocate(pod, container, merged.hint.mask, operation)

    def _admit_pod(self, pod: Pod, operation: AdmitOperation) -> None:
        merged = self._policy.merge([provider.pod_hints(pod, operation) for provider in self._providers])
        if not merged.is_admitted:
            raise self._no_locality(pod, "under pod-scope topology manager")
        is_whole = self._is_pod_level(pod)
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            self._keep(pod, container.name, merged.hint)
            if not is_whole:
                for provider in self._providers:
                    provider.allocate(pod, container, merged.hint.mask, operation)
        if is_whole:
            for provider in self._providers:
                provider.allocate_pod(pod, merged.hint.mask, operation)

    def _keep(self, pod: Pod, container: str, hint: TopologyHint) -> None:
        self._affinity.setdefault(pod.metadata.uid, {})[container] = hint

    def _is_pod_level(self, pod: Pod) -> bool:
        return self._with_pod_level and has_pod_level(pod.spec)

    def _no_locality(self, pod: Pod, where: str) -> ResourceRefused:
        message = "Resources cannot be allocated with Topology locality"
        if self._is_pod_level(pod):
            message = f"Pod Scope pod with pod-level resources failed admission {where}"
        return ResourceRefused("TopologyAffinityError", message)

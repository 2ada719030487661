"""Events in the name of a kubelet: about pods, their containers, and the node itself.

Pod workers, the pod manager and the node manager record through it. A large fleet records only what went wrong: three
events for every simulated pod would be most of what its API server writes. No events are recorded for a node that is
cut off.
"""

from __future__ import annotations

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import ObjectReference
from nodeward.kubelet.agent import Agent
from nodeward.kubelet.node.node_conditions import NodeEvent
from nodeward.kubelet.pods.commands import RecordEvent
from nodeward.machinery.recorder import NORMAL, EventRecorder


class KubeletEvents:
    """Records events about pods and the node. `record_normal`: also events of type Normal."""

    def __init__(self, recorder: EventRecorder, *, record_normal: bool = True) -> None:
        self._recorder = recorder
        self._record_normal = record_normal

    def about_pod(self, agent: Agent, pod: Pod, tell: RecordEvent) -> None:
        """Record an event about a pod or one of its containers."""
        if agent.is_cut_off or (tell.type == NORMAL and not self._record_normal):
            return
        meta = pod.metadata
        about = ObjectReference(
            kind="Pod",
            api_version="v1",
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
            field_path=_path(pod, tell.container),
        )
        self._as(agent.name).event(about, tell.type, tell.reason, tell.message)

    def about_node(self, agent: Agent, event: NodeEvent) -> None:
        """Record an event about the node."""
        if agent.is_cut_off or (event.type == NORMAL and not self._record_normal):
            return
        # As upstream: kubelets use the node's name for its uid, and kubectl looks for that.
        about = ObjectReference(kind="Node", name=agent.name, uid=agent.name)
        self._as(agent.name).event(about, event.type, event.reason, event.message)

    def _as(self, node: str) -> EventRecorder:
        return self._recorder.on_behalf_of("kubelet", node)


def _path(pod: Pod, container: str) -> str:
    if not container:
        return ""
    for field, containers in (
        ("containers", pod.spec.containers),
        ("initContainers", pod.spec.init_containers),
    ):
        if any(each.name == container for each in containers):
            return f"spec.{field}{{{container}}}"
    return f"spec.ephemeralContainers{{{container}}}"

"""Deletes pods from nodes with NoExecute taints, at once or when the time they tolerate them is over (KEP-5471 too).

What is seen of nodes and pods is worked out at once into a moment for each pod that has to go (`deadlines`);
`TimedEvictions` evicts it then.

What must stay true: the eviction follows the taints and tolerations as they are now. Numbers in tolerations are
compared only if this component's own gate is on: with it off they cover nothing, and the pod goes.

Run by `controllers.runner`; calls `deadlines`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import Taint
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.pods.by_node import PodsByNode
from nodeward.controllers.pods.timed_evictions import EvictionTexts, TimedEvictions
from nodeward.controllers.taint_eviction.deadlines import stay
from nodeward.rules.taints import NO_EXECUTE, with_effect

_TEXTS: Final = EvictionTexts(
    queue="noexec_taint_pod",
    event_reason="TaintManagerEviction",
    marking="Marking for deletion Pod {pod}",
    cancelling="Cancelling deletion of Pod {pod}",
    condition_reason="DeletionByTaintManager",
    condition_message="Taint manager: deleting due to NoExecute taint",
    metric_prefix="taint_eviction_controller",
    deletions_help="Total number of Pods deleted by TaintEvictionController since its start.",
    duration_help="Latency, in seconds, between the time when a taint effect has been activated for the Pod and its "
    "deletion via TaintEvictionController.",
)


class TaintEvictionController:
    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")
        #: the NoExecute taints of the nodes that have any
        self._tainted: dict[str, list[Taint]] = {}
        self._pods = PodsByNode(context.informers)
        self._evictions = TimedEvictions(context, self._pods.informer, _TEXTS)
        nodes = context.informers.informer(Node)
        nodes.add_handler(self._node_seen, self._node_changed, self._node_gone)
        self._pods.informer.add_handler(self._pod_seen, self._pod_changed, self._evictions.forget)

    def work(self) -> Sequence[Work[Any]]:
        return (self._evictions.work(),)

    # -- what is seen

    def _node_seen(self, node: Node) -> None:
        name = node.metadata.name
        taints = with_effect(node.spec.taints, NO_EXECUTE)
        if taints:
            self._tainted[name] = taints
        else:
            self._tainted.pop(name, None)
        for pod in self._pods.on(name):
            self._consider(pod, taints)

    def _node_changed(self, old: Node, new: Node) -> None:
        if with_effect(old.spec.taints, NO_EXECUTE) != with_effect(new.spec.taints, NO_EXECUTE):
            self._node_seen(new)

    def _node_gone(self, node: Node) -> None:
        """Keep the timers of a deleted node: unless it comes back without its taints, its pods are evicted."""
        self._tainted.pop(node.metadata.name, None)

    def _pod_seen(self, pod: Pod) -> None:
        taints = self._tainted.get(pod.spec.node_name)
        if taints is not None:
            self._consider(pod, taints)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if new.metadata.uid != old.metadata.uid:
            self._evictions.forget(old)
        self._pod_seen(new)

    def _consider(self, pod: Pod, taints: Sequence[Taint]) -> None:
        before, now_ns = self._evictions.planned(pod).since, self._clock.monotonic_ns()
        self._evictions.plan(pod, stay(taints, pod.spec.tolerations, before, now_ns, numeric=self._numeric))

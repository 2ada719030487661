"""Watches over nodes: notices who fell silent, and keeps taints as conditions and readiness gates say.

What is seen of nodes and Leases is noted as it comes (`health`). Every few seconds the monitor goes through the notes,
without asking the API anything: silent nodes are to be marked Unknown, nodes that are not ready wait for their
NoExecute taint in their zone's queue, and the states of the zones are set (`zones`). All writes about one node are
made by one worker at a time, as one patch that holds only for the version it was worked out from (`plan`).

What must stay true: nothing is driven off a node faster than its zone allows, and nothing at all while all zones are
lost; a node that is ready has no such taint; taints of others are never touched. The events of one failure of a gate
are told after its record was written, so that they are told once.

Run by `controllers.runner`; decisions come from `health`, `zones`, `plan` and `gate_failures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.errors import ApiError
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.node_lifecycle.events import record_gate_events
from nodeward.controllers.node_lifecycle.gate_timers import given_up_conditions
from nodeward.controllers.node_lifecycle.health import MonitorPeriods, NodeHealth, unknown_conditions
from nodeward.controllers.node_lifecycle.metrics import NodeLifecycleMetrics
from nodeward.controllers.node_lifecycle.plan import NodeUpdatePlan, plan
from nodeward.controllers.node_lifecycle.pods_not_ready import PodsNotReady
from nodeward.controllers.node_lifecycle.reporters import Reporters, reporters_of
from nodeward.controllers.node_lifecycle.zones import ClusterDisruption, EvictionRates, ZoneCensus, Zones
from nodeward.controllers.pods.by_node import PodsByNode
from nodeward.machinery.client import PatchType
from nodeward.machinery.recorder import NORMAL
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.readiness import is_exempt

WORKERS: Final = 32
#: Somebody else wrote the node: their version arrives soon.
CONFLICT_SECONDS: Final = 0.05
LEASES: Final = "kube-node-lease"
#: So long a node that looks silent is in doubt: until its Lease was read and Unknown written, no zone is judged.
DOUBT_SECONDS: Final = 15.0
DOUBT_ROUND_SECONDS: Final = 0.5


class NodeLifecycleController:
    def __init__(
        self,
        context: ControllerContext,
        *,
        periods: MonitorPeriods | None = None,
        rates: EvictionRates | None = None,
    ) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder
        self._periods = periods or MonitorPeriods()
        self._has_gates = context.gates.enabled("NodeReadinessGates")
        self._is_numeric = context.gates.enabled("TaintTolerationComparisonOperators")
        self._asks_leases = context.gates.enabled("NodeControllerLeaseCircuitBreaker")
        self._metrics = NodeLifecycleMetrics(context.metrics)
        self._zones = Zones(rates or EvictionRates())
        self._healths: dict[str, NodeHealth] = {}
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="node_lifecycle_controller")
        self._rounds: WorkQueue[str] = WorkQueue(context.clock, name="node_lifecycle_monitor")
        self._rounds.add("nodes")
        #: zones whose limit may have a token for a waiting node
        self._turns: WorkQueue[str] = WorkQueue(context.clock, name="node_lifecycle_zones")
        self._nodes = context.informers.informer(Node)
        self._nodes.add_handler(self._seen, lambda _, new: self._seen(new), self._gone)
        self._leases = context.informers.informer(Lease, namespace=LEASES)
        self._leases.add_handler(self._renewed, lambda _, new: self._renewed(new))
        self._pods = PodsNotReady(context, self._is_lost)
        self._pods_by_node = PodsByNode(context.informers)
        if self._has_gates:
            self._pods_by_node.informer.add_handler(self._pod_seen, lambda _, new: self._pod_seen(new))

    def work(self) -> Sequence[Work[Any]]:
        return (
            Work(self._queue, self._reconcile, workers=WORKERS),
            Work(self._rounds, self._monitor),
            Work(self._turns, self._take_turns),
            self._pods.work(),
        )

    # -- what is seen

    def _seen(self, node: Node) -> None:
        name, now_ns = node.metadata.name, self._clock.monotonic_ns()
        health = self._healths.get(name)
        if health is None or health.uid != node.metadata.uid:
            if health is not None:
                self._forget(name, health)
            health = self._healths[name] = NodeHealth(node, now_ns, self._clock.now_ns())
            self._zones.zone(health.zone, now_ns)
            self._metrics.know_zone(health.zone)
            lease = self._leases_get(name)
            if lease is not None:
                self._renewed(lease)
            self._record_event(
                node, "RegisteredNode", f"Node {name} event: Registered Node {name} in Controller"
            )
            before = ""
        else:
            before = health.status
            health.on_node_changed(node, now_ns)
        if health.status == "Unknown" and before != "Unknown":
            # Once it is written, not by who writes it: nobody may remember to do it later.
            if before == "True":
                self._record_event(node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
            # Unlike upstream: also if the kubelet had said not ready itself before it fell silent.
            self._pods.mark_all(name)
        if self._expired_gates(node, health) or self._plan(node, health) is not None:
            self._queue.add(name)

    def _pod_seen(self, pod: Pod) -> None:
        """Re-evaluate the node of a DaemonSet's pod: the pod may be what reports one of the node's gates."""
        node = self._nodes.get(pod.spec.node_name) if is_exempt(pod.metadata) else None
        if node is None or not node.spec.readiness_gates:
            return
        health = self._healths.get(node.metadata.name)
        if health is not None and self._plan(node, health) is not None:
            self._queue.add(node.metadata.name)

    def _expired_gates(self, node: Node, health: NodeHealth) -> list[str]:
        """Return gates that timed out on a node whose kubelet keeps no timers; requeue for the next timeout."""
        if not self._has_gates:
            return []
        now_ns = self._clock.monotonic_ns()
        expired = health.gate_timers.expired(node, now_ns)
        seconds = health.gate_timers.wait_seconds(node, now_ns)
        if seconds is not None:
            self._queue.add_after(node.metadata.name, seconds)
        return expired

    def _gone(self, node: Node) -> None:
        name = node.metadata.name
        health = self._healths.get(name)
        if health is not None:
            self._forget(name, health)
            self._record_event(
                node, "RemovingNode", f"Node {name} event: Removing Node {name} from Controller"
            )

    def _forget(self, name: str, health: NodeHealth) -> None:
        del self._healths[name]
        self._zones.leave(health.zone, name)

    def _renewed(self, lease: Lease) -> None:
        health = self._healths.get(lease.metadata.name)
        if health is not None and lease.spec.renew_time:
            health.on_lease_renewed(lease.spec.renew_time, self._clock.monotonic_ns())

    def _leases_get(self, name: str) -> Lease | None:
        return self._leases.get(name, LEASES)

    def _is_lost(self, name: str) -> bool:
        health = self._healths.get(name)
        return health is not None and health.status in ("False", "Unknown")

    def _record_event(self, node: Node, reason: str, message: str) -> None:
        meta = node.metadata
        about = ObjectReference(api_version="v1", kind="Node", name=meta.name, uid=meta.uid)
        self._recorder.event(about, NORMAL, reason, message)

    # -- the monitor

    async def _monitor(self, _: str) -> float:
        now_ns = self._clock.monotonic_ns()
        census: dict[str, ZoneCensus] = {}
        is_all_known = True
        for name, health in self._healths.items():
            count = census.get(health.zone)
            if count is None:
                count = census[health.zone] = ZoneCensus()
            status = health.status
            silence = health.silence(now_ns, self._periods)
            if silence > 0 and status != "Unknown":
                self._queue.add(name)
                status = "Unknown"
                is_all_known = is_all_known and silence > DOUBT_SECONDS
            if status == "True":
                count.ready += health.is_counted
                continue
            count.not_ready += health.is_counted
            if status and not health.execute_key and not health.may_taint:
                self._zones.zone(health.zone, now_ns).waiting[name] = None
        if is_all_known:
            self._settle(census, now_ns)
        self._metrics.observe_round(census, (self._clock.monotonic_ns() - now_ns) / SECOND_NS)
        return self._periods.monitor_seconds if is_all_known else DOUBT_ROUND_SECONDS

    def _settle(self, census: dict[str, ZoneCensus], now_ns: int) -> None:
        """Update the states of zones, and the eviction rates that follow for their nodes."""
        disruption = self._zones.assess(census, now_ns)
        if disruption is not ClusterDisruption.NONE:
            for name, health in self._healths.items():
                health.must_clear = disruption is ClusterDisruption.BEGINS
                health.may_taint = False
                if health.must_clear:
                    self._queue.add(name)
                else:
                    # Nobody was heard while this control plane was cut off: everybody's time starts anew.
                    health.heard_ns = now_ns
        for name, zone in self._zones.of.items():
            if zone.waiting and zone.bucket.rate > 0:
                self._turns.add(name)

    async def _take_turns(self, name: str) -> float | None:
        """Give the zone's tokens to the nodes that wait longest."""
        zone = self._zones.of.get(name)
        if zone is None:
            return None
        now_ns = self._clock.monotonic_ns()
        while zone.waiting:
            node = next(iter(zone.waiting))
            health = self._healths.get(node)
            if (
                health is None
                or health.execute_key
                or health.must_clear
                or not self._is_failing(health, now_ns)
            ):
                del zone.waiting[node]
            elif zone.bucket.take(now_ns):
                del zone.waiting[node]
                health.may_taint = True
                self._queue.add(node)
            else:
                return zone.bucket.wait_seconds(now_ns)
        return None

    def _is_failing(self, health: NodeHealth, now_ns: int) -> bool:
        return health.status in ("False", "Unknown") or health.is_silent(now_ns, self._periods)

    # -- one node

    def _plan(self, node: Node, health: NodeHealth) -> NodeUpdatePlan | None:
        return plan(
            node,
            rfc3339(self._clock.now_ns()),
            may_add=health.may_taint,
            must_clear=health.must_clear,
            has_gates=self._has_gates,
            reporters=self._reporters(node),
        )

    def _reporters(self, node: Node) -> Sequence[Reporters]:
        if not self._has_gates or not node.spec.readiness_gates:
            return ()
        return reporters_of(node, self._pods_by_node.on(node.metadata.name), numeric=self._is_numeric)

    async def _reconcile(self, name: str) -> float | None:
        node, health = self._nodes.get(name), self._healths.get(name)
        if node is None or health is None:
            return None
        try:
            if health.is_silent(self._clock.monotonic_ns(), self._periods):
                conditions = unknown_conditions(node, rfc3339(self._clock.now_ns()))
                if conditions:
                    if not await self._is_alive(name, health):
                        await self._write_conditions(node, conditions)
                    return None
            expired = self._expired_gates(node, health)
            if expired:
                late = given_up_conditions(node, expired, rfc3339(self._clock.now_ns()))
                await self._write_conditions(node, late)
                return None
            wanted = self._plan(node, health)
            if wanted is not None:
                await self._write(node, health, wanted)
        except ApiError as error:
            if error.code == 409:
                return CONFLICT_SECONDS
            if error.code != 404:
                raise
        return None

    async def _is_alive(self, name: str, health: NodeHealth) -> bool:
        """Tell whether the API has a younger Lease than the informer: then it is this controller that is behind."""
        if not self._asks_leases:
            return False
        try:
            lease = await self._client.get(Lease, name, LEASES)
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        before = health.heard_ns
        health.on_lease_renewed(lease.spec.renew_time or "", self._clock.monotonic_ns())
        return health.heard_ns != before

    async def _write_conditions(self, node: Node, conditions: list[dict[str, Any]]) -> None:
        """Write conditions of a silent node or of failed gates; taints follow when the change arrives as an event."""
        began_ns = self._clock.monotonic_ns()
        meta = node.metadata
        only_this = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"metadata": only_this, "status": {"conditions": conditions}}
        await self._client.patch(bytes, meta.name, body, kind=self._nodes.kind, subresource="status")
        self._metrics.node_round.observe((self._clock.monotonic_ns() - began_ns) / SECOND_NS)

    async def _write(self, node: Node, health: NodeHealth, wanted: NodeUpdatePlan) -> None:
        kind = self._nodes.kind
        await self._client.patch(
            bytes, node.metadata.name, wanted.patch, kind=kind, patch_type=PatchType.MERGE
        )
        if wanted.evicts:
            health.may_taint = False
            self._metrics.evictions.inc(health.zone)
        if wanted.gates is not None:
            for failure in wanted.gates.failures:
                self._metrics.gate_failures.inc(failure.condition_type, failure.action)
            record_gate_events(self._recorder, node, wanted.gates)

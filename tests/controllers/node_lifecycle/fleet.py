"""Nodes that register, renew their Leases and fall silent as a test says, without a kubelet behind them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nodeward.api.coordination_v1 import Lease, LeaseSpec
from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.node import Node, NodeCondition, NodeReadinessGate, NodeSpec, NodeStatus
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.references import Taint, Toleration
from nodeward.api.meta import ObjectMeta
from nodeward.base.timestamp import rfc3339, rfc3339_micro
from nodeward.controllers import CONTROLLERS
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import Cluster, cluster

ZONE = "topology.kubernetes.io/zone"
LEASES = "kube-node-lease"
NODE_LIFECYCLE = tuple(each for each in CONTROLLERS if each.name == "node-lifecycle-controller")
TAINT_EVICTION = tuple(each for each in CONTROLLERS if each.name == "taint-eviction-controller")
ALL_GATES = "NodeReadinessGates=true,TaintTolerationComparisonOperators=true"


def run(
    main: Callable[[Fleet], Awaitable[None]],
    controllers: tuple[Any, ...] = NODE_LIFECYCLE,
    *,
    gates: str = ALL_GATES,
    controller_gates: str | None = None,
) -> None:
    async def inner(clock: VirtualClock) -> None:
        async with cluster(
            clock, controllers=controllers, gates=gates, controller_gates=controller_gates
        ) as each:
            await main(Fleet(each))

    run_virtual(inner)


class Fleet:
    """The nodes of a cluster. `pass_time` lets those that are alive renew their Leases every ten seconds."""

    def __init__(self, each: Cluster) -> None:
        self.cluster = each
        self.client = each.client
        self.clock = each.clock
        self.alive: dict[str, None] = {}

    async def register(
        self,
        *names: str,
        zone: str = "",
        ready: str = "True",
        gates: tuple[NodeReadinessGate, ...] = (),
        taints: tuple[Taint, ...] = (),
    ) -> None:
        for name in names:
            conditions = []
            if ready:
                conditions = [
                    NodeCondition(type=kind, status=status, last_heartbeat_time=rfc3339(self.clock.now_ns()))
                    for kind, status in (("Ready", ready), ("MemoryPressure", "False"))
                ]
            await self.client.create(
                Node(
                    metadata=ObjectMeta(name=name, labels={ZONE: zone} if zone else {}),
                    spec=NodeSpec(readiness_gates=list(gates), taints=list(taints)),
                    status=NodeStatus(conditions=conditions),
                )
            )
            await self.client.create(
                Lease(
                    metadata=ObjectMeta(name=name, namespace=LEASES),
                    spec=LeaseSpec(renew_time=rfc3339_micro(self.clock.now_ns())),
                )
            )
            self.alive[name] = None

    def cut_off(self, *names: str) -> None:
        for name in names:
            del self.alive[name]

    async def return_(self, *names: str) -> None:
        """Heard again, and ready."""
        for name in names:
            self.alive[name] = None
            await self.renew(name)
            await self.say(name, "Ready", "True", lastHeartbeatTime=rfc3339(self.clock.now_ns()))

    async def renew(self, name: str) -> None:
        body = {"spec": {"renewTime": rfc3339_micro(self.clock.now_ns())}}
        await self.client.patch(Lease, name, body, namespace=LEASES)

    async def say(self, name: str, kind: str, status: str, reason: str = "", **others: Any) -> None:
        """A condition is so."""
        condition = {"type": kind, "status": status, "reason": reason, **others}
        await self.client.patch(Node, name, {"status": {"conditions": [condition]}}, subresource="status")

    async def pass_time(self, seconds: float) -> None:
        while seconds > 0:
            step = min(10.0, seconds)
            await self.clock.sleep(step)
            seconds -= step
            for name in self.alive:
                await self.renew(name)

    async def node(self, name: str) -> Node:
        return await self.client.get(Node, name)

    async def marks(self, name: str) -> list[str]:
        """A node's taints in short."""
        return [
            f"{each.key.rpartition('/')[2]}:{each.effect}" for each in (await self.node(name)).spec.taints
        ]

    async def driven(self) -> list[str]:
        """The nodes that drive pods away because they are not ready."""
        return sorted(
            node.metadata.name
            for node in (await self.client.list(Node)).items
            if any(taint.effect == "NoExecute" for taint in node.spec.taints)
        )

    async def run_pod(
        self, name: str, node: str, *tolerations: Toleration, phase: str = "Running", ready: bool = True
    ) -> None:
        await self.client.create(
            Pod(
                metadata=ObjectMeta(name=name, namespace="default"),
                spec=PodSpec(
                    containers=[Container(name="c", image="i")], node_name=node, tolerations=list(tolerations)
                ),
            )
        )
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        body = {"status": {"phase": phase, "conditions": [condition]}}
        await self.client.patch(Pod, name, body, namespace="default", subresource="status")

    async def pods(self) -> list[str]:
        """The names of the pods that are not being deleted."""
        found = (await self.client.list(Pod, "default")).items
        return sorted(each.metadata.name for each in found if each.metadata.deletion_timestamp is None)

    async def taint(self, name: str, *taints: Taint) -> None:
        """The node's taints are these, as an administrator says."""
        await self.client.patch(Node, name, {"spec": {"taints": list(taints)}})

    async def events(self, component: str, *reasons: str) -> list[str]:
        """What was told, as "Type Reason name: message", in order."""
        found = (await self.client.list(Event)).items
        return [
            f"{each.type} {each.reason} {each.involved_object.name}: {each.message}"
            for each in sorted(found, key=lambda each: (each.first_timestamp or "", each.metadata.name))
            if each.source.component == component and (not reasons or each.reason in reasons)
        ]

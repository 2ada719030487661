"""Kubelets under their nodes' own identity: for every statement of a KEP about what a kubelet does.

`node_world` runs a cluster in virtual time: an API server with the Node authorizer, RBAC and NodeRestriction, and, if
asked for, scheduler and controllers. `start_kubelet` adds a node to it the way `nodeward kubelet` does: a `RealNode`
(the real `Host`, volumes, a directory of its own) whose client is the user `system:node:NAME` of the group
`system:nodes`. Only the containers are simulated.

A `Kubelet` can be stopped, started and restarted with another version, other gates or another configuration (its
containers run on), rebooted (they do not), and cut off from the API server. Its `wire` records every request it sent.

    async with node_world(clock) as world:
        kubelet = await world.start_kubelet("n1", feature_gates="NodeReadinessGates=true")
        await kubelet.restart(version="1.36")
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nodeward.apiserver.server import Settings
from nodeward.base.quantity import Quantity
from nodeward.cluster.assembly import Cluster
from nodeward.cluster.description import ClusterDescription, Pool
from nodeward.cluster.identities import node_user
from nodeward.cluster.real_node import RealNode
from nodeward.features.declared import Framework
from nodeward.features.gates import Gates
from nodeward.kubelet.cpu.topology import CPUTopology
from nodeward.kubelet.dra.driver_plugin import NodeDrivers
from nodeward.kubelet.host import Host
from nodeward.kubelet.node.machine import Machine
from nodeward.kubelet.runtime.sim import ABILITIES, SimRuntime
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.transport import ConnectionFailed, Request, Response, Transport
from nodeward.store.interface import Store
from nodeward.store.memory import MemoryStore
from tests.controllers.cluster import Alter
from tests.keps.clusters import World

#: the size of every machine: large enough for any pod of a test
CAPACITY: Mapping[str, Quantity] = {
    "cpu": Quantity.parse("8"),
    "memory": Quantity.parse("32Gi"),
    "ephemeral-storage": Quantity.parse("100Gi"),
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request a kubelet sent, and the status it was answered with; 0: it did not get through."""

    method: str
    path: str
    query: str
    body: bytes
    status: int

    @property
    def tree(self) -> Any:
        """The body, if it is JSON."""
        return json.loads(self.body or b"null")


class NodeWire:
    """A kubelet's way to the API server: records requests, can be cut, and can answer a request itself."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._is_cut = False
        self.calls: list[Call] = []
        #: answers a request in the server's place, or passes it on; watches are always passed on
        self.alter: Alter | None = None

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        status = 0
        try:
            if self._is_cut:
                raise ConnectionFailed("no route to the API server")
            if self.alter is None or stream:
                response = await self._inner.send(request, stream=stream)
            else:
                response = await self.alter(request, self._inner.send)
            status = response.status
            return response
        finally:
            self.calls.append(Call(request.method, request.path, request.query, request.body, status))

    async def cut(self) -> None:
        """Break open watches and let no request through until `mend`."""
        self._is_cut = True
        await self._inner.aclose()

    def mend(self) -> None:
        self._is_cut = False

    async def aclose(self) -> None:
        await self._inner.aclose()

    def sent(self, method: str, path: str = "") -> list[Call]:
        """The requests of a method whose path ends so."""
        return [call for call in self.calls if call.method == method and call.path.endswith(path)]


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSetup:
    """What one kubelet run is started with."""

    name: str
    version: str = "1.37"
    #: as --feature-gates has them
    feature_gates: str = ""
    #: fields of a KubeletConfiguration, as its file has them
    config: Mapping[str, Any] = field(default_factory=dict)
    #: as --node-labels has them
    labels: Mapping[str, str] = field(default_factory=dict)
    #: another one after every boot
    boot_id: str = "boot-1"
    #: the features the node may declare, None: those the cluster knows; and what its runtime can do (KEP-5328)
    framework: Framework | None = None
    abilities: Mapping[str, str] = field(default_factory=lambda: ABILITIES)
    #: sockets, NUMA nodes and cores of the machine; its capacity follows
    cpus: CPUTopology | None = None
    #: its DRA drivers; None: those that register over sockets
    drivers: NodeDrivers | None = None

    def machine(self) -> Machine:
        capacity, cpus = CAPACITY, self.cpus
        if cpus is not None:
            capacity = {**CAPACITY, "cpu": Quantity.of_int(cpus.cpu_count)}
        id_ = f"machine-{self.name}"
        return Machine(capacity, "amd64", "6.1.0", "test", id_, "uuid", self.boot_id, cpus)


class Kubelet:
    """One node's kubelet, run after run. `host` is the one of the run now at work."""

    def __init__(self, cluster: Cluster, clock: VirtualClock, setup: KubeletSetup, root: Path) -> None:
        self.setup = setup
        self._cluster, self._clock, self._root = cluster, clock, root
        self.runtime = SimRuntime(clock)
        # Through the gateway: the API server may be restarted meanwhile.
        self.wire = NodeWire(cluster.client("kubelet", node_user(setup.name)).transport)
        self._client = Client(self.wire, clock=clock, component="kubelet")
        self._running: RealNode | None = None

    @property
    def host(self) -> Host:
        assert self._running is not None, "the kubelet is stopped"
        return self._running.host

    def metrics(self) -> str:
        """What the kubelet's /metrics shows."""
        return self.host.metrics.all.text().decode()

    async def start(self) -> None:
        """Start a run; returns when the kubelet has listed its pods."""
        assert self._running is None, "the kubelet runs already"
        setup = self.setup
        chosen = Pool(
            name=setup.name, version=setup.version, feature_gates=setup.feature_gates, kubelet=setup.config
        )
        self.runtime.abilities = setup.abilities
        self._running = RealNode(
            setup.name,
            self._client,
            self._clock,
            SeededChance(5).child(setup.name),
            self.runtime,
            self._root,
            chosen.kubelet_settings(),
            version=setup.version,
            labels=dict(setup.labels),
            machine=setup.machine(),
            framework=setup.framework or self._cluster.description.features,
            drivers=setup.drivers,
        )
        await self._running.start()

    async def stop(self) -> None:
        """End the run; containers run on and the Node object stays."""
        if self._running is not None:
            await self._running.stop()
            self._running = None

    async def restart(self, *, seconds: float = 2.0, **changes: Any) -> None:
        """Another run with some fields of the setup changed, `seconds` into it."""
        await self.stop()
        self.setup = replace(self.setup, **changes)
        await self.start()
        await self._clock.sleep(seconds)

    async def reboot(self, boot_id: str, *, seconds: float = 2.0, **changes: Any) -> None:
        """Another run after the machine was off: containers have ended, the boot id is another."""
        running = [found.uid for found in await self.runtime.recover()]
        await self.stop()
        self.runtime.lose_power(running)
        await self.restart(seconds=seconds, boot_id=boot_id, **changes)

    async def cut_off(self) -> None:
        """Nothing gets through to the API server, and nothing back."""
        await self.wire.cut()

    def reconnect(self) -> None:
        self.wire.mend()


@dataclass(slots=True)
class NodeWorld(World):
    """A cluster and the kubelets in it; `client` may do anything."""

    root: Path
    kubelets: dict[str, Kubelet] = field(default_factory=dict)

    async def start_kubelet(self, name: str = "n1", *, seconds: float = 2.0, **setup: Any) -> Kubelet:
        """A kubelet (fields as `KubeletSetup` has them) `seconds` into its first run: its node is registered."""
        kubelet = Kubelet(self.cluster, self.clock, KubeletSetup(name=name, **setup), self.root / name)
        self.kubelets[name] = kubelet
        await kubelet.start()
        await self.pass_time(seconds)
        return kubelet

    def client_of(self, name: str) -> Client:
        """A client with the node's own rights, for asking what a kubelet could do."""
        return self.cluster.client("kubelet", node_user(name))

    async def declared(self, name: str = "n1") -> list[str]:
        """The features a node declares."""
        return (await self.node(name)).status.declared_features

    async def condition(self, kind: str, name: str = "n1") -> tuple[str, str]:
        """(status, reason) of a condition of a node; empty if there is none."""
        found = {each.type: each for each in (await self.node(name)).status.conditions}.get(kind)
        return (found.status, found.reason) if found is not None else ("", "")

    async def stop_kubelets(self) -> None:
        for kubelet in self.kubelets.values():
            await kubelet.stop()


@asynccontextmanager
async def node_world(
    clock: VirtualClock,
    *,
    version: str = "1.37",
    gates: str = "",
    has_scheduler: bool = False,
    has_controllers: bool = False,
    store: Store | None = None,
    **parts: Any,
) -> AsyncIterator[NodeWorld]:
    """A cluster without nodes; `version` and `gates` are the control plane's, `parts` are of the description."""
    description = ClusterDescription(
        version=version,
        gates=Gates.of(version, gates),
        has_scheduler=has_scheduler,
        has_controllers=has_controllers,
        **parts,
    )
    settings = Settings(disable_admission=("ServiceAccount",), enable_admission=("NodeRestriction",))
    cluster = Cluster(description, store or MemoryStore(), clock, SeededChance(11), settings)
    await cluster.start()
    try:
        with tempfile.TemporaryDirectory() as root:
            world = NodeWorld(cluster, cluster.client("test"), clock, Path(root))
            try:
                yield world
            finally:
                await world.stop_kubelets()
    finally:
        await cluster.stop()

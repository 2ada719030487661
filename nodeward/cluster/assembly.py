"""One cluster, put together from its description: API server, scheduler, controllers and nodes.

The only place that wires components to each other, for every world: `nodeward up` hands in a store on disk and the
real clock, tests and rehearsals a store in memory and a virtual one. Parts meet only through the API server's clients.

Called by `nodeward up`, by tests and by rehearsals. Each part of the control plane is a `Component` and each pool a
`NodePool`: both can be stopped and started again, as another version or with other gates, in either clock.

What must stay true: `start` brings the parts up in the order they need each other and `stop` takes them down in the
other; whatever fails in between, what was started is stopped.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from nodeward.apiserver.auth.user import User
from nodeward.apiserver.loopback import LOOPBACK_USER
from nodeward.apiserver.server import ApiServer, Settings
from nodeward.base.errors import ConfigError
from nodeward.cluster.component import Component
from nodeward.cluster.description import ClusterDescription, Pool
from nodeward.cluster.fleet import Fleet
from nodeward.cluster.fleet_control import COMPONENT, FleetControl
from nodeward.cluster.gateway import Gateway
from nodeward.cluster.identities import FLEET, SCHEDULER, controller_user, node_user
from nodeward.cluster.kubelet_serving import KubeletServing
from nodeward.cluster.node_pool import NodePool, RealPool, SimulatedPool
from nodeward.cluster.pools import node_name
from nodeward.cluster.real_node import RealNode, runtime_named
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.naming import chosen
from nodeward.controllers.runner import Runner
from nodeward.features import Gates
from nodeward.features.declared import Version
from nodeward.kubelet.host import Host
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.transport import Transport
from nodeward.scheduler.scheduler import Scheduler
from nodeward.scheduler.settings import SchedulerSettings, default_profile
from nodeward.store.interface import Store

#: (name of the client's component, its transport) -> the transport it uses instead: for faults and traces.
Wrap = Callable[[str, Transport], Transport]


class Cluster:
    """Start it, use it, stop it. `settings` are the API server's; gates and version come from the description.

    Parts can be taken down and brought up again, as another version or with other gates, while the rest goes on:

        await cluster.scheduler.restart(version="1.36")
        await cluster.api_server.restart(gates="NodeDeclaredFeatures=true")
        await cluster.pools["a"].stop()
    """

    def __init__(
        self,
        description: ClusterDescription,
        store: Store,
        clock: Clock,
        chance: Chance,
        settings: Settings | None = None,
        *,
        root_ca: str | None = None,
        home: Path | None = None,
        wrap: Wrap | None = None,
    ) -> None:
        """`home` is the directory in which nodes with real containers keep theirs; None: there are none.

        `wrap` is asked for the transport of every client of a part, by the part's name.
        """
        self.description: Final = description
        # Containers do not stand where this process does.
        self._home = home.absolute() if home is not None else None
        self.clock: Final = clock
        self._chance = chance
        self._root_ca = root_ca
        self._store = store
        self._wrap = wrap
        self._gateway = Gateway(clock)
        self._kubelet_metrics = Metrics()
        self._kubelets = KubeletServing(self._hosts, clock, self._kubelet_metrics)
        usual = settings or Settings()
        self._settings = replace(usual, kubelets=replace(usual.kubelets, resolve=self._kubelets.resolve))
        gates = description.gates
        self.api_server: Final = Component(
            "kube-apiserver", gates, self._make_server, self._started_server, self._stopped_server
        )
        self.scheduler: Final = Component(
            "kube-scheduler",
            description.scheduler_gates or gates,
            self._make_scheduler,
            self._started_scheduler,
            self._stopped_part,
            ended=lambda scheduler: scheduler.run(),
            clock=clock,
        )
        self.controllers: Final = Component(
            "kube-controller-manager",
            description.controller_gates or gates,
            self._make_controllers,
            self._started_controllers,
            self._stopped_part,
            ended=lambda runner: runner.ended(),
            clock=clock,
        )
        #: the simulated nodes; None while there are none
        self.fleet: Fleet | None = None
        self.fleet_control: FleetControl | None = None
        self._real_pools: dict[str, RealPool] = {}
        self._starts: dict[str, int] = {}
        self._running = AsyncExitStack()

    # -- life

    async def start(self) -> None:
        """Bring everything up."""
        async with AsyncExitStack() as undo:
            undo.push_async_callback(self.stop)
            await self.start_server()
            await self.start_parts()
            undo.pop_all()

    async def start_server(self) -> None:
        """The API server alone: whoever opens sockets does so after this."""
        await self._store.open()
        self._running.push_async_callback(self._store.close)
        self._running.push_async_callback(self.api_server.stop)
        await self.api_server.start()

    async def serve_kubelets(self, tls: ssl.SSLContext) -> None:
        """Open the kubelets' socket, for logs and commands in containers. Before `start_parts`: nodes tell its port."""
        self._running.push_async_callback(self._kubelets.stop)
        await self._kubelets.start(tls)

    async def start_parts(self) -> None:
        """Controllers, scheduler and nodes."""
        wanted = self.description
        self._running.push_async_callback(self.controllers.stop)
        if wanted.has_controllers:
            await self.controllers.start()
        self._running.push_async_callback(self.scheduler.stop)
        if wanted.has_scheduler:
            await self.scheduler.start()
        for pool in wanted.pools:
            await self.add_pool(pool)
        if wanted.fleet_map:
            await self._follow_fleet(wanted.fleet_map)

    async def stop(self) -> None:
        """Take everything down; nothing acknowledged is lost."""
        await self._running.aclose()

    @property
    def server(self) -> ApiServer:
        """The API server that runs now."""
        if self.api_server.running is None:
            raise ConfigError("the API server of this cluster is not running")
        return self.api_server.running

    def client(self, component: str, user: User = LOOPBACK_USER) -> Client:
        """A way in without a wire; without a user, one that may do everything. It outlives a restart of the server."""
        transport: Transport = self._gateway.transport(user)
        if self._wrap is not None:
            transport = self._wrap(component, transport)
        return Client(transport, clock=self.clock, component=component)

    def _chance_of(self, part: str) -> Chance:
        """The chance of a part. One that is started again draws other numbers: the uids it made are taken."""
        starts = self._starts[part] = self._starts.get(part, 0) + 1
        return self._chance.child(part if starts == 1 else f"{part}, start {starts}")

    # -- the control plane

    def _make_server(self, gates: Gates) -> ApiServer:
        server = ApiServer(
            self._store,
            self.clock,
            self._chance_of("apiserver"),
            replace(
                self._settings,
                kubernetes_version=gates.version,
                gates=gates,
                features=self.description.features,
            ),
            owns_store=False,
        )
        # Components of one process count on one page; only kubelets have a page of their own beside it.
        server.metrics.include(self._kubelet_metrics)
        for part in (self.controllers.running, self.scheduler.running):
            if part is not None:
                server.metrics.include(part.metrics)
        return server

    async def _started_server(self, server: ApiServer) -> None:
        await server.start()
        self._gateway.open(server)

    async def _stopped_server(self, server: ApiServer) -> None:
        await self._gateway.close()
        await server.stop()

    def _make_controllers(self, gates: Gates) -> Runner:
        return Runner(
            lambda name: self.client(name, controller_user(name)),
            self.clock,
            self._chance_of("controllers"),
            gates=gates,
            root_ca=self._root_ca,
            controllers=chosen(CONTROLLERS, self.description.controllers),
        )

    async def _started_controllers(self, controllers: Runner) -> None:
        self._show(controllers)
        await controllers.start()
        await controllers.settled()  # a fresh cluster needs something of them before its first pod

    def _make_scheduler(self, gates: Gates) -> Scheduler:
        settings = self.description.scheduler or SchedulerSettings((default_profile(gates),))
        return Scheduler(
            self.client("kube-scheduler", SCHEDULER),
            self.clock,
            self._chance_of("scheduler"),
            gates=gates,
            version=Version.parse(gates.version),
            settings=replace(settings, leader_elect=False),
            features=self.description.features,
        )

    async def _started_scheduler(self, scheduler: Scheduler) -> None:
        self._show(scheduler)
        await scheduler.start()

    def _show(self, part: Runner | Scheduler) -> None:
        if self.api_server.running is not None:
            self.api_server.running.metrics.include(part.metrics)

    async def _stopped_part(self, part: Runner | Scheduler) -> None:
        if self.api_server.running is not None:
            self.api_server.running.metrics.exclude(part.metrics)
        await part.stop()

    # -- nodes

    @property
    def pools(self) -> Mapping[str, NodePool]:
        """The pools there are, by name."""
        found: dict[str, NodePool] = {}
        if self.fleet is not None:
            found |= {name: SimulatedPool(self.fleet, name) for name in self.fleet.pools}
        return found | self._real_pools

    @property
    def real_nodes(self) -> Mapping[str, RealNode]:
        """The nodes with real containers, by name."""
        return {name: node for pool in self._real_pools.values() for name, node in pool.nodes.items()}

    async def add_pool(self, pool: Pool) -> None:
        """Start the kubelets of a pool."""
        if pool.name in self.pools:
            raise ConfigError(f"there is a pool {pool.name!r} already")
        if pool.runtime == "sim":
            await (await self._started_fleet()).set_pool(pool)
            return
        if self._home is None:
            raise ConfigError(f"pool {pool.name!r}: there is no directory for containers of {pool.runtime!r}")
        made = self._real_pools[pool.name] = RealPool(pool, partial(self._make_node, self._home))
        self._running.push_async_callback(made.stop)
        await made.start()

    async def change_pool(self, pool: Pool) -> None:
        """Make a pool what it is now: an upgrade restarts its kubelets some at a time; more or fewer nodes come or go.

        Returns when all is done.
        """
        found = self.pools.get(pool.name)
        if found is None:
            raise ConfigError(f"there is no pool {pool.name!r}; there are {', '.join(self.pools) or 'none'}")
        await found.change(pool)

    def _make_node(self, home: Path, pool: Pool, number: int) -> RealNode:
        name = node_name(pool, number)
        root, chance = home / "nodes" / name, self._chance_of(name)
        runtime = runtime_named(
            pool.runtime, root, self.clock, chance.child("runtime"), cri_socket=self.description.cri_socket
        )
        return RealNode(
            name,
            self.client("kubelet", node_user(name)),
            self.clock,
            chance,
            runtime,
            root,
            pool.kubelet_settings(),
            version=pool.version,
            labels=dict(pool.labels),
            endpoint_port=self._kubelets.port,
            metrics=self._kubelet_metrics,
            framework=self.description.features,
        )

    async def _follow_fleet(self, name: str) -> None:
        fleet = await self._started_fleet()
        control = FleetControl(
            self.client(COMPONENT, FLEET),
            fleet,
            self._chance.child("fleet control"),
            version=self.description.version,
            name=name,
            identity=self.description.fleet_holder,
        )
        self._running.push_async_callback(control.stop)
        await control.start(self.description.fleet)
        self.fleet_control = control

    def _hosts(self) -> Iterator[Host]:
        """Whose pods have logs, and can run commands."""
        if self.fleet is not None:
            yield self.fleet.host
        for node in self.real_nodes.values():
            yield node.host

    async def _started_fleet(self) -> Fleet:
        """The simulated nodes; started with the first pool."""
        if self.fleet is None:
            wanted = self.description
            asked = wanted.fleet.pools if wanted.fleet is not None else ()
            fleet = Fleet(
                self.client("kubelet", FLEET),
                self.clock,
                self._chance.child("fleet"),
                expected_nodes=sum(each.nodes for each in (*wanted.pools, *asked)),
                metrics=self._kubelet_metrics,
                endpoint_port=self._kubelets.port,
                framework=wanted.features,
            )
            self._running.push_async_callback(fleet.stop)
            await fleet.start()
            self.fleet = fleet
        return self.fleet

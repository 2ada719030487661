"""One cluster, put together from its description: API server, scheduler, controllers and nodes.

The only place that wires components to each other, for every world: `nodeward up` hands in a store on disk and the
real clock, tests and rehearsals a store in memory and a virtual one. Parts meet only through the API server's clients.

What must stay true: `start` brings the parts up in the order they need each other and `stop` takes them down in the
other; whatever fails in between, what was started is stopped.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from nodeward.apiserver.auth.user import User
from nodeward.apiserver.loopback import LOOPBACK_USER
from nodeward.apiserver.server import ApiServer, Settings
from nodeward.base.errors import ConfigError
from nodeward.cluster.description import ClusterDescription, Pool
from nodeward.cluster.fleet import Fleet
from nodeward.cluster.fleet_control import COMPONENT, FleetControl
from nodeward.cluster.identities import FLEET, SCHEDULER, controller_client, node_user
from nodeward.cluster.kubelet_serving import KubeletServing
from nodeward.cluster.pools import node_name
from nodeward.cluster.real_node import RealNode, runtime_named
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.naming import chosen
from nodeward.controllers.runner import Runner
from nodeward.features.declared import Version
from nodeward.kubelet.host import Host
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.metrics import Metrics
from nodeward.scheduler.scheduler import Scheduler
from nodeward.scheduler.settings import SchedulerSettings, default_profile
from nodeward.store.interface import Store


class Cluster:
    """Start it, use it, stop it. `settings` are the API server's; gates and version come from the description."""

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
    ) -> None:
        """`home` is the directory in which nodes with real containers keep theirs; None: there are none."""
        self.description: Final = description
        # Containers do not stand where this process does.
        self._home = home.absolute() if home is not None else None
        self.clock: Final = clock
        self._chance = chance
        self._root_ca = root_ca
        self._kubelet_metrics = Metrics()
        self._kubelets = KubeletServing(self._hosts, clock, self._kubelet_metrics)
        usual = settings or Settings()
        usual = replace(usual, kubelets=replace(usual.kubelets, resolve=self._kubelets.resolve))
        self.server: Final = ApiServer(
            store,
            clock,
            chance.child("apiserver"),
            replace(
                usual,
                kubernetes_version=description.version,
                gates=description.gates,
                features=description.features,
            ),
        )
        # Components of one process count on one page; only kubelets have a page of their own beside it.
        self.server.metrics.include(self._kubelet_metrics)
        self.scheduler: Scheduler | None = None
        self.controllers: Runner | None = None
        #: the simulated nodes; None while there are none
        self.fleet: Fleet | None = None
        self.fleet_control: FleetControl | None = None
        #: those with real containers, by name
        self.real_nodes: Final[dict[str, RealNode]] = {}
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
        self._running.push_async_callback(self.server.stop)
        await self.server.start()

    async def serve_kubelets(self, tls: ssl.SSLContext) -> None:
        """Open the kubelets' socket, for logs and commands in containers. Before `start_parts`: nodes tell its port."""
        self._running.push_async_callback(self._kubelets.stop)
        await self._kubelets.start(tls)

    async def start_parts(self) -> None:
        """Controllers, scheduler and nodes."""
        wanted = self.description
        if wanted.has_controllers:
            await self._start_controllers()
        if wanted.has_scheduler:
            await self._start_scheduler()
        for pool in wanted.pools:
            await self.add_pool(pool)
        if wanted.fleet_map:
            await self._follow_fleet(wanted.fleet_map)

    async def stop(self) -> None:
        """Take everything down; nothing acknowledged is lost."""
        await self._running.aclose()

    def client(self, component: str, user: User = LOOPBACK_USER) -> Client:
        """A way in without a wire; without a user, one that may do everything."""
        return self.server.client(component, user)

    async def _start_controllers(self) -> None:
        gates = self.description.controller_gates or self.description.gates
        self.controllers = Runner(
            lambda name: controller_client(self.server, name),
            self.clock,
            self._chance.child("controllers"),
            gates=gates,
            root_ca=self._root_ca,
            controllers=chosen(CONTROLLERS, self.description.controllers),
        )
        self.server.metrics.include(self.controllers.metrics)
        self._running.push_async_callback(self.controllers.stop)
        await self.controllers.start()
        await self.controllers.settled()  # a fresh cluster needs something of them before its first pod

    async def _start_scheduler(self) -> None:
        gates = self.description.scheduler_gates or self.description.gates
        settings = self.description.scheduler or SchedulerSettings((default_profile(gates),))
        self.scheduler = Scheduler(
            self.client("kube-scheduler", SCHEDULER),
            self.clock,
            self._chance.child("scheduler"),
            gates=gates,
            version=Version.parse(gates.version),
            settings=replace(settings, leader_elect=False),
            features=self.description.features,
        )
        self.server.metrics.include(self.scheduler.metrics)
        self._running.push_async_callback(self.scheduler.stop)
        await self.scheduler.start()

    # -- nodes

    async def add_pool(self, pool: Pool) -> None:
        """Start the kubelets of a pool."""
        if pool.runtime != "sim":
            await self._add_real(pool)
            return
        fleet = await self._started_fleet()
        if pool.name in fleet.pools:
            raise ConfigError(f"there is a pool {pool.name!r} already")
        await fleet.set_pool(pool)

    async def _add_real(self, pool: Pool) -> None:
        if self._home is None:
            raise ConfigError(f"pool {pool.name!r}: there is no directory for containers of {pool.runtime!r}")
        for number in range(pool.nodes):
            name = node_name(pool, number)
            root, chance = self._home / "nodes" / name, self._chance.child(name)
            runtime = runtime_named(
                pool.runtime,
                root,
                self.clock,
                chance.child("runtime"),
                cri_socket=self.description.cri_socket,
            )
            node = RealNode(
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
            self._running.push_async_callback(node.stop)
            await node.start()
            self.real_nodes[name] = node

    async def change_pool(self, pool: Pool) -> None:
        """Make a pool what it is now: an upgrade restarts its kubelets some at a time; more or fewer nodes come or go.

        Returns when all is done.
        """
        fleet = await self._started_fleet()
        if pool.name not in fleet.pools:
            raise ConfigError(f"there is no pool {pool.name!r}; there are {', '.join(fleet.pools) or 'none'}")
        await fleet.set_pool(pool)

    async def _follow_fleet(self, name: str) -> None:
        fleet = await self._started_fleet()
        control = FleetControl(
            self.client(COMPONENT, FLEET),
            fleet,
            self._chance.child("fleet control"),
            version=self.description.version,
            name=name,
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

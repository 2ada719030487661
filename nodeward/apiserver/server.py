"""One API server, assembled and run: store, caches, security, admission, request handler, sockets.

`ApiServer` is built from values only (a store, a clock, gates, keys) by `nodeward/cluster` or the command line, which
read flags and files. In rehearsals and tests it runs without sockets: clients use `transport()`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from nodeward.api.context import Context
from nodeward.api.errors import ApiError
from nodeward.api.scheme import SCHEME, Scheme
from nodeward.apiserver.admission.plugins import build
from nodeward.apiserver.aggregation import Aggregation
from nodeward.apiserver.api import Api
from nodeward.apiserver.app import App
from nodeward.apiserver.auth.user import User
from nodeward.apiserver.bootstrap import bootstrap, missing, repair
from nodeward.apiserver.documents import Documents
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.event_expiry import DEFAULT_TTL_SECONDS, EventExpiry
from nodeward.apiserver.hub import Hub
from nodeward.apiserver.kubelet_access import KubeletAccess
from nodeward.apiserver.large_bodies import BodyWorker, OnLoop
from nodeward.apiserver.loopback import LOOPBACK_USER, LoopbackTransport
from nodeward.apiserver.metrics import ApiServerMetrics
from nodeward.apiserver.rbac_guard import RbacGuard
from nodeward.apiserver.resources.unknown_fields import stored_readers
from nodeward.apiserver.security import Security, TokenSettings
from nodeward.features import FRAMEWORK, Framework, Gates
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.serving.limits import Limits
from nodeward.machinery.serving.listener import Listener
from nodeward.store.interface import Store, StoreUnavailable

LOG = logging.getLogger(__name__)

#: The store is compacted at this interval, as kube-apiserver does with etcd.
COMPACT_SECONDS = 300.0
#: How often missing bootstrap objects are created again, as kube-apiserver does for its service.
REPAIR_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The configuration of one API server."""

    kubernetes_version: str = "1.37"
    gates: Gates = field(default_factory=lambda: Gates.of("1.37"))
    scheme: Scheme = SCHEME
    tokens: TokenSettings | None = None
    static_tokens: Mapping[str, User] = field(default_factory=dict)
    allows_anonymous: bool = True
    enable_admission: tuple[str, ...] = ()
    disable_admission: tuple[str, ...] = ()
    service_cidr: str = "10.96.0.0/16"
    #: where clients reach the server, for discovery and the kubernetes service
    address: str = "127.0.0.1:6443"
    limits: Limits = field(default_factory=Limits)
    #: the declared features that pods may need of nodes (KEP-5328)
    features: Framework = FRAMEWORK
    #: how kubelets are reached, for logs and commands in containers
    kubelets: KubeletAccess = field(default_factory=KubeletAccess)
    #: events that were not written for this long are deleted; 0: never
    event_ttl_seconds: float = DEFAULT_TTL_SECONDS
    #: where work on large bodies is done: in a thread of its own, or, in virtual time, on the event loop
    make_worker: Callable[[], BodyWorker] = OnLoop


class ApiServer:
    """An API server that can be started, used and stopped."""

    def __init__(
        self, store: Store, clock: Clock, chance: Chance, settings: Settings, *, owns_store: bool = True
    ) -> None:
        """Assemble a server. `owns_store`: open and close the store with the server; else it stays open."""
        self._store = store
        self._owns_store = owns_store
        self._clock = clock
        self._settings = settings
        unread = stored_readers(settings.scheme, Context(settings.gates))
        self.hub = Hub(store, settings.scheme, clock, unread)
        self.env = Environment(
            self.hub,
            settings.scheme,
            clock,
            chance,
            settings.gates,
            service_cidr=settings.service_cidr,
            features=settings.features,
            worker=settings.make_worker(),
        )
        self.metrics = ApiServerMetrics()
        self.metrics.set_gates(
            list(settings.gates), settings.kubernetes_version, _one_before(settings.kubernetes_version)
        )
        self._security = Security(
            self.env, settings.tokens, settings.static_tokens, allows_anonymous=settings.allows_anonymous
        )
        chain = build(self.env, list(settings.enable_admission), list(settings.disable_admission))
        chain = chain.then(RbacGuard(self.env, self._security)).timed(clock, self.metrics.admission)
        api = Api(self.env, chain, self._security.authorizers.require)
        api.issuer = self._security.issuer
        api.kubelets = replace(settings.kubelets, streamed=self.metrics.streamed)
        self._documents = Documents(
            self.env,
            self.metrics,
            kubernetes_version=settings.kubernetes_version,
            address=settings.address,
            checks=[
                ("ping", lambda: True),
                ("log", lambda: True),
                ("etcd", lambda: self.hub.is_healthy),
                ("informer-sync", lambda: self.hub.revision > 0),
                ("poststarthook/start-system-namespaces-controller", lambda: not any(missing(self.env))),
                ("poststarthook/rbac/bootstrap-roles", lambda: self._is_bootstrapped),
            ],
            readiness_checks=[("etcd-readiness", lambda: self.hub.health.is_answering)],
            tokens=settings.tokens,
            measure=self._measure,
        )
        self.app = App(api, self._security, self._documents, self.metrics)
        self._is_bootstrapped = False
        self._listener = Listener(self.app.handle, clock, settings.limits, self.app.screen)
        self.connections: Final = self._listener.connections
        self._tasks: list[asyncio.Task[None]] = []

    # -- life

    async def start(self) -> None:
        """Open the store, load the caches, create the objects every cluster has."""
        if self._owns_store:
            await self._store.open()
        await self.hub.start()
        self._security.start()
        client = self.client("kube-apiserver")
        await bootstrap(self.env, client, port=self._port)
        aggregation = Aggregation(self.env, self.client("clusterrole-aggregation-controller"))
        await aggregation.settle()
        self._is_bootstrapped = True
        self._tasks = [
            asyncio.create_task(self._compact(), name="compaction"),
            asyncio.create_task(aggregation.run(), name="aggregation"),
            asyncio.create_task(self._repair(client), name="repair"),
            asyncio.create_task(
                EventExpiry(self.env, self._settings.event_ttl_seconds).run(), name="event expiry"
            ),
        ]

    async def listen(self, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        """Serve on an address; return the port, which may have been given as 0."""
        return await self._listener.listen(host, port, tls)

    async def serve(self, bound: socket.socket, tls: ssl.SSLContext | None) -> int:
        """Serve on a bound socket; return the port."""
        return await self._listener.serve(bound, tls)

    async def stop(self) -> None:
        """Stop accepting, finish open requests, close the store. Nothing acknowledged is lost."""
        self._documents.is_shutting_down = True
        await self._listener.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.hub.stop()
        self.env.worker.close()
        if self._owns_store:
            await self._store.close()

    # -- ways in

    def transport(self, user: User = LOOPBACK_USER) -> LoopbackTransport:
        """Return a transport for requests in the same process, as `user`."""
        return LoopbackTransport(self.app, user)

    def client(self, component: str, user: User = LOOPBACK_USER) -> Client:
        return Client(self.transport(user), clock=self._clock, component=component)

    # -- upkeep

    async def _compact(self) -> None:
        """Compact the store at every interval, keeping one interval of history."""
        previous = self.hub.revision
        while True:
            await self._clock.sleep(COMPACT_SECONDS)
            try:
                await self._store.compact(previous)
            except StoreUnavailable as error:
                LOG.warning("compaction failed and is tried again later: %s", error)
                continue
            previous = self.hub.revision

    async def _repair(self, client: Client) -> None:
        while True:
            await self._clock.sleep(REPAIR_SECONDS)
            try:
                await repair(self.env, client, port=self._port)
            except ApiError as error:
                LOG.warning("bootstrap objects could not be created again: %s", error)

    @property
    def _port(self) -> int:
        return int(self._settings.address.rpartition(":")[2])

    async def _measure(self) -> None:
        counts = {
            (kind.group, kind.resource): len(self.hub.cache(kind).objects)
            for kind in self._settings.scheme.kinds
            if kind.is_stored and not kind.stored_as
        }
        self.metrics.set_objects(counts, await self._store.size(), len(self.hub.quarantine.found))


def _one_before(version: str) -> str:
    major, _, minor = version.partition(".")
    return f"{major}.{int(minor.partition('.')[0]) - 1}"

"""A cluster for controllers: an API server in memory, virtual time, and a client that may do anything."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject, ObjectMeta
from nodeward.apiserver.server import ApiServer
from nodeward.cluster.identities import controller_client
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.controller import ControllerDescriptor
from nodeward.controllers.runner import Runner
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.transport import Request, Response, Transport
from nodeward.store.interface import Store
from tests.apiserver.running import running, settings

ROOT_CA = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


#: Answers a request itself, or asks the server and passes that on.
Alter = Callable[[Request, Callable[[Request], Awaitable[Response]]], Awaitable[Response]]


class Altered:
    """A way into the server on which requests may be met otherwise: a server that refuses, or serves less."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.alter: Alter | None = None

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        if self.alter is None or stream:
            return await self._inner.send(request, stream=stream)
        return await self.alter(request, self._inner.send)

    async def aclose(self) -> None:
        await self._inner.aclose()


@dataclass(frozen=True, slots=True)
class Cluster:
    server: ApiServer
    client: Client
    clock: VirtualClock
    runner: Runner
    transports: dict[str, Altered]

    async def pass_time(self, seconds: float = 1.0) -> None:
        """Virtual seconds: everything that is due by then has happened."""
        await self.clock.sleep(seconds)

    async def create_namespace(self, name: str) -> None:
        await self.client.create(Namespace(metadata=ObjectMeta(name=name)))
        await self.pass_time()

    async def find(self, type_: type[KubeObject], name: str, namespace: str = "") -> KubeObject | None:
        try:
            return await self.client.get(type_, name, namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            return None

    async def exists(self, type_: type[KubeObject], name: str, namespace: str = "") -> bool:
        return await self.find(type_, name, namespace) is not None


@asynccontextmanager
async def cluster(
    clock: VirtualClock,
    *,
    controllers: Sequence[ControllerDescriptor] = CONTROLLERS,
    root_ca: str | None = ROOT_CA,
    admits_accountless_pods: bool = True,
    gates: str = "",
    controller_gates: str | None = None,
    store: Store | None = None,
) -> AsyncIterator[Cluster]:
    """A cluster whose controllers have settled, each with its own rights as in production.

    `gates` are everybody's, `controller_gates` those of the controllers if they differ; `store` has what an earlier
    cluster left behind.
    """
    chosen = settings(gates=gates, disable_admission=("ServiceAccount",) if admits_accountless_pods else ())
    theirs = chosen.gates if controller_gates is None else settings(gates=controller_gates).gates
    async with running(chosen, store=store, clock=clock) as server:
        transports: dict[str, Altered] = {}

        def client_for(name: str) -> Client:
            transports[name] = Altered(controller_client(server, name).transport)
            return Client(transports[name], clock=clock, component=name, retry=None)

        runner = Runner(
            client_for, clock, SeededChance(3), gates=theirs, root_ca=root_ca, controllers=controllers
        )
        await runner.start()
        await runner.settled()
        try:
            yield Cluster(server, server.client("test"), clock, runner, transports)
        finally:
            await runner.stop()

"""An API server and a kubelet that runs real processes, on real TLS sockets, in a thread of its own.

What kubectl, other clients and hostile peers talk to. Two nodes: `here` runs processes; `then` is simulated and of a
version before KEP-4006, so that its kubelet knows SPDY only. With a containerd there is a third, `contained`.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.apiserver.kubelet_access import KubeletAccess, kubelet_client_context
from nodeward.apiserver.pki import KeyPair, Pki, kubeconfig, server_context
from nodeward.apiserver.server import ApiServer
from nodeward.cli.up import loop_factory
from nodeward.features import Gates
from nodeward.kubelet.agent import Agent
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.host import Host
from nodeward.kubelet.local_services import LocalMachine
from nodeward.kubelet.node.specification import NodeModel, NodeSpecification
from nodeward.kubelet.runtime.cri.runtime import CriRuntime
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings
from nodeward.kubelet.runtime.process.runtime import ProcessRuntime
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.kubelet.server.application import KubeletServer
from nodeward.kubelet.simulated.machines import SimulatedMachines
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealChance, RealClock
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.serving.answer import Answer
from nodeward.machinery.serving.connection import Peer
from nodeward.machinery.serving.listener import Listener
from nodeward.machinery.transport import Request
from nodeward.store.memory import MemoryStore
from tests.apiserver.running import settings
from tests.kubelet.runtime.containerd import Containerd
from tests.patience import PATIENCE_SECONDS

T = TypeVar("T")
HERE, THEN, CONTAINED = "here", "then", "contained"


def context_of(pki: Pki, pair: KeyPair) -> ssl.SSLContext:
    """TLS of a client with this certificate."""
    assert pair.certificate_path is not None
    assert pair.key_path is not None
    return kubelet_client_context(pair.certificate_path, pair.key_path, pki.authority_path)


class Serving:
    """`start` and `stop` it; `do` runs something on its loop."""

    def __init__(self, home: Path, gates: str = "", containerd: Containerd | None = None) -> None:
        self.home = home
        self._containerd = containerd
        self._gates = gates
        self.clock = RealClock()
        self.pki = Pki(home / "pki", self.clock.now_ns())
        self.port = 0
        self.kubelet_port = 0
        #: (path, what it is to switch to) of the requests that kubelets got
        self.asked: list[tuple[str, str]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.client: Client
        self.kubelets: Listener
        self.api: ApiServer

    # -- life

    def start(self) -> None:
        self._thread.start()
        while not self._is_up.wait(0.1):
            assert self._thread.is_alive(), "it does not start"

    def stop(self) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "it does not stop"

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_SECONDS)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with AsyncExitStack() as running:
            await self._start(running)
            self._is_up.set()
            await self._stop.wait()

    async def _start(self, running: AsyncExitStack) -> None:
        access = KubeletAccess(
            context_of(self.pki, self.pki.kubelet_client()), lambda node: ("127.0.0.1", self.kubelet_port)
        )
        # Real chance: processes are found by their container id, and other tests run here at the same time.
        clock, chance = self.clock, RealChance()
        chosen = settings(gates=self._gates, kubelets=access)
        server = self.api = ApiServer(MemoryStore(), clock, chance.child("server"), chosen)
        running.push_async_callback(server.stop)
        await server.start()
        serving = server_context(self.pki.serving("localhost"), self.pki.authority_path)
        self.port = await server.listen("127.0.0.1", 0, serving)
        client = self.client = server.client("test")

        processes = ProcessRuntime(self.home / "runtime", clock, chance.child("runtime"))
        root = self.home / "kubelet"
        root.mkdir()
        machine = LocalMachine(client, clock, chance.child("machine"), processes, root, self.home / "logs")
        simulated = SimRuntime(clock)
        machines = SimulatedMachines(client, clock, chance.child("machines"), simulated)
        hosts = [
            Host(client, clock, chance.child("host"), processes, machine),
            Host(client, clock, chance.child("fleet"), simulated, machines),
        ]
        if self._containerd is not None:
            hosts.append(self._contained(self._containerd, client))
        kubelet = KubeletServer(lambda: hosts, clock, Metrics())

        async def handle(request: Request, peer: Peer) -> Answer:
            self.asked.append((request.path, request.headers.get("upgrade", "").lower()))
            return await kubelet.handle(request, peer)

        self.kubelets = Listener(handle, clock)
        running.push_async_callback(self.kubelets.stop)
        running.push_async_callback(kubelet.aclose)
        tls = server_context(self.pki.kubelet_serving(("127.0.0.1",)), self.pki.authority_path)
        self.kubelet_port = await self.kubelets.listen("127.0.0.1", 0, tls)
        for host in hosts:
            running.push_async_callback(host.stop)
            await host.start()
        here = NodeSpecification(HERE, NodeModel(), addresses=("127.0.0.1",), boot_id="b")
        agent = hosts[0].add_node(here)
        running.push_async_callback(self._remove_pods, agent)  # or their processes would outlive the tests
        old = NodeModel(settings=KubeletSettings(gates=Gates.of("1.35")), kubelet_version="v1.35.0")
        hosts[1].add_node(NodeSpecification(THEN, old, addresses=("10.0.0.9",), boot_id="b"))
        if self._containerd is not None:
            model = NodeModel(runtime_version=hosts[2].runtime.version)
            there = NodeSpecification(CONTAINED, model, addresses=("127.0.0.1",), boot_id="b")
            running.push_async_callback(self._remove_pods, hosts[2].add_node(there))

    def _contained(self, containerd: Containerd, client: Client) -> Host:
        """The host of a node with containers of containerd."""
        node_settings = NodeSettings(cgroup_root=containerd.cgroup_root)
        runtime = CriRuntime(containerd.socket, self.clock, settings=node_settings, host_ips=("127.0.0.1",))
        chance, root = RealChance(), self.home / "contained"
        root.mkdir()
        machine = LocalMachine(client, self.clock, chance.child("machine"), runtime, root)
        return Host(client, self.clock, chance, runtime, machine)

    async def _remove_pods(self, agent: Agent) -> None:
        for held in list(agent.pods.values()):
            meta = held.life.pod.metadata
            await self.client.delete(Pod, meta.name, meta.namespace, grace_period=0)
        async with self.clock.timeout(PATIENCE_SECONDS):
            while agent.pods:
                await self.clock.sleep(0.02)

    # -- use

    def kubeconfig(self) -> Path:
        path = self.home / "kubeconfig"
        text = kubeconfig(f"https://127.0.0.1:{self.port}", self.pki.authority_certificate, self.pki.admin())
        path.write_text(text)
        return path

    def run_pod(self, name: str, *command: str, node: str = HERE, containers: int = 1, **spec: Any) -> Pod:
        """A pod, once it runs or has run."""
        made = [
            Container(name=f"c{number}", image="local", command=list(command)) for number in range(containers)
        ]
        pod = Pod(
            metadata=ObjectMeta(name=name, namespace="default"),
            spec=PodSpec(node_name=node, containers=made, termination_grace_period_seconds=0, **spec),
        )
        self.do(self.client.create(pod))
        return self.wait(name, lambda pod: pod.status.phase not in ("", "Pending"))

    def wait(self, name: str, is_there: Any) -> Pod:
        async def look() -> Pod:
            while True:
                pod = await self.client.get(Pod, name, "default")
                if is_there(pod):
                    return pod
                await self.clock.sleep(0.05)

        return self.do(look())

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("KUBE")}
        return {**kept, "KUBECONFIG": str(self.kubeconfig()), "HOME": str(self.home)}


@contextmanager
def serving(home: Path, gates: str = "", containerd: Containerd | None = None) -> Iterator[Serving]:
    made = Serving(home, gates, containerd)
    made.start()
    try:
        yield made
    finally:
        made.stop()

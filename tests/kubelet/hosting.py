"""Kubelets for tests: an API server in process, a host with simulated containers, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.apiserver.server import ApiServer
from nodeward.kubelet.host import Host
from nodeward.kubelet.node.specification import NodeModel, NodeSpecification
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.kubelet.simulated.machines import SimulatedMachines
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance, VirtualClock
from tests.apiserver.running import running, settings
from tests.controllers.cluster import Altered


@dataclass
class Hosted:
    """A host at work."""

    server: ApiServer
    client: Client
    clock: VirtualClock
    host: Host
    runtime: SimRuntime
    machines: SimulatedMachines
    #: the kubelets' way to the API, on which requests may be met otherwise
    transport: Altered

    async def pod(self, name: str, namespace: str = "default") -> Pod:
        return await self.client.get(Pod, name, namespace)

    async def run_pod(self, name: str, node: str, **annotations: str) -> Pod:
        """A pod of one container on a node; annotations say how it behaves, `c="run-time=3s"`."""
        said = {f"simulation.nodeward.dev/{key}": value for key, value in annotations.items()}
        metadata = ObjectMeta(name=name, namespace="default", annotations=said)
        spec = PodSpec(node_name=node, containers=[Container(name="c", image="image")])
        return await self.client.create(Pod(metadata=metadata, spec=spec))


def specification(name: str, model: NodeModel | None = None, boot_id: str = "boot-1") -> NodeSpecification:
    return NodeSpecification(name, model or NodeModel(), addresses=("10.0.0.1",), boot_id=boot_id)


@asynccontextmanager
async def hosted(clock: VirtualClock, *nodes: NodeSpecification, gates: str = "") -> AsyncIterator[Hosted]:
    """A host with nodes that are registered."""
    chosen = settings(disable_admission=("ServiceAccount",), gates=gates)
    async with running(chosen, clock=clock) as server:
        runtime = SimRuntime(clock)
        transport = Altered(server.client("kubelet").transport)
        client = Client(transport, clock=clock, component="kubelet")
        machines = SimulatedMachines(client, clock, SeededChance(2), runtime)
        host = Host(client, clock, SeededChance(1), runtime, machines)
        await host.start()
        host.add_nodes(nodes)
        await clock.sleep(1)
        try:
            yield Hosted(server, server.client("test"), clock, host, runtime, machines, transport)
        finally:
            await host.stop()

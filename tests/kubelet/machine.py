"""A node with real volumes and probes for tests: an API server in process, a disk of its own, simulated containers."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from nodeward.api import codec
from nodeward.api.core_v1.cluster import ServiceAccount
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta
from nodeward.apiserver.auth.token_keys import load_key
from nodeward.apiserver.auth.user import User
from nodeward.apiserver.security import TokenSettings
from nodeward.apiserver.server import ApiServer
from nodeward.features.gates import Gates
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.container_request import container_request
from nodeward.kubelet.local_services import LocalMachine, LocalServices
from nodeward.kubelet.node.specification import NodeModel
from nodeward.kubelet.runtime.interface import ContainerRequest
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance, VirtualClock
from tests.apiserver.running import running, settings
from tests.kubelet.hosting import specification

NODE = "n1"
KUBELET = User(f"system:node:{NODE}", groups=("system:nodes", "system:authenticated"))


@dataclass
class Machine:
    """One node; the kubelet's client has a node's own rights and no more."""

    server: ApiServer
    client: Client
    clock: VirtualClock
    services: LocalServices
    root: Path
    #: exclusive CPUs by the name of a container
    cpus: dict[str, str] = field(default_factory=dict)

    async def pod(self, spec: dict[str, Any], **metadata: Any) -> Pod:
        """A pod bound to the node, as the API has it."""
        tree = {
            "metadata": {"name": "p", "namespace": "default", **metadata},
            "spec": {
                "nodeName": NODE,
                "serviceAccountName": "default",
                "containers": [{"name": "c", "image": "image"}],
                **spec,
            },
        }
        made = await self.client.create(codec.from_tree(tree, Pod))
        # The server's view of who may read what follows its own watch.
        await self.clock.sleep(0.1)
        return made

    def another(self) -> LocalServices:
        """The services of the next kubelet on the same machine."""
        return _services(self.server, self.clock, self.root, self.cpus)

    async def request(self, pod: Pod, container: str = "c", attempt: int = 0) -> ContainerRequest:
        """What a container of the pod is started with."""
        services = self.services
        return await container_request(
            services.volumes, services.environment, pod, lambda: pod, container, attempt
        )

    def volume(self, pod: Pod, plugin: str, name: str) -> Path:
        return self.root / "pods" / pod.metadata.uid / "volumes" / f"kubernetes.io~{plugin}" / name


@functools.cache
def _key() -> bytes:
    """One for all tests: making one takes a while."""
    key = ec.generate_private_key(ec.SECP256R1())
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def _services(
    server: ApiServer, clock: VirtualClock, root: Path, cpus: dict[str, str], version: str = "1.37"
) -> LocalServices:
    client = server.client("kubelet", KUBELET)
    machine = LocalMachine(client, clock, SeededChance(3), SimRuntime(clock), root)
    machine.connect(lambda _: None, lambda _, container: cpus.get(container, ""))
    model = NodeModel(settings=KubeletSettings(gates=Gates.of(version)))
    return machine.services(specification(NODE, model))


@asynccontextmanager
async def machine(clock: VirtualClock, root: Path, version: str = "1.37") -> AsyncIterator[Machine]:
    """`version` is the kubelet's."""
    tokens = TokenSettings(keys=(load_key(_key()),))
    chosen = settings(disable_admission=("ServiceAccount",), tokens=tokens)
    async with running(chosen, clock=clock) as server:
        client = server.client("test")
        await client.create(Node(metadata=ObjectMeta(name=NODE)))
        await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
        cpus: dict[str, str] = {}
        services = _services(server, clock, root, cpus, version)
        await clock.sleep(1)
        yield Machine(server, client, clock, services, root, cpus)

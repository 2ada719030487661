"""Whole clusters for the statements that need one: API server, scheduler, controllers and kubelets, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.apiserver.server import Settings
from nodeward.cluster.assembly import Cluster
from nodeward.cluster.description import ClusterDescription, Pool
from nodeward.cluster.fleet import Fleet
from nodeward.features.gates import Gates
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.store.interface import Store
from nodeward.store.memory import MemoryStore


@dataclass(slots=True)
class World:
    """A cluster at work, and somebody who may do anything."""

    cluster: Cluster
    client: Client
    clock: VirtualClock

    @property
    def fleet(self) -> Fleet:
        assert self.cluster.fleet is not None
        return self.cluster.fleet

    async def pass_time(self, seconds: float = 2.0) -> None:
        """Virtual seconds: everything that is due by then has happened."""
        await self.clock.sleep(seconds)

    async def add(self, *objects: Any) -> None:
        for each in objects:
            await self.client.create(each)
        await self.pass_time()

    async def pod(self, name: str) -> Pod:
        return await self.client.get(Pod, name, "default")

    async def node(self, name: str) -> Node:
        return await self.client.get(Node, name)

    async def resize(self, name: str, spec: dict[str, Any]) -> Pod:
        """Change the resources of a pod, as `kubectl patch --subresource resize` does."""
        return await self.client.patch(
            Pod,
            name,
            {"spec": spec},
            namespace="default",
            patch_type=PatchType.STRATEGIC,
            subresource="resize",
        )

    async def patch_node(self, name: str, body: dict[str, Any], *, status: bool = False) -> None:
        await self.client.patch(
            Node, name, body, patch_type=PatchType.STRATEGIC, subresource="status" if status else ""
        )
        await self.pass_time()

    async def events(self, name: str) -> list[tuple[str, str]]:
        """(reason, message) of what was told about an object."""
        await self.pass_time()
        listed = await self.client.list(Event)
        return [(each.reason, each.message) for each in listed.items if each.involved_object.name == name]

    async def change_pool(self, name: str, version: str = "", feature_gates: str | None = None) -> None:
        """Restart the kubelets of a pool as another version, or with other gates."""
        before = self.fleet.pools[name].pool
        await self.cluster.change_pool(before.upgraded(version, feature_gates))
        await self.pass_time(15)


@asynccontextmanager
async def world(
    clock: VirtualClock,
    *pools: Pool,
    gates: str = "",
    version: str = "1.37",
    store: Store | None = None,
    **parts: Any,
) -> AsyncIterator[World]:
    """A cluster whose nodes are registered; `parts` are of the description, the store may be one that was used."""
    description = ClusterDescription(version=version, gates=Gates.of(version, gates), pools=pools, **parts)
    settings = Settings(disable_admission=("ServiceAccount",))
    made = Cluster(description, store or MemoryStore(), clock, SeededChance(11), settings)
    await made.start()
    try:
        await clock.sleep(10)
        yield World(made, made.client("test"), clock)
    finally:
        await made.stop()

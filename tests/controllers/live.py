"""Whole clusters for controllers: kubelets, scheduler and API server at work, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from nodeward.api.apps_v1 import Deployment
from nodeward.api.codec import from_tree
from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.cluster.assembly import Cluster
from nodeward.cluster.description import ClusterDescription, Pool
from nodeward.features.gates import Gates
from nodeward.kubelet.host import Host
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.store.interface import Store
from nodeward.store.memory import MemoryStore


@dataclass(slots=True)
class Live:
    """A cluster at work, and somebody who may do anything."""

    cluster: Cluster
    client: Client
    clock: VirtualClock

    @property
    def host(self) -> Host:
        """Where the kubelets live."""
        assert self.cluster.fleet is not None
        return self.cluster.fleet.host

    async def pass_time(self, seconds: float = 2.0) -> None:
        await self.clock.sleep(seconds)

    async def seconds_until(self, is_so: Callable[[], Any], limit: float, step: float = 1.0) -> float:
        """How long it takes until an asynchronous question is answered with yes."""
        began = self.clock.monotonic_ns()
        while not await is_so():
            passed = (self.clock.monotonic_ns() - began) / SECOND_NS
            assert passed < limit, f"not so after {passed} s"
            await self.clock.sleep(step)
        return (self.clock.monotonic_ns() - began) / SECOND_NS

    async def node(self, name: str) -> Node:
        return await self.client.get(Node, name)

    async def marks(self, name: str) -> list[str]:
        """A node's taints in short."""
        return [f"{each.key}:{each.effect}" for each in (await self.node(name)).spec.taints]

    async def ready(self, name: str) -> str:
        """What the node's condition Ready says."""
        return (await self.said(name, "Ready"))[0]

    async def said(self, name: str, kind: str) -> tuple[str, str]:
        """Status and reason of a node's condition."""
        found = (await self.node(name)).status.conditions
        return next(((each.status, each.reason) for each in found if each.type == kind), ("", ""))

    async def report(self, name: str, kind: str, status: str, reason: str = "Checked") -> None:
        """A reporter says so."""
        body = {"status": {"conditions": [{"type": kind, "status": status, "reason": reason}]}}
        await self.client.patch(Node, name, body, subresource="status")

    async def run_pod(self, name: str, **spec: Any) -> None:
        await self.client.create(a_pod(name, **spec))

    async def places(self) -> dict[str, str]:
        """Where the pods run that are not being deleted; empty for those that wait."""
        found = (await self.client.list(Pod, "default")).items
        return {
            each.metadata.name: each.spec.node_name if each.status.phase == "Running" else ""
            for each in found
            if each.metadata.deletion_timestamp is None
        }

    async def events(self, name: str, *reasons: str) -> list[tuple[str, str, str]]:
        """(type, reason, message) of what was told about an object."""
        found = (await self.client.list(Event)).items
        return [
            (each.type, each.reason, each.message)
            for each in found
            if each.involved_object.name == name and (not reasons or each.reason in reasons)
        ]


def a_pod(name: str, **spec: Any) -> Pod:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}
    tree = {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container], **spec}}
    return from_tree(tree, Pod)


def a_deployment(name: str, replicas: int, cpu: str = "100m", **template: Any) -> Deployment:
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    tree = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [container], **template},
            },
        },
    }
    return from_tree(tree, Deployment)


@asynccontextmanager
async def live(
    clock: VirtualClock, *pools: Pool, gates: str = "", store: Store | None = None, **parts: Any
) -> AsyncIterator[Live]:
    """A cluster whose nodes are registered and ready."""
    description = ClusterDescription(gates=Gates.of("1.37", gates), pools=pools, **parts)
    cluster = Cluster(description, store or MemoryStore(), clock, SeededChance(11))
    await cluster.start()
    try:
        await clock.sleep(5)
        yield Live(cluster, cluster.client("test"), clock)
    finally:
        await cluster.stop()

"""Whole clusters for tests: everything the assembly starts, in virtual time, on a store that can be used again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from nodeward.api.apps_v1 import Deployment, DeploymentSpec
from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod, PodSpec, PodTemplateSpec
from nodeward.api.meta import LabelSelector, ObjectMeta
from nodeward.cluster.assembly import Cluster
from nodeward.cluster.description import ClusterDescription, FleetPlan
from nodeward.cluster.fleet_control import FILE, MAP_NAME, NAMESPACE
from nodeward.cluster.fleet_file import fleet_text, load_fleet
from nodeward.features import Gates
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.store.interface import Store
from nodeward.store.memory import MemoryStore


@asynccontextmanager
async def whole_cluster(
    clock: VirtualClock, *, store: Store | None = None, gates: str = "", **described: Any
) -> AsyncIterator[Cluster]:
    """A cluster that is started, and stopped at the end."""
    description = ClusterDescription(gates=Gates.of("1.37", gates), **described)
    cluster = Cluster(description, store or MemoryStore(), clock, SeededChance(11))
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.stop()


def plan(*pools: dict[str, Any]) -> FleetPlan:
    return load_fleet(fleet_text(pools).encode(), "test", "1.37")


async def write_fleet(client: Client, text: str) -> None:
    """What somebody with kubectl does."""
    patch = {"data": {FILE: text}}
    await client.patch(ConfigMap, MAP_NAME, patch, namespace=NAMESPACE, patch_type=PatchType.MERGE)


async def versions(client: Client) -> dict[str, str]:
    """The version of every node's kubelet."""
    return {
        node.metadata.name: node.status.node_info.kubelet_version for node in (await client.list(Node)).items
    }


def ready_of(node: Node) -> str:
    return next(each.status for each in node.status.conditions if each.type == "Ready")


def bound_pod(name: str, node: str) -> Pod:
    containers = [Container(name="c", image="image")]
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodSpec(node_name=node, containers=containers),
    )


def deployment(name: str, replicas: int) -> Deployment:
    labels = {"app": name}
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels=labels), spec=PodSpec(containers=[Container(name="c", image="image")])
    )
    spec = DeploymentSpec(replicas=replicas, selector=LabelSelector(match_labels=labels), template=template)
    return Deployment(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)

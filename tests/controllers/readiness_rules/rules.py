"""Readiness rules and the nodes they are about, in as few words as tests need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.readiness_v1alpha1 import NodeReadinessRule
from nodeward.controllers import CONTROLLERS
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import Cluster, cluster

CNI = "example.com/CNIReady"
DISK = "example.com/DiskReady"
KEY = "readiness.k8s.io/network"
READINESS_RULES = tuple(each for each in CONTROLLERS if each.name == "node-readiness-controller")


def a_rule(name: str = "net", **spec: Any) -> NodeReadinessRule:
    """Nodes labelled pool=a wait for CNI, and again whenever it fails."""
    tree = {
        "metadata": {"name": name},
        "spec": {
            "conditions": [{"type": CNI, "requiredStatus": "True"}],
            "enforcementMode": "continuous",
            "taint": {"key": KEY, "effect": "NoSchedule"},
            "nodeSelector": {"matchLabels": {"pool": "a"}},
            **spec,
        },
    }
    return from_tree(tree, NodeReadinessRule)


def a_node(name: str = "n", *conditions: tuple[str, str], pool: str = "a", **spec: Any) -> Node:
    listed = [{"type": kind, "status": status} for kind, status in conditions]
    tree = {
        "metadata": {"name": name, "labels": {"pool": pool}},
        "spec": spec,
        "status": {"conditions": listed},
    }
    return from_tree(tree, Node)


def a_pod(name: str, node: str = "", **spec: Any) -> Pod:
    container = {"name": "main", "image": "busybox"}
    tree = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "nodeName": node, **spec},
    }
    return from_tree(tree, Pod)


class Scene:
    """A cluster with this one controller."""

    def __init__(self, each: Cluster) -> None:
        self.cluster = each
        self.client = each.client
        self.clock = each.clock

    async def say(self, name: str, kind: str, status: str) -> None:
        body = {"status": {"conditions": [{"type": kind, "status": status}]}}
        await self.client.patch(Node, name, body, subresource="status")
        await self.pass_time(0.1)

    async def pass_time(self, seconds: float = 3.0) -> None:
        await self.clock.sleep(seconds)

    async def node(self, name: str = "n") -> Node:
        return await self.client.get(Node, name)

    async def marks(self, name: str = "n") -> list[str]:
        """The taints of a node that readiness rules own."""
        taints = (await self.node(name)).spec.taints
        return [
            f"{each.key.partition('/')[2]}:{each.effect}" for each in taints if each.key.startswith("rea")
        ]

    async def rule(self, name: str = "net") -> NodeReadinessRule:
        return await self.client.get(NodeReadinessRule, name)

    async def make(self, *objects: Any) -> None:
        for each in objects:
            await self.client.create(each)
        await self.pass_time()

    async def told(self, name: str = "n") -> list[tuple[str, str, str]]:
        """Reason, action and message of the events about a node."""
        found = (await self.client.list(Event)).items
        return [
            (each.reason, each.action, each.message) for each in found if each.involved_object.name == name
        ]

    def metrics(self) -> list[str]:
        text = self.cluster.runner.metrics.text().decode()
        return [line for line in text.splitlines() if line.startswith("node_readiness_")]


def run(main: Callable[[Scene], Awaitable[None]]) -> None:
    async def inner(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=READINESS_RULES) as each:
            await main(Scene(each))

    run_virtual(inner)

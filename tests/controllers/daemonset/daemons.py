"""Daemon sets and nodes for tests, in the fewest words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from nodeward.api.apps_v1 import (
    ControllerRevision,
    DaemonSet,
    DaemonSetSpec,
    DaemonSetUpdateStrategy,
    RollingUpdateDaemonSet,
)
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.fields import IntOrString
from nodeward.api.meta import LabelSelector, ObjectMeta
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.controller_revisions import by_number
from nodeward.controllers.daemonset.placement import target_of
from nodeward.controllers.pods.state import is_active
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from tests.controllers.workloads import LABELS, NAMESPACE, Workloads, template, workloads
from tests.scheduler.running import node

ONLY_DAEMONS = tuple(entry for entry in CONTROLLERS if entry.name == "daemon-set-controller")


def daemon_set(
    *, surge: IntOrString = 0, unavailable: IntOrString = 1, strategy: str = "RollingUpdate", **spec: Any
) -> DaemonSet:
    rolling = RollingUpdateDaemonSet(max_surge=surge, max_unavailable=unavailable)
    update = DaemonSetUpdateStrategy(
        type=strategy, rolling_update=rolling if strategy == "RollingUpdate" else None
    )
    return DaemonSet(
        metadata=ObjectMeta(name="web", namespace=NAMESPACE),
        spec=DaemonSetSpec(
            selector=LabelSelector(match_labels=LABELS),
            update_strategy=update,
            **{"template": template(), **spec},
        ),
    )


async def add_nodes(each: Workloads, *nodes: Node) -> None:
    """Nodes as they are given: what admission adds for a node that has not said it is ready is taken away."""
    for one in nodes:
        await each.cluster.client.create(one)
        await patch_node(each, one.metadata.name, {"spec": {"taints": one.spec.taints}})


async def patch_node(each: Workloads, name: str, body: dict[str, Any], *, status: bool = False) -> None:
    await each.cluster.client.patch(
        Node, name, body, patch_type=PatchType.MERGE, subresource="status" if status else ""
    )


@asynccontextmanager
async def daemons(clock: VirtualClock, nodes: int = 3, **kubelets: Any) -> AsyncIterator[Workloads]:
    """Nodes n0, n1, ... and only the daemon set controller."""
    async with workloads(clock, controllers=ONLY_DAEMONS, **kubelets) as each:
        await add_nodes(each, *(node(f"n{number}") for number in range(nodes)))
        yield each


async def found(each: Workloads) -> DaemonSet:
    return await each.cluster.client.get(DaemonSet, "web", NAMESPACE)


async def revisions(each: Workloads) -> list[ControllerRevision]:
    return by_number((await each.cluster.client.list(ControllerRevision, NAMESPACE)).items)


async def set_image(each: Workloads, image: str, seconds: float = 30.0) -> None:
    containers = [{"name": "web", "image": image}]
    await each.change(DaemonSet, {"template": {"spec": {"containers": containers}}}, seconds)


async def places(each: Workloads) -> dict[str, str]:
    """The image on each node, of pods that run or will."""
    return {
        target_of(pod) or "": pod.spec.containers[0].image
        for pod in sorted(await each.pods(), key=lambda pod: target_of(pod) or "")
    }


class Crowds:
    """Watches the pods of every node, and keeps the extremes over all nodes."""

    def __init__(self, each: Workloads) -> None:
        self.most_on_a_node = 0
        self.fewest_serving = 10**6
        self._pods = each.kubelets.pods
        self._pods.add_handler(lambda _: self._look(), lambda _, __: self._look(), lambda _: self._look())

    def _look(self) -> None:
        alive: dict[str | None, int] = {}
        serving: dict[str | None, None] = {}
        for pod in self._pods.list(NAMESPACE):
            alive[target_of(pod)] = alive.get(target_of(pod), 0) + 1
            if is_active(pod) and _is_ready(pod):
                serving[target_of(pod)] = None
        self.most_on_a_node = max(self.most_on_a_node, *alive.values(), 0)
        self.fewest_serving = min(self.fewest_serving, len(serving))


def _is_ready(pod: Pod) -> bool:
    return any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)

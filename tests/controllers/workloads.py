"""Replica sets and deployments for tests, in the fewest words, and a cluster that has only their controllers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from nodeward.api.apps_v1 import (
    Deployment,
    DeploymentSpec,
    DeploymentStrategy,
    ReplicaSet,
    ReplicaSetSpec,
    RollingUpdateDeployment,
)
from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec, PodTemplateSpec
from nodeward.api.fields import IntOrString
from nodeward.api.meta import LabelSelector, ObjectMeta
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.pods.controller_ref_manager import controller_of
from nodeward.controllers.pods.state import is_active
from nodeward.machinery.clock import VirtualClock
from tests.controllers.cluster import Cluster, cluster
from tests.controllers.kubelets import FakeKubelets

NAMESPACE = "default"
LABELS = {"app": "web"}

#: What a deployment needs to run.
WORKLOADS = tuple(
    entry
    for entry in CONTROLLERS
    if entry.name in ("replicaset-controller", "replication-controller", "deployment-controller")
)


def template(image: str = "web:1", **labels: str) -> PodTemplateSpec:
    return PodTemplateSpec(
        metadata=ObjectMeta(labels={**LABELS, **labels}),
        spec=PodSpec(containers=[Container(name="web", image=image)]),
    )


def replica_set(name: str = "web", replicas: int = 3, **spec: Any) -> ReplicaSet:
    return ReplicaSet(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE),
        spec=ReplicaSetSpec(
            replicas=replicas, selector=LabelSelector(match_labels=LABELS), **{"template": template(), **spec}
        ),
    )


def deployment(
    name: str = "web",
    replicas: int = 3,
    *,
    surge: IntOrString | None = None,
    unavailable: IntOrString | None = None,
    **spec: Any,
) -> Deployment:
    """Without `surge` and `unavailable` they are the API's defaults, a quarter each."""
    if surge is not None or unavailable is not None:
        rolling = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
        spec["strategy"] = DeploymentStrategy(type="RollingUpdate", rolling_update=rolling)
    return Deployment(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE),
        spec=DeploymentSpec(
            replicas=replicas, selector=LabelSelector(match_labels=LABELS), **{"template": template(), **spec}
        ),
    )


@dataclass(frozen=True, slots=True)
class Workloads:
    """A cluster and its nodes, with the questions tests ask of it."""

    cluster: Cluster
    kubelets: FakeKubelets

    async def create(self, obj: Any, seconds: float = 10.0) -> Any:
        created = await self.cluster.client.create(obj)
        await self.cluster.pass_time(seconds)
        return created

    async def change(
        self, type_: Any, spec: dict[str, Any], seconds: float = 30.0, name: str = "web"
    ) -> None:
        """Patch the spec and let time pass."""
        await self.cluster.client.patch(type_, name, {"spec": spec}, namespace=NAMESPACE)
        await self.cluster.pass_time(seconds)

    async def set_image(self, image: str, seconds: float = 30.0) -> None:
        containers = [{"name": "web", "image": image}]
        await self.change(Deployment, {"template": {"spec": {"containers": containers}}}, seconds)

    async def deployment(self, name: str = "web") -> Deployment:
        return await self.cluster.client.get(Deployment, name, NAMESPACE)

    async def replica_set(self, name: str = "web") -> ReplicaSet:
        return await self.cluster.client.get(ReplicaSet, name, NAMESPACE)

    async def replica_sets(self) -> list[ReplicaSet]:
        return (await self.cluster.client.list(ReplicaSet, NAMESPACE)).items

    async def sizes(self) -> dict[str, int]:
        """How many pods each image should have, by the replica sets that have any."""
        return {
            each.spec.template.spec.containers[0].image: each.spec.replicas
            for each in await self.replica_sets()
            if each.spec.replicas
        }

    async def pods(self, wanted: Callable[[Pod], bool] = is_active) -> list[Pod]:
        return [pod for pod in (await self.cluster.client.list(Pod, NAMESPACE)).items if wanted(pod)]

    async def events(self, reason: str) -> list[Event]:
        return [
            each for each in (await self.cluster.client.list(Event, NAMESPACE)).items if each.reason == reason
        ]


@asynccontextmanager
async def workloads(
    clock: VirtualClock, *, controllers: Any = WORKLOADS, **kubelets: Any
) -> AsyncIterator[Workloads]:
    """Replica set and deployment controllers, and kubelets that start pods after a second."""
    async with (
        cluster(clock, controllers=controllers) as each,
        FakeKubelets(each.client, **kubelets) as nodes,
    ):
        yield Workloads(each, nodes)


def owners(pods: Sequence[Pod]) -> list[str]:
    """The names of their controllers, each once; empty for nobody."""
    found = {reference.name if (reference := controller_of(pod)) else "" for pod in pods}
    return sorted(found)


def conditions(obj: Deployment | ReplicaSet) -> dict[str, tuple[str, str]]:
    """Status and reason by type."""
    return {each.type: (each.status, each.reason) for each in obj.status.conditions}

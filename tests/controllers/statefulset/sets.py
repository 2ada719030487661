"""Stateful sets for tests, in the fewest words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from nodeward.api.apps_v1 import (
    ControllerRevision,
    RollingUpdateStatefulSetStrategy,
    StatefulSet,
    StatefulSetPersistentVolumeClaimRetentionPolicy,
    StatefulSetSpec,
    StatefulSetUpdateStrategy,
)
from nodeward.api.codec import from_tree
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.fields import IntOrString
from nodeward.api.meta import LabelSelector, ObjectMeta
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.controller_revisions import by_number
from nodeward.controllers.pods.state import is_active, is_ready
from nodeward.machinery.clock import VirtualClock
from tests.controllers.workloads import LABELS, NAMESPACE, Workloads, template, workloads

ONLY_SETS = tuple(entry for entry in CONTROLLERS if entry.name == "statefulset-controller")
#: What lets claims go when their owners have.
COLLECTED = tuple(
    entry
    for entry in CONTROLLERS
    if entry in ONLY_SETS
    or entry.name in ("generic-garbage-collector", "persistentvolumeclaim-protection-controller")
)


def stateful_set(
    replicas: int = 3,
    *,
    parallel: bool = False,
    partition: int | None = None,
    unavailable: IntOrString | None = None,
    on_delete: bool = False,
    claims: tuple[str, str] | None = None,
    **spec: Any,
) -> StatefulSet:
    """`claims`: (whenDeleted, whenScaled) for one claim called `data`."""
    strategy = StatefulSetUpdateStrategy(type="OnDelete" if on_delete else "RollingUpdate")
    if partition is not None or unavailable is not None:
        strategy.rolling_update = RollingUpdateStatefulSetStrategy(
            partition=partition, max_unavailable=unavailable
        )
    if claims is not None:
        spec["volume_claim_templates"] = [claim("data")]
        spec["persistent_volume_claim_retention_policy"] = StatefulSetPersistentVolumeClaimRetentionPolicy(
            when_deleted=claims[0], when_scaled=claims[1]
        )
    return StatefulSet(
        metadata=ObjectMeta(name="web", namespace=NAMESPACE),
        spec=StatefulSetSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels=LABELS),
            service_name="nginx",
            pod_management_policy="Parallel" if parallel else "OrderedReady",
            update_strategy=strategy,
            **{"template": template(), **spec},
        ),
    )


def claim(name: str) -> PersistentVolumeClaim:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return from_tree(
        {"metadata": {"name": name, "labels": {"tier": "db"}}, "spec": spec}, PersistentVolumeClaim
    )


@asynccontextmanager
async def sets(
    clock: VirtualClock, *, controllers: Any = ONLY_SETS, **kubelets: Any
) -> AsyncIterator[Workloads]:
    async with workloads(clock, controllers=controllers, **{"nodes": ("n1",), **kubelets}) as each:
        yield each


async def found(each: Workloads) -> StatefulSet:
    return await each.cluster.client.get(StatefulSet, "web", NAMESPACE)


async def images(each: Workloads) -> dict[str, str]:
    """By name, of pods that run or will."""
    pods = sorted(await each.pods(), key=lambda pod: pod.metadata.name)
    return {pod.metadata.name: pod.spec.containers[0].image for pod in pods}


async def revisions(each: Workloads) -> list[ControllerRevision]:
    return by_number((await each.cluster.client.list(ControllerRevision, NAMESPACE)).items)


async def claims(each: Workloads) -> list[str]:
    listed = await each.cluster.client.list(PersistentVolumeClaim, NAMESPACE)
    return sorted(one.metadata.name for one in listed.items)


async def set_image(each: Workloads, image: str, seconds: float = 60.0) -> None:
    containers = [{"name": "web", "image": image}]
    await each.change(StatefulSet, {"template": {"spec": {"containers": containers}}}, seconds)


class Diary:
    """What happened to pods, in order: `+web-0` made, `-web-0` told to go; and the fewest that served."""

    def __init__(self, each: Workloads) -> None:
        self.lines: list[str] = []
        self.fewest_ready = 10**6
        self.most = 0
        self._pods = each.kubelets.pods
        known = len(self._pods)
        self._pods.add_handler(self._added, self._changed)
        del self.lines[:known]

    def _added(self, pod: Pod) -> None:
        self.lines.append(f"+{pod.metadata.name}")
        self._look()

    def _changed(self, old: Pod, new: Pod) -> None:
        if new.metadata.uid != old.metadata.uid:
            self._added(new)
        elif new.metadata.deletion_timestamp and not old.metadata.deletion_timestamp:
            self.lines.append(f"-{new.metadata.name}")
        self._look()

    def _look(self) -> None:
        active = [pod for pod in self._pods.list(NAMESPACE) if is_active(pod)]
        self.most = max(self.most, len(active))
        self.fewest_ready = min(self.fewest_ready, sum(map(is_ready, active)))

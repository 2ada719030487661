"""How many pods there should be, by those who own them: what percentages in a disruption budget are taken of.

Pods of the workloads Kubernetes knows are counted from informers; of any other owner its scale subresource is asked.
A ReplicaSet of a Deployment stands for the whole Deployment, so that a rollout does not count twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nodeward.api.apps_v1 import Deployment, ReplicaSet, StatefulSet
from nodeward.api.autoscaling_v1 import Scale
from nodeward.api.core_v1.pod import Pod, ReplicationController
from nodeward.api.errors import ApiError, qualified
from nodeward.api.meta import KubeObject, OwnerReference
from nodeward.api.scheme import Kind
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.controllers.controller import ControllerContext
from nodeward.controllers.pods.controller_ref_manager import controller_of


class NoScale(WorldError):
    """Nobody can say how many pods there should be."""


class ExpectedPods(NamedTuple):
    pods: int
    #: names of pods that nobody controls
    unmanaged: list[str]


class ScaleFinder:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._sets = context.informers.informer(ReplicaSet)
        self._deployments = context.informers.informer(Deployment)
        self._stateful = context.informers.informer(StatefulSet)
        self._replication = context.informers.informer(ReplicationController)

    async def expected(self, pods: Iterable[Pod]) -> ExpectedPods:
        """Return the sum over all controllers of these pods; raises if one cannot be counted."""
        scales: dict[str, int] = {}
        known: dict[str, None] = {}
        unmanaged: list[str] = []
        for pod in pods:
            owner = controller_of(pod)
            if owner is None:
                unmanaged.append(pod.metadata.name)
            elif owner.uid not in known:
                found = self._of_workload(owner, pod.metadata.namespace)
                if found is None:
                    found = await self._of_anything(owner, pod.metadata.namespace)
                if found is None:
                    raise NoScale(f"found no controllers for pod {quote(pod.metadata.name)}")
                known[owner.uid] = None
                uid, scales[uid] = found[0], found[1]
        return ExpectedPods(sum(scales.values()), unmanaged)

    def _of_workload(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | None:
        """Return uid and replicas of the controlling workload, if it exists and is of a known kind."""
        match owner.api_version.rpartition("/")[0], owner.kind:
            case "apps" | "extensions", "ReplicaSet":
                replica_set = self._sets.get(owner.name, namespace)
                if replica_set is None or replica_set.metadata.uid != owner.uid:
                    return None
                above = controller_of(replica_set)
                if above is None or above.kind != "Deployment":
                    return _scale(replica_set, owner)
                return _scale(self._deployments.get(above.name, namespace), above)
            case "apps", "StatefulSet":
                return _scale(self._stateful.get(owner.name, namespace), owner)
            case "", "ReplicationController":
                return _scale(self._replication.get(owner.name, namespace), owner)
        return None

    async def _of_anything(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | None:
        kind, has_scale = await self._kind(owner)
        if not has_scale:
            resource = qualified(kind.group, kind.resource)
            raise NoScale(f"{resource} does not implement the scale subresource")
        try:
            scale = await self._client.get(Scale, owner.name, namespace, kind=kind, subresource="scale")
        except ApiError as error:
            if error.code != 404:
                raise
            return None
        return (owner.uid, scale.spec.replicas) if scale.metadata.uid == owner.uid else None

    async def _kind(self, owner: OwnerReference) -> tuple[Kind, bool]:
        known = self._client.scheme.by_name(owner.api_version, owner.kind)
        if known is not None:
            return known, known.subresource("scale") is not None
        group, _, version = owner.api_version.rpartition("/")
        served = await self._client.discover()
        for found in served:
            if (found.group, found.version, found.kind) == (
                group,
                version,
                owner.kind,
            ) and "/" not in found.name:
                kind = Kind(group, version, found.kind, KubeObject, found.name, found.namespaced)
                return kind, any(each.name == f"{found.name}/scale" for each in served)
        raise NoScale(f"no matches for kind {quote(owner.kind)} in version {quote(owner.api_version)}")


def _scale(
    workload: ReplicaSet | Deployment | StatefulSet | ReplicationController | None, owner: OwnerReference
) -> tuple[str, int] | None:
    if workload is None or workload.metadata.uid != owner.uid:
        return None
    replicas = workload.spec.replicas
    return owner.uid, 1 if replicas is None else replicas

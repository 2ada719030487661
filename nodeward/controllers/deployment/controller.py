"""The deployment controller: looks at a deployment and its replica sets, takes one step, writes the status.

Keys are "namespace/name". It writes replica sets, never pods: those are the business of the replica set controller.
Every sync ends with at most one write to the deployment itself (status and revision together).

What must stay true: a step is worked out from copies that may be old, so every write names the version it is based on,
and a conflict means another sync; killed at any point, the next sync goes on from what is stored.

Run by `controllers.runner`; calls `arithmetic`, `progress` and `revisions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nodeward.api.apps_v1 import Deployment, DeploymentStatus, ReplicaSet
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject, LabelSelector
from nodeward.controllers.active_namespaces import refused_for_namespace
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.deployment import progress, revisions
from nodeward.controllers.deployment.arithmetic import (
    Sizes,
    active,
    grown,
    in_proportion,
    is_rolling,
    is_scaling,
    max_surge,
    replicas,
    rolling_step,
)
from nodeward.controllers.pods.controller_ref_manager import (
    ControllerRefManager,
    controller_of,
    controller_reference,
)
from nodeward.controllers.pods.index import NamespaceIndex, OwnerIndex
from nodeward.machinery.recorder import NORMAL, WARNING
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.selectors import from_label_selector

WORKERS: Final = 5
_SCALING: Final = "ScalingReplicaSet"
_TERMINATING_GATE: Final = "DeploymentReplicaSetTerminatingReplicas"


@dataclass(slots=True)
class _Observed:
    """What one sync of a deployment has found, and what its status is going to be."""

    deployment: Deployment
    #: A copy: conditions are put in as things happen.
    status: DeploymentStatus
    #: The replica set of the current template, if there is one.
    new: ReplicaSet | None
    #: All others, oldest first.
    old: list[ReplicaSet]
    #: What the deployment's revision is going to be; empty: what it was.
    revision: str = ""

    @property
    def sets(self) -> list[ReplicaSet]:
        return [*self.old, self.new] if self.new is not None else [*self.old]


class DeploymentController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder
        self._tells_terminating = context.gates.enabled(_TERMINATING_GATE)
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="deployment")
        self._claims = ControllerRefManager(context.client, Deployment, ReplicaSet)
        self._deployments = context.informers.informer(Deployment)
        self._in_namespace = NamespaceIndex(self._deployments)
        self._sets = OwnerIndex(context.informers, ReplicaSet)
        self._pods = OwnerIndex(context.informers, Pod)
        self._deployments.add_handler(self._seen, lambda _, new: self._seen(new), self._seen)
        self._sets.informer.add_handler(self._set_seen, self._set_changed, self._set_seen)
        self._pods.informer.add_handler(on_delete=self._pod_gone)

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._handle, workers=WORKERS),)

    # -- who needs a sync ---------------------------------------------------------------------------------------------

    def _seen(self, deployment: Deployment) -> None:
        self._queue.add(_key(deployment))

    def _set_seen(self, each: ReplicaSet) -> None:
        if controller_of(each) is not None:
            owner = self._owner_of(each)
            if owner is not None:
                self._seen(owner)
            return
        for deployment in self._in_namespace[each.metadata.namespace]:
            selector = from_label_selector(deployment.spec.selector)
            if selector is not None and selector.requirements and selector.matches(each.metadata.labels):
                self._seen(deployment)

    def _set_changed(self, old: ReplicaSet, new: ReplicaSet) -> None:
        before = self._owner_of(old)
        if before is not None:
            self._seen(before)
        self._set_seen(new)

    def _pod_gone(self, pod: Pod) -> None:
        """Wake a deployment with strategy Recreate, which waits for the last pod of its old replica sets."""
        reference = controller_of(pod)
        if reference is None or reference.kind != "ReplicaSet":
            return
        each = self._sets.informer.get(reference.name, pod.metadata.namespace)
        owner = self._owner_of(each) if each is not None and each.metadata.uid == reference.uid else None
        if owner is not None and not is_rolling(owner):
            self._seen(owner)

    def _owner_of(self, obj: KubeObject) -> Deployment | None:
        reference = controller_of(obj)
        if reference is None or reference.kind != self._claims.kind.name:
            return None
        owner = self._deployments.get(reference.name, obj.metadata.namespace)
        return owner if owner is not None and owner.metadata.uid == reference.uid else None

    # -- one sync -----------------------------------------------------------------------------------------------------

    async def _handle(self, key: str) -> float | None:
        deployment = self._deployments.by_key(key)
        if deployment is None:
            return None
        observed = _Observed(deployment, progress.own_copy(deployment.status), None, [])
        selector = from_label_selector(deployment.spec.selector)
        if selector is None or deployment.spec.selector == LabelSelector():
            text = "This deployment is selecting all pods. A non-empty selector is required."
            self._recorder.event(deployment, WARNING, "SelectingAll", text)
            observed.status.observed_generation = deployment.metadata.generation
            return await self._write(observed)
        namespace, uid = deployment.metadata.namespace, deployment.metadata.uid
        candidates = [*self._sets.controlled_by(uid), *self._sets.orphans(namespace)]
        observed.new, observed.old = revisions.split(
            deployment, await self._claims.claim(deployment, selector, candidates)
        )
        if deployment.metadata.deletion_timestamp is not None:
            return await self._write_counts(observed)
        progress.note_pause(deployment, observed.status, self._clock.now_ns())
        await self._refresh_new(observed)
        if deployment.spec.paused or is_scaling(deployment, observed.sets):
            await self._resize(
                observed, in_proportion(deployment, observed.new, observed.old), is_forced=True
            )
            if deployment.spec.paused:
                await self._forget_old(observed)
            return await self._write_counts(observed)
        if is_rolling(deployment):
            return await self._roll(observed)
        return await self._recreate(observed)

    async def _roll(self, observed: _Observed) -> float | None:
        if observed.new is None:
            await self._create_new(observed)
        if observed.new is not None:
            sizes = rolling_step(observed.deployment, observed.new, observed.old)
            await self._resize(observed, sizes)
            if not sizes and progress.is_complete(observed.deployment, observed.deployment.status):
                await self._forget_old(observed)
        return await self._write_progress(observed)

    async def _recreate(self, observed: _Observed) -> float | None:
        """Scale old replica sets to zero and wait for their pods before the new one is scaled up."""
        doomed = {each.metadata.name: 0 for each in active(observed.old)}
        await self._resize(observed, doomed)
        if not doomed and not self._old_pods_run(observed):
            if observed.new is None:
                await self._create_new(observed)
            elif replicas(observed.new) != replicas(observed.deployment):
                await self._resize(observed, {observed.new.metadata.name: replicas(observed.deployment)})
            if progress.is_complete(observed.deployment, observed.deployment.status):
                await self._forget_old(observed)
        return await self._write_progress(observed)

    def _old_pods_run(self, observed: _Observed) -> bool:
        return any(
            each.status.replicas
            or not all(is_terminal(pod) for pod in self._pods.controlled_by(each.metadata.uid))
            for each in observed.old
        )

    # -- replica sets ---------------------------------------------------------------------------------------------

    async def _refresh_new(self, observed: _Observed) -> None:
        """Give the current replica set the deployment's annotations and the highest revision."""
        new, deployment = observed.new, observed.deployment
        if new is None:
            return
        number = revisions.next_revision(observed.old)
        annotations = revisions.annotations_of_new(deployment, new.metadata.annotations, number)
        min_ready = deployment.spec.min_ready_seconds
        if annotations != new.metadata.annotations or new.spec.min_ready_seconds != min_ready:
            spec = msgspec.structs.replace(new.spec, min_ready_seconds=min_ready)
            new = observed.new = await self._client.update(_with(new, annotations, spec))
        observed.revision = annotations.get(revisions.REVISION, "")
        known = progress.condition(observed.status, progress.PROGRESSING)
        # Unlike upstream, a rollout that begins with a replica set that exists (a rollback, or a controller that was
        # killed right after making it) is told as one too: it gets its own deadline.
        is_unnoticed = (
            known is not None
            and known.reason == progress.SET_AVAILABLE
            and observed.revision != deployment.metadata.annotations.get(revisions.REVISION, "")
        )
        if progress.has_deadline(deployment) and (known is None or is_unnoticed):
            self._note(observed, progress.SET_FOUND, f'Found new replica set "{new.metadata.name}"')

    async def _create_new(self, observed: _Observed) -> None:
        deployment = observed.deployment
        most = replicas(deployment) + max_surge(deployment)
        reference = controller_reference(deployment, self._claims.kind)
        number = revisions.next_revision(observed.old)
        wanted = revisions.new_replica_set(deployment, reference, number, most)
        wanted.spec.replicas = size = grown(deployment, wanted, observed.old)
        name = wanted.metadata.name
        try:
            observed.new = await self._client.create(wanted)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                await self._record_refusal(observed, name, error)
                raise
            await self._take_existing(observed, name)
            return
        observed.revision = str(number)
        if size:
            self._record_scaling(observed, name, 0, size)
        if progress.has_deadline(deployment):
            self._note(observed, progress.SET_CREATED, f'Created new replica set "{name}"')

    async def _take_existing(self, observed: _Observed, name: str) -> None:
        """Use a replica set of this name that exists: our own, not seen by the informer yet, or another's."""
        deployment = observed.deployment
        found = await self._client.get(ReplicaSet, name, deployment.metadata.namespace)
        reference = controller_of(found)
        is_ours = reference is not None and reference.uid == deployment.metadata.uid
        if is_ours and revisions.is_of(found, deployment.spec.template):
            observed.new = found
            return
        # Two templates with the same hash. The next observed, which the write of this count causes, uses another.
        observed.status.collision_count = (observed.status.collision_count or 0) + 1

    async def _record_refusal(self, observed: _Observed, name: str, error: ApiError) -> None:
        if refused_for_namespace(error):
            return
        text = f'Failed to create new replica set "{name}": {error}'
        self._recorder.event(observed.deployment, WARNING, progress.SET_CREATE_ERROR, text)
        if progress.has_deadline(observed.deployment):
            self._note(observed, progress.SET_CREATE_ERROR, text, "False")
            await self._write(observed)

    async def _resize(self, observed: _Observed, sizes: Sizes, *, is_forced: bool = False) -> None:
        """Give replica sets new sizes; forced: also write what they remember if only that changes."""
        deployment = observed.deployment
        desired = replicas(deployment)
        for each in observed.sets:
            size = sizes.get(each.metadata.name)
            if size is None:
                continue
            annotations = revisions.sizes_remembered(
                each.metadata.annotations, desired, desired + max_surge(deployment)
            )
            before = replicas(each)
            if size == before and not (is_forced and annotations != each.metadata.annotations):
                continue
            spec = msgspec.structs.replace(each.spec, replicas=size)
            updated = await self._client.update(_with(each, annotations, spec))
            if size != before:
                self._record_scaling(observed, each.metadata.name, before, size)
            if each is observed.new:
                observed.new = updated
            else:
                observed.old = [updated if other is each else other for other in observed.old]

    async def _forget_old(self, observed: _Observed) -> None:
        """Delete old replica sets beyond the history limit."""
        for each in revisions.forgettable(observed.deployment, observed.old):
            meta = each.metadata
            try:
                await self._client.delete(ReplicaSet, meta.name, meta.namespace, uid=meta.uid)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    # -- telling --------------------------------------------------------------------------------------------------

    def _record_scaling(self, observed: _Observed, name: str, before: int, after: int) -> None:
        direction = "up" if after > before else "down"
        text = f"Scaled {direction} replica set {name} from {before} to {after}"
        self._recorder.event(observed.deployment, NORMAL, _SCALING, text)

    def _note(self, observed: _Observed, reason: str, text: str, value: str = "True") -> None:
        progress.set_condition(
            observed.status, progress.PROGRESSING, value, reason, text, self._clock.now_ns()
        )

    async def _write_counts(self, observed: _Observed) -> float | None:
        """Write the status while no rollout goes on: while paused, scaled or deleted."""
        self._count(observed)
        return await self._write(observed)

    async def _write_progress(self, observed: _Observed) -> float | None:
        self._count(observed)
        progress.judge(observed.deployment, observed.status, observed.new, observed.old, self._clock.now_ns())
        return await self._write(observed)

    def _count(self, observed: _Observed) -> None:
        observed.status = progress.counted(
            observed.deployment,
            observed.status,
            observed.new,
            observed.old,
            self._clock.now_ns(),
            tells_terminating=self._tells_terminating,
        )

    async def _write(self, observed: _Observed) -> float | None:
        """Store the status and the revision, if they differ; return when to sync again although nothing happens."""
        deployment = observed.deployment
        annotations = deployment.metadata.annotations
        if observed.revision and annotations.get(revisions.REVISION) != observed.revision:
            annotations = {**annotations, revisions.REVISION: observed.revision}
        if observed.status != deployment.status or annotations is not deployment.metadata.annotations:
            metadata = msgspec.structs.replace(deployment.metadata, annotations=annotations)
            changed = msgspec.structs.replace(deployment, metadata=metadata, status=observed.status)
            await self._client.update(changed, subresource="status")
        return progress.seconds_to_deadline(deployment, observed.status, self._clock.now_ns())


def _key(obj: KubeObject) -> str:
    return f"{obj.metadata.namespace}/{obj.metadata.name}"


def _with(each: ReplicaSet, annotations: dict[str, str], spec: Any) -> ReplicaSet:
    metadata = msgspec.structs.replace(each.metadata, annotations=annotations)
    return msgspec.structs.replace(each, metadata=metadata, spec=spec)

"""Replica sets and replication controllers: as many pods of a template as asked for.

Keys are "namespace/name". A look at a set claims the pods that match its selector, makes or deletes what is missing
or too many (at most 500 at a time), and writes the status.

What must stay true: nothing is made or deleted while an earlier request has not been seen to happen (`expectations`);
a template that is refused is tried again with growing pauses, with one event and one condition (`creation_backoff`);
pods that fail right after they were made are replaced with growing pauses too (`replacement_backoff`), unlike upstream;
one pod more or less costs a look at the pods of this set, never at those of others.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final, Generic

from nodeward.api.apps_v1 import ReplicaSet
from nodeward.api.core_v1.pod import Pod, ReplicationController
from nodeward.api.errors import ApiError
from nodeward.api.meta import OwnerReference
from nodeward.base.errors import WorldError
from nodeward.controllers.active_namespaces import refused_for_namespace
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.pods.control import PodControl, pod_from_template
from nodeward.controllers.pods.controller_ref_manager import (
    ControllerRefManager,
    controller_of,
    controller_reference,
)
from nodeward.controllers.pods.creation_backoff import CreationBackoff
from nodeward.controllers.pods.deleting import delete_expected
from nodeward.controllers.pods.expectations import Expectations
from nodeward.controllers.pods.index import NamespaceIndex, OwnerIndex
from nodeward.controllers.pods.pod_event_handlers import PodEventHandlers, settle_seconds
from nodeward.controllers.pods.ranking import first_to_delete
from nodeward.controllers.pods.replacement_backoff import ReplacementBackoff
from nodeward.controllers.pods.slow_start import in_growing_batches
from nodeward.controllers.pods.state import is_active, is_terminating, next_available_seconds
from nodeward.controllers.pods.status_writing import write_status
from nodeward.controllers.replica_status import R, status_of
from nodeward.machinery.recorder import WARNING
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.selectors import LabelRequirements, Requirement, from_label_selector

_log: Final = logging.getLogger(__name__)

#: How many pods are made or deleted at most before the informer has to confirm.
BURST: Final = 500
WORKERS: Final = 5
_TERMINATING_GATE: Final = "DeploymentReplicaSetTerminatingReplicas"


def replica_sets(context: ControllerContext) -> ReplicaController[ReplicaSet]:
    return ReplicaController(context, ReplicaSet, "replicaset")


def replication_controllers(context: ControllerContext) -> ReplicaController[ReplicationController]:
    return ReplicaController(context, ReplicationController, "replicationmanager")


def selector_of(owner: ReplicaSet | ReplicationController) -> LabelRequirements | None:
    """Return which pods are meant; None: none at all."""
    if isinstance(owner, ReplicaSet):
        return from_label_selector(owner.spec.selector)
    wanted = sorted(owner.spec.selector.items())
    return (
        LabelRequirements(tuple(Requirement(key, "=", (value,)) for key, value in wanted)) if wanted else None
    )


class ReplicaController(Generic[R]):
    """The controller of one of the two kinds."""

    def __init__(self, context: ControllerContext, type_: type[R], queue_name: str) -> None:
        self._client = context.client
        self._clock = context.clock
        self._tells_terminating = type_ is ReplicaSet and context.gates.enabled(_TERMINATING_GATE)
        self._heeds_cost = context.gates.enabled("PodDeletionCost")
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name=queue_name)
        self._expectations: Expectations[str] = Expectations(context.clock)
        self._creation_backoff: CreationBackoff[str] = CreationBackoff(context.clock)
        self._replacement_backoff: ReplacementBackoff[str] = ReplacementBackoff(context.clock)
        self._recorder = context.recorder
        self._control = PodControl(context.client, context.recorder)
        self._ref_manager = ControllerRefManager(context.client, type_, Pod)
        self._pods = OwnerIndex(context.informers, Pod)
        self._owners: OwnerIndex[R] = OwnerIndex(context.informers, type_)
        self._in_namespace: NamespaceIndex[R] = NamespaceIndex(self._owners.informer)
        self._owners.informer.add_handler(self._queue_now, self._changed, self._gone)
        PodEventHandlers(
            self._pods, self._expectations, key_of=self._key_of, takers_of=self._takers_of, wake=self._wake
        )

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._handle, workers=WORKERS),)

    # -- who needs a look -----------------------------------------------------------------------------------------

    def _queue_now(self, owner: R) -> None:
        self._queue.add(_key(owner))

    def _changed(self, old: R, new: R) -> None:
        if new.metadata.uid != old.metadata.uid:
            self._gone(old)
        elif (
            new.metadata.generation == old.metadata.generation and new.metadata.labels == old.metadata.labels
        ):
            # Most likely the status this controller wrote itself.
            self._wake(_key(new), False)
            return
        self._queue_now(new)

    def _gone(self, owner: R) -> None:
        key = _key(owner)
        self._expectations.forget(key)
        self._creation_backoff.forget(key)
        self._replacement_backoff.forget(key)
        self._queue.add(key)

    def _key_of(self, namespace: str, reference: OwnerReference) -> str | None:
        if reference.kind != self._ref_manager.kind.name:
            return None
        owner = self._owners.informer.get(reference.name, namespace)
        return _key(owner) if owner is not None and owner.metadata.uid == reference.uid else None

    def _takers_of(self, orphan: Pod) -> Iterable[str]:
        for owner in self._in_namespace[orphan.metadata.namespace]:
            selector = selector_of(owner)
            if selector is not None and selector.requirements and selector.matches(orphan.metadata.labels):
                yield _key(owner)

    def _wake(self, key: str, is_urgent: bool) -> None:
        owner = self._owners.informer.by_key(key)
        if is_urgent or owner is None:
            self._queue.add(key)
        else:
            self._queue.add_after(key, settle_seconds(owner.spec.replicas or 0))

    # -- a look ---------------------------------------------------------------------------------------------------

    async def _handle(self, key: str) -> float | None:
        owner = self._owners.informer.by_key(key)
        selector = selector_of(owner) if owner is not None else None
        if owner is None or selector is None:
            return None
        # Asked before the pods are: what is seen to happen from here on is not in the list.
        waiting = self._expectations.seconds_left(key)
        own = self._pods.controlled_by(owner.metadata.uid)
        orphans = self._pods.orphans(owner.metadata.namespace)
        candidates = filter(is_active, chain(own, orphans))
        active = await self._ref_manager.claim(owner, selector, candidates)
        failed_soon = self._replacement_backoff.observe(key, owner.metadata, own)
        resting = self._replacement_backoff.seconds_left(key)
        if failed_soon:
            self._recorder.event(
                owner, WARNING, "BackOff", _back_off(self._replacement_backoff.failures(key), resting)
            )
        held = patient = self._creation_backoff.seconds_left(key, owner.metadata)
        error: ApiError | WorldError | None = None
        if owner.metadata.deletion_timestamp is None and not waiting and not held:
            error = await self._manage(key, owner, active)
            if error is not None:
                patient = self._creation_backoff.refused(key, owner.metadata)
                _log.warning("%s %s: %s", self._ref_manager.kind.name, key, error)
            else:
                self._creation_backoff.forget(key)
        now_ns = self._clock.now_ns()
        terminating = sum(map(is_terminating, own)) if self._tells_terminating else None
        failure = None if error is None else str(error)
        status = status_of(owner, active, terminating, failure, now_ns)
        if held:
            # Nothing was tried this time: what the last try found still holds.
            status.conditions = owner.status.conditions
        if status != owner.status:
            await write_status(self._client, owner, status)
        next_check = next_available_seconds(active, owner.spec.min_ready_seconds, now_ns)
        # What was just made or deleted is waited for as well: its end wakes this key, or the time limit does.
        waiting = self._expectations.seconds_left(key)
        return min((wait for wait in (waiting, patient, next_check, resting) if wait), default=None)

    async def _manage(self, key: str, owner: R, active: Sequence[Pod]) -> ApiError | WorldError | None:
        """Make what is missing, delete what is too much; what went wrong."""
        difference = len(active) - (owner.spec.replicas or 0)
        if difference < 0 and not self._replacement_backoff.seconds_left(key):
            return await self._create(key, owner, min(-difference, BURST))
        if difference > 0:
            return await self._delete(key, owner, active, min(difference, BURST))
        return None

    async def _create(self, key: str, owner: R, count: int) -> ApiError | WorldError | None:
        template = owner.spec.template
        if template is None:
            return None
        pod = pod_from_template(template, owner, controller_reference(owner, self._ref_manager.kind))
        self._expectations.expect(key, creations=count)
        outcome = await in_growing_batches(count, lambda: self._control.create(owner, pod))
        if outcome.done < count:
            self._expectations.creation_seen(key, count - outcome.done)
        if isinstance(outcome.error, ApiError) and refused_for_namespace(outcome.error):
            # Nothing can be made there any more, and soon nothing needs to be.
            return None
        return outcome.error

    async def _delete(
        self, key: str, owner: R, active: Sequence[Pod], count: int
    ) -> ApiError | WorldError | None:
        related = self._family(owner)
        doomed = first_to_delete(active, count, related, self._clock.now_ns(), heeds_cost=self._heeds_cost)
        self._expectations.expect(key, deletions=(pod.metadata.uid for pod in doomed))
        return await delete_expected(
            self._expectations, key, doomed, lambda pod: self._control.delete(owner, pod)
        )

    def _family(self, owner: R) -> Iterable[Pod]:
        """Return the pods of this owner and of those with the same controller: what should be spread over nodes."""
        reference = controller_of(owner)
        siblings = [owner] if reference is None else self._owners.controlled_by(reference.uid)
        for sibling in siblings:
            yield from self._pods.controlled_by(sibling.metadata.uid)


def _back_off(failures: int, seconds: float) -> str:
    times = "once" if failures == 1 else f"{failures} times in a row"
    return f"Pods failed right after they were created, {times}; the next ones are created in {seconds:.0f}s"


def _key(owner: ReplicaSet | ReplicationController) -> str:
    return f"{owner.metadata.namespace}/{owner.metadata.name}"

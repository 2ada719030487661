"""The stateful set controller: looks at a set and its pods, takes the next step, writes the status.

Keys are "namespace/name".

What must stay true: nothing is made or deleted while an earlier request has not been seen to happen; a template that is
refused is tried again later and later, with one event and one condition.

Run by `controllers.runner`; calls `identity`, `plan`, `pod_control` and `status`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

from nodeward.api.apps_v1 import StatefulSet
from nodeward.api.core_v1.pod import Pod, PodTemplateSpec
from nodeward.api.errors import ApiError
from nodeward.base.errors import WorldError
from nodeward.controllers.active_namespaces import refused_for_namespace
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.controller_revisions import (
    RevisionHistory,
    Revisions,
    by_number,
    forgettable,
    template_of,
)
from nodeward.controllers.pods.controller_ref_manager import ControllerRefManager, controller_reference
from nodeward.controllers.pods.deleting import delete_expected
from nodeward.controllers.pods.owners import OwnerQueue
from nodeward.controllers.pods.slow_start import in_growing_batches
from nodeward.controllers.pods.state import next_available_seconds
from nodeward.controllers.pods.status_writing import write_status
from nodeward.controllers.statefulset.identity import new_pod, ordinal_of, ordinals, revision_of
from nodeward.controllers.statefulset.plan import StatefulSetPlan, StatefulSetState, next_steps, revision_for
from nodeward.controllers.statefulset.pod_control import ClaimTerminating, StatefulPodControl
from nodeward.controllers.statefulset.status import status_of
from nodeward.machinery.recorder import WARNING
from nodeward.rules.selectors import from_label_selector

_log: Final = logging.getLogger(__name__)

#: How many pods are made, and how many deleted, at most before the informer has to confirm.
BURST: Final = 500
WORKERS: Final = 5
#: How often to see whether a claim is gone.
CLAIM_SECONDS: Final = 1.0
_REVISION_HASH: Final = "controller.kubernetes.io/hash"
_UNAVAILABLE_GATE: Final = "MaxUnavailableStatefulSet"


class StatefulSetController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder
        self._heeds_unavailable = context.gates.enabled(_UNAVAILABLE_GATE)
        self._ref_manager = ControllerRefManager(context.client, StatefulSet, Pod)
        self._revisions = Revisions(context, StatefulSet, _REVISION_HASH)
        self._writes = StatefulPodControl(context)
        self._owners = OwnerQueue(
            context,
            StatefulSet,
            "statefulset",
            selector_of=lambda owner: from_label_selector(owner.spec.selector),
            size_of=lambda owner: owner.spec.replicas or 0,
        )
        self._expectations = self._owners.expectations
        self._creation_backoff = self._owners.creation_backoff

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._owners.queue, self._handle, workers=WORKERS),)

    async def _handle(self, key: str) -> float | None:
        owner = self._owners.owners.by_key(key)
        selector = from_label_selector(owner.spec.selector) if owner is not None else None
        if owner is None or selector is None:
            return None
        # Asked before the pods are: what is seen to happen from here on is not in the list.
        waiting = self._expectations.seconds_left(key)
        try:
            history = await self._revisions.read(owner, selector)
        except ApiError as error:
            if refused_for_namespace(error):
                return None
            raise
        pods = await self._ref_manager.claim(
            owner, selector, self._owners.candidates(owner), lambda pod: ordinal_of(owner, pod) is not None
        )
        state = self._state(owner, pods, history)
        wait, failure = 0.0, ""
        if not waiting and owner.metadata.deletion_timestamp is None:
            wait, failure = await self._act(key, state, history)
        status = status_of(state, history.collision_count, failure or None)
        if waiting or (wait and not failure):
            # Nothing was tried this time: what the last try found still holds.
            status.conditions = owner.status.conditions
        if status != owner.status:
            await write_status(self._client, owner, status)
        await self._forget_old(owner, state, history, pods)
        next_check = next_available_seconds(pods, owner.spec.min_ready_seconds, state.now_ns)
        # What was just made or deleted is waited for as well: its end wakes this key, or the time limit does.
        open_for = self._expectations.seconds_left(key)
        return min((each for each in (open_for, wait, next_check) if each), default=None)

    def _state(self, owner: StatefulSet, pods: Sequence[Pod], history: RevisionHistory) -> StatefulSetState:
        places = ordinals(owner)
        by_place = {ordinal: pod for pod in pods if (ordinal := ordinal_of(owner, pod)) is not None}
        names = [each.metadata.name for each in (*history.old, *history.doubles)]
        update, before = history.current.metadata.name, owner.status.current_revision
        return StatefulSetState(
            owner=owner,
            pods={ordinal: by_place[ordinal] for ordinal in sorted(by_place) if ordinal in places},
            condemned=[
                by_place[ordinal] for ordinal in sorted(by_place, reverse=True) if ordinal not in places
            ],
            update=update,
            current=before if before in names else update,
            now_ns=self._clock.now_ns(),
            heeds_unavailable=self._heeds_unavailable,
        )

    async def _act(self, key: str, state: StatefulSetState, history: RevisionHistory) -> tuple[float, str]:
        """Take the next step. How long to wait before the next try, and what was refused."""
        owner = state.owner
        if owner.spec.update_strategy.type == "Recreate":
            text = f"StatefulSet {key} uses the Recreate strategy, which this controller does not know"
            self._recorder.event(owner, WARNING, "UnknownStrategy", text)
            return 0.0, ""
        plan = next_steps(state)
        held = self._creation_backoff.seconds_left(key, owner.metadata)
        if held:
            plan.create = []
        try:
            for pod in plan.keep_claims:
                await self._writes.look_after(owner, pod)
            error = await self._carry_out(key, state, plan, history)
        except (ApiError, WorldError) as raised:
            error = raised
        if isinstance(error, ClaimTerminating):
            # Nobody is to blame: it only takes a while.
            return CLAIM_SECONDS, ""
        if error is not None and not (isinstance(error, ApiError) and refused_for_namespace(error)):
            _log.warning("StatefulSet %s: %s", key, error)
            return self._creation_backoff.refused(key, owner.metadata), str(error)
        if held:
            return held, ""
        self._creation_backoff.forget(key)
        return 0.0, ""

    async def _carry_out(
        self, key: str, state: StatefulSetState, plan: StatefulSetPlan, history: RevisionHistory
    ) -> ApiError | WorldError | None:
        places, doomed = plan.create[:BURST], plan.delete[:BURST]
        if not places and not doomed:
            return None
        self._expectations.expect(key, creations=len(places), deletions=(pod.metadata.uid for pod in doomed))
        error = await self._create(key, state, places, history)
        return await self._delete(key, state.owner, doomed) or error

    async def _create(
        self, key: str, state: StatefulSetState, places: Sequence[int], history: RevisionHistory
    ) -> ApiError | WorldError | None:
        owner = state.owner
        reference = controller_reference(owner, self._ref_manager.kind)
        waiting = iter(places)

        async def create() -> None:
            ordinal = next(waiting)
            revision = revision_for(state, ordinal)
            template = self._template(owner, history, revision)
            pod = new_pod(owner, template, revision, ordinal, reference)
            if not await self._writes.create(owner, pod):
                self._expectations.creation_seen(key)

        outcome = await in_growing_batches(len(places), create)
        if outcome.done < len(places):
            self._expectations.creation_seen(key, len(places) - outcome.done)
        return outcome.error

    def _template(self, owner: StatefulSet, history: RevisionHistory, revision: str) -> PodTemplateSpec:
        for each in (*history.old, *history.doubles):
            if each.metadata.name == revision:
                return template_of(each) or owner.spec.template
        return owner.spec.template

    async def _delete(
        self, key: str, owner: StatefulSet, doomed: Sequence[Pod]
    ) -> ApiError | WorldError | None:
        return await delete_expected(
            self._expectations, key, doomed, lambda pod: self._writes.delete(owner, pod)
        )

    async def _forget_old(
        self, owner: StatefulSet, state: StatefulSetState, history: RevisionHistory, pods: Sequence[Pod]
    ) -> None:
        in_use = frozenset((state.current, state.update, *map(revision_of, pods)))
        old = by_number((*history.old, *history.doubles))
        await self._revisions.forget(forgettable(old, owner.spec.revision_history_limit, in_use))

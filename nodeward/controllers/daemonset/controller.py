"""The daemon set controller: looks at the nodes and at the pods of a daemon set, takes one step, writes the status.

Keys are "namespace/name". A look goes over all nodes once; a node wakes a daemon set only if it now means something
else to it, so that heartbeats cost a comparison.

What must stay true: nothing is made or deleted while an earlier request has not been seen to happen; a template that is
refused is tried again later and later, with one event and one condition, while pods that must go still go.

Run by `controllers.runner`; calls `failed_pods`, `placement`, `plan` and `status`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from nodeward.api.apps_v1 import DaemonSet
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.errors import ApiError
from nodeward.api.meta import LabelSelector
from nodeward.base.errors import WorldError
from nodeward.controllers.active_namespaces import refused_for_namespace
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.controller_revisions import HASH_LABEL, RevisionHistory, Revisions, forgettable
from nodeward.controllers.daemonset.failed_pods import FailedPods
from nodeward.controllers.daemonset.placement import Placement, pinned, target_of
from nodeward.controllers.daemonset.plan import DaemonSetPlan, DaemonSetState, repairs, rolling_step
from nodeward.controllers.daemonset.status import status_of
from nodeward.controllers.pods.control import PodControl, pod_from_template
from nodeward.controllers.pods.controller_ref_manager import ControllerRefManager, controller_reference
from nodeward.controllers.pods.deleting import delete_expected
from nodeward.controllers.pods.owners import OwnerQueue, key_of
from nodeward.controllers.pods.slow_start import in_growing_batches
from nodeward.controllers.pods.state import next_available_seconds
from nodeward.controllers.pods.status_writing import write_status
from nodeward.machinery.recorder import NORMAL, WARNING
from nodeward.rules.selectors import from_label_selector

_log: Final = logging.getLogger(__name__)

#: How many pods are made, and how many deleted, at most before the informer has to confirm.
BURST: Final = 250
WORKERS: Final = 2
_NUMERIC_GATE: Final = "TaintTolerationComparisonOperators"


class DaemonSetController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder
        self._numeric = context.gates.enabled(_NUMERIC_GATE)
        self._control = PodControl(context.client, context.recorder)
        self._ref_manager = ControllerRefManager(context.client, DaemonSet, Pod)
        self._revisions = Revisions(context, DaemonSet, HASH_LABEL)
        self._failed = FailedPods(context.clock)
        #: By uid, with the generation they are of.
        self._placements: dict[str, tuple[int, Placement]] = {}
        self._owners = OwnerQueue(
            context,
            DaemonSet,
            "daemonset",
            selector_of=lambda owner: from_label_selector(owner.spec.selector),
            size_of=lambda owner: owner.status.desired_number_scheduled,
            forget=self._forget,
        )
        self._expectations = self._owners.expectations
        self._creation_backoff = self._owners.creation_backoff
        self._nodes = context.informers.informer(Node)
        self._nodes.add_handler(self._node_seen, self._node_changed, self._node_seen)

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._owners.queue, self._handle, workers=WORKERS),)

    # -- who needs a look -----------------------------------------------------------------------------------------

    def _node_seen(self, node: Node) -> None:
        for owner in self._owners.owners.list():
            if self._placement(owner).on(node).may_stay:
                self._owners.wake(key_of(owner))

    def _node_changed(self, old: Node, new: Node) -> None:
        if old.spec.taints == new.spec.taints and old.metadata.labels == new.metadata.labels:
            return
        for owner in self._owners.owners.list():
            placement = self._placement(owner)
            if placement.on(old) != placement.on(new):
                self._owners.wake(key_of(owner))

    def _placement(self, owner: DaemonSet) -> Placement:
        meta = owner.metadata
        known = self._placements.get(meta.uid)
        if known is None or known[0] != meta.generation:
            known = (meta.generation, Placement(owner.spec.template, numeric=self._numeric))
            self._placements[meta.uid] = known
        return known[1]

    def _forget(self, owner: DaemonSet) -> None:
        self._placements.pop(owner.metadata.uid, None)
        self._failed.forget(owner.metadata.uid)

    # -- a look ---------------------------------------------------------------------------------------------------

    async def _handle(self, key: str) -> float | None:
        owner = self._owners.owners.by_key(key)
        if owner is None or owner.metadata.deletion_timestamp is not None:
            # What is being deleted may have lost part of its history: its status could not be told.
            return None
        selector = from_label_selector(owner.spec.selector)
        if selector is None or owner.spec.selector == LabelSelector():
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self._recorder.event(owner, WARNING, "SelectingAll", text)
            return None
        # Asked before the pods are: what is seen to happen from here on is not in the list.
        waiting = self._expectations.seconds_left(key)
        try:
            history = await self._revisions.read(owner, selector)
        except ApiError as error:
            if refused_for_namespace(error):
                return None
            raise
        pods = await self._ref_manager.claim(owner, selector, self._owners.candidates(owner))
        await self._drop_doubles(history, pods)
        state = self._state(owner, pods, self._revisions.hash_of(history.current))
        wait, failure = (None, None) if waiting else await self._act(key, state)
        status = status_of(state, history.collision_count, failure or None, has_acted=not waiting)
        if waiting or failure == "":
            # Nothing was tried this time: what the last try found still holds.
            status.conditions = owner.status.conditions
        if status != owner.status:
            await write_status(self._client, owner, status)
        if not waiting:
            await self._drop_old(owner, history, pods)
        next_check = next_available_seconds(pods, owner.spec.min_ready_seconds, state.now_ns)
        # What was just made or deleted is waited for as well: its end wakes this key, or the time limit does.
        open_for = self._expectations.seconds_left(key)
        return min((each for each in (open_for, wait, next_check) if each), default=None)

    def _state(self, owner: DaemonSet, pods: Sequence[Pod], hash_: str) -> DaemonSetState:
        placement = self._placement(owner)
        eligibility = {node.metadata.name: placement.on(node) for node in self._nodes.list()}
        by_node: dict[str, list[Pod]] = {}
        for pod in pods:
            if is_terminal(pod) and pod.metadata.deletion_timestamp is not None:
                continue
            target = target_of(pod)
            if target is not None:
                by_node.setdefault(target, []).append(pod)
        return DaemonSetState(owner, eligibility, by_node, hash_, self._clock.now_ns())

    async def _act(self, key: str, state: DaemonSetState) -> tuple[float | None, str | None]:
        """Carry out the next step; return when to look again, and what went wrong (empty: waiting for a retry)."""
        owner = state.owner
        plan = repairs(state)
        if plan.is_empty:
            plan = rolling_step(state)
        wait = self._delete_over(owner, plan)
        held = self._creation_backoff.seconds_left(key, owner.metadata) if plan.create else 0.0
        if held:
            plan.create = []
        error = await self._carry_out(key, state, plan)
        if error is not None:
            held = self._creation_backoff.refused(key, owner.metadata)
            _log.warning("DaemonSet %s: %s", key, error)
        elif not held:
            self._creation_backoff.forget(key)
        failure = str(error) if error is not None else "" if held else None
        return min((each for each in (wait, held) if each), default=None), failure

    def _delete_over(self, owner: DaemonSet, plan: DaemonSetPlan) -> float | None:
        """Delete pods that have ended, failed ones with growing pauses; return the seconds until the next."""
        waits: list[float] = []
        for node, pod in plan.over:
            name = f"{pod.metadata.namespace}/{pod.metadata.name}"
            if pod.status.phase == "Succeeded":
                text = f"Found succeeded daemon pod {name} on node {node}, will try to delete it"
                self._recorder.event(owner, NORMAL, "SucceededDaemonPod", text)
            elif left := self._failed.seconds_left(owner.metadata, node):
                waits.append(left)
                continue
            else:
                self._failed.deleted(owner.metadata, node)
                text = f"Found failed daemon pod {name} on node {node}, will try to kill it"
                self._recorder.event(owner, WARNING, "FailedDaemonPod", text)
            plan.delete.append(pod)
        return min(waits, default=None)

    # -- pods -----------------------------------------------------------------------------------------------------

    async def _carry_out(
        self, key: str, state: DaemonSetState, plan: DaemonSetPlan
    ) -> ApiError | WorldError | None:
        nodes, doomed = plan.create[:BURST], plan.delete[:BURST]
        if not nodes and not doomed:
            return None
        self._expectations.expect(key, creations=len(nodes), deletions=(pod.metadata.uid for pod in doomed))
        error = await self._create(key, state, nodes)
        deleted = await self._delete(key, state.owner, doomed)
        return error or deleted

    async def _create(
        self, key: str, state: DaemonSetState, nodes: Sequence[str]
    ) -> ApiError | WorldError | None:
        owner = state.owner
        template = owner.spec.template
        pod = pod_from_template(template, owner, controller_reference(owner, self._ref_manager.kind))
        pod.metadata.labels[HASH_LABEL] = state.hash
        waiting = iter(nodes)

        async def create() -> None:
            spec = pinned(template.spec, next(waiting))
            await self._control.create(owner, msgspec.structs.replace(pod, spec=spec))

        outcome = await in_growing_batches(len(nodes), create)
        if outcome.done < len(nodes):
            self._expectations.creation_seen(key, len(nodes) - outcome.done)
        if isinstance(outcome.error, ApiError) and refused_for_namespace(outcome.error):
            # Nothing can be made there any more, and soon nothing needs to be.
            return None
        return outcome.error

    async def _delete(
        self, key: str, owner: DaemonSet, doomed: Sequence[Pod]
    ) -> ApiError | WorldError | None:
        return await delete_expected(
            self._expectations, key, doomed, lambda pod: self._control.delete(owner, pod)
        )

    # -- history --------------------------------------------------------------------------------------------------

    async def _drop_doubles(self, history: RevisionHistory, pods: Sequence[Pod]) -> None:
        """Relabel pods of a duplicate revision of the current template, then delete that revision."""
        if not history.doubles:
            return
        doubled = [self._revisions.hash_of(each) for each in history.doubles]
        hash_ = self._revisions.hash_of(history.current)
        for pod in pods:
            if pod.metadata.labels.get(HASH_LABEL) in doubled:
                await self._control.patch(pod, {"metadata": {"labels": {HASH_LABEL: hash_}}})
        await self._revisions.forget(history.doubles)

    async def _drop_old(self, owner: DaemonSet, history: RevisionHistory, pods: Sequence[Pod]) -> None:
        hashes = frozenset(pod.metadata.labels.get(HASH_LABEL) for pod in pods)
        in_use = [each.metadata.name for each in history.old if self._revisions.hash_of(each) in hashes]
        await self._revisions.forget(forgettable(history.old, owner.spec.revision_history_limit, in_use))

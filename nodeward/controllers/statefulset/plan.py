"""What to do next for a stateful set. Pure.

`OrderedReady`: one thing at a time, each only when every pod before it serves; pods come in the order of their
ordinals and go in the other. `Parallel`: everything at once, but replacing pods for an update keeps to
`maxUnavailable`. First comes what is missing or broken, then what is too much, then the update.

What must stay true: there is never a second pod of a place; an update goes from the highest ordinal down to the
partition; a set whose pods do not serve is not updated further (so a broken update stays where it is, also after the
template is put back, until its pod is deleted by hand).

Called by `controller` and `status`; calls `identity`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nodeward.api.apps_v1 import StatefulSet
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.controllers.pods.state import is_available, is_ready
from nodeward.controllers.statefulset.identity import ordinal_of, ordinals, revision_of
from nodeward.rules.int_or_percent import scaled

ROLLING: Final = "RollingUpdate"


@dataclass(frozen=True, slots=True)
class StatefulSetState:
    """A stateful set and its pods, as observed at one moment."""

    owner: StatefulSet
    #: By place, of the places there should be.
    pods: Mapping[int, Pod]
    #: In places there should not be, highest first.
    condemned: Sequence[Pod]
    #: The names of the revisions: what pods are updated to, and what they were of before.
    update: str
    current: str
    now_ns: int
    #: Whether `maxUnavailable` counts (a feature gate).
    heeds_unavailable: bool = True

    @property
    def is_ordered(self) -> bool:
        return self.owner.spec.pod_management_policy != "Parallel"

    def serves(self, pod: Pod) -> bool:
        """Tell whether the pod is running and available."""
        is_up = pod.status.phase == "Running" and is_ready(pod)
        return is_up and is_available(pod, self.owner.spec.min_ready_seconds, self.now_ns)

    def is_unavailable(self, pod: Pod | None) -> bool:
        return pod is None or pod.metadata.deletion_timestamp is not None or not self.serves(pod)


@dataclass(slots=True)
class StatefulSetPlan:
    #: Places to make pods in.
    create: list[int] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    #: Pods whose claims should be looked after.
    keep_claims: list[Pod] = field(default_factory=list)


def next_steps(state: StatefulSetState) -> StatefulSetPlan:
    plan = StatefulSetPlan()
    if not _fill(state, plan) or not _shrink(state, plan):
        return plan
    if state.owner.spec.update_strategy.type in ("", ROLLING):
        plan.delete += _to_update(state)
    return plan


def revision_for(state: StatefulSetState, ordinal: int) -> str:
    """Return the revision for a new pod with this ordinal."""
    strategy = state.owner.spec.update_strategy
    if strategy.type not in ("", ROLLING):
        return state.update
    rolling = strategy.rolling_update
    old = state.owner.status.current_replicas if rolling is None else rolling.partition or 0
    return state.current if ordinal < ordinals(state.owner).start + old else state.update


def _fill(state: StatefulSetState, plan: StatefulSetPlan) -> bool:
    """Plan missing pods and replacements of ended ones. False: wait before doing more."""
    for ordinal in ordinals(state.owner):
        pod = state.pods.get(ordinal)
        if pod is None:
            plan.create.append(ordinal)
        elif is_terminal(pod):
            # Whatever its end was: its place is to be taken by another.
            if pod.metadata.deletion_timestamp is None:
                plan.delete.append(pod)
        else:
            if pod.metadata.deletion_timestamp is None:
                plan.keep_claims.append(pod)
            if not state.is_unavailable(pod):
                continue
        if state.is_ordered:
            return False
    return True


def _shrink(state: StatefulSetState, plan: StatefulSetPlan) -> bool:
    """Plan deletions of pods beyond the wanted ordinals. False: wait before doing more."""
    plan.keep_claims += state.condemned
    idle = [pod for pod in state.pods.values() if state.is_unavailable(pod)]
    idle += [pod for pod in reversed(state.condemned) if state.is_unavailable(pod)]
    first_idle = idle[0].metadata.uid if idle else ""
    for pod in state.condemned:
        if pod.metadata.deletion_timestamp is None:
            if state.is_ordered and not state.serves(pod) and pod.metadata.uid != first_idle:
                return False
            plan.delete.append(pod)
        if state.is_ordered:
            return False
    return True


def _to_update(state: StatefulSetState) -> list[Pod]:
    """Return pods of another revision to delete now, so that new ones replace them."""
    places = ordinals(state.owner)
    rolling = state.owner.spec.update_strategy.rolling_update
    first = places.start + ((rolling.partition or 0) if rolling is not None else 0)
    unavailable = sum(state.is_unavailable(state.pods.get(ordinal)) for ordinal in places)
    budget = _max_unavailable(state) - unavailable
    old = [
        pod
        for ordinal in reversed(range(max(first, places.start), places.stop))
        if (pod := state.pods.get(ordinal)) is not None
        and pod.metadata.deletion_timestamp is None
        and not is_terminal(pod)
        and revision_of(pod) != state.update
    ]
    if not state.heeds_unavailable:
        return _one_by_one(state, old)
    if state.is_ordered:
        return old[: max(0, budget)]
    # Those that do not serve cost nothing.
    idle = [pod for pod in old if not state.serves(pod)]
    serving = [pod for pod in old if state.serves(pod)]
    return [*idle, *serving[: max(0, budget)]]


def _one_by_one(state: StatefulSetState, old: Sequence[Pod]) -> list[Pod]:
    """Return the highest of the old ones, once everything above it serves."""
    if not old:
        return []
    above = [pod for ordinal, pod in state.pods.items() if ordinal > (ordinal_of(state.owner, old[0]) or 0)]
    return [] if any(map(state.is_unavailable, above)) else [old[0]]


def _max_unavailable(state: StatefulSetState) -> int:
    rolling = state.owner.spec.update_strategy.rolling_update
    if not state.heeds_unavailable or rolling is None or rolling.max_unavailable is None:
        return 1
    return max(1, scaled(rolling.max_unavailable, state.owner.spec.replicas or 0, round_up=False))

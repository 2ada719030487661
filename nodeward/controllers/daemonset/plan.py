"""What to make and what to delete next for a daemon set. Pure.

In go the nodes with their eligibility, and the daemon set's pods by node; out comes a `DaemonSetPlan`. First comes what
is plainly wrong (`repairs`: missing pods, pods that have ended, too many); only when nothing is, the next step of a
rolling update (`rolling_step`).

What must stay true: without surge there is never a second pod on a node, not even beside one that is going; old pods
that serve are deleted only while fewer than `maxUnavailable` nodes are without; with surge an old pod that serves goes
only when its heir serves, and at most `maxSurge` heirs are on their way.

Called by `controller` and `status`; calls `placement`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nodeward.api.apps_v1 import DaemonSet
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.controllers.controller_revisions import HASH_LABEL
from nodeward.controllers.daemonset.placement import NodeEligibility
from nodeward.controllers.pods.state import is_active, is_available, is_ready
from nodeward.rules.int_or_percent import scaled

ROLLING: Final = "RollingUpdate"


@dataclass(slots=True)
class DaemonSetPlan:
    #: The nodes to make a pod for.
    create: list[str] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    #: Pods that are over, with the nodes they were on: their deletion is told, and for failures it has to wait.
    over: list[tuple[str, Pod]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.create and not self.delete and not self.over


@dataclass(frozen=True, slots=True)
class DaemonSetState:
    """A daemon set, its nodes' eligibility and its pods, as observed at one moment."""

    owner: DaemonSet
    #: Of every node there is.
    eligibility: Mapping[str, NodeEligibility]
    #: By the node they are on or meant for; without those that are over and going.
    pods: Mapping[str, Sequence[Pod]]
    #: Of the current template.
    hash: str
    now_ns: int

    def is_new(self, pod: Pod) -> bool:
        return pod.metadata.labels.get(HASH_LABEL) == self.hash

    def serves(self, pod: Pod) -> bool:
        return is_available(pod, self.owner.spec.min_ready_seconds, self.now_ns)

    def wanted(self) -> int:
        return sum(eligible.should_run for eligible in self.eligibility.values())


def age(pod: Pod) -> tuple[bool, str, str]:
    """Return a sort key: those on a node first, then the oldest."""
    return (not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name)


def max_surge(owner: DaemonSet, wanted: int) -> int:
    rolling = owner.spec.update_strategy.rolling_update
    if owner.spec.update_strategy.type != ROLLING or rolling is None:
        return 0
    return scaled(rolling.max_surge, wanted, round_up=True)


def max_unavailable(owner: DaemonSet, wanted: int) -> int:
    """Return `maxUnavailable` in pods: at least one unless there is surge, or no update could ever begin."""
    rolling = owner.spec.update_strategy.rolling_update
    if owner.spec.update_strategy.type != ROLLING or rolling is None:
        return 0
    allowed = scaled(rolling.max_unavailable, wanted, round_up=True)
    return allowed if allowed or max_surge(owner, wanted) else 1


def repairs(state: DaemonSetState) -> DaemonSetPlan:
    plan = DaemonSetPlan()
    surges = max_surge(state.owner, 1) > 0
    for node, eligible in state.eligibility.items():
        pods = state.pods.get(node)
        if not pods:
            if eligible.should_run:
                plan.create.append(node)
        elif eligible.may_stay:
            if len(pods) == 1 and is_active(pods[0]):
                continue
            staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
            plan.over += [(node, pod) for pod in staying if is_terminal(pod)]
            running = sorted((pod for pod in staying if not is_terminal(pod)), key=age)
            if not surges:
                plan.delete += running[1:]
            elif running:
                plan.delete += _beyond_surge(state, running)
            elif eligible.should_run:
                plan.create.append(node)
        else:
            plan.delete += [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    for node, pods in state.pods.items():
        if node not in state.eligibility:
            # Their node is gone: the scheduler will never place them, and nobody else deletes them.
            plan.delete += [
                pod for pod in pods if not pod.spec.node_name and pod.metadata.deletion_timestamp is None
            ]
    return plan


def _beyond_surge(state: DaemonSetState, running: Sequence[Pod]) -> list[Pod]:
    """Return all but the oldest of each template; and the old one too, if it is not ready or its heir serves."""
    new = [pod for pod in running if state.is_new(pod)]
    old = [pod for pod in running if not state.is_new(pod)]
    excess = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or state.serves(new[0])):
        excess.append(old[0])
    return excess


def rolling_step(state: DaemonSetState) -> DaemonSetPlan:
    """Return the next pods to replace; nothing unless the strategy is to roll."""
    if state.owner.spec.update_strategy.type != ROLLING:
        return DaemonSetPlan()
    wanted = state.wanted()
    surge = max_surge(state.owner, wanted)
    if surge:
        return _surge(state, surge, wanted)
    return _replace(state, max_unavailable(state.owner, wanted))


def _by_node(state: DaemonSetState) -> Iterator[tuple[str, list[Pod], list[Pod]]]:
    """Yield each node that has or should have pods, with its new and old pods, without terminating ones."""
    wanting = [node for node, eligible in state.eligibility.items() if eligible.should_run]
    for node in dict.fromkeys([*state.pods, *wanting]):
        staying = [pod for pod in state.pods.get(node, ()) if pod.metadata.deletion_timestamp is None]
        new = [pod for pod in staying if state.is_new(pod)]
        yield node, new, [pod for pod in staying if not state.is_new(pod)]


def _replace(state: DaemonSetState, allowed: int) -> DaemonSetPlan:
    idle: list[Pod] = []
    serving: list[Pod] = []
    unavailable = 0
    for _, new, old in _by_node(state):
        if len(new) + len(old) != 1:
            # None, or more than one, of which some are about to go.
            unavailable += 1
        elif new:
            unavailable += not state.serves(new[0])
        elif state.serves(old[0]):
            serving += old
        else:
            # It serves nobody: replacing it costs nothing.
            idle += old
            unavailable += 1
    return DaemonSetPlan(delete=[*idle, *serving[: max(0, allowed - unavailable)]])


def _surge(state: DaemonSetState, allowed: int, wanted: int) -> DaemonSetPlan:
    plan = DaemonSetPlan()
    candidates: list[str] = []
    leaving: list[Pod] = []
    surging = available = 0
    for node, new, old in _by_node(state):
        if len(new) > 1 or len(old) > 1:
            surging += 1
            continue
        available += any(state.serves(pod) for pod in old or new)
        if not old:
            continue
        if new:
            if state.serves(new[0]):
                plan.delete += old
            else:
                surging += 1
            continue
        eligible = state.eligibility.get(node)
        if eligible is None:
            # The node is gone, and its pods are going with it.
            continue
        serves = state.serves(old[0])
        if eligible.should_run:
            (candidates if serves else plan.create).append(node)
        else:
            (leaving if serves else plan.delete).append(old[0])
    # Where a daemon set moves to other nodes, the old ones wait until the new ones serve.
    plan.delete += leaving[: max(0, available - wanted)]
    plan.create += candidates[: max(0, allowed - surging)]
    return plan

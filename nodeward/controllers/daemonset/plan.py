"""What to make and what to delete next for a daemon set. Pure.

In go the nodes with what the daemon set has to do with them, and its pods by node; out comes a `Plan`. First comes what
is plainly wrong (`repairs`: missing pods, pods that are over, too many); only when nothing is, the next step of a
rolling update (`rolling_step`).

What must stay true: without surge there is never a second pod on a node, not even beside one that is going; old pods
that serve are deleted only while fewer than `maxUnavailable` nodes are without; with surge an old pod that serves goes
only when its heir serves, and at most `maxSurge` heirs are on their way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from nodeward.api.apps_v1 import DaemonSet
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.controllers.daemonset.placement import Verdict
from nodeward.controllers.pods.state import is_active, is_available, is_ready
from nodeward.controllers.revisions import HASH_LABEL
from nodeward.rules.int_or_percent import scaled

ROLLING: Final = "RollingUpdate"


@dataclass(slots=True)
class Plan:
    #: The nodes to make a pod for.
    create: list[str] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    #: Pods that are over, with the nodes they were on: their deletion is told, and for failures it has to wait.
    over: list[tuple[str, Pod]] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.create and not self.delete and not self.over


@dataclass(frozen=True, slots=True)
class Scene:
    """A daemon set as one look finds it."""

    owner: DaemonSet
    #: Of every node there is.
    verdicts: Mapping[str, Verdict]
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
        return sum(verdict.should_run for verdict in self.verdicts.values())


def age(pod: Pod) -> tuple[bool, str, str]:
    """A sort key: those on a node first, then the oldest."""
    return (not pod.spec.node_name, pod.metadata.creation_timestamp or "", pod.metadata.name)


def max_surge(owner: DaemonSet, wanted: int) -> int:
    rolling = owner.spec.update_strategy.rolling_update
    if owner.spec.update_strategy.type != ROLLING or rolling is None:
        return 0
    return scaled(rolling.max_surge, wanted, round_up=True)


def max_unavailable(owner: DaemonSet, wanted: int) -> int:
    """At least one unless there is surge: otherwise nothing could ever move."""
    rolling = owner.spec.update_strategy.rolling_update
    if owner.spec.update_strategy.type != ROLLING or rolling is None:
        return 0
    allowed = scaled(rolling.max_unavailable, wanted, round_up=True)
    return allowed if allowed or max_surge(owner, wanted) else 1


def repairs(scene: Scene) -> Plan:
    plan = Plan()
    surges = max_surge(scene.owner, 1) > 0
    for node, verdict in scene.verdicts.items():
        pods = scene.pods.get(node)
        if not pods:
            if verdict.should_run:
                plan.create.append(node)
        elif verdict.may_stay:
            if len(pods) == 1 and is_active(pods[0]):
                continue
            staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
            plan.over += [(node, pod) for pod in staying if is_terminal(pod)]
            running = sorted((pod for pod in staying if not is_terminal(pod)), key=age)
            if not surges:
                plan.delete += running[1:]
            elif running:
                plan.delete += _beyond_surge(scene, running)
            elif verdict.should_run:
                plan.create.append(node)
        else:
            plan.delete += [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    for node, pods in scene.pods.items():
        if node not in scene.verdicts:
            # Their node is gone: the scheduler will never place them, and nobody else deletes them.
            plan.delete += [
                pod for pod in pods if not pod.spec.node_name and pod.metadata.deletion_timestamp is None
            ]
    return plan


def _beyond_surge(scene: Scene, running: Sequence[Pod]) -> list[Pod]:
    """All but the oldest of each template; and the old one too, if it is not ready or its heir serves."""
    new = [pod for pod in running if scene.is_new(pod)]
    old = [pod for pod in running if not scene.is_new(pod)]
    excess = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or scene.serves(new[0])):
        excess.append(old[0])
    return excess


def rolling_step(scene: Scene) -> Plan:
    """The next pods to replace; nothing unless the strategy is to roll."""
    if scene.owner.spec.update_strategy.type != ROLLING:
        return Plan()
    wanted = scene.wanted()
    surge = max_surge(scene.owner, wanted)
    if surge:
        return _surge(scene, surge, wanted)
    return _replace(scene, max_unavailable(scene.owner, wanted))


def _by_node(scene: Scene) -> Iterator[tuple[str, list[Pod], list[Pod]]]:
    """Every node that has or should have pods, with those of the current template and others, less those going."""
    wanting = [node for node, verdict in scene.verdicts.items() if verdict.should_run]
    for node in dict.fromkeys([*scene.pods, *wanting]):
        staying = [pod for pod in scene.pods.get(node, ()) if pod.metadata.deletion_timestamp is None]
        new = [pod for pod in staying if scene.is_new(pod)]
        yield node, new, [pod for pod in staying if not scene.is_new(pod)]


def _replace(scene: Scene, allowed: int) -> Plan:
    idle: list[Pod] = []
    serving: list[Pod] = []
    unavailable = 0
    for _, new, old in _by_node(scene):
        if len(new) + len(old) != 1:
            # None, or more than one, of which some are about to go.
            unavailable += 1
        elif new:
            unavailable += not scene.serves(new[0])
        elif scene.serves(old[0]):
            serving += old
        else:
            # It serves nobody: replacing it costs nothing.
            idle += old
            unavailable += 1
    return Plan(delete=[*idle, *serving[: max(0, allowed - unavailable)]])


def _surge(scene: Scene, allowed: int, wanted: int) -> Plan:
    plan = Plan()
    candidates: list[str] = []
    leaving: list[Pod] = []
    surging = available = 0
    for node, new, old in _by_node(scene):
        if len(new) > 1 or len(old) > 1:
            surging += 1
            continue
        available += any(scene.serves(pod) for pod in old or new)
        if not old:
            continue
        if new:
            if scene.serves(new[0]):
                plan.delete += old
            else:
                surging += 1
            continue
        verdict = scene.verdicts.get(node)
        if verdict is None:
            # The node is gone, and its pods are going with it.
            continue
        serves = scene.serves(old[0])
        if verdict.should_run:
            (candidates if serves else plan.create).append(node)
        else:
            (leaving if serves else plan.delete).append(old[0])
    # Where a daemon set moves to other nodes, the old ones wait until the new ones serve.
    plan.delete += leaving[: max(0, available - wanted)]
    plan.create += candidates[: max(0, allowed - surging)]
    return plan

"""Is a node open for general pods: its readiness gates against its conditions (KEP-5233).

In go a node's spec and status; out comes the state of each gate, and what follows: may general pods land, which
taints and labels the node should have. A gate holds when its condition is True; it is given up when the condition is
Unknown with reason TimeoutExceeded. Missing, False, and Unknown for any other reason all mean that the node waits. The
timers are in `readiness_timers`.

What must stay true: a gate that is given up with action Taint opens the node only once its taint is on the node. The
condition and the taint are written by two components, one after the other; a node that opened with the first would
take every waiting pod before the second. With BypassWithWarning the node opens at once.

Called by the API server, the scheduler, controllers and the kubelet; calls `taints`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from nodeward.api.core_v1.node import Node, NodeCondition, NodeReadinessGate
from nodeward.api.core_v1.references import Taint
from nodeward.api.meta import ObjectMeta
from nodeward.rules.taints import is_same

TIMEOUT_EXCEEDED: Final = "TimeoutExceeded"
NODE_RESTARTED: Final = "NodeRestarted"
#: On a node: its kubelet runs the timers of its gates, said with the kubelet's version, so that it means nothing any
#: more when an older kubelet takes over. A kubelet that knows of gates and has them switched off says `NOT_TIMED`.
TIMED_BY_ANNOTATION: Final = "kubelet.kubernetes.io/readiness-gates-timed-by"
NOT_TIMED: Final = "none"
#: On a node: what the node lifecycle controller did about its gates. Nodes may not write it: taints in it are removed.
RECORD_ANNOTATION: Final = "node-lifecycle.kubernetes.io/readiness-gates"
TAINT: Final = "Taint"
BYPASS: Final = "BypassWithWarning"
FAILURE_ACTIONS: Final = (TAINT, BYPASS)
#: What the keys of the kubelet's labels start with; the condition type of a gate follows.
LABEL_PREFIX: Final = "readiness-gate."
#: Labels below this domain are for administrators: the admission plugin NodeRestriction refuses them to kubelets.
RESTRICTED_DOMAIN: Final = "node-restriction.kubernetes.io"


def failure_action(gate: NodeReadinessGate) -> str:
    """Return what happens when the gate's time is over: `Taint` unless it says otherwise."""
    return gate.failure_action or TAINT


def is_restricted(domain: str) -> bool:
    """Tell whether labels of this domain are promises about a node that the node itself cannot make."""
    return domain == RESTRICTED_DOMAIN or domain.endswith(f".{RESTRICTED_DOMAIN}")


class GateState(Enum):
    """What a gate says about its node."""

    HOLDS = "holds"
    #: its time is over: its action takes its place, and as soon as that is done the gate counts as satisfied
    GIVEN_UP = "given up"
    WAITS = "waits"


@dataclass(frozen=True, slots=True)
class GateView:
    """One gate as it stands, with what its condition says; `reason` and `message` are empty when there is none."""

    gate: NodeReadinessGate
    state: GateState
    status: str
    reason: str
    message: str

    @property
    def action(self) -> str:
        return failure_action(self.gate)

    def missing_taint(self, taints: Iterable[Taint]) -> Taint | None:
        """Return the taint of a gate that was given up, if the node does not have it yet.

        A taint of the same key and effect that somebody else put there counts: the controller leaves it as it is.
        """
        taint = self.gate.readiness_taint
        if self.state is not GateState.GIVEN_UP or self.action != TAINT or taint is None:
            return None
        return None if any(is_same(taint, each) for each in taints) else taint


@dataclass(frozen=True, slots=True)
class TaintChanges:
    """What must be done to a node's taints."""

    add: tuple[Taint, ...] = ()
    remove: tuple[Taint, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)


@dataclass(frozen=True, slots=True)
class LabelChanges:
    """What must be done to a node's labels."""

    put: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.put or self.remove)

    def without(self, keys: Container[str]) -> LabelChanges:
        """Return the changes that are not about these keys."""
        return LabelChanges(
            tuple(key for key in self.put if key not in keys),
            tuple(key for key in self.remove if key not in keys),
        )

    def patch(self) -> dict[str, str | None]:
        """Return the changes as the `labels` of a merge patch."""
        return {**dict.fromkeys(self.put, "true"), **dict.fromkeys(self.remove)}


def state_of(condition: NodeCondition | None) -> GateState:
    """Return what a condition means for the gate that waits for it."""
    if condition is None:
        return GateState.WAITS
    if condition.status == "True":
        return GateState.HOLDS
    if condition.status == "Unknown" and condition.reason == TIMEOUT_EXCEEDED:
        return GateState.GIVEN_UP
    return GateState.WAITS


def views(gates: Iterable[NodeReadinessGate], conditions: Iterable[NodeCondition]) -> list[GateView]:
    """Return every gate with its state, in the order of the spec."""
    known = {condition.type: condition for condition in conditions}
    found = []
    for gate in gates:
        condition = known.get(gate.condition_type)
        found.append(
            GateView(
                gate,
                state_of(condition),
                condition.status if condition is not None else "",
                condition.reason if condition is not None else "",
                condition.message if condition is not None else "",
            )
        )
    return found


def is_ready(conditions: Iterable[NodeCondition]) -> bool:
    """Tell whether the kubelet says that the node works."""
    return any(condition.type == "Ready" and condition.status == "True" for condition in conditions)


def waiting_for(node: Node) -> list[str]:
    """Return the condition types that keep pods off this node; Ready first, but only on nodes with gates."""
    gates = node.spec.readiness_gates
    if not gates:
        return []
    found = [] if is_ready(node.status.conditions) else ["Ready"]
    return found + [
        view.gate.condition_type
        for view in views(gates, node.status.conditions)
        if view.state is GateState.WAITS or view.missing_taint(node.spec.taints) is not None
    ]


def why_closed(node: Node) -> list[str]:
    """Return what `waiting_for` says, in words: a gate that timed out names the taint the node still lacks."""
    lacking = {
        view.gate.condition_type: taint
        for view in views(node.spec.readiness_gates, node.status.conditions)
        if (taint := view.missing_taint(node.spec.taints)) is not None
    }
    return [
        f"{name} (timed out, waiting for its taint {taint_text(lacking[name])})" if name in lacking else name
        for name in waiting_for(node)
    ]


def taint_text(taint: Taint) -> str:
    """Return a taint as kubectl writes it."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def is_open(node: Node) -> bool:
    """Tell whether the gates let general pods in. A node without gates is as it always was: they do not decide."""
    return not waiting_for(node)


def is_timed_by_kubelet(node: Node) -> bool:
    """Tell whether the node's kubelet runs the timers of its gates; if not, the node lifecycle controller does.

    Where the kubelet says nothing about it, the label of a gate or a condition that only a kubelet writes says it.
    """
    said = node.metadata.annotations.get(TIMED_BY_ANNOTATION)
    if said is not None:
        return said == node.status.node_info.kubelet_version
    types = {gate.condition_type: None for gate in node.spec.readiness_gates}
    return any(LABEL_PREFIX + name in node.metadata.labels for name in types) or any(
        each.type in types and each.reason == NODE_RESTARTED for each in node.status.conditions
    )


def condition_now(
    before: NodeCondition | None, name: str, status: str, reason: str, message: str, now: str
) -> NodeCondition:
    """Return a condition to write; the transition time changes only with the status."""
    kept = before.last_transition_time if before is not None and before.status == status else now
    return NodeCondition(
        type=name,
        status=status,
        last_heartbeat_time=now,
        last_transition_time=kept,
        reason=reason,
        message=message,
    )


def given_up(gate: NodeReadinessGate, before: NodeCondition | None, now: str) -> NodeCondition:
    """Return the condition of a gate whose time is over."""
    message = f"the condition was not True within {gate.timeout_seconds or 0} seconds"
    return condition_now(before, gate.condition_type, "Unknown", TIMEOUT_EXCEEDED, message, now)


def is_exempt(pod: ObjectMeta) -> bool:
    """Tell whether the pod belongs to a DaemonSet: such pods make nodes ready, so they do not wait."""
    return any(
        owner.controller and owner.kind == "DaemonSet" and owner.api_version.startswith("apps/")
        for owner in pod.owner_references
    )


def taint_changes(node: Node, ours: Sequence[Taint] = ()) -> TaintChanges:
    """Return taints to add for gates that timed out, and to remove when their conditions hold after all.

    A gate that fails again after it was given up keeps its taint until it holds. `ours` are the taints that were put
    there for gates: only those are ever taken off. They go when their gate holds, is gone, or has another taint or
    action now. Where somebody else put a taint with the same key and effect, it stays theirs and as it is.
    """
    wanted: list[Taint] = []
    kept: list[Taint] = []
    for view in views(node.spec.readiness_gates, node.status.conditions):
        taint = view.gate.readiness_taint
        if taint is None or view.action != TAINT or view.state is GateState.HOLDS:
            continue
        (wanted if view.state is GateState.GIVEN_UP else kept).append(taint)
    present = node.spec.taints
    remove = [
        taint
        for taint in present
        if any(_is_equal(taint, mine) for mine in ours)
        and not any(_is_equal(taint, keep) for keep in (*wanted, *kept))
    ]
    left = [taint for taint in present if not any(is_same(taint, gone) for gone in remove)]
    add = [taint for taint in wanted if not any(is_same(taint, each) for each in left)]
    return TaintChanges(tuple(_distinct(add)), tuple(remove))


def _is_equal(one: Taint, other: Taint) -> bool:
    return is_same(one, other) and one.value == other.value


def warned(node: Node) -> list[str]:
    """Return the gates that were given up with nothing but a warning."""
    return [
        view.gate.condition_type
        for view in views(node.spec.readiness_gates, node.status.conditions)
        if view.state is GateState.GIVEN_UP and view.action == BYPASS
    ]


def label_changes(gates: Iterable[NodeReadinessGate], labels: Mapping[str, str]) -> LabelChanges:
    """Return changes to the kubelet's labels for gates (value "true"); labels of removed gates are removed."""
    wanted = {LABEL_PREFIX + gate.condition_type: None for gate in gates}
    put = [key for key in wanted if labels.get(key) != "true"]
    remove = [key for key in labels if key.startswith(LABEL_PREFIX) and "/" in key and key not in wanted]
    return LabelChanges(tuple(put), tuple(remove))


def _distinct(taints: Iterable[Taint]) -> list[Taint]:
    found: list[Taint] = []
    for taint in taints:
        if not any(is_same(taint, each) for each in found):
            found.append(taint)
    return found

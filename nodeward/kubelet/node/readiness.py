"""Readiness gates on the node (KEP-5233): timers, reboots, labels, and conditions the kubelet finds out by itself.

A step is given the node as it is stored, what this kubelet says of its own readiness, and results of probes; out come
conditions to write, labels to change and when to look again. Gates count whoever wrote them into the spec.

What must stay true: a condition of a gate without a probe is written only as given up (Unknown, TimeoutExceeded) or
as forgotten by a reboot (Unknown, NodeRestarted); a restart of the kubelet writes nothing; taints are never touched. A
label that is refused is not asked for again in this run.
A gate that is given up while its probe goes on failing stays given up: False would start its time anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from nodeward.api.core_v1.node import Node, NodeCondition, NodeReadinessGate
from nodeward.kubelet.config.settings import GateProbe, ReadinessGateSettings
from nodeward.kubelet.node.gate_probes import GateProber, ProbeOutcome
from nodeward.rules.readiness import (
    NODE_RESTARTED,
    GateState,
    LabelChanges,
    condition_now,
    given_up,
    label_changes,
    state_of,
)
from nodeward.rules.readiness_timers import GateTimerPhase, Timers, advance, unsettled_by_reboot

INITIALIZING: Final = "Initializing"
PROBE_SUCCEEDED: Final = "ProbeSucceeded"
PROBE_FAILED: Final = "ProbeFailed"
_NO_OUTCOMES: Final[Mapping[str, ProbeOutcome]] = MappingProxyType({})
_NO_LABELS: Final = LabelChanges()
_SEEN_READY: Final = NodeCondition(type="Ready", status="True")


@dataclass(frozen=True, slots=True)
class ReadinessStep:
    """What one look asks for."""

    conditions: tuple[NodeCondition, ...] = ()
    labels: LabelChanges = _NO_LABELS
    #: when a timer runs out (monotonic); None if none runs
    deadline_ns: int | None = None
    #: gates whose time ran out in this very step, for the count
    expired: tuple[str, ...] = ()


class ReadinessCore:
    """The readiness gates of one node in one kubelet run."""

    __slots__ = ("_probers", "_refused", "_settled", "_settled_step", "_timers")

    def __init__(self, settings: tuple[ReadinessGateSettings, ...], started_ns: int) -> None:
        self._timers = Timers()
        #: for which node and readiness nothing was to be done, and what was said then
        self._settled: tuple[str, str, bool] | None = None
        self._settled_step = ReadinessStep()
        self._refused: dict[str, None] = {}
        self._probers: Final = {
            each.gate.condition_type: GateProber(each.probe, started_ns)
            for each in settings
            if each.probe is not None
        }

    def step(
        self,
        node: Node,
        *,
        is_ready: bool,
        boot_id: str,
        now: str,
        monotonic_ns: int,
        outcomes: Mapping[str, ProbeOutcome] = _NO_OUTCOMES,
    ) -> ReadinessStep:
        """One look. `is_ready` is what this kubelet says, so that Ready of a former run starts no timer."""
        seen = (node.metadata.uid, node.metadata.resource_version, is_ready)
        if not outcomes and seen == self._settled and not self._is_due(monotonic_ns):
            return self._settled_step
        gates = node.spec.readiness_gates
        for name, outcome in outcomes.items():
            if name in self._probers:
                self._probers[name].note(outcome)
        before = {condition.type: condition for condition in node.status.conditions}
        after = dict(before)
        stored_boot = node.status.node_info.boot_id
        if stored_boot and stored_boot != boot_id:
            for name in unsettled_by_reboot(gates, node.status.conditions):
                message = f"the node was rebooted, boot id: {boot_id}"
                after[name] = condition_now(before.get(name), name, "Unknown", NODE_RESTARTED, message, now)
        self._take_probes(gates, after, now)
        expired = self._advance(gates, after, is_ready, now, monotonic_ns)
        step = ReadinessStep(
            tuple(after[gate.condition_type] for gate in gates if _differs(gate, before, after)),
            label_changes(gates, node.metadata.labels).without(self._refused),
            self._timers.next_expiry_ns(gates),
            expired,
        )
        is_idle = not step.conditions and not step.labels
        self._settled, self._settled_step = (seen if is_idle else None), step
        return step

    def label_refused(self, key: str) -> None:
        """The API server does not take this label from a kubelet: do not ask again in this run."""
        self._refused[key] = None
        self._settled = None

    def probes_due(self, node: Node, monotonic_ns: int) -> list[tuple[str, GateProbe]]:
        """The probes to start now, which count as started; only of gates the node still has."""
        return [
            (gate.condition_type, prober.probe)
            for gate in node.spec.readiness_gates
            if (prober := self._probers.get(gate.condition_type)) is not None and prober.start(monotonic_ns)
        ]

    def next_probe_ns(self, node: Node) -> int | None:
        """When a probe is due next, of gates the node still has; one that is under way says when it is done."""
        return min(
            (
                prober.next_ns
                for gate in node.spec.readiness_gates
                if (prober := self._probers.get(gate.condition_type)) is not None and not prober.is_running
            ),
            default=None,
        )

    # -- steps of a step

    def _is_due(self, monotonic_ns: int) -> bool:
        deadline = self._settled_step.deadline_ns
        return deadline is not None and monotonic_ns >= deadline

    def _take_probes(
        self, gates: list[NodeReadinessGate], conditions: dict[str, NodeCondition], now: str
    ) -> None:
        """Conditions that are the kubelet's own, as far as its probes have decided."""
        for gate in gates:
            name = gate.condition_type
            prober = self._probers.get(name)
            if prober is None:
                continue
            known = conditions.get(name)
            if prober.verdict is None:
                if known is None:
                    words = "waiting for the first results of the probe"
                    conditions[name] = condition_now(None, name, "False", INITIALIZING, words, now)
            elif prober.verdict:
                if known is None or known.status != "True" or known.reason != PROBE_SUCCEEDED:
                    words = prober.message or "the probe succeeds"
                    conditions[name] = condition_now(known, name, "True", PROBE_SUCCEEDED, words, now)
            elif state_of(known) is not GateState.GIVEN_UP and (
                known is None or known.status != "False" or known.reason != PROBE_FAILED
            ):
                words = prober.message or "the probe fails"
                conditions[name] = condition_now(known, name, "False", PROBE_FAILED, words, now)

    def _advance(
        self,
        gates: list[NodeReadinessGate],
        conditions: dict[str, NodeCondition],
        is_ready: bool,
        now: str,
        monotonic_ns: int,
    ) -> tuple[str, ...]:
        seen = [condition for name, condition in conditions.items() if name != "Ready"]
        if is_ready:
            seen.append(_SEEN_READY)
        before = self._timers.of
        self._timers, over = advance(self._timers, gates, seen, monotonic_ns)
        for gate in gates:
            name = gate.condition_type
            if name in over:
                conditions[name] = given_up(gate, conditions.get(name), now)
        return tuple(
            name for name in over if name not in before or before[name].phase is not GateTimerPhase.EXPIRED
        )


def _differs(
    gate: NodeReadinessGate, before: Mapping[str, NodeCondition], after: Mapping[str, NodeCondition]
) -> bool:
    return after.get(gate.condition_type) is not before.get(gate.condition_type)

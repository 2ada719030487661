"""The timers of readiness gates (KEP-5233): when does a gate that nobody satisfies give up.

The kubelet runs them, and the node lifecycle controller for nodes whose kubelet does not know of gates. A `Timers`
value is one run of either; it is never stored, so a restart starts all timers anew. `advance` takes the gates and
conditions as its caller knows them and `now_ns` (monotonic), and gives the next value and the gates whose
condition must be written as Unknown with reason TimeoutExceeded. It may be asked at any time and any number of
times.

What must stay true: no gate gives up before its whole time has passed since Ready was first True in this run, or
since the gate was added if that was later. Ready going away meanwhile does not stop a timer. A gate that held once
starts no timer when it fails again; one that was given up and is then reported as failing does. An expiry is asked
to be written until the condition says so, so an unreachable API server only delays it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

from nodeward.api.core_v1.node import NodeCondition, NodeReadinessGate
from nodeward.base.duration import SECOND_NS
from nodeward.rules.readiness import NODE_RESTARTED, GateState, is_ready, state_of


class GateTimerPhase(Enum):
    """Where the timer of one gate is."""

    RUNS = "runs"
    #: the gate held: no timer will run for it any more
    SETTLED = "settled"
    #: the time is over, and the condition does not say so yet
    EXPIRED = "expired"
    #: the time is over, and the condition says so
    WRITTEN = "written"


@dataclass(frozen=True, slots=True)
class GateTimer:
    phase: GateTimerPhase
    started_ns: int


@dataclass(frozen=True, slots=True)
class Timers:
    """The timers of one node in one kubelet run."""

    was_ready: bool = False
    of: Mapping[str, GateTimer] = field(default_factory=lambda: MappingProxyType({}))

    def next_expiry_ns(self, gates: Iterable[NodeReadinessGate]) -> int | None:
        """Return when to ask again at the latest; None if no timer runs."""
        ends = [
            timer.started_ns + _timeout_ns(gate)
            for gate in gates
            if (timer := self.of.get(gate.condition_type)) is not None and timer.phase is GateTimerPhase.RUNS
        ]
        return min(ends, default=None)


def advance(
    timers: Timers,
    gates: Sequence[NodeReadinessGate],
    conditions: Sequence[NodeCondition],
    now_ns: int,
) -> tuple[Timers, list[str]]:
    """Return the timers after a look at the node, and the condition types to be written as given up."""
    was_ready = timers.was_ready or is_ready(conditions)
    if not was_ready:
        return timers, []
    known = {condition.type: condition for condition in conditions}
    after: dict[str, GateTimer] = {}
    for gate in gates:
        name = gate.condition_type
        before = timers.of.get(name)
        after[name] = _step(before, state_of(known.get(name)), _timeout_ns(gate), now_ns)
    expired = [name for name, timer in after.items() if timer.phase is GateTimerPhase.EXPIRED]
    return Timers(was_ready, MappingProxyType(after)), expired


def _step(timer: GateTimer | None, state: GateState, timeout_ns: int, now_ns: int) -> GateTimer:
    if state is GateState.HOLDS:
        return GateTimer(GateTimerPhase.SETTLED, now_ns)
    if state is GateState.GIVEN_UP:
        return GateTimer(GateTimerPhase.WRITTEN, now_ns)
    if timer is None or timer.phase is GateTimerPhase.WRITTEN:
        timer = GateTimer(GateTimerPhase.RUNS, now_ns)
    if timer.phase is GateTimerPhase.RUNS and now_ns - timer.started_ns >= timeout_ns:
        return GateTimer(GateTimerPhase.EXPIRED, now_ns)
    return timer


def _timeout_ns(gate: NodeReadinessGate) -> int:
    return (gate.timeout_seconds or 0) * SECOND_NS


def unsettled_by_reboot(gates: Iterable[NodeReadinessGate], conditions: Iterable[NodeCondition]) -> list[str]:
    """Return the condition types that become Unknown with reason NodeRestarted after a boot.

    Only conditions that are there are touched; a missing one says already that nobody knows.
    """
    wanted = {gate.condition_type: None for gate in gates}
    return [
        condition.type
        for condition in conditions
        if condition.type in wanted
        and not (condition.status == "Unknown" and condition.reason == NODE_RESTARTED)
    ]

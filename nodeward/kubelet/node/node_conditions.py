"""The conditions a kubelet owns: Ready and the three pressures, with the reasons, messages and events users know.

Given what is so and the conditions as they are stored, it says how they should be and which events that makes.
A condition that keeps its status keeps its transition time, and (as upstream) a pressure keeps reason and message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from nodeward.api.core_v1.node import ContainerImage, NodeCondition
from nodeward.base.quantity import Quantity

READY: Final = "Ready"
#: type: (reason, message, event) when it is True, and when it is False
_PRESSURES: Final = {
    "MemoryPressure": (
        (
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
            "NodeHasInsufficientMemory",
        ),
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available", "NodeHasSufficientMemory"),
    ),
    "DiskPressure": (
        ("KubeletHasDiskPressure", "kubelet has disk pressure", "NodeHasDiskPressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure", "NodeHasNoDiskPressure"),
    ),
    "PIDPressure": (
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available", "NodeHasInsufficientPID"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available", "NodeHasSufficientPID"),
    ),
}
#: What only the kubelet writes, in the order it does.
OWN: Final = (*_PRESSURES, READY)
_REQUIRED: Final = ("cpu", "memory", "pods", "ephemeral-storage")


class NodeEvent(NamedTuple):
    """An event about the node."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is so on a node right now. Nodes on which all is well share `ALL_WELL`."""

    memory_pressure: bool = False
    disk_pressure: bool = False
    pid_pressure: bool = False
    #: why the node cannot run pods, in the order runtime, network, storage, shutdown
    errors: tuple[str, ...] = ()
    #: largest first; more than the settings allow are not shown
    images: tuple[ContainerImage, ...] = ()

    def pressure(self, condition: str) -> bool:
        return {
            "MemoryPressure": self.memory_pressure,
            "DiskPressure": self.disk_pressure,
            "PIDPressure": self.pid_pressure,
        }[condition]


ALL_WELL: Final = NodeFacts()


def is_ready(facts: NodeFacts, capacity: Mapping[str, Quantity]) -> bool:
    """Whether this kubelet says that it can run pods."""
    return not _faults(facts, capacity)


def own_conditions(
    node: str,
    stored: Mapping[str, NodeCondition],
    facts: NodeFacts,
    capacity: Mapping[str, Quantity],
    now: str,
) -> tuple[list[NodeCondition], list[NodeEvent]]:
    """The kubelet's conditions as they should be at `now`, and the events of those that turned."""
    conditions, events = [], []
    for type_, words in _PRESSURES.items():
        condition, event = _pressure(type_, stored.get(type_), facts.pressure(type_), words, now)
        conditions.append(condition)
        if event:
            events.append(_told(node, event))
    ready = _ready(stored.get(READY), _faults(facts, capacity), now)
    before = stored.get(READY)
    if before is not None and before.status != ready.status:
        events.append(_told(node, "NodeReady" if ready.status == "True" else "NodeNotReady"))
    return [*conditions, ready], events


def _pressure(
    type_: str,
    before: NodeCondition | None,
    is_there: bool,
    words: tuple[tuple[str, str, str], tuple[str, str, str]],
    now: str,
) -> tuple[NodeCondition, str]:
    status = "True" if is_there else "False"
    if before is not None and before.status == status:
        same = NodeCondition(
            type=type_,
            status=status,
            last_heartbeat_time=now,
            last_transition_time=before.last_transition_time,
            reason=before.reason,
            message=before.message,
        )
        return same, ""
    reason, message, event = words[0] if is_there else words[1]
    turned = NodeCondition(
        type=type_,
        status=status,
        last_heartbeat_time=now,
        last_transition_time=now,
        reason=reason,
        message=message,
    )
    return turned, event


def _ready(before: NodeCondition | None, faults: list[str], now: str) -> NodeCondition:
    status = "False" if faults else "True"
    kept = before.last_transition_time if before is not None and before.status == status else now
    return NodeCondition(
        type=READY,
        status=status,
        last_heartbeat_time=now,
        last_transition_time=kept,
        reason="KubeletNotReady" if faults else "KubeletReady",
        message=_joined(faults) if faults else "kubelet is posting ready status",
    )


def _faults(facts: NodeFacts, capacity: Mapping[str, Quantity]) -> list[str]:
    missing = [name for name in _REQUIRED if name not in capacity]
    if not missing:
        return list(facts.errors)
    return [*facts.errors, f"missing node capacity for resources: {', '.join(missing)}"]


def _joined(texts: list[str]) -> str:
    """As Kubernetes writes several errors as one: each once, in brackets when there is more than one."""
    distinct = list(dict.fromkeys(texts))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _told(node: str, reason: str) -> NodeEvent:
    return NodeEvent("Normal", reason, f"Node {node} status is now: {reason}")

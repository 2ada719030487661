"""Node health: when a node last renewed its Lease or status, and what its silence means.

A node is heard of when its Lease is renewed or the heartbeat of its Ready condition moves; when exactly is read off
this controller's clock at that moment, since clocks of nodes differ. After the grace period the four conditions that
only its kubelet can know become Unknown. Conditions of others (the network's, readiness gates') keep their last value.

Called by `controller`; calls `execute_taints`, `gate_timers` and `zones`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nodeward.api.core_v1.node import Node
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339
from nodeward.controllers.node_lifecycle.execute_taints import execute_key, ready_status
from nodeward.controllers.node_lifecycle.gate_timers import GateTimers
from nodeward.controllers.node_lifecycle.zones import EXCLUDED, zone_of

#: What only the kubelet knows.
KUBELETS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


@dataclass(frozen=True, slots=True)
class MonitorPeriods:
    """The flags of kube-controller-manager, with their defaults."""

    #: --node-monitor-period
    monitor_seconds: float = 5.0
    #: --node-monitor-grace-period
    grace_seconds: float = 50.0
    #: --node-startup-grace-period: for nodes that never said whether they are ready
    startup_seconds: float = 60.0


class NodeHealth:
    """What is known about one node besides its object. Changed by what is seen, read by the monitor."""

    __slots__ = (
        "execute_key",
        "gate_timers",
        "heard_ns",
        "heartbeat",
        "is_counted",
        "may_taint",
        "must_clear",
        "renewed",
        "status",
        "uid",
        "zone",
    )

    def __init__(self, node: Node, now_ns: int, wall_ns: int) -> None:
        self.uid: Final = node.metadata.uid
        self.renewed = ""
        #: the zone has leave for this node's NoExecute taint
        self.may_taint = False
        #: all zones are lost: no NoExecute taint for now
        self.must_clear = False
        #: of readiness gates that its kubelet does not time
        self.gate_timers: Final = GateTimers()
        self.heard_ns = now_ns
        self.heartbeat: str | None = None
        self.status = ""
        self._copy(node)
        if not self.status and node.metadata.creation_timestamp:
            # It never reported: its time runs from its creation, also if this controller came later.
            self.heard_ns = now_ns - max(0, wall_ns - parse_rfc3339(node.metadata.creation_timestamp))

    def on_node_changed(self, node: Node, now_ns: int) -> None:
        """Record the node's new state."""
        before = self.heartbeat, bool(self.status)
        self._copy(node)
        # Unknown is what this controller writes itself: no sign of life.
        if self.status != "Unknown" and (self.heartbeat, bool(self.status)) != before:
            self._hear(now_ns)

    def on_lease_renewed(self, renewed: str, now_ns: int) -> None:
        """Record that the node's Lease was renewed at this time."""
        if renewed > self.renewed:
            self.renewed = renewed
            self._hear(now_ns)

    def _hear(self, now_ns: int) -> None:
        self.heard_ns = now_ns
        if self.status == "True":
            self.may_taint = False

    def silence(self, now_ns: int, periods: MonitorPeriods) -> float:
        """Return the seconds of silence beyond the grace period; zero or less while within it."""
        grace = periods.grace_seconds if self.status else periods.startup_seconds
        return (now_ns - self.heard_ns) / SECOND_NS - grace

    def is_silent(self, now_ns: int, periods: MonitorPeriods) -> bool:
        return self.silence(now_ns, periods) > 0

    def _copy(self, node: Node) -> None:
        self.status = ready_status(node)
        self.heartbeat = next(
            (each.last_heartbeat_time for each in node.status.conditions if each.type == "Ready"), None
        )
        self.execute_key = execute_key(node)
        self.zone = zone_of(node)
        self.is_counted = EXCLUDED not in node.metadata.labels


def unknown_conditions(node: Node, now: str) -> list[dict[str, Any]]:
    """Return the conditions to patch on a silent node; empty if its Ready condition is Unknown already."""
    if ready_status(node) == "Unknown":
        return []
    known = {condition.type: condition for condition in node.status.conditions}
    found: list[dict[str, Any]] = []
    for kind in KUBELETS:
        condition = known.get(kind)
        if condition is None:
            found.append(
                {
                    "type": kind,
                    "status": "Unknown",
                    "reason": "NodeStatusNeverUpdated",
                    "message": "Kubelet never posted node status.",
                    "lastHeartbeatTime": node.metadata.creation_timestamp,
                    "lastTransitionTime": now,
                }
            )
        elif condition.status != "Unknown":
            found.append(
                {
                    "type": kind,
                    "status": "Unknown",
                    "reason": "NodeStatusUnknown",
                    "message": "Kubelet stopped posting node status.",
                    "lastTransitionTime": now,
                }
            )
    return found

"""What a node's conditions mean as taints that keep new pods away.

In goes a node; out come the NoSchedule taints it should have for its conditions and for being cordoned. Only these
keys with this effect are ours to add and to remove: whatever else is on the node is somebody else's.

Called by `execute_taints` and `plan`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import Taint
from nodeward.rules.taints import NO_SCHEDULE

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"

#: The taint key of a condition type with a status.
KEYS: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("Ready", "False"): NOT_READY,
        ("Ready", "Unknown"): UNREACHABLE,
        ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
        ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
        ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
        ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    }
)
#: In the order in which they are written.
OURS: Final = (*KEYS.values(), UNSCHEDULABLE)


def keys_wanted(node: Node) -> dict[str, None]:
    """Return the keys of the NoSchedule taints the node should have, of those this controller owns."""
    found = {
        key: None
        for condition in node.status.conditions
        if (key := KEYS.get((condition.type, condition.status))) is not None
    }
    if node.spec.unschedulable:
        found[UNSCHEDULABLE] = None
    return found


def with_condition_taints(node: Node, taints: list[Taint], now: str) -> list[Taint]:
    """Return the taints, with ours as they should be; the same list if they are so already."""
    wanted = keys_wanted(node)
    present = {taint.key: None for taint in taints if taint.effect == NO_SCHEDULE and taint.key in OURS}
    if present.keys() == wanted.keys():
        return taints
    kept = [
        taint
        for taint in taints
        if taint.key not in present or taint.key in wanted or taint.effect != NO_SCHEDULE
    ]
    missing = [key for key in wanted if key not in present]
    return [*kept, *(Taint(key=key, effect=NO_SCHEDULE, time_added=now) for key in missing)]

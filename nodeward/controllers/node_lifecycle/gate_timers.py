"""The timers of readiness gates on nodes whose kubelet does not know of gates (KEP-5233).

Such a kubelet is older than gates or has them switched off; nobody else would ever give up a gate that somebody
writes into the spec of its node. The node lifecycle controller counts from what its watch shows: from the moment it
sees the node Ready, or the gate, whichever is later. Where the kubelet keeps the time, nothing runs here: exactly one
of both writes a given condition. The timers are lost with the controller, and start anew with the next.

Called by `controller` and `health`.
"""

from __future__ import annotations

from typing import Any

from nodeward.api.codec import to_tree
from nodeward.api.core_v1.node import Node
from nodeward.base.duration import SECOND_NS
from nodeward.rules.readiness import given_up, is_timed_by_kubelet
from nodeward.rules.readiness_timers import Timers, advance


class GateTimers:
    """The timers of one node."""

    __slots__ = ("_timers",)

    def __init__(self) -> None:
        self._timers = Timers()

    def expired(self, node: Node, now_ns: int) -> list[str]:
        """Look at the node; return the condition types whose time is over and that do not say so yet."""
        gates = node.spec.readiness_gates
        if not gates or is_timed_by_kubelet(node):
            self._timers = Timers()
            return []
        self._timers, over = advance(self._timers, gates, node.status.conditions, now_ns)
        return over

    def wait_seconds(self, node: Node, now_ns: int) -> float | None:
        """Return how long it takes until the next timer runs out; None if none runs."""
        due_ns = self._timers.next_expiry_ns(node.spec.readiness_gates)
        return None if due_ns is None else max(0.0, (due_ns - now_ns) / SECOND_NS)


def given_up_conditions(node: Node, names: list[str], now: str) -> list[dict[str, Any]]:
    """Return the conditions of gates whose time is over, as a patch of the node's conditions."""
    known = {condition.type: condition for condition in node.status.conditions}
    return [
        to_tree(given_up(gate, known.get(gate.condition_type), now))
        for gate in node.spec.readiness_gates
        if gate.condition_type in names
    ]

"""One node of one kubelet run: status and conditions of its gates are decided together and go out in one write.

Together matters after a reboot: the new boot id and the conditions it unsettles are one patch, so a kubelet that dies
in between cannot lose either. The agent asks `step` at `next_check_ns`, sends what it gets and says how that went.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from nodeward.api.core_v1.node import Node
from nodeward.base.duration import MILLISECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.kubelet.node.features import DeclaredFeatures
from nodeward.kubelet.node.gate_probes import ProbeOutcome
from nodeward.kubelet.node.node_conditions import NodeEvent, NodeFacts
from nodeward.kubelet.node.readiness import ReadinessCore
from nodeward.kubelet.node.specification import NodeSpecification, has_readiness_gates
from nodeward.kubelet.node.status import NodeStatusCore
from nodeward.machinery.clock import Chance
from nodeward.rules.readiness import LabelChanges

#: How often a node that was never Ready looks whether it is.
_FAST_NS: Final = 100 * MILLISECOND_NS
_NO_OUTCOMES: Final[Mapping[str, ProbeOutcome]] = MappingProxyType({})
_NO_LABELS: Final = LabelChanges()


@dataclass(frozen=True, slots=True)
class NodeStep:
    """What one look at the node asks for."""

    #: a strategic merge patch for nodes/status; None: nothing to send
    patch: dict[str, Any] | None
    events: tuple[NodeEvent, ...] = ()
    #: when to look again (monotonic)
    next_check_ns: int = 0
    #: readiness gates that were given up in this step
    expired_gates: tuple[str, ...] = ()
    #: labels of gates, written apart: an API server that refuses one of them must not cost the status
    gate_labels: LabelChanges = _NO_LABELS


class NodeCore:
    """Status and gates of one node."""

    __slots__ = ("_is_first_ready_known", "_is_periodic", "readiness", "status")

    def __init__(self, specification: NodeSpecification, features: DeclaredFeatures, started_ns: int) -> None:
        settings = specification.settings
        self.status: Final = NodeStatusCore(specification, features)
        self.readiness: Final = (
            ReadinessCore(settings.readiness_gates, started_ns) if has_readiness_gates(settings) else None
        )
        self._is_first_ready_known = False
        self._is_periodic = False

    def first_node(self, facts: NodeFacts, now_ns: int) -> tuple[Node, tuple[NodeEvent, ...]]:
        """The node to register. Labels of its gates are there from the start: no pod may slip in before."""
        node, events = self.status.first_node(facts, now_ns)
        if self.readiness is not None:
            look = self.readiness.step(
                node, is_ready=False, boot_id=self._boot_id, now=rfc3339(now_ns), monotonic_ns=0
            )
            node.metadata.labels = {**node.metadata.labels, **dict.fromkeys(look.labels.put, "true")}
            node.status.conditions = [*node.status.conditions, *look.conditions]
        return node, events

    def step(
        self,
        node: Node,
        facts: NodeFacts,
        now_ns: int,
        monotonic_ns: int,
        outcomes: Mapping[str, ProbeOutcome] = _NO_OUTCOMES,
    ) -> NodeStep:
        """One look at the stored node."""
        if self.readiness is None:
            done = self.status.sync(node, facts, now_ns, monotonic_ns)
            self._is_periodic = _is_heartbeat(done.patch)
            return NodeStep(done.patch, done.events, self._next(facts, monotonic_ns, None))
        look = self.readiness.step(
            node,
            is_ready=self.status.is_ready(facts),
            boot_id=self._boot_id,
            now=rfc3339(now_ns),
            monotonic_ns=monotonic_ns,
            outcomes=outcomes,
        )
        done = self.status.sync(node, facts, now_ns, monotonic_ns, look.conditions)
        self._is_periodic = _is_heartbeat(done.patch) and not look.conditions
        return NodeStep(
            done.patch,
            done.events,
            self._next(facts, monotonic_ns, look.deadline_ns),
            look.expired,
            look.labels,
        )

    def reported(self, monotonic_ns: int, chance: Chance) -> None:
        """The last patch, or the registration of the first node, was taken."""
        self.status.reported(monotonic_ns, chance, is_change=not self._is_periodic)

    def quiet_until_ns(self, node: Node, facts: NodeFacts) -> int | None:
        """Until when nothing is to be done unless node or facts change; None: nobody knows."""
        if (
            self.readiness is not None
            or not self._is_first_ready_known
            or not self.status.is_settled(node, facts)
        ):
            return None
        return self.status.next_report_ns()

    @property
    def _boot_id(self) -> str:
        return self.status.specification.boot_id

    def _next(self, facts: NodeFacts, monotonic_ns: int, deadline_ns: int | None) -> int:
        self._is_first_ready_known = self._is_first_ready_known or self.status.is_ready(facts)
        period = (
            self.status.specification.settings.status_update_ns if self._is_first_ready_known else _FAST_NS
        )
        due = monotonic_ns + period
        return due if deadline_ns is None else min(due, max(deadline_ns, monotonic_ns))


def _is_heartbeat(patch: dict[str, Any] | None) -> bool:
    """Whether a patch says nothing but that the node is still there."""
    if patch is None or "metadata" in patch or patch["status"].keys() != {"conditions"}:
        return False
    return all(each.keys() == {"type", "lastHeartbeatTime"} for each in patch["status"]["conditions"])

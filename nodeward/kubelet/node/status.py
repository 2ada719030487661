"""When a node's status is written, and what: only what differs, only on a change or when the report period is over.

In go the node as it is stored, what is so, and the time; out comes the smallest strategic merge patch for the
node's status, or nothing. One core is one kubelet run of one node, and costs a few hundred bytes.

What must stay true: conditions of others (reporters of readiness gates, problem detectors) and resources of others
are never touched; what others write into `declaredFeatures` is put right at the next check, and the list is emptied
when the gate is off (KEP-5328). A check that found nothing to do costs nothing until something changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from nodeward.api.codec import to_tree
from nodeward.api.core_v1.node import Node, NodeCondition, NodeStatus
from nodeward.base.quantity import Quantity
from nodeward.base.timestamp import rfc3339
from nodeward.kubelet.node.features import DeclaredFeatures
from nodeward.kubelet.node.node_conditions import NodeEvent, NodeFacts, is_ready, own_conditions
from nodeward.kubelet.node.specification import ARCH_LABEL, OS_LABEL, NodeSpecification, bare_node
from nodeward.machinery.clock import Chance

_PAGES: Final = "hugepages-"
#: Parts of the status that are ours alone, and are sent field by field.
_STRUCTS: Final = ("node_info", "daemon_endpoints", "features")


@dataclass(frozen=True, slots=True)
class StatusStep:
    """What to send to `nodes/status`, and what to tell people."""

    #: a strategic merge patch; None: nothing to send
    patch: dict[str, Any] | None
    events: tuple[NodeEvent, ...] = ()


_NOTHING: Final = StatusStep(None)


class NodeStatusCore:
    """The status of one node in one kubelet run."""

    __slots__ = (
        "_delay_ns", "_has_told_reboot", "_reported_ns", "_settled_facts", "_settled_version", "_was_unschedulable",
        "features", "specification",
    )  # fmt: skip

    def __init__(self, specification: NodeSpecification, features: DeclaredFeatures) -> None:
        self.specification: Final = specification
        self.features: Final = features
        self._reported_ns: int | None = None
        self._delay_ns = 0
        self._settled_version = ""
        self._settled_facts: NodeFacts | None = None
        self._has_told_reboot = False
        self._was_unschedulable = False

    def first_node(self, facts: NodeFacts, now_ns: int) -> tuple[Node, tuple[NodeEvent, ...]]:
        """The node to register, complete with its first status."""
        node = bare_node(self.specification)
        status = node.status
        conditions, events = own_conditions(
            self.specification.name, {}, facts, status.capacity, rfc3339(now_ns)
        )
        status.conditions = conditions
        status.images = self._images(facts)
        status.declared_features = list(self.features.names)
        return node, tuple(events)

    def is_ready(self, facts: NodeFacts) -> bool:
        """Whether this kubelet says that it can run pods, whatever the stored node says."""
        return is_ready(facts, self.specification.model.whole_capacity())

    def sync(
        self,
        node: Node,
        facts: NodeFacts,
        now_ns: int,
        monotonic_ns: int,
        conditions: Sequence[NodeCondition] = (),
    ) -> StatusStep:
        """One check. `conditions` is what else this kubelet wants to write."""
        is_over = self._is_period_over(monotonic_ns)
        if self.is_settled(node, facts) and not is_over and not conditions:
            return _NOTHING
        now = rfc3339(now_ns)
        stored = {condition.type: condition for condition in node.status.conditions}
        own, events = own_conditions(self.specification.name, stored, facts, self._capacity(node.status), now)
        events += self._other_events(node)
        status = self._differences(node.status, facts)
        turned = [*(each for each in own if not _is_same(each, stored.get(each.type))), *conditions]
        label_patch = self._labels(node)
        if not (status or turned or label_patch or is_over):
            self._settled_version, self._settled_facts = node.metadata.resource_version, facts
            return StatusStep(None, tuple(events))
        status["conditions"] = [_condition_patch(each, stored.get(each.type)) for each in (*own, *conditions)]
        patch: dict[str, Any] = {"status": status}
        if label_patch:
            patch["metadata"] = {"labels": label_patch}
        return StatusStep(patch, tuple(events))

    def is_settled(self, node: Node, facts: NodeFacts) -> bool:
        """Whether these were looked at before and nothing was to be written but a heartbeat."""
        return facts is self._settled_facts and node.metadata.resource_version == self._settled_version

    def reported(self, monotonic_ns: int, chance: Chance, *, is_change: bool = True) -> None:
        """The patch was taken. After a change the next report is spread, so that a fleet does not report at once."""
        period = self.specification.settings.status_report_ns
        is_first = self._reported_ns is None
        self._delay_ns = int(period * chance.uniform(-0.5, 0.5)) if is_change or is_first else 0
        self._reported_ns = monotonic_ns

    def next_report_ns(self) -> int | None:
        """When the report period is over; None if nothing was reported yet."""
        if self._reported_ns is None:
            return None
        return self._reported_ns + self.specification.settings.status_report_ns + self._delay_ns

    # -- what differs

    def _is_period_over(self, monotonic_ns: int) -> bool:
        due = self.next_report_ns()
        return due is None or monotonic_ns >= due

    def _capacity(self, stored: NodeStatus) -> Mapping[str, Quantity]:
        """What the node has: ours, and what others say it has besides. Sizes of huge pages are ours to know."""
        theirs = {name: amount for name, amount in stored.capacity.items() if not name.startswith(_PAGES)}
        return {**theirs, **self.specification.model.whole_capacity()}

    def _differences(self, stored: NodeStatus, facts: NodeFacts) -> dict[str, Any]:
        specification = self.specification
        found: dict[str, Any] = {}
        capacity = self._capacity(stored)
        allocatable = specification.settings.reservation.allocatable(capacity)
        for name, wanted, present in (
            ("capacity", capacity, stored.capacity),
            ("allocatable", allocatable, stored.allocatable),
        ):
            changed: dict[str, Any] = {
                key: str(amount) for key, amount in wanted.items() if present.get(key) != amount
            }
            changed |= dict.fromkeys(
                key for key in present if key not in wanted and ("/" in key or key.startswith(_PAGES))
            )
            if changed:
                found[name] = changed
        addresses = specification.node_addresses()
        if stored.addresses != addresses:
            # Several addresses may be of one type, which is what they would be merged by.
            found["addresses"] = [*(to_tree(each) for each in addresses), {"$patch": "replace"}]
        wanted_structs = (
            specification.node_info(),
            specification.daemon_endpoints(),
            specification.node_features(),
        )
        for name, struct in zip(_STRUCTS, wanted_structs, strict=True):
            before = getattr(stored, name)
            if struct is not None and struct != before:
                found[_camel(name)] = _struct_patch(before, struct)
        images = self._images(facts)
        if stored.images != images:
            found["images"] = [to_tree(each) for each in images]
        if tuple(stored.declared_features) != self.features.names:
            found["declaredFeatures"] = list(self.features.names) or None
        return found

    def _images(self, facts: NodeFacts) -> list[Any]:
        limit = self.specification.settings.max_images
        return list(facts.images if limit < 0 else facts.images[:limit])

    def _labels(self, node: Node) -> dict[str, str]:
        model = self.specification.model
        required = {OS_LABEL: model.operating_system, ARCH_LABEL: model.architecture}
        have = node.metadata.labels
        return {key: value for key, value in required.items() if have.get(key) != value}

    def _other_events(self, node: Node) -> list[NodeEvent]:
        specification, events = self.specification, []
        before = node.status.node_info.boot_id
        if before and before != specification.boot_id and not self._has_told_reboot:
            self._has_told_reboot = True
            message = f"Node {specification.name} has been rebooted, boot id: {specification.boot_id}"
            events.append(NodeEvent("Warning", "Rebooted", message))
        if node.spec.unschedulable is not self._was_unschedulable:
            self._was_unschedulable = node.spec.unschedulable
            reason = "NodeNotSchedulable" if node.spec.unschedulable else "NodeSchedulable"
            message = f"Node {specification.name} status is now: {reason}"
            events.append(NodeEvent("Normal", reason, message))
        return events


def _is_same(condition: NodeCondition, before: NodeCondition | None) -> bool:
    """Whether nothing but the heartbeat differs."""
    return before is not None and (
        before.status == condition.status
        and before.reason == condition.reason
        and before.message == condition.message
        and before.last_transition_time == condition.last_transition_time
    )


def _condition_patch(condition: NodeCondition, before: NodeCondition | None) -> dict[str, Any]:
    wanted = to_tree(condition)
    if before is None:
        return dict(wanted)
    present = to_tree(before)
    patch = {key: value for key, value in wanted.items() if key == "type" or present.get(key) != value}
    return patch | dict.fromkeys(key for key in present if key not in wanted)


def _struct_patch(before: Any, wanted: Any) -> dict[str, Any]:
    present = to_tree(before) if before is not None else {}
    tree = to_tree(wanted)
    changed = {key: value for key, value in tree.items() if present.get(key) != value}
    return changed | dict.fromkeys(key for key in present if key not in tree)


def _camel(name: str) -> str:
    field = next(each for each in msgspec.structs.fields(NodeStatus) if each.name == name)
    return str(field.encode_name)

"""What follows when a readiness gate of a node is given up (KEP-5233): a taint or a warning, once, and back again.

In goes a node as it is, and what is known about the reporters of its gates; out comes what must be done to its
taints, what is to be told, and the record to keep on the node. Timers are elsewhere (the kubelet's, or `gate_timers`):
only a condition that is Unknown with reason TimeoutExceeded counts as given up.

The record is an annotation, written in the same request as the taints. It says which gates were acted upon, which were
warned of because no reporter tolerates their taint, and which taints were put on for them, so that another controller
takes off those and no others, also when the gate that asked for one is long gone, and warns of nothing twice. A record
that cannot be read is an empty one: taints stay then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import Taint
from nodeward.controllers.node_lifecycle.reporters import Reporters
from nodeward.rules.readiness import (
    RECORD_ANNOTATION,
    TAINT,
    GateState,
    TaintChanges,
    failure_action,
    taint_changes,
    views,
)
from nodeward.rules.taints import is_same


@dataclass(frozen=True, slots=True)
class GateRecord:
    """What this controller has done about a node's gates, as kept in an annotation."""

    #: for every gate that is given up, the action that was taken
    acted: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    #: gates of which it was told that no reporter tolerates their taint
    unreported: tuple[str, ...] = ()

    def text(self) -> str | None:
        """Return the annotation's text; None: no annotation."""
        if not self.acted and not self.taints and not self.unreported:
            return None
        taints = [{"key": each.key, "value": each.value, "effect": each.effect} for each in self.taints]
        tree: dict[str, Any] = {"acted": dict(self.acted), "taints": taints}
        if self.unreported:
            tree["unreported"] = list(self.unreported)
        return json.dumps(tree, separators=(",", ":"), sort_keys=True)


_EMPTY: Final = GateRecord()


@dataclass(frozen=True, slots=True)
class GateFailure:
    """A gate whose timeout has just passed."""

    condition_type: str
    action: str
    reason: str
    message: str
    taint: Taint | None


@dataclass(frozen=True, slots=True)
class GateDecision:
    """What to do about a node's gates."""

    taints: TaintChanges
    failures: tuple[GateFailure, ...]
    #: gates of which no reporter tolerates the taint, told for the first time
    unreported: tuple[Reporters, ...]
    #: the annotation's value; None: there shall be none
    record: str | None


def read_record(node: Node) -> GateRecord:
    """Return what was done before, as the node says."""
    text = node.metadata.annotations.get(RECORD_ANNOTATION)
    if text is None:
        return _EMPTY
    try:
        found = json.loads(text)
        acted = {str(name): str(action) for name, action in found["acted"].items()}
        taints = tuple(
            Taint(key=str(each["key"]), value=str(each["value"]), effect=str(each["effect"]))
            for each in found["taints"]
        )
        unreported = tuple(str(name) for name in found.get("unreported", ()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return _EMPTY
    return GateRecord(acted, taints, unreported)


def decide(node: Node, reporters: Sequence[Reporters] = ()) -> GateDecision | None:
    """Return what the node's gates ask for now; None if all is done."""
    text = node.metadata.annotations.get(RECORD_ANNOTATION)
    if not node.spec.readiness_gates and text is None:
        return None
    before = read_record(node)
    given_up = [
        view
        for view in views(node.spec.readiness_gates, node.status.conditions)
        if view.state is GateState.GIVEN_UP
    ]
    changes = taint_changes(node, before.taints)
    stay = [
        taint
        for taint in before.taints
        if any(is_same(taint, each) and taint.value == each.value for each in node.spec.taints)
        and not any(is_same(taint, each) for each in changes.remove)
    ]
    added = [Taint(key=each.key, value=each.value, effect=each.effect) for each in changes.add]
    unreported = _unreported(node, before, reporters)
    after = GateRecord(
        {view.gate.condition_type: view.action for view in given_up}, (*stay, *added), tuple(unreported)
    )
    failures = tuple(
        GateFailure(
            view.gate.condition_type, view.action, view.reason, view.message, view.gate.readiness_taint
        )
        for view in given_up
        if before.acted.get(view.gate.condition_type) != view.action
    )
    record = after.text()
    if not changes and record == text:
        return None
    told = tuple(
        each
        for each in reporters
        if each.condition_type in unreported and each.condition_type not in before.unreported
    )
    return GateDecision(changes, failures, told, record)


def _unreported(node: Node, before: GateRecord, reporters: Sequence[Reporters]) -> list[str]:
    """Gates none of whose reporters tolerates their taint. One without reporters stays as it was: they may be gone
    because of that very taint."""
    tolerates = {each.condition_type: each.tolerates for each in reporters}
    return [
        gate.condition_type
        for gate in node.spec.readiness_gates
        if failure_action(gate) == TAINT
        and not tolerates.get(gate.condition_type, gate.condition_type not in before.unreported)
    ]

"""Events about readiness gates, on the node: which gate, which node, what happened and why (KEP-5233).

Called by `controller`; calls `gate_failures`.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.controllers.node_lifecycle.gate_failures import GateDecision
from nodeward.machinery.recorder import NORMAL, WARNING, EventRecorder
from nodeward.rules.readiness import BYPASS, taint_text

BYPASSED: Final = "ReadinessGateBypassed"
TAINTED: Final = "ReadinessGateTainted"
UNTAINTED: Final = "ReadinessGateUntainted"
UNREPORTED: Final = "ReadinessGateReporterNotTolerating"


def record_gate_events(recorder: EventRecorder, node: Node, decision: GateDecision) -> None:
    """One event for each gate that was given up, for each taint that went away, and for each gate whose reporters do
    not tolerate its taint."""
    name = node.metadata.name
    for failure in decision.failures:
        why = f"{failure.reason}: {failure.message}" if failure.message else failure.reason
        start = f"Node {name} gave up its readiness gate {failure.condition_type} ({why})"
        if failure.action == BYPASS:
            recorder.event(node, WARNING, BYPASSED, f"{start}: pods are let in although it does not hold")
        elif failure.taint is not None:
            text = f"{start}: only pods that tolerate {taint_text(failure.taint)} are let in"
            recorder.event(node, WARNING, TAINTED, text)
    for taint in decision.taints.remove:
        text = f"Node {name} lost the taint {taint_text(taint)}: no readiness gate asks for it any more"
        recorder.event(node, NORMAL, UNTAINTED, text)
    for each in decision.unreported:
        who = f"pod {each.pods[0]}" if len(each.pods) == 1 else f"pods {', '.join(each.pods)}"
        toleration = f"{{key: {each.taint.key}, operator: Exists, effect: {each.taint.effect}}}"
        text = (
            f"Node {name} may lose the only known reporter of its readiness gate {each.condition_type}: {who} does "
            f"not tolerate {taint_text(each.taint)}, which the gate puts on the node when its time is over; add the "
            f"toleration {toleration}"
        )
        recorder.event(node, WARNING, UNREPORTED, text)

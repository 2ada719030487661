"""Events about readiness rules, on the node, in node-readiness-controller's words.

Called by `controller`.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import ObjectReference
from nodeward.machinery.recorder import NORMAL, EventRecorder
from nodeward.rules.readiness_rules import Rule, RuleAction

#: reason, action, and how the message ends
_ADDED: Final = ("TaintAdded", "AddTaint", "added by rule")
_REMOVED: Final = ("TaintRemoved", "RemoveTaint", "removed by rule")
_ADOPTED: Final = ("TaintAdopted", "AdoptTaint", "is now managed by rule")


def record_rule_event(recorder: EventRecorder, node: Node, rule: Rule, action: RuleAction) -> None:
    """Record what was done; no action on an existing taint means that the rule adopts the taint."""
    reason, word, text = _ADDED if action is RuleAction.ADD else _REMOVED
    if action is RuleAction.NOTHING:
        reason, word, text = _ADOPTED
    about = ObjectReference(api_version="v1", kind="Node", name=node.metadata.name, uid=node.metadata.uid)
    message = f"Taint '{rule.taint.key}:{rule.taint.effect}' {text} '{rule.name}'"
    recorder.event(about, NORMAL, reason, message, action=word)

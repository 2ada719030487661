"""NodeReadinessRuleConflicts: refuses a second rule that manages the same taint on the same nodes.

One rule would remove what the other adds. What depends on the rule alone is checked by validation; this is the part of
node-readiness-controller's webhook that has to know the other rules.
"""

from __future__ import annotations

from typing import ClassVar

from nodeward.api.errors import invalid as invalid_object
from nodeward.api.readiness_v1alpha1 import NodeReadinessRule
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.base.fielderror import invalid
from nodeward.base.fieldpath import ROOT
from nodeward.rules.readiness_rules import conflict


class NodeReadinessRuleConflicts(AdmissionPlugin):
    name: ClassVar[str] = "NodeReadinessRuleConflicts"

    def validate(self, write: Write) -> None:
        if write.operation == "DELETE":
            return
        if not write.is_about("nodereadinessrules", group="readiness.node.x-k8s.io"):
            return
        rule: NodeReadinessRule = write.new
        at = ROOT.child("spec", "taint", "key")
        faults = [
            invalid(at, rule.spec.taint.key, text)
            for other in self.env.peek_all(NodeReadinessRule)
            if (text := conflict(rule, other))
        ]
        # A rule that is being deleted, or only loses its finalizer, is not checked.
        if faults and rule.metadata.deletion_timestamp is None:
            raise invalid_object(write.kind.group, write.kind.name, write.name, faults)

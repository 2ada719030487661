"""Readiness gates of nodes (KEP-5233): conditions a node must report before it takes general pods.

A condition type is a domain and a name (`example.com/StorageReady`). The kubelet labels the node with
`readiness-gate.<type>`, so the type must be short enough for a label key, and its name part one of a label.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.node import NodeReadinessGate
from nodeward.base.fielderror import FieldError, invalid, required, too_long
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import label_key_faults, size
from nodeward.rules.readiness import (
    FAILURE_ACTIONS,
    LABEL_PREFIX,
    RESTRICTED_DOMAIN,
    failure_action,
    is_restricted,
)
from nodeward.validation.checks import Distinct, both, check_not_negative, check_one_of, given
from nodeward.validation.pod.tolerations import validate_taint

#: How much of a condition type fits into the key of the kubelet's label.
CONDITION_TYPE_LIMIT: Final = 253 - len(LABEL_PREFIX)


def validate_readiness_gates(gates: list[NodeReadinessGate], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    types = Distinct()
    for i, gate in enumerate(gates):
        at = path.index(i)
        errors += _condition_type(gate.condition_type, at.child("conditionType"))
        errors += types.add(gate.condition_type, at.child("conditionType"))
        errors += both(given, check_not_negative)(gate.timeout_seconds, at.child("timeoutSeconds"))
        action = failure_action(gate)
        errors += check_one_of(action, at.child("failureAction"), FAILURE_ACTIONS)
        if gate.readiness_taint is not None:
            errors += validate_taint(gate.readiness_taint, at.child("readinessTaint"))
        elif action == "Taint":
            detail = "must be specified when `failureAction` is 'Taint'"
            errors.append(required(at.child("readinessTaint"), detail))
    return errors


def readiness_gate_warnings(
    new: list[NodeReadinessGate], old: list[NodeReadinessGate], path: FieldPath
) -> list[str]:
    """Warn of gates that are new and whose label no kubelet may put on its node."""
    known = {gate.condition_type for gate in old}
    return [
        f'{path.index(i).child("conditionType")}: kubelets may not set labels under "{RESTRICTED_DOMAIN}": the node '
        f'will not have the label "{LABEL_PREFIX}{gate.condition_type}"'
        for i, gate in enumerate(new)
        if gate.condition_type not in known and is_restricted(gate.condition_type.rpartition("/")[0])
    ]


def _condition_type(name: str, path: FieldPath) -> list[FieldError]:
    if not name:
        return [required(path)]
    errors = [too_long(path, CONDITION_TYPE_LIMIT)] if size(name) > CONDITION_TYPE_LIMIT else []
    if faults := label_key_faults(name):
        return errors + [invalid(path, name, fault) for fault in faults]
    if "/" not in name:
        detail = 'must be a domain-prefixed key (such as "acme.io/foo")'
        errors.append(invalid(path, name, detail))
    return errors

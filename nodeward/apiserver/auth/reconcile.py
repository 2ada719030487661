"""Reconciles default roles and bindings with those that exist: missing permissions are added, extra ones kept.

Called by `bootstrap.py`. An object annotated `rbac.authorization.kubernetes.io/autoupdate: "false"` is left alone. A
binding whose role was changed cannot be updated, so it is deleted and created again.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from nodeward.api.meta import KubeObject, LabelSelector
from nodeward.api.rbac_v1 import AggregationRule, ClusterRole, ClusterRoleBinding, Role, RoleBinding
from nodeward.apiserver.auth.bootstrap_policy import AUTO_UPDATE
from nodeward.apiserver.auth.rules import covers
from nodeward.base.invariant import InvariantBroken

_RoleT = TypeVar("_RoleT", Role, ClusterRole)
_BindingT = TypeVar("_BindingT", RoleBinding, ClusterRoleBinding)


class RbacStep(Enum):
    CREATE = "create"
    UPDATE = "update"
    #: Delete what is there, then create.
    RECREATE = "recreate"


@dataclass(frozen=True, slots=True)
class RbacChange:
    """One write that is needed: `obj`, and how."""

    step: RbacStep
    obj: KubeObject


def reconcile(existing: Iterable[KubeObject], wanted: Iterable[KubeObject]) -> list[RbacChange]:
    """Return the writes after which everything in `wanted` holds, in the order of `wanted`. Inputs are not changed."""
    known = {_identity(item): item for item in existing}
    changes: list[RbacChange] = []
    for item in wanted:
        there = known.get(_identity(item))
        if there is None:
            changes.append(RbacChange(RbacStep.CREATE, item))
        elif there.metadata.annotations.get(AUTO_UPDATE) != "false" and (change := _change(there, item)):
            changes.append(change)
    return changes


def _identity(obj: KubeObject) -> tuple[str, str, str]:
    return type(obj).__name__, obj.metadata.namespace, obj.metadata.name


def _change(there: KubeObject, wanted: KubeObject) -> RbacChange | None:
    # One pair of kinds a line, so that each merge sees two objects of the same kind.
    match there, wanted:
        case ClusterRole() as old, ClusterRole() as new:
            return _update(old, _merged_role(old, new))
        case Role() as old, Role() as new:
            return _update(old, _merged_role(old, new))
        case ClusterRoleBinding() as old, ClusterRoleBinding() as new:
            return _update(old, _merged_binding(old, new), new)
        case RoleBinding() as old, RoleBinding() as new:
            return _update(old, _merged_binding(old, new), new)
        case _:
            raise InvariantBroken(f"not a default object: {type(wanted).__name__}")


def _update(there: KubeObject, result: KubeObject, wanted: KubeObject | None = None) -> RbacChange | None:
    if result is wanted:
        return RbacChange(RbacStep.RECREATE, result)
    return RbacChange(RbacStep.UPDATE, result) if result != there else None


def _merged_role(there: _RoleT, wanted: _RoleT) -> _RoleT:
    result = _merged_metadata(there, wanted)
    result.rules = [*there.rules, *covers(there.rules, wanted.rules)]
    if isinstance(result, ClusterRole) and isinstance(wanted, ClusterRole):
        result.aggregation_rule = _merged_aggregation(result.aggregation_rule, wanted.aggregation_rule)
    return result


def _merged_aggregation(
    there: AggregationRule | None, wanted: AggregationRule | None
) -> AggregationRule | None:
    """Merge aggregation rules: removed where none is wanted; otherwise missing selectors are added."""
    if wanted is None:
        return None
    selectors: list[LabelSelector] = [] if there is None else there.cluster_role_selectors
    missing = [selector for selector in wanted.cluster_role_selectors if selector not in selectors]
    return AggregationRule(cluster_role_selectors=[*selectors, *missing])


def _merged_binding(there: _BindingT, wanted: _BindingT) -> _BindingT:
    """Return the merged binding, or `wanted` itself when the role differs."""
    if there.role_ref != wanted.role_ref:
        return wanted
    result = _merged_metadata(there, wanted)
    result.subjects = list(there.subjects)
    for subject in wanted.subjects:
        if subject not in result.subjects:
            result.subjects.append(subject)
    return result


_ObjectT = TypeVar("_ObjectT", bound=KubeObject)


def _merged_metadata(there: _ObjectT, wanted: _ObjectT) -> _ObjectT:
    """Copy the existing metadata with the labels and annotations it lacks."""
    result = copy.copy(there)
    result.metadata = copy.copy(there.metadata)
    result.metadata.labels = {**wanted.metadata.labels, **there.metadata.labels}
    result.metadata.annotations = {**wanted.metadata.annotations, **there.metadata.annotations}
    return result

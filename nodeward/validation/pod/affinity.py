"""Where a pod wants to be: node selectors, affinity to nodes and pods, spreading over topologies."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.affinity import (
    Affinity,
    NodeAffinity,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
)
from nodeward.api.core_v1.references import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from nodeward.api.meta import LabelSelector
from nodeward.base.fielderror import FieldError, forbidden, invalid, required
from nodeward.base.fieldpath import FieldPath
from nodeward.validation.checks import (
    check_each,
    check_label,
    check_label_value,
    check_present,
    check_subdomain,
)
from nodeward.validation.meta.labels import validate_label_name, validate_label_selector
from nodeward.validation.pod.options import PodOptions

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_BAD_WEIGHT: Final = "must be in the range 1-100"
_BAD_OPERATOR: Final = "not a valid selector operator"


def validate_affinity(affinity: Affinity, path: FieldPath, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    if affinity.node_affinity is not None:
        errors += _node_affinity(affinity.node_affinity, path.child("nodeAffinity"), options)
    if affinity.pod_affinity is not None:
        errors += _pod_affinity(affinity.pod_affinity, path.child("podAffinity"), options)
    if affinity.pod_anti_affinity is not None:
        errors += _pod_affinity(affinity.pod_anti_affinity, path.child("podAntiAffinity"), options)
    return errors


def _node_affinity(affinity: NodeAffinity, path: FieldPath, options: PodOptions) -> list[FieldError]:
    errors: list[FieldError] = []
    selector = affinity.required_during_scheduling_ignored_during_execution
    if selector is not None:
        at = path.child(_REQUIRED)
        allow = options.invalid_node_affinity_values()
        errors += validate_node_selector(selector, at, allow_invalid_values=allow)
    for i, term in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        at = path.child(_PREFERRED).index(i)
        if not 1 <= term.weight <= 100:
            errors.append(invalid(at.child("weight"), term.weight, _BAD_WEIGHT))
        errors += validate_node_selector_term(
            term.preference, at.child("preference"), allow_invalid_values=True
        )
    return errors


def validate_node_selector(
    selector: NodeSelector, path: FieldPath, *, allow_invalid_values: bool = False
) -> list[FieldError]:
    at = path.child("nodeSelectorTerms")
    if not selector.node_selector_terms:
        return [required(at, "must have at least one node selector term")]
    errors: list[FieldError] = []
    for i, term in enumerate(selector.node_selector_terms):
        errors += validate_node_selector_term(term, at.index(i), allow_invalid_values=allow_invalid_values)
    return errors


def validate_node_selector_term(
    term: NodeSelectorTerm, path: FieldPath, *, allow_invalid_values: bool = False
) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, requirement in enumerate(term.match_expressions):
        errors += _expression(requirement, path.child("matchExpressions").index(i), allow_invalid_values)
    return errors + check_each(term.match_fields, path.child("matchFields"), _field)


def _expression(
    requirement: NodeSelectorRequirement, path: FieldPath, allow_invalid_values: bool
) -> list[FieldError]:
    errors: list[FieldError] = []
    values = requirement.values
    at = path.child("values")
    if requirement.operator in ("In", "NotIn"):
        errors += check_present(values, at, "must be specified when `operator` is 'In' or 'NotIn'")
    elif requirement.operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(forbidden(at, detail))
    elif requirement.operator in ("Gt", "Lt"):
        if len(values) != 1:
            errors.append(required(at, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
    else:
        errors.append(invalid(path.child("operator"), requirement.operator, _BAD_OPERATOR))
    errors += validate_label_name(requirement.key, path.child("key"))
    if not allow_invalid_values:
        errors += check_each(values, at, check_label_value)
    return errors


def _field(requirement: NodeSelectorRequirement, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if requirement.operator not in ("In", "NotIn"):
        errors.append(invalid(path.child("operator"), requirement.operator, _BAD_OPERATOR))
    elif len(requirement.values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(required(path.child("values"), detail))
    if requirement.key != "metadata.name":
        errors.append(invalid(path.child("key"), requirement.key, "not a valid field selector key"))
    else:
        errors += check_each(requirement.values, path.child("values"), check_subdomain)
    return errors


def _pod_affinity(
    affinity: PodAffinity | PodAntiAffinity, path: FieldPath, options: PodOptions
) -> list[FieldError]:
    errors: list[FieldError] = []
    allow = options.invalid_affinity_label_values()
    for i, term in enumerate(affinity.required_during_scheduling_ignored_during_execution):
        errors += _pod_term(term, path.child(_REQUIRED).index(i), allow)
    for i, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        at = path.child(_PREFERRED).index(i)
        if not 1 <= weighted.weight <= 100:
            errors.append(invalid(at.child("weight"), weighted.weight, _BAD_WEIGHT))
        errors += _pod_term(weighted.pod_affinity_term, at.child("podAffinityTerm"), allow)
    return errors


def _pod_term(term: PodAffinityTerm, path: FieldPath, allow_invalid_values: bool) -> list[FieldError]:
    errors = validate_label_selector(
        term.label_selector, path.child("labelSelector"), allow_invalid_values=allow_invalid_values
    )
    errors += validate_label_selector(
        term.namespace_selector, path.child("namespaceSelector"), allow_invalid_values=allow_invalid_values
    )
    for name in term.namespaces:
        errors += check_label(name, path.child("namespace"))
    errors += validate_match_label_keys(
        term.match_label_keys, term.mismatch_label_keys, term.label_selector, path
    )
    errors += check_present(term.topology_key, path.child("topologyKey"), "can not be empty")
    return errors + validate_label_name(term.topology_key, path.child("topologyKey"))


def validate_match_label_keys(
    keys: list[str], mismatch_keys: list[str], selector: LabelSelector | None, path: FieldPath
) -> list[FieldError]:
    """Keys whose values are taken from the pod itself and merged into the selector."""
    if not keys and not mismatch_keys:
        return []
    errors = _label_keys(keys, selector, path.child("matchLabelKeys"))
    errors += _label_keys(mismatch_keys, selector, path.child("mismatchLabelKeys"))
    if selector is not None:
        known, last = set(selector.match_labels), {key: i for i, key in enumerate(keys)}
        for expression in selector.match_expressions:
            # The merge itself adds each key once; a key that was there before shows up twice.
            if expression.key in last and expression.key in known:
                detail = "exists in both matchLabelKeys and labelSelector"
                errors.append(invalid(path.index(last[expression.key]), expression.key, detail))
            known.add(expression.key)
    mismatched = set(mismatch_keys)
    for i, key in enumerate(keys):
        if key in mismatched:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(invalid(path.child("matchLabelKeys").index(i), key, detail))
    return errors


def _label_keys(keys: list[str], selector: LabelSelector | None, path: FieldPath) -> list[FieldError]:
    if not keys:
        return []
    if selector is None:
        return [forbidden(path, "must not be specified when labelSelector is not set")]
    return [error for i, key in enumerate(keys) for error in validate_label_name(key, path.index(i))]

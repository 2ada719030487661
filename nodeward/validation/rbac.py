"""Roles and bindings: rules name verbs and what they are about, bindings name a role once and for all.

Required lists and names are reported after all other faults, as Kubernetes does.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.rbac_v1 import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from nodeward.base.fielderror import FieldError, invalid, not_supported, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain, path_segment_name
from nodeward.validation.checks import check_form, check_immutable, check_one_of
from nodeward.validation.meta.labels import has_invalid_label_value, is_usable, validate_label_selector
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from nodeward.validation.validator import Validator

_GROUP: Final = "rbac.authorization.k8s.io"
_RULES: Final = ROOT.child("rules")
_SELECTORS: Final = ROOT.child("aggregationRule", "clusterRoleSelectors")
_ROLE_REF: Final = ROOT.child("roleRef")
_SUBJECTS: Final = ROOT.child("subjects")


def _rules(rules: list[PolicyRule], *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, rule in enumerate(rules):
        errors += _rule(rule, _RULES.index(i), namespaced=namespaced)
    return errors


def _without_verbs(rules: list[PolicyRule]) -> list[FieldError]:
    return [required(_RULES.index(i).child("verbs")) for i, rule in enumerate(rules) if not rule.verbs]


def _rule(rule: PolicyRule, path: FieldPath, *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    urls = rule.non_resource_urls
    if urls:
        at = path.child("nonResourceURLs")
        if namespaced:
            errors.append(invalid(at, urls, "namespaced rules cannot apply to non-resource URLs"))
        if rule.api_groups or rule.resources or rule.resource_names:
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(invalid(at, urls, detail))
        return errors
    if not rule.api_groups:
        errors.append(required(path.child("apiGroups"), "resource rules must supply at least one api group"))
    if not rule.resources:
        errors.append(required(path.child("resources"), "resource rules must supply at least one resource"))
    return errors


def _create_role(role: Role, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(role.metadata, path_segment_name, namespaced=True)
    return errors + _rules(role.rules, namespaced=True) + _without_verbs(role.rules)


def _update_role(new: Role, old: Role, ctx: Context) -> list[FieldError]:
    errors = _rules(new.rules, namespaced=True)
    return errors + validate_metadata_update(new.metadata, old.metadata) + _without_verbs(new.rules)


def _aggregation(role: ClusterRole, *, allow_invalid_values: bool) -> list[FieldError]:
    if role.aggregation_rule is None:
        return []
    selectors = role.aggregation_rule.cluster_role_selectors
    if not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        return [required(_SELECTORS, detail)]
    errors: list[FieldError] = []
    for i, selector in enumerate(selectors):
        at = _SELECTORS.index(i)
        errors += validate_label_selector(selector, at, allow_invalid_values=allow_invalid_values)
        if not is_usable(selector):
            errors.append(invalid(at, None, "invalid label selector."))
    return errors


def _cluster_role(role: ClusterRole, *, allow_invalid_values: bool) -> list[FieldError]:
    errors = _rules(role.rules, namespaced=False)
    return errors + _aggregation(role, allow_invalid_values=allow_invalid_values)


def _create_cluster_role(role: ClusterRole, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(role.metadata, path_segment_name, namespaced=False)
    return errors + _cluster_role(role, allow_invalid_values=False) + _without_verbs(role.rules)


def _update_cluster_role(new: ClusterRole, old: ClusterRole, ctx: Context) -> list[FieldError]:
    before = old.aggregation_rule.cluster_role_selectors if old.aggregation_rule else []
    errors = _cluster_role(new, allow_invalid_values=any(has_invalid_label_value(s) for s in before))
    return errors + validate_metadata_update(new.metadata, old.metadata) + _without_verbs(new.rules)


def _binding(ref: RoleRef, subjects: list[Subject], *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    kinds = ("Role", "ClusterRole") if namespaced else ("ClusterRole",)
    if ref.api_group != _GROUP:
        errors.append(not_supported(_ROLE_REF.child("apiGroup"), ref.api_group, (_GROUP,)))
    errors += check_one_of(ref.kind, _ROLE_REF.child("kind"), kinds)
    errors += check_form(ref.name, _ROLE_REF.child("name"), path_segment_name)
    for i, subject in enumerate(subjects):
        errors += _subject(subject, _SUBJECTS.index(i), namespaced=namespaced)
    return errors


def _without_names(ref: RoleRef, subjects: list[Subject]) -> list[FieldError]:
    errors = [required(_SUBJECTS.index(i).child("name")) for i, s in enumerate(subjects) if not s.name]
    return errors if ref.name else [*errors, required(_ROLE_REF.child("name"))]


def _subject(subject: Subject, path: FieldPath, *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    match subject.kind:
        case "ServiceAccount":
            if subject.name:
                faults = dns_subdomain(subject.name)
                errors += [invalid(path.child("name"), subject.name, fault) for fault in faults]
            if subject.api_group:
                errors.append(not_supported(path.child("apiGroup"), subject.api_group, ("",)))
            if not namespaced and not subject.namespace:
                errors.append(required(path.child("namespace")))
        case "User" | "Group":
            if subject.api_group != _GROUP:
                errors.append(not_supported(path.child("apiGroup"), subject.api_group, (_GROUP,)))
        case _:
            kinds = ("ServiceAccount", "User", "Group")
            errors.append(not_supported(path.child("kind"), subject.kind, kinds))
    return errors


def _create_binding(binding: RoleBinding, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(binding.metadata, path_segment_name, namespaced=True)
    errors += _binding(binding.role_ref, binding.subjects, namespaced=True)
    return errors + _without_names(binding.role_ref, binding.subjects)


def _create_cluster_binding(binding: ClusterRoleBinding, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(binding.metadata, path_segment_name, namespaced=False)
    errors += _binding(binding.role_ref, binding.subjects, namespaced=False)
    return errors + _without_names(binding.role_ref, binding.subjects)


def _update_binding(new: RoleBinding, old: RoleBinding, ctx: Context) -> list[FieldError]:
    errors = _binding(new.role_ref, new.subjects, namespaced=True)
    errors += validate_metadata_update(new.metadata, old.metadata)
    errors += check_immutable(new.role_ref, old.role_ref, _ROLE_REF)
    return errors + _without_names(new.role_ref, new.subjects)


def _update_cluster_binding(
    new: ClusterRoleBinding, old: ClusterRoleBinding, ctx: Context
) -> list[FieldError]:
    errors = _binding(new.role_ref, new.subjects, namespaced=False)
    errors += validate_metadata_update(new.metadata, old.metadata)
    errors += check_immutable(new.role_ref, old.role_ref, _ROLE_REF)
    return errors + _without_names(new.role_ref, new.subjects)


ROLE: Final = Validator(create=_create_role, update=_update_role, status=None, name=path_segment_name)
CLUSTER_ROLE: Final = Validator(
    create=_create_cluster_role, update=_update_cluster_role, status=None, name=path_segment_name
)
ROLE_BINDING: Final = Validator(
    create=_create_binding, update=_update_binding, status=None, name=path_segment_name
)
CLUSTER_ROLE_BINDING: Final = Validator(
    create=_create_cluster_binding, update=_update_cluster_binding, status=None, name=path_segment_name
)

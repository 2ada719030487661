"""Roles and bindings: rules name verbs and what they are about, bindings name a role once and for all.

Required lists and names are reported after all other faults, as Kubernetes does.
"""

from __future__ import annotations

from typing import Final, TypeAlias

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
from nodeward.rules.names import path_segment_name
from nodeward.validation.checks import (
    Fields,
    check_each,
    check_immutable,
    check_one_of,
    check_present,
    check_subdomain,
    form,
    one_of,
)
from nodeward.validation.kinds import Step, changed, kind, made
from nodeward.validation.meta.labels import has_invalid_label_value, is_usable, validate_label_selector
from nodeward.validation.validator import Validator

_GROUP: Final = "rbac.authorization.k8s.io"
_RULES: Final = ROOT.child("rules")
_SELECTORS: Final = ROOT.child("aggregationRule", "clusterRoleSelectors")
_ROLE_REF: Final = ROOT.child("roleRef")
_SUBJECTS: Final = ROOT.child("subjects")
_VERBS: Final = Fields(PolicyRule, verbs=check_present)
_NAMES: Final = Fields(Subject, name=check_present)
AnyBinding: TypeAlias = RoleBinding | ClusterRoleBinding


def _rules(rules: list[PolicyRule], *, namespaced: bool) -> list[FieldError]:
    return check_each(rules, _RULES, lambda rule, at: _rule(rule, at, namespaced=namespaced))


def _without_verbs(new: Role | ClusterRole, old: Role | ClusterRole | None, ctx: Context) -> list[FieldError]:
    return check_each(new.rules, _RULES, _VERBS)


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


def _role(new: Role, old: Role | None, ctx: Context) -> list[FieldError]:
    return _rules(new.rules, namespaced=True)


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


def _cluster_role(new: ClusterRole, old: ClusterRole | None, ctx: Context) -> list[FieldError]:
    before = old.aggregation_rule.cluster_role_selectors if old and old.aggregation_rule else []
    is_lenient = any(has_invalid_label_value(selector) for selector in before)
    return _rules(new.rules, namespaced=False) + _aggregation(new, allow_invalid_values=is_lenient)


def _binding(*, namespaced: bool) -> Step:
    ref = Fields(
        RoleRef,
        api_group=one_of(_GROUP),
        kind=one_of("Role", "ClusterRole") if namespaced else one_of("ClusterRole"),
        name=form(path_segment_name),
    )

    def rules(new: AnyBinding, old: AnyBinding | None, ctx: Context) -> list[FieldError]:
        return ref(new.role_ref, _ROLE_REF) + check_each(
            new.subjects, _SUBJECTS, lambda subject, at: _subject(subject, at, namespaced=namespaced)
        )

    return rules


def _without_names(new: AnyBinding, old: AnyBinding | None, ctx: Context) -> list[FieldError]:
    errors = check_each(new.subjects, _SUBJECTS, _NAMES)
    return errors + check_present(new.role_ref.name, _ROLE_REF.child("name"))


def _same_role(new: AnyBinding, old: AnyBinding, ctx: Context) -> list[FieldError]:
    return check_immutable(new.role_ref, old.role_ref, _ROLE_REF)


def _subject(subject: Subject, path: FieldPath, *, namespaced: bool) -> list[FieldError]:
    match subject.kind:
        case "ServiceAccount":
            errors = check_subdomain(subject.name or None, path.child("name"))
            errors += check_one_of(subject.api_group, path.child("apiGroup"), ("",))
            return (
                errors if namespaced else errors + check_present(subject.namespace, path.child("namespace"))
            )
        case "User" | "Group":
            return check_one_of(subject.api_group, path.child("apiGroup"), (_GROUP,))
        case _:
            return [not_supported(path.child("kind"), subject.kind, ("ServiceAccount", "User", "Group"))]


def _kind(rules: Step, last: Step, *changes: Step, namespaced: bool) -> Validator:
    """Unlike elsewhere an update is asked for the kind's own rules first; `last` is derived from the types."""
    name = made(path_segment_name, namespaced=namespaced)
    update = (rules, changed, *changes, last)
    return kind(path_segment_name, rules, create=(name, rules, last), update=update)


ROLE: Final = _kind(_role, _without_verbs, namespaced=True)
CLUSTER_ROLE: Final = _kind(_cluster_role, _without_verbs, namespaced=False)
ROLE_BINDING: Final = _kind(_binding(namespaced=True), _without_names, _same_role, namespaced=True)
CLUSTER_ROLE_BINDING: Final = _kind(_binding(namespaced=False), _without_names, _same_role, namespaced=False)

"""What is allowed in a pod but probably not meant: texts for the Warning header.

Pods are warned about when they are made; templates (`pod_template_warnings`, for the kinds that carry one) whenever
they are written.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.affinity import PodAffinity, PodAntiAffinity
from nodeward.api.core_v1.pod import Pod, PodSpec, PodTemplate, PodTemplateSpec
from nodeward.api.core_v1.references import NodeSelectorTerm
from nodeward.api.meta import ObjectMeta
from nodeward.base.fielderror import quote
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_label, label_value_faults
from nodeward.rules.pod_resources import Amounts
from nodeward.validation.meta.addresses import ip_warnings
from nodeward.validation.pod.annotations import (
    APPARMOR,
    APPARMOR_DEPRECATED,
    SECCOMP_CONTAINER,
    SECCOMP_POD,
    apparmor_profile_of,
)
from nodeward.validation.pod.options import AnyContainer, containers_with_path
from nodeward.validation.pod.volume_warnings import fraction_warnings, volume_warnings
from nodeward.validation.pod.warnings_ports import port_warnings

DEPRECATED_NODE_LABELS: Final = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_DEPRECATED_ANNOTATIONS: Final = (
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        'non-functional in v1.16+; use the "priorityClassName" field instead',
    ),
    ("security.alpha.kubernetes.io/sysctls", 'non-functional in v1.11+; use the "sysctls" field instead'),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        'non-functional in v1.11+; use the "sysctls" field instead',
    ),
)
_NO_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NULL_SELECTOR: Final = "a null labelSelector results in matching no pod"
_WHOLE_BYTES: Final = ("memory", "ephemeral-storage")


def pod_warnings(new: Pod, old: Pod | None, ctx: Context) -> list[str]:
    if old is not None:
        return []
    warnings: list[str] = []
    if faults := dns_label(new.metadata.name):
        warnings.append(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(faults)}]"
        )
    return warnings + _spec_warnings(new.spec, new.metadata, ROOT, ctx, is_template=False)


def pod_template_kind_warnings(new: PodTemplate, old: PodTemplate | None, ctx: Context) -> list[str]:
    return pod_template_warnings(new.template, ROOT.child("template"), ctx)


def pod_template_warnings(template: PodTemplateSpec, path: FieldPath, ctx: Context) -> list[str]:
    """For a template inside another kind, at `path`."""
    return _spec_warnings(template.spec, template.metadata, path, ctx, is_template=True)


def pod_status_warnings(pod: Pod) -> list[str]:
    """For writes of the status: addresses that are not in their standard form."""
    status = ROOT.child("status")
    warnings: list[str] = []
    for i, pod_ip in enumerate(pod.status.pod_ips):
        warnings += ip_warnings(pod_ip.ip, status.child("podIPs").index(i).child("ip"))
    for i, host_ip in enumerate(pod.status.host_ips):
        warnings += ip_warnings(host_ip.ip, status.child("hostIPs").index(i).child("ip"))
    return warnings


def _spec_warnings(
    spec: PodSpec, meta: ObjectMeta, path: FieldPath, ctx: Context, *, is_template: bool
) -> list[str]:
    at = path.child("spec")
    annotations = path.child("metadata", "annotations")
    warnings = [
        f"{at.child('nodeSelector').key(key)}: {DEPRECATED_NODE_LABELS[key]}"
        for key in spec.node_selector
        if key in DEPRECATED_NODE_LABELS
    ]
    if spec.affinity is not None or spec.topology_spread_constraints:
        warnings += _placement(spec, at)
    if meta.annotations:
        warnings += [
            f"{annotations.key(key)}: {message}"
            for key, message in _DEPRECATED_ANNOTATIONS
            if key in meta.annotations
        ]
    if spec.volumes:
        warnings += volume_warnings(spec.volumes, at.child("volumes"), ctx)
    if spec.host_aliases:
        warnings += _repeated([alias.ip for alias in spec.host_aliases], "ip", at.child("hostAliases"))
    if spec.image_pull_secrets:
        secrets = at.child("imagePullSecrets")
        names = [secret.name for secret in spec.image_pull_secrets]
        warnings += _repeated(names, "name", secrets)
        warnings += [
            f'{secrets.index(i).child("name")}: invalid empty name ""'
            for i, name in enumerate(names)
            if not name
        ]
    if spec.overhead:
        warnings += _fractions(spec.overhead, {}, at.child("overhead"), at)
    context = spec.security_context
    if SECCOMP_POD in meta.annotations and (context is None or context.seccomp_profile is None):
        warnings.append(f"{annotations.key(SECCOMP_POD)}: {_NO_SECCOMP}")
    for container, where in containers_with_path(spec, at):
        if meta.annotations:
            warnings += _container_annotations(container, spec, meta, annotations, is_template)
        limits, requests = container.resources.limits, container.resources.requests
        if limits or requests:
            resources = where.child("resources")
            warnings += _fractions(limits, requests, resources.child("limits"), resources.child("requests"))
        if len(container.env) > 1:
            warnings += _hidden_variables(container, where)
    warnings += port_warnings(spec, at)
    grace = spec.termination_grace_period_seconds
    if grace is not None and grace < 0:
        warnings.append(
            f"{at.child('terminationGracePeriodSeconds')}: must be >= 0; "
            "negative values are invalid and will be treated as 1"
        )
    if spec.affinity is not None:
        affinity = at.child("affinity")
        warnings += _null_selectors(spec.affinity.pod_affinity, affinity.child("podAffinity"))
        warnings += _null_selectors(spec.affinity.pod_anti_affinity, affinity.child("podAntiAffinity"))
    if spec.dns_config is not None:
        for i, nameserver in enumerate(spec.dns_config.nameservers):
            warnings += ip_warnings(nameserver, at.child("dnsConfig", "nameservers").index(i))
    for i, alias in enumerate(spec.host_aliases):
        warnings += ip_warnings(alias.ip, at.child("hostAliases").index(i).child("ip"))
    return warnings


def _placement(spec: PodSpec, path: FieldPath) -> list[str]:
    warnings: list[str] = []
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is not None:
        at = path.child("affinity", "nodeAffinity")
        selector = affinity.required_during_scheduling_ignored_during_execution
        if selector is not None:
            terms = at.child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
            for i, term in enumerate(selector.node_selector_terms):
                warnings += _node_term(term, terms.index(i), check_values=False)
        for i, preferred in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
            where = at.child("preferredDuringSchedulingIgnoredDuringExecution").index(i).child("preference")
            warnings += _node_term(preferred.preference, where, check_values=True)
    for i, constraint in enumerate(spec.topology_spread_constraints):
        at = path.child("topologySpreadConstraints").index(i)
        key = constraint.topology_key
        if key in DEPRECATED_NODE_LABELS:
            warnings.append(f"{at.child('topologyKey')}: {key} is {DEPRECATED_NODE_LABELS[key]}")
        if constraint.label_selector is None:
            warnings.append(f"{at.child('labelSelector')}: {_NULL_SELECTOR}")
    return warnings


def _node_term(term: NodeSelectorTerm, path: FieldPath, *, check_values: bool) -> list[str]:
    warnings: list[str] = []
    for i, expression in enumerate(term.match_expressions):
        at = path.child("matchExpressions").index(i)
        if expression.key in DEPRECATED_NODE_LABELS:
            message = DEPRECATED_NODE_LABELS[expression.key]
            warnings.append(f"{at.child('key')}: {expression.key} is {message}")
        if check_values:
            warnings += [
                f"{at.child('values').index(j)}: {value} is invalid, {fault}"
                for j, value in enumerate(expression.values)
                for fault in label_value_faults(value)
            ]
    return warnings


def _null_selectors(affinity: PodAffinity | PodAntiAffinity | None, path: FieldPath) -> list[str]:
    if affinity is None:
        return []
    required = path.child("requiredDuringSchedulingIgnoredDuringExecution")
    preferred = path.child("preferredDuringSchedulingIgnoredDuringExecution")
    warnings = [
        f"{required.index(i).child('labelSelector')}: {_NULL_SELECTOR}"
        for i, term in enumerate(affinity.required_during_scheduling_ignored_during_execution)
        if term.label_selector is None
    ]
    return warnings + [
        f"{preferred.index(i).child('podAffinityTerm', 'labelSelector')}: {_NULL_SELECTOR}"
        for i, weighted in enumerate(affinity.preferred_during_scheduling_ignored_during_execution)
        if weighted.pod_affinity_term.label_selector is None
    ]


def _repeated(values: list[str], name: str, path: FieldPath) -> list[str]:
    first = {value: i for i, value in reversed(list(enumerate(values)))}
    return [
        f"{path.index(i).child(name)}: duplicate {name} {quote(value)}"
        for i, value in enumerate(values)
        if first[value] < i
    ]


def _fractions(
    limits: Amounts, requests: Amounts, limits_path: FieldPath, requests_path: FieldPath
) -> list[str]:
    warnings: list[str] = []
    for name in _WHOLE_BYTES:
        if name in limits:
            warnings += fraction_warnings(limits[name], limits_path, name)
        if name in requests:
            warnings += fraction_warnings(requests[name], requests_path, name)
    return warnings


def _container_annotations(
    container: AnyContainer, spec: PodSpec, meta: ObjectMeta, path: FieldPath, is_template: bool
) -> list[str]:
    warnings: list[str] = []
    own = container.security_context
    key = SECCOMP_CONTAINER + container.name
    if key in meta.annotations and (own is None or own.seccomp_profile is None):
        warnings.append(f"{path.key(key)}: {_NO_SECCOMP}")
    key = APPARMOR + container.name
    # For pods the annotation is copied into the field when they are made, and warned about there.
    if is_template and key in meta.annotations and (own is None or own.app_armor_profile is None):
        context = spec.security_context
        of_pod = context.app_armor_profile if context is not None else None
        if of_pod is None or of_pod != apparmor_profile_of(meta.annotations[key]):
            warnings.append(f"{path.key(key)}: {APPARMOR_DEPRECATED}")
    return warnings


def _hidden_variables(container: AnyContainer, path: FieldPath) -> list[str]:
    warnings: list[str] = []
    seen: set[str] = set()
    for i, variable in enumerate(container.env):
        if variable.name not in seen:
            seen.add(variable.name)
            continue
        reference = f"$({variable.name})"
        extends = variable.value_from is None and variable.value != reference and reference in variable.value
        if not extends:
            warnings.append(
                f"{path.child('env').index(i)}: hides previous definition of {quote(variable.name)}, "
                "which may be dropped when using apply"
            )
    return warnings

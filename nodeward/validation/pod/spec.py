"""What a pod may ask for: the rules of `PodSpec`, for pods and for templates.

The order of the checks is the order of the errors a user sees, and it is upstream's. A field that is not set costs a
look at it and nothing more: thousands of plain pods pass here every second.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.api.core_v1.pod import PodResourceClaim, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.base.fielderror import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_label, dns_subdomain, in_range, label_key_faults
from nodeward.validation.meta.labels import validate_labels
from nodeward.validation.pod.affinity import validate_affinity
from nodeward.validation.pod.annotations import is_mirror
from nodeward.validation.pod.container import (
    Surroundings,
    validate_containers,
    validate_ephemeral_containers,
    validate_init_containers,
)
from nodeward.validation.pod.extras import (
    validate_eviction_responders,
    validate_file_key_volumes,
    validate_scheduling_gates,
    validate_scheduling_group,
)
from nodeward.validation.pod.host import (
    validate_dns,
    validate_host_aliases,
    validate_host_ports,
    validate_host_users,
    validate_hostname_override,
)
from nodeward.validation.pod.options import PodOptions
from nodeward.validation.pod.pod_level_resources import validate_pod_resources
from nodeward.validation.pod.resource_lists import validate_container_resource_name, validate_requirements
from nodeward.validation.pod.security import validate_pod_security_context
from nodeward.validation.pod.security_windows import (
    validate_host_process,
    validate_linux_pod,
    validate_windows_pod,
)
from nodeward.validation.pod.spread import validate_spread
from nodeward.validation.pod.tolerations import validate_tolerations
from nodeward.validation.pod.volume import validate_volumes

_RESTART_POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS_POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES: Final = ("PreemptLowerPriority", "Never")
_OS: Final = ("linux", "windows")
_LARGEST_INT32: Final = 2**31 - 1
_NO_CLAIMS: Final[frozenset[str]] = frozenset()


def validate_pod_spec(
    spec: PodSpec, meta: ObjectMeta | None, path: FieldPath, options: PodOptions
) -> list[FieldError]:
    """`meta` is the pod's; None for a template."""
    errors: list[FieldError] = []
    if spec.termination_grace_period_seconds is None:
        errors.append(required(path.child("terminationGracePeriodSeconds")))
    _workload(spec, meta, path, options, errors)
    _policies(spec, path, options, errors)
    _placement(spec, path, options, errors)
    _names(spec, path, errors)
    _rest(spec, path, options, errors)
    return errors


def _workload(
    spec: PodSpec,
    meta: ObjectMeta | None,
    path: FieldPath,
    options: PodOptions,
    errors: list[FieldError],
) -> None:
    """Volumes, claims, containers, and what they use together."""
    volumes, faults = (
        validate_volumes(spec.volumes, meta, path.child("volumes"), options) if spec.volumes else ({}, [])
    )
    errors += faults
    claim_names = _NO_CLAIMS
    if spec.resource_claims:
        claim_names = frozenset(claim.name for claim in spec.resource_claims if claim.name)
        errors += _claims(spec.resource_claims, meta, path.child("resourceClaims"))
    around = Surroundings(spec, volumes, claim_names, options)
    errors += validate_containers(around, path.child("containers"))
    if spec.init_containers:
        errors += validate_init_containers(around, path.child("initContainers"))
    if spec.ephemeral_containers:
        errors += validate_ephemeral_containers(around, path.child("ephemeralContainers"))
    if spec.resources is not None and options.pod_level_resources():
        errors += validate_pod_resources(spec, spec.resources, path, claim_names, options)
    if spec.host_network:
        errors += validate_host_ports(spec, path, is_pod=options.is_pod)


def _policies(spec: PodSpec, path: FieldPath, options: PodOptions, errors: list[FieldError]) -> None:
    if spec.restart_policy not in _RESTART_POLICIES:
        at = path.child("restartPolicy")
        errors.append(
            not_supported(at, spec.restart_policy, _RESTART_POLICIES) if spec.restart_policy else required(at)
        )
    if spec.dns_policy not in _DNS_POLICIES:
        at = path.child("dnsPolicy")
        errors.append(not_supported(at, spec.dns_policy, _DNS_POLICIES) if spec.dns_policy else required(at))
    if spec.node_selector:
        errors += validate_labels(spec.node_selector, path.child("nodeSelector"))
    if spec.security_context is not None:
        at = path.child("securityContext")
        errors += validate_pod_security_context(spec.security_context, spec, at, options)
    if spec.share_process_namespace and spec.host_pid:
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(path.child("shareProcessNamespace"), True, detail))


def _placement(spec: PodSpec, path: FieldPath, options: PodOptions, errors: list[FieldError]) -> None:
    if spec.affinity is not None:
        errors += validate_affinity(spec.affinity, path.child("affinity"), options)
    if spec.dns_config is not None or spec.dns_policy == "None":
        errors += validate_dns(spec, path.child("dnsConfig"), options)
    for i, gate in enumerate(spec.readiness_gates):
        at = path.child("readinessGates").index(i).child("conditionType")
        errors += [invalid(at, gate.condition_type, f) for f in label_key_faults(gate.condition_type)]
    if spec.scheduling_gates:
        errors += validate_scheduling_gates(spec.scheduling_gates, path.child("schedulingGates"))
    if spec.topology_spread_constraints:
        at = path.child("topologySpreadConstraints")
        errors += validate_spread(spec.topology_spread_constraints, at, options)
    errors += validate_host_process(spec, path)
    if spec.host_users is False:
        errors += validate_host_users(spec, path, options)
    if spec.hostname_override is not None:
        errors += validate_hostname_override(spec, spec.hostname_override, path)


def _names(spec: PodSpec, path: FieldPath, errors: list[FieldError]) -> None:
    if spec.service_account_name:
        name = spec.service_account_name
        if faults := dns_subdomain(name):
            errors += [invalid(path.child("serviceAccountName"), name, fault) for fault in faults]
    if spec.service_account != spec.service_account_name:
        detail = f'must be the same as serviceAccountName: "{spec.service_account_name}"'
        errors.append(invalid(path.child("deprecatedServiceAccount"), spec.service_account, detail))
    if spec.node_name and (faults := dns_subdomain(spec.node_name)):
        errors += [invalid(path.child("nodeName"), spec.node_name, fault) for fault in faults]
    seconds = spec.active_deadline_seconds
    if seconds is not None and not 1 <= seconds <= _LARGEST_INT32:
        at = path.child("activeDeadlineSeconds")
        errors.append(invalid(at, seconds, in_range(1, _LARGEST_INT32)))
    if spec.hostname:
        errors += [
            invalid(path.child("hostname"), spec.hostname, fault) for fault in dns_label(spec.hostname)
        ]
    if spec.subdomain:
        errors += [invalid(path.child("subdomain"), spec.subdomain, f) for f in dns_label(spec.subdomain)]


def _rest(spec: PodSpec, path: FieldPath, options: PodOptions, errors: list[FieldError]) -> None:
    if spec.tolerations:
        at = path.child("tolerations")
        errors += validate_tolerations(spec.tolerations, at, options.comparison_operators)
    if spec.host_aliases:
        errors += validate_host_aliases(spec.host_aliases, path.child("hostAliases"), options)
    if spec.priority_class_name:
        name = spec.priority_class_name
        errors += [invalid(path.child("priorityClassName"), name, fault) for fault in dns_subdomain(name)]
    if spec.runtime_class_name is not None:
        name = spec.runtime_class_name
        errors += [invalid(path.child("runtimeClassName"), name, fault) for fault in dns_subdomain(name)]
    policy = spec.preemption_policy
    if policy is not None and policy not in _PREEMPTION_POLICIES:
        at = path.child("preemptionPolicy")
        errors.append(not_supported(at, policy, _PREEMPTION_POLICIES) if policy else required(at))
    if spec.overhead:
        errors += validate_requirements(
            ResourceRequirements(limits=spec.overhead),
            path.child("overhead"),
            validate_container_resource_name,
            _NO_CLAIMS,
            options.indivisible_hugepages,
        )
    if spec.os is not None:
        errors += _os(spec, spec.os.name, path)
    if spec.scheduling_group is not None:
        errors += validate_scheduling_group(spec.scheduling_group, spec, path.child("schedulingGroup"))
    errors += validate_file_key_volumes(spec, path)
    if spec.eviction_responders:
        errors += validate_eviction_responders(spec.eviction_responders, path.child("evictionResponders"))


def _os(spec: PodSpec, name: str, path: FieldPath) -> list[FieldError]:
    if not name:
        return [required(path.child("os", "name"))]
    if name == "linux":
        return validate_linux_pod(spec, path)
    if name == "windows":
        return validate_windows_pod(spec, path)
    return [not_supported(path.child("os"), name, _OS)]


def _claims(claims: list[PodResourceClaim], meta: ObjectMeta | None, path: FieldPath) -> list[FieldError]:
    if is_mirror(meta):
        return [forbidden(ROOT, "static pods do not support resource claims") for _ in claims]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, claim in enumerate(claims):
        at = path.index(i)
        if not claim.name:
            errors.append(required(at.child("name")))
        elif claim.name in seen:
            errors.append(duplicate(at.child("name"), claim.name))
        else:
            errors += [invalid(at.child("name"), claim.name, fault) for fault in dns_label(claim.name)]
            seen.add(claim.name)
        name, template = claim.resource_claim_name, claim.resource_claim_template_name
        if name is not None and template is not None:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.append(invalid(at, claim, detail))
        if name is None and template is None:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(invalid(at, claim, detail))
        if name is not None:
            errors += [invalid(at.child("resourceClaimName"), name, fault) for fault in dns_subdomain(name)]
        if template is not None:
            where = at.child("resourceClaimTemplateName")
            errors += [invalid(where, template, fault) for fault in dns_subdomain(template)]
    return errors

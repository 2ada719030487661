"""Changes of a pod between defaulting and validation that need gates or the stored pod.

Called by the strategies of pods and workloads. `prepare_pod` is for create and returns warnings;
`drop_disabled_pod_fields` also runs on every kind of update. All change the pod in place.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.affinity import PodAffinity, PodAffinityTerm, PodAntiAffinity
from nodeward.api.core_v1.container import Container, EphemeralContainer, SecurityContext
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.defaults.pod_gates import drop_disabled_spec_fields
from nodeward.api.defaults.pod_status_gates import drop_disabled_status_fields
from nodeward.api.meta import LabelSelector, LabelSelectorRequirement
from nodeward.rules.pod_resources import container_limits, container_requests
from nodeward.rules.resource_names import is_hugepages, is_overcommit_allowed, is_pod_level
from nodeward.validation.meta.metadata import METADATA
from nodeward.validation.pod.annotations import APPARMOR, APPARMOR_DEPRECATED, apparmor_profile_of
from nodeward.validation.pod.security import validate_apparmor

_INIT_ANNOTATIONS: Final = tuple(
    f"pod.{stage}.kubernetes.io/init-container{what}"
    for stage in ("beta", "alpha")
    for what in ("s", "-statuses")
)


def prepare_pod(pod: Pod, ctx: Context) -> list[str]:
    """Prepare a new pod: drop fields of disabled features, merge match label keys, complete pod-level resources.

    Returns texts for the Warning header.
    """
    drop_disabled_pod_fields(pod, None, ctx)
    _merge_label_keys(pod, ctx)
    warnings = _copy_apparmor(pod) if pod.metadata.annotations else []
    if pod.spec.resources is not None and ctx.on("PodLevelResources"):
        default_pod_level_resources(pod.spec)
    return warnings


def drop_disabled_pod_fields(pod: Pod, old: Pod | None, ctx: Context) -> None:
    drop_disabled_spec_fields(pod.spec, old.spec if old is not None else None, ctx)
    drop_disabled_status_fields(pod, old, ctx)
    if pod.metadata.annotations:
        for key in _INIT_ANNOTATIONS:
            pod.metadata.annotations.pop(key, None)


def default_pod_level_resources(spec: PodSpec) -> None:
    """Complete a pod's own resources, where it names some but not all, from its containers.

    Also called for a resize, before it is validated.
    """
    own = spec.resources
    if own is None or not (own.requests or own.limits):
        return
    limits = container_limits(spec)
    for name, total in limits.items():
        if is_hugepages(name) and name not in own.requests:
            own.limits.setdefault(name, total)
    for name, total in container_requests(spec).items():
        if is_pod_level(name) and is_overcommit_allowed(name):
            own.requests.setdefault(name, total)
    for name, limit in own.limits.items():
        if is_pod_level(name):
            own.requests.setdefault(name, limit)
    everyone: list[Container | EphemeralContainer] = [
        *spec.containers,
        *spec.init_containers,
        *spec.ephemeral_containers,
    ]
    for name, request in own.requests.items():
        if (
            is_pod_level(name)
            and name not in own.limits
            and all(name in c.resources.limits for c in everyone)
        ):
            own.limits[name] = max(request, limits[name])


def _merge_label_keys(pod: Pod, ctx: Context) -> None:
    labels, affinity = pod.metadata.labels, pod.spec.affinity
    if affinity is not None and ctx.on("MatchLabelKeysInPodAffinity"):
        for half in (affinity.pod_affinity, affinity.pod_anti_affinity):
            if half is not None:
                for term in _terms(half):
                    _merge(term.label_selector, term.match_label_keys, "In", labels)
                    _merge(term.label_selector, term.mismatch_label_keys, "NotIn", labels)
    constraints = pod.spec.topology_spread_constraints
    if constraints and (
        ctx.on("MatchLabelKeysInPodTopologySpread")
        and ctx.on("MatchLabelKeysInPodTopologySpreadSelectorMerge")
    ):
        for constraint in constraints:
            _merge(constraint.label_selector, constraint.match_label_keys, "In", labels)


def _terms(half: PodAffinity | PodAntiAffinity) -> list[PodAffinityTerm]:
    preferred = half.preferred_during_scheduling_ignored_during_execution
    return [
        *(weighted.pod_affinity_term for weighted in preferred),
        *half.required_during_scheduling_ignored_during_execution,
    ]


def _merge(selector: LabelSelector | None, keys: list[str], operator: str, labels: dict[str, str]) -> None:
    if selector is not None:
        selector.match_expressions += [
            LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
            for key in keys
            if key in labels
        ]


def _copy_apparmor(pod: Pod) -> list[str]:
    """Copy the deprecated annotation to the field, unless the field is set already."""
    spec = pod.spec
    if spec.os is not None and spec.os.name == "windows":
        return []
    warnings: list[str] = []
    of_pod = spec.security_context.app_armor_profile if spec.security_context is not None else None
    for container in (*spec.init_containers, *spec.containers):
        key = APPARMOR + container.name
        own = container.security_context
        if key not in pod.metadata.annotations or (own is not None and own.app_armor_profile is not None):
            continue
        profile = apparmor_profile_of(pod.metadata.annotations[key])
        if profile is not None and validate_apparmor(profile, METADATA):
            profile = None
        if profile is not None and profile == of_pod:
            continue
        if profile is not None:
            if container.security_context is None:
                container.security_context = SecurityContext()
            container.security_context.app_armor_profile = profile
        warnings.append(f"{METADATA.child('annotations').key(key)}: {APPARMOR_DEPRECATED}")
    return warnings

"""Fields of disabled feature gates in pods and templates: dropped before validation.

A field stays when the stored object already uses it, so that disabling a gate does not change existing objects. All
changes are in place. Called on create and update by `apiserver/resources/pod_preparation.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from nodeward.api.context import Context
from nodeward.api.core_v1.affinity import PodAffinityTerm
from nodeward.api.core_v1.container import Container, EphemeralContainer, HTTPGetAction, Lifecycle, Probe
from nodeward.api.core_v1.pod import PodSpec
from nodeward.api.core_v1.volume import VolumeProjection
from nodeward.api.defaults.volume_owner import drop_owners, has_owners


def drop_disabled_spec_fields(spec: PodSpec, old: PodSpec | None, ctx: Context) -> None:
    """Drop the fields of disabled gates from the spec of a pod or template."""
    for rule in _closed(ctx):
        if rule.is_used(spec) and (old is None or not rule.is_used(old)):
            rule.drop(spec)


class _Rule(NamedTuple):
    gate: str
    is_used: Callable[[PodSpec], bool]
    drop: Callable[[PodSpec], None]


@functools.lru_cache(maxsize=64)
def _closed(ctx: Context) -> tuple[_Rule, ...]:
    """Return the rules of disabled gates: the same for every object of a server."""
    return tuple(rule for rule in _RULES if not ctx.on(rule.gate))


def _containers(spec: PodSpec) -> Iterator[Container | EphemeralContainer]:
    yield from spec.init_containers
    yield from spec.containers
    yield from spec.ephemeral_containers


def _probes(spec: PodSpec) -> Iterator[Probe]:
    for container in _containers(spec):
        for probe in (container.liveness_probe, container.readiness_probe, container.startup_probe):
            if probe is not None:
                yield probe


def _http_gets(spec: PodSpec) -> Iterator[HTTPGetAction]:
    for probe in _probes(spec):
        if probe.http_get is not None:
            yield probe.http_get
    for container in _containers(spec):
        if container.lifecycle is not None:
            for hook in (container.lifecycle.post_start, container.lifecycle.pre_stop):
                if hook is not None and hook.http_get is not None:
                    yield hook.http_get


def _projections(spec: PodSpec) -> Iterator[VolumeProjection]:
    for volume in spec.volumes:
        if volume.projected is not None:
            yield from volume.projected.sources


def _affinity_terms(spec: PodSpec) -> Iterator[PodAffinityTerm]:
    if spec.affinity is not None:
        for half in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            if half is not None:
                yield from half.required_during_scheduling_ignored_during_execution
                for weighted in half.preferred_during_scheduling_ignored_during_execution:
                    yield weighted.pod_affinity_term


def _drop_host_users(spec: PodSpec) -> None:
    spec.host_users = None


def _has_groups_policy(spec: PodSpec) -> bool:
    return spec.security_context is not None and spec.security_context.supplemental_groups_policy is not None


def _drop_groups_policy(spec: PodSpec) -> None:
    if spec.security_context is not None:
        spec.security_context.supplemental_groups_policy = None


def _has_resources(spec: PodSpec) -> bool:
    return spec.resources is not None and bool(spec.resources.requests or spec.resources.limits)


def _drop_resources(spec: PodSpec) -> None:
    spec.resources = None


def _has_proc_mount(spec: PodSpec) -> bool:
    return any(
        c.security_context is not None and c.security_context.proc_mount not in (None, "Default")
        for c in _containers(spec)
    )


def _drop_proc_mount(spec: PodSpec) -> None:
    for container in _containers(spec):
        if container.security_context is not None and container.security_context.proc_mount is not None:
            container.security_context.proc_mount = "Default"


def _drop_inclusion_policies(spec: PodSpec) -> None:
    for constraint in spec.topology_spread_constraints:
        constraint.node_affinity_policy = constraint.node_taints_policy = None


def _drop_spread_keys(spec: PodSpec) -> None:
    for constraint in spec.topology_spread_constraints:
        constraint.match_label_keys = []


def _drop_affinity_keys(spec: PodSpec) -> None:
    for term in _affinity_terms(spec):
        term.match_label_keys, term.mismatch_label_keys = [], []


def _drop_claims(spec: PodSpec) -> None:
    spec.resource_claims = []
    for container in _containers(spec):
        container.resources.claims = []


def _drop_trust_bundles(spec: PodSpec) -> None:
    for source in _projections(spec):
        source.cluster_trust_bundle = None


def _drop_certificates(spec: PodSpec) -> None:
    for source in _projections(spec):
        source.pod_certificate = None


def _drop_scheduling_group(spec: PodSpec) -> None:
    spec.scheduling_group = None


def _drop_grpc_mode(spec: PodSpec) -> None:
    for probe in _probes(spec):
        if probe.grpc is not None:
            probe.grpc.mode = None


def _drop_eviction_responders(spec: PodSpec) -> None:
    spec.eviction_responders = []


def _drop_resize_policies(spec: PodSpec) -> None:
    for container in _containers(spec):
        container.resize_policy = []


def _has_restart_rules(spec: PodSpec) -> bool:
    return any(
        c.restart_policy not in (None, "Always") or c.restart_policy_rules for c in spec.init_containers
    ) or any(c.restart_policy is not None or c.restart_policy_rules for c in spec.containers)


def _drop_restart_rules(spec: PodSpec) -> None:
    for container in _containers(spec):
        container.restart_policy_rules = []
    for init_container in spec.init_containers:
        if init_container.restart_policy != "Always":  # sidecars are older than the rules
            init_container.restart_policy = None
    for regular in spec.containers:
        regular.restart_policy = None
    for ephemeral in spec.ephemeral_containers:
        ephemeral.restart_policy = None


def _drop_recursive_read_only(spec: PodSpec) -> None:
    for container in _containers(spec):
        for mount in container.volume_mounts:
            mount.recursive_read_only = None


def _drop_bind_options(spec: PodSpec) -> None:
    for container in _containers(spec):
        for mount in container.volume_mounts:
            mount.bind_mount_options = []


def _drop_empty_dir_modes(spec: PodSpec) -> None:
    for volume in spec.volumes:
        if volume.empty_dir is not None:
            volume.empty_dir.mode = None


def _drop_hostname_override(spec: PodSpec) -> None:
    spec.hostname_override = None


def _has_file_keys(spec: PodSpec) -> bool:
    return any(
        v.value_from is not None and v.value_from.file_key_ref is not None
        for c in _containers(spec)
        for v in c.env
    )


def _drop_file_keys(spec: PodSpec) -> None:
    for container in _containers(spec):
        for variable in container.env:
            if variable.value_from is not None:
                variable.value_from.file_key_ref = None


def _drop_image_volumes(spec: PodSpec) -> None:
    names = {volume.name for volume in spec.volumes if volume.image is not None}
    spec.volumes = [volume for volume in spec.volumes if volume.image is None]
    for container in _containers(spec):
        container.volume_mounts = [m for m in container.volume_mounts if m.name not in names]


def _has_selinux_policy(spec: PodSpec) -> bool:
    return spec.security_context is not None and spec.security_context.se_linux_change_policy is not None


def _drop_selinux_policy(spec: PodSpec) -> None:
    if spec.security_context is not None:
        spec.security_context.se_linux_change_policy = None


def _drop_stop_signals(spec: PodSpec) -> None:
    for container in _containers(spec):
        if container.lifecycle is not None and container.lifecycle.stop_signal is not None:
            container.lifecycle.stop_signal = None
            if container.lifecycle == Lifecycle():
                container.lifecycle = None


def _drop_http_protocols(spec: PodSpec) -> None:
    for action in _http_gets(spec):
        action.protocol = None


_RULES: Final[tuple[_Rule, ...]] = (
    _Rule("UserNamespacesSupport", lambda s: s.host_users is not None, _drop_host_users),
    _Rule("SupplementalGroupsPolicy", _has_groups_policy, _drop_groups_policy),
    _Rule("PodLevelResources", _has_resources, _drop_resources),
    _Rule("ProcMountType", _has_proc_mount, _drop_proc_mount),
    _Rule(
        "NodeInclusionPolicyInPodTopologySpread",
        lambda s: any(c.node_affinity_policy or c.node_taints_policy for c in s.topology_spread_constraints),
        _drop_inclusion_policies,
    ),
    _Rule(
        "MatchLabelKeysInPodTopologySpread",
        lambda s: any(c.match_label_keys for c in s.topology_spread_constraints),
        _drop_spread_keys,
    ),
    _Rule(
        "MatchLabelKeysInPodAffinity",
        lambda s: any(t.match_label_keys or t.mismatch_label_keys for t in _affinity_terms(s)),
        _drop_affinity_keys,
    ),
    _Rule("DynamicResourceAllocation", lambda s: bool(s.resource_claims), _drop_claims),
    _Rule(
        "ClusterTrustBundleProjection",
        lambda s: any(p.cluster_trust_bundle is not None for p in _projections(s)),
        _drop_trust_bundles,
    ),
    _Rule(
        "PodCertificateRequest",
        lambda s: any(p.pod_certificate is not None for p in _projections(s)),
        _drop_certificates,
    ),
    _Rule("AtomicWriteVolumeUserFields", lambda s: has_owners(s.volumes), lambda s: drop_owners(s.volumes)),
    _Rule("GenericWorkload", lambda s: s.scheduling_group is not None, _drop_scheduling_group),
    _Rule(
        "GRPCContainerProbeTLS",
        lambda s: any(p.grpc is not None and p.grpc.mode is not None for p in _probes(s)),
        _drop_grpc_mode,
    ),
    _Rule("EvictionRequestAPI", lambda s: bool(s.eviction_responders), _drop_eviction_responders),
    _Rule(
        "InPlacePodVerticalScaling",
        lambda s: any(c.resize_policy for c in _containers(s)),
        _drop_resize_policies,
    ),
    _Rule("ContainerRestartRules", _has_restart_rules, _drop_restart_rules),
    _Rule(
        "RecursiveReadOnlyMounts",
        lambda s: any(m.recursive_read_only is not None for c in _containers(s) for m in c.volume_mounts),
        _drop_recursive_read_only,
    ),
    _Rule(
        "EmptyDirVolumeMode",
        lambda s: any(v.empty_dir is not None and v.empty_dir.mode is not None for v in s.volumes),
        _drop_empty_dir_modes,
    ),
    _Rule(
        "VolumeBindMountOptions",
        lambda s: any(m.bind_mount_options for c in _containers(s) for m in c.volume_mounts),
        _drop_bind_options,
    ),
    _Rule("HostnameOverride", lambda s: s.hostname_override is not None, _drop_hostname_override),
    _Rule("EnvFiles", _has_file_keys, _drop_file_keys),
    _Rule("ImageVolume", lambda s: any(v.image is not None for v in s.volumes), _drop_image_volumes),
    _Rule("SELinuxChangePolicy", _has_selinux_policy, _drop_selinux_policy),
    _Rule(
        "ContainerStopSignals",
        lambda s: any(
            c.lifecycle is not None and c.lifecycle.stop_signal is not None for c in _containers(s)
        ),
        _drop_stop_signals,
    ),
    _Rule(
        "H2CContainerProbe",
        lambda s: any(action.protocol is not None for action in _http_gets(s)),
        _drop_http_protocols,
    ),
)

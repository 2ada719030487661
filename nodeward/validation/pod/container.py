"""Containers of a pod: regular ones, init containers and sidecars, ephemeral ones.

All share the rules in `_common`; what differs is who may have probes and hooks, restart on its own, or use resources.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from nodeward.api.core_v1.container import Container, ContainerPort, EphemeralContainer
from nodeward.api.core_v1.pod import PodSpec
from nodeward.api.core_v1.volume import Volume
from nodeward.base.fielderror import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import dns_label, port_name, port_number
from nodeward.rules.pod_resources import is_sidecar
from nodeward.validation.pod.container_env import validate_env, validate_env_from
from nodeward.validation.pod.container_mounts import validate_devices, validate_mounts
from nodeward.validation.pod.container_restart import (
    validate_init_restart,
    validate_resize_policy,
    validate_restart,
)
from nodeward.validation.pod.options import AnyContainer, PodOptions
from nodeward.validation.pod.probe import (
    validate_lifecycle,
    validate_liveness_probe,
    validate_readiness_probe,
)
from nodeward.validation.pod.resource_lists import validate_container_resource_name, validate_requirements
from nodeward.validation.pod.security import validate_security_context
from nodeward.validation.pod.volume import PULL_POLICIES, validate_pull_policy

_MESSAGE_POLICIES: Final = ("File", "FallbackToLogsOnError")
_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_SIDECARS_ONLY: Final = "may not be set for init containers without restartPolicy=Always"
_NOT_EPHEMERAL: Final = "cannot be set for an Ephemeral Container"


class Surroundings(NamedTuple):
    """What a container's rules need of the pod around it."""

    spec: PodSpec
    volumes: dict[str, Volume]
    claim_names: frozenset[str]
    options: PodOptions


def validate_containers(around: Surroundings, path: FieldPath) -> list[FieldError]:
    containers = around.spec.containers
    if not containers:
        return [required(path)]
    errors: list[FieldError] = []
    names: set[str] = set()
    for i, container in enumerate(containers):
        at = path.index(i)
        _common(container, at, around, errors)
        if container.name in names:
            errors.append(duplicate(at.child("name"), container.name))
        names.add(container.name)
        _hooks(container, at, around.spec, errors)
        errors += validate_restart(container, at, around.options)
    _host_ports(containers, path, errors)
    return errors


def validate_init_containers(around: Surroundings, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    names = {container.name for container in around.spec.containers}
    for i, container in enumerate(around.spec.init_containers):
        at = path.index(i)
        _common(container, at, around, errors)
        errors += validate_init_restart(container, at, around.options)
        if container.name in names:
            errors.append(duplicate(at.child("name"), container.name))
        elif container.name:
            names.add(container.name)
        _host_ports([container], path, errors)
        if is_sidecar(container):
            _hooks(container, at, around.spec, errors)
        else:
            errors += [
                forbidden(at.child(name), _SIDECARS_ONLY)
                for name, hook in (
                    ("lifecycle", container.lifecycle),
                    ("livenessProbe", container.liveness_probe),
                    ("readinessProbe", container.readiness_probe),
                    ("startupProbe", container.startup_probe),
                )
                if hook is not None
            ]
        if container.resize_policy:
            _init_resize_policy(container, at.child("resizePolicy"), around.options, errors)
    return errors


def _init_resize_policy(
    container: Container, path: FieldPath, options: PodOptions, errors: list[FieldError]
) -> None:
    if not options.sidecar_resize_policy():
        errors.append(invalid(path, container.resize_policy, "must not be set for init containers"))
    if not is_sidecar(container) and not options.restart_container_for_init():
        detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
        errors += [
            invalid(path.index(i).child("restartPolicy"), policy.restart_policy, detail)
            for i, policy in enumerate(container.resize_policy)
            if policy.restart_policy == "RestartContainer"
        ]


def validate_ephemeral_containers(around: Surroundings, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    spec = around.spec
    others = {container.name for container in (*spec.containers, *spec.init_containers)}
    names = set(others)
    for i, container in enumerate(spec.ephemeral_containers):
        at = path.index(i)
        _common(container, at, around, errors)
        errors += validate_image_padding(container, at)
        if container.name in names:
            errors.append(duplicate(at.child("name"), container.name))
        names.add(container.name)
        target = container.target_container_name
        if target and target not in others:
            errors.append(not_found(at.child("targetContainerName"), target))
        _not_for_ephemeral(container, at, errors)
    return errors


def _not_for_ephemeral(container: EphemeralContainer, path: FieldPath, errors: list[FieldError]) -> None:
    has_resources = container.resources.limits or container.resources.requests or container.resources.claims
    errors += [
        forbidden(path.child(name), _NOT_EPHEMERAL)
        for name, is_set in (
            ("ports", bool(container.ports)),
            ("resources", bool(has_resources)),
            ("resizePolicy", bool(container.resize_policy)),
            ("restartPolicy", container.restart_policy is not None),
            ("restartPolicyRules", bool(container.restart_policy_rules)),
            ("livenessProbe", container.liveness_probe is not None),
            ("readinessProbe", container.readiness_probe is not None),
            ("startupProbe", container.startup_probe is not None),
            ("lifecycle", container.lifecycle is not None),
        )
        if is_set
    ]
    for i, mount in enumerate(container.volume_mounts):
        at = path.child("volumeMounts").index(i)
        if mount.sub_path:
            errors.append(forbidden(at.child("subPath"), _NOT_EPHEMERAL))
        if mount.sub_path_expr:
            errors.append(forbidden(at.child("subPathExpr"), _NOT_EPHEMERAL))


def validate_image_padding(container: AnyContainer, path: FieldPath) -> list[FieldError]:
    """Pods are stricter than templates: no blanks around the image."""
    if container.image == container.image.strip():
        return []
    detail = "must not have leading or trailing whitespace"
    return [invalid(path.child("image"), container.image, detail)]


def _common(container: AnyContainer, path: FieldPath, around: Surroundings, errors: list[FieldError]) -> None:
    if not container.name:
        errors.append(required(path.child("name")))
    elif faults := dns_label(container.name):
        errors += [invalid(path.child("name"), container.name, fault) for fault in faults]
    if not container.image:
        errors.append(required(path.child("image")))
    policy = container.termination_message_policy
    if policy not in _MESSAGE_POLICIES:
        at = path.child("terminationMessagePolicy")
        errors.append(not_supported(at, policy, _MESSAGE_POLICIES) if policy else required(at))
    if container.ports:
        _ports(container.ports, path.child("ports"), errors)
    if container.env:
        errors += validate_env(container.env, path.child("env"), around.options)
    if container.env_from:
        errors += validate_env_from(container.env_from, path.child("envFrom"), around.options)
    if container.volume_mounts:
        errors += validate_mounts(container, around.volumes, path.child("volumeMounts"))
    if container.volume_devices:
        at = path.child("volumeDevices")
        errors += validate_devices(container.volume_devices, container.volume_mounts, around.volumes, at)
    if container.image_pull_policy not in PULL_POLICIES:
        errors += validate_pull_policy(container.image_pull_policy, path.child("imagePullPolicy"))
    resources = container.resources
    if resources.limits or resources.requests or resources.claims:
        errors += validate_requirements(
            resources,
            path.child("resources"),
            validate_container_resource_name,
            around.claim_names,
            around.options.indivisible_hugepages,
        )
    if container.resize_policy:
        at = path.child("resizePolicy")
        errors += validate_resize_policy(container.resize_policy, around.spec.restart_policy, at)
    if container.security_context is not None:
        errors += validate_security_context(
            container.security_context,
            path.child("securityContext"),
            host_users=around.spec.host_users is not False,
            options=around.options,
        )


def _hooks(container: Container, path: FieldPath, spec: PodSpec, errors: list[FieldError]) -> None:
    grace = spec.termination_grace_period_seconds
    if container.lifecycle is not None:
        errors += validate_lifecycle(container.lifecycle, grace, spec.os, path.child("lifecycle"))
    if container.liveness_probe is not None:
        errors += validate_liveness_probe(container.liveness_probe, grace, path.child("livenessProbe"))
    if container.readiness_probe is not None:
        errors += validate_readiness_probe(container.readiness_probe, grace, path.child("readinessProbe"))
    if container.startup_probe is not None:
        errors += validate_liveness_probe(container.startup_probe, grace, path.child("startupProbe"))


def _ports(ports: list[ContainerPort], path: FieldPath, errors: list[FieldError]) -> None:
    names: set[str] = set()
    for i, port in enumerate(ports):
        if port.name:
            at = path.index(i).child("name")
            if faults := port_name(port.name):
                errors += [invalid(at, port.name, fault) for fault in faults]
            elif port.name in names:
                errors.append(duplicate(at, port.name))
            names.add(port.name)
        if not port.container_port:
            errors.append(required(path.index(i).child("containerPort")))
        elif faults := port_number(port.container_port):
            at = path.index(i).child("containerPort")
            errors += [invalid(at, port.container_port, fault) for fault in faults]
        if port.host_port and (faults := port_number(port.host_port)):
            at = path.index(i).child("hostPort")
            errors += [invalid(at, port.host_port, fault) for fault in faults]
        if port.protocol not in _PROTOCOLS:
            at = path.index(i).child("protocol")
            errors.append(not_supported(at, port.protocol, _PROTOCOLS) if port.protocol else required(at))


def _host_ports(containers: list[Container], path: FieldPath, errors: list[FieldError]) -> None:
    taken: set[str] = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.ports):
            if port.host_port:
                place = f"{port.protocol}/{port.host_ip}/{port.host_port}"
                if place in taken:
                    at = path.index(i).child("ports").index(j).child("hostPort")
                    errors.append(duplicate(at, place))
                taken.add(place)

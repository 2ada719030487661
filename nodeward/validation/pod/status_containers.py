"""The statuses of containers: steps they may take, users they run as, health of the devices they were given."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodOS, PodSpec
from nodeward.api.core_v1.pod_status import (
    ContainerStatus,
    PodExtendedResourceClaimStatus,
    PodStatus,
    ResourceHealth,
    ResourceStatus,
)
from nodeward.base.fielderror import (
    FieldError,
    forbidden,
    invalid,
    required,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import group_id, in_range
from nodeward.rules.pod_resources import is_sidecar
from nodeward.validation.checks import (
    Distinct,
    Fields,
    check_each,
    check_form,
    check_present,
    check_size,
    one_of,
)
from nodeward.validation.pod.options import PodOptions

_MESSAGE_LIMIT: Final = 1024
_IMAGE_REF_LIMIT: Final = 256
_LARGEST_UINT32: Final = 2**32 - 1
_STAYS_ENDED: Final = "may not be transitioned to non-terminated state"


def validate_container_transitions(
    new: PodStatus, old: Pod, options: PodOptions, path: FieldPath
) -> list[FieldError]:
    """A container that ended and is not to be restarted stays ended."""
    spec, was = old.spec, old.status
    errors: list[FieldError] = []
    for name, containers, before, after in (
        ("containerStatuses", spec.containers, was.container_statuses, new.container_statuses),
        (
            "initContainerStatuses",
            spec.init_containers,
            was.init_container_statuses,
            new.init_container_statuses,
        ),
    ):
        revived = _revived(before, after)
        by_name = {container.name: container for container in reversed(containers)} if revived else {}
        if revived and not _all_restart(spec, options):
            errors += [
                forbidden(path.child(name).index(i).child("state"), _STAYS_ENDED)
                for i, code in revived
                if not _restarts(by_name.get(before[i].name), code, spec, options)
            ]
    at = path.child("ephemeralContainerStatuses")
    errors += [
        forbidden(at.index(i).child("state"), _STAYS_ENDED)
        for i, _ in _revived(was.ephemeral_container_statuses, new.ephemeral_container_statuses)
    ]
    return errors


def _revived(old: list[ContainerStatus], new: list[ContainerStatus]) -> list[tuple[int, int]]:
    """Places in `old` (with exit codes) of containers that had ended and now have not."""
    if not any(status.state.terminated is not None for status in old):
        return []
    alive = {status.name for status in new if status.state.terminated is None}
    return [
        (i, status.state.terminated.exit_code)
        for i, status in enumerate(old)
        if status.state.terminated is not None and status.name in alive
    ]


def _all_restart(spec: PodSpec, options: PodOptions) -> bool:
    """May any exit restart every container?"""
    return (
        any(
            rule.action == "RestartAllContainers"
            for container in (*spec.init_containers, *spec.containers)
            for rule in container.restart_policy_rules
        )
        and options.restart_rules()
        and options.restart_all_containers()
    )


def _restarts(container: Container | None, exit_code: int, spec: PodSpec, options: PodOptions) -> bool:
    if options.restart_rules():
        return container is not None and _own_rules_restart(container, exit_code, spec)
    if container is not None and is_sidecar(container):
        return True
    return spec.restart_policy == "Always" or (spec.restart_policy == "OnFailure" and exit_code != 0)


def _own_rules_restart(container: Container, exit_code: int, spec: PodSpec) -> bool:
    policy = spec.restart_policy
    if container.restart_policy is not None:
        policy = container.restart_policy
        for rule in container.restart_policy_rules:
            codes = rule.exit_codes
            if codes is not None and (exit_code in codes.values) == (codes.operator == "In"):
                if rule.action == "Restart":
                    return True
                break
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _message(message: str | None, path: FieldPath) -> list[FieldError]:
    if message == "":
        return [required(path, "must be non-empty if specified")]
    return check_size(message, path, _MESSAGE_LIMIT)


def validate_users(statuses: list[ContainerStatus], os: PodOS | None, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    name = os.name if os is not None else "linux"
    for i, status in enumerate(statuses):
        user = status.user.linux if status.user is not None else None
        if user is None:
            continue
        at = path.index(i).child("user", "linux")
        if name == "windows":
            errors.append(forbidden(at, "cannot be set for a windows pod"))
        elif name == "linux":
            if not 0 <= user.uid <= _LARGEST_UINT32:
                errors.append(invalid(at.child("uid"), user.uid, in_range(0, _LARGEST_UINT32)))
            errors += check_form(user.gid, at.child("gid"), group_id)
            for j, group in enumerate(user.supplemental_groups):
                errors += check_form(group, at.child("supplementalGroups").index(j), group_id)
    return errors


def validate_allocated_resources(
    statuses: list[ContainerStatus], pod: Pod, name: str, path: FieldPath
) -> list[FieldError]:
    """Health of devices: only for what the container asked for, and never for ephemeral containers."""
    errors: list[FieldError] = []
    containers = pod.spec.init_containers if name == "initContainerStatuses" else pod.spec.containers
    by_name = {container.name: container for container in reversed(containers)}
    for i, status in enumerate(statuses):
        at = path.index(i).child("allocatedResourcesStatus")
        if name == "ephemeralContainerStatuses":
            if status.allocated_resources_status:
                errors.append(forbidden(at, "must not be specified in container status"))
            continue
        container = by_name.get(status.name)
        for j, resource in enumerate(status.allocated_resources_status):
            if container is not None:
                detail = _not_asked_for(resource.name, container, pod.status.extended_resource_claim_status)
                if detail:
                    errors.append(invalid(at.index(j).child("name"), resource.name, detail))
            errors += _health(resource, at.index(j).child("resources"))
    return errors


def _not_asked_for(name: str, container: Container, extended: PodExtendedResourceClaimStatus | None) -> str:
    if not name.startswith("claim:"):
        if name in container.resources.requests:
            return ""
        return "must match one of the container's resource requests"
    reference = name.removeprefix("claim:")
    asked = {
        f"{claim.name}/{claim.request}" if claim.request else claim.name
        for claim in container.resources.claims
    }
    if reference in asked or _is_extended(reference, container, extended):
        return ""
    return (
        "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when "
        "container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
    )


def _is_extended(
    reference: str, container: Container, extended: PodExtendedResourceClaimStatus | None
) -> bool:
    claim, _, request = reference.partition("/")
    if extended is None or not request or claim != extended.resource_claim_name:
        return False
    return any(
        mapping.container_name == container.name
        and mapping.request_name == request
        and bool(container.resources.requests.get(mapping.resource_name))
        for mapping in extended.request_mappings
    )


_HEALTH: Final = Fields(ResourceHealth, health=one_of("Healthy", "Unhealthy", "Unknown"), message=_message)


def _health(resource: ResourceStatus, path: FieldPath) -> list[FieldError]:
    seen = Distinct()
    return check_each(
        resource.resources,
        path,
        lambda item, at: _HEALTH(item, at) + seen.add(item.resource_id, at.child("resourceID")),
    )


def validate_volume_mount_statuses(statuses: list[ContainerStatus], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, status in enumerate(statuses):
        for j, mount in enumerate(status.volume_mounts):
            image = mount.volume_status.image if mount.volume_status is not None else None
            if image is None:
                continue
            at = path.index(i).child("volumeMounts").index(j)
            where = at.child("volumeStatus", "imageVolumeStatus", "imageRef")
            errors += check_present(image.image_ref, where, "imageRef must not be empty")
            errors += check_size(image.image_ref, where, _IMAGE_REF_LIMIT)
    return errors

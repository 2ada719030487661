"""Fields of a pod's status behind features that are off: dropped, unless the stored pod already uses them."""

from __future__ import annotations

from collections.abc import Iterator

from nodeward.api.context import Context
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import ContainerStatus, PodStatus, VolumeMountStatus


def drop_disabled_status_fields(pod: Pod, old: Pod | None, ctx: Context) -> None:
    status = pod.status
    was = old.status if old is not None else PodStatus()
    spec = old.spec if old is not None else None
    has_resize_policy = spec is not None and any(
        container.resize_policy for container in (*spec.containers, *spec.init_containers)
    )
    if not ctx.on("InPlacePodLevelResourcesVerticalScaling") and not (
        was.resources or was.allocated_resources
    ):
        status.resources, status.allocated_resources = None, {}
    if not ctx.on("InPlacePodVerticalScaling") and not has_resize_policy:
        for container in _containers(status):
            container.resources, container.allocated_resources = None, {}
    if not ctx.on("DynamicResourceAllocation") and not (spec is not None and spec.resource_claims):
        status.resource_claim_statuses = []
    if not ctx.on("DRAExtendedResource") and was.extended_resource_claim_status is None:
        status.extended_resource_claim_status = None
    if not ctx.on("DRANodeAllocatableResources") and not was.node_allocatable_resource_claim_statuses:
        status.node_allocatable_resource_claim_statuses = []
    if not ctx.on("CSIVolumeHealth") and not was.volume_health:
        status.volume_health = []
    if not ctx.on("PodObservedGenerationTracking") and not (
        was.observed_generation or any(condition.observed_generation for condition in was.conditions)
    ):
        status.observed_generation = 0
        for condition in status.conditions:
            condition.observed_generation = 0
    if status.container_statuses or status.init_container_statuses or status.ephemeral_container_statuses:
        _container_fields(pod, old, was, ctx)


def _container_fields(pod: Pod, old: Pod | None, was: PodStatus, ctx: Context) -> None:
    status = pod.status
    if not ctx.on("RecursiveReadOnlyMounts") and not _uses_recursive_read_only(old):
        for container in _containers(status):
            container.volume_mounts = []
    if not ctx.on("ResourceHealthStatus") and not any(
        container.allocated_resources_status for container in _containers(was)
    ):
        for container in _containers(status):
            container.allocated_resources_status = []
    if not ctx.on("ResourceHealthStatusMessage") and not any(
        health.message is not None
        for container in _containers(was)
        for resource in container.allocated_resources_status
        for health in resource.resources
    ):
        for container in _containers(status):
            for resource in container.allocated_resources_status:
                for health in resource.resources:
                    health.message = None
    context = old.spec.security_context if old is not None else None
    if not ctx.on("SupplementalGroupsPolicy") and not (
        context is not None and context.supplemental_groups_policy is not None
    ):
        for container in _containers(status):
            container.user = None
    if not ctx.on("ImageVolumeWithDigest") and not any(
        mount.volume_status is not None for mount in _mounts(was)
    ):
        for mount in _mounts(status):
            mount.volume_status = None


def _containers(status: PodStatus) -> Iterator[ContainerStatus]:
    yield from status.container_statuses
    yield from status.init_container_statuses
    yield from status.ephemeral_container_statuses


def _mounts(status: PodStatus) -> Iterator[VolumeMountStatus]:
    for container in _containers(status):
        yield from container.volume_mounts


def _uses_recursive_read_only(old: Pod | None) -> bool:
    if old is None:
        return False
    spec = old.spec
    lists = [
        container.volume_mounts
        for containers in (spec.containers, spec.init_containers, spec.ephemeral_containers)
        for container in containers
    ]
    return any(mount.recursive_read_only is not None for mounts in lists for mount in mounts)

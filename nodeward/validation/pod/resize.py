"""Changing the resources of a pod that runs: the subresource `resize`.

Only cpu and memory of containers (and of the pod as a whole, under its gate) may change, nothing may disappear, and the
quality-of-service class stays.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeward.api.context import Context
from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.volume import Volume
from nodeward.base.fielderror import FieldError, forbidden, invalid
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.pod_resources import Amounts, is_sidecar
from nodeward.rules.qos import pod_qos, qos_class
from nodeward.validation.meta.metadata import validate_metadata_update
from nodeward.validation.pod.annotations import is_mirror
from nodeward.validation.pod.options import PodOptions
from nodeward.validation.pod.pod import SPEC, validate_pod_metadata_and_spec
from nodeward.validation.pod.resize_dra import uncovered_by_pod
from nodeward.validation.validator import distinct

_POD_LEVEL_GATE: Final = "InPlacePodLevelResourcesVerticalScaling"
_VOLUMES_GATE: Final = "InPlacePodVerticalScalingMemoryBackedVolumes"
_INIT_GATE: Final = "InPlacePodVerticalScalingInitContainers"
_ONLY_COMPUTE: Final = "only cpu and memory resources are mutable"


def validate_pod_resize(new: Pod, old: Pod, ctx: Context) -> list[FieldError]:
    if is_mirror(old.metadata):
        return [forbidden(ROOT, "static pods cannot be resized")]
    if old.spec.os is not None and old.spec.os.name == "windows":
        return [forbidden(ROOT, "windows pods cannot be resized")]
    errors = validate_metadata_update(new.metadata, old.metadata)
    errors += validate_pod_metadata_and_spec(new, PodOptions(ctx, old.spec, old.metadata, is_pod=True))
    if pod_qos(old) != qos_class(new.spec):
        detail = "Pod QOS Class may not change as a result of resizing"
        errors.append(invalid(SPEC, new.status.qos_class, detail))
    if not _node_can_resize(old):
        errors.append(forbidden(SPEC, "Pod running on node without support for resize"))
    rest = msgspec.structs.replace(new.spec)
    if _has_resources(old.spec) or _has_resources(new.spec):
        if not ctx.on(_POD_LEVEL_GATE):
            detail = (
                "resize of pods with pod-level resources is forbidden when "
                "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
            )
            return distinct([*errors, forbidden(ROOT, detail)])
        errors += _pod_level(new, old, rest, ctx)
    if faults := _same_containers(new.spec, old.spec):
        return distinct(errors + faults)
    errors += _nothing_removed(new.spec, old.spec, ctx)
    rest.containers = [
        _with_old_compute(mine, theirs)
        for mine, theirs in zip(new.spec.containers, old.spec.containers, strict=True)
    ]
    errors += [
        forbidden(SPEC, _ONLY_COMPUTE)
        for mine, theirs in zip(rest.containers, old.spec.containers, strict=True)
        if mine != theirs
    ]
    rest.init_containers, faults = _init_containers(new.spec, old.spec, ctx)
    errors += faults
    if ctx.on(_VOLUMES_GATE):
        errors += _volumes(new.spec.volumes, old.spec.volumes)
        rest.volumes = old.spec.volumes
    elif new.spec.volumes != old.spec.volumes:
        detail = (
            "volumes are immutable on resize when InPlacePodVerticalScalingMemoryBackedVolumes "
            "feature gate is disabled"
        )
        errors.append(forbidden(SPEC.child("volumes"), detail))
    if not errors and rest != old.spec:
        errors.append(forbidden(SPEC, _ONLY_COMPUTE))
    return distinct(errors)


def _node_can_resize(pod: Pod) -> bool:
    """A kubelet that can resize reports the resources of what runs."""
    for status in pod.status.container_statuses:
        if status.state.running is not None:
            return status.resources is not None
    return True


def _has_resources(spec: PodSpec) -> bool:
    return spec.resources is not None and bool(spec.resources.requests or spec.resources.limits)


def _same_containers(new: PodSpec, old: PodSpec) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, mine, theirs in (
        ("containers", new.containers, old.containers),
        ("initContainers", new.init_containers, old.init_containers),
    ):
        if len(mine) != len(theirs):
            errors.append(forbidden(SPEC.child(name), f"{name} may not be added or removed on resize"))
            continue
        errors += [
            forbidden(
                SPEC.child(name).index(i).child("name"), f"{name} may not be renamed or reordered on resize"
            )
            for i, (a, b) in enumerate(zip(mine, theirs, strict=True))
            if a.name != b.name
        ]
    return errors


def _nothing_removed(new: PodSpec, old: PodSpec, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, (mine, theirs) in enumerate(zip(new.init_containers, old.init_containers, strict=True)):
        if is_sidecar(theirs) or ctx.on(_INIT_GATE):
            errors += _removed(mine, theirs, SPEC.child("initContainers").index(i).child("resources"))
    for i, (mine, theirs) in enumerate(zip(new.containers, old.containers, strict=True)):
        errors += _removed(mine, theirs, SPEC.child("containers").index(i).child("resources"))
    return errors


def _removed(new: Container, old: Container, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if old.resources.requests.keys() - new.resources.requests.keys():
        errors.append(forbidden(path.child("requests"), "resource requests cannot be removed"))
    if old.resources.limits.keys() - new.resources.limits.keys():
        errors.append(forbidden(path.child("limits"), "resource limits cannot be removed"))
    return errors


def _old_compute(new: Amounts, old: Amounts) -> Amounts:
    """`new` with cpu and memory as they were."""
    rest = {name: quantity for name, quantity in new.items() if name not in ("cpu", "memory")}
    return rest | {name: old[name] for name in ("cpu", "memory") if name in old}


def _with_old_compute(new: Container, old: Container) -> Container:
    resources = ResourceRequirements(
        limits=_old_compute(new.resources.limits, old.resources.limits),
        requests=_old_compute(new.resources.requests, old.resources.requests),
        claims=new.resources.claims,
    )
    return msgspec.structs.replace(new, resources=resources)


def _init_containers(new: PodSpec, old: PodSpec, ctx: Context) -> tuple[list[Container], list[FieldError]]:
    rest: list[Container] = []
    errors: list[FieldError] = []
    for i, (mine, theirs) in enumerate(zip(new.init_containers, old.init_containers, strict=True)):
        at = SPEC.child("initContainers").index(i)
        is_changed = mine != theirs
        if not is_sidecar(mine) and not ctx.on(_INIT_GATE):
            if is_changed:
                detail = "resources for non-sidecar init containers are immutable"
                errors.append(forbidden(SPEC, detail))
            rest.append(mine)
            continue
        container = _with_old_compute(mine, theirs)
        rest.append(container)
        if container != theirs:
            detail = "only cpu and memory resources for init or sidecar containers are mutable"
            errors.append(forbidden(at, detail))
        if is_changed and not is_sidecar(mine):
            detail = "non-sidecar init containers with a resize policy of RestartContainer cannot be resized"
            errors += [
                forbidden(at, detail)
                for policy in container.resize_policy
                if policy.restart_policy == "RestartContainer"
            ]
    return rest, errors


def _pod_level(new: Pod, old: Pod, rest: PodSpec, ctx: Context) -> list[FieldError]:
    path = SPEC.child("resources")
    mine, theirs = new.spec.resources, old.spec.resources
    if mine is None:
        return [forbidden(path, "pod-level resources cannot be removed")]
    errors: list[FieldError] = []
    if theirs is not None:
        if theirs.requests.keys() - mine.requests.keys():
            errors.append(forbidden(path.child("requests"), "pod-level resource requests cannot be removed"))
        if theirs.limits.keys() - mine.limits.keys():
            errors.append(forbidden(path.child("limits"), "pod-level resource limits cannot be removed"))
    was = theirs or ResourceRequirements()
    rest.resources = ResourceRequirements(
        limits=_old_compute(mine.limits, was.limits),
        requests=_old_compute(mine.requests, was.requests),
        claims=mine.claims,
    )
    if theirs is None and rest.resources == ResourceRequirements():
        rest.resources = None
    if rest.resources != theirs:
        errors.append(forbidden(SPEC, f"{_ONLY_COMPUTE} at pod-level"))
    has_claims = bool(new.status.node_allocatable_resource_claim_statuses)
    if has_claims and ctx.on("DRANodeAllocatableResources") and (detail := uncovered_by_pod(new, mine)):
        errors.append(invalid(path, mine, detail))
    return errors


def _volumes(new: list[Volume], old: list[Volume]) -> list[FieldError]:
    path = SPEC.child("volumes")
    if len(new) != len(old):
        return [forbidden(path, "volumes may not be added or removed on resize")]
    errors: list[FieldError] = []
    for i, (mine, theirs) in enumerate(zip(new, old, strict=True)):
        if mine.name != theirs.name:
            detail = "volumes may not be renamed or reordered on resize"
            errors.append(forbidden(path.index(i).child("name"), detail))
        else:
            errors += _volume(mine, theirs, path.index(i))
    return errors


def _volume(new: Volume, old: Volume, path: FieldPath) -> list[FieldError]:
    mine, theirs = new.empty_dir, old.empty_dir
    compared = new
    if mine is not None and theirs is not None:
        same_limit = msgspec.structs.replace(mine, size_limit=theirs.size_limit)
        compared = msgspec.structs.replace(new, empty_dir=same_limit)
    if compared != old:
        detail = "only sizeLimit of memory-backed emptyDir volumes is mutable on resize"
        return [forbidden(path, detail)]
    if mine is None or theirs is None:
        return []
    if bool(mine.size_limit) != bool(theirs.size_limit):
        detail = "adding or removing sizeLimit on an existing volume is not allowed"
    elif mine.size_limit != theirs.size_limit and mine.medium != "Memory":
        detail = "sizeLimit is only mutable for memory-backed emptyDir volumes"
    else:
        return []
    return [forbidden(path.child("emptyDir", "sizeLimit"), detail)]

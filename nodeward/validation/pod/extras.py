"""Smaller parts of a pod's spec: scheduling gates and groups, eviction responders, variables from files."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.pod import EvictionResponder, PodSchedulingGate, PodSchedulingGroup, PodSpec
from nodeward.base.fielderror import FieldError, forbidden, invalid, not_found
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import dns_subdomain, label_key_faults
from nodeward.validation.checks import (
    Distinct,
    Fields,
    check_count,
    check_each,
    check_not_negative,
    check_qualified,
    given,
    named,
)
from nodeward.validation.pod.options import containers_of, containers_with_path

_RESPONDERS: Final = 10
_HIGHEST_PRIORITY: Final = 100_000


def validate_scheduling_gates(gates: list[PodSchedulingGate], path: FieldPath) -> list[FieldError]:
    seen = Distinct()
    names = [gate.name for gate in gates]
    return check_each(names, path, lambda name, at: check_qualified(name, at) + seen.add(name, at))


def validate_only_deleted_gates(
    new: list[PodSchedulingGate], old: list[PodSchedulingGate], path: FieldPath
) -> list[FieldError]:
    """Gates hold a pod back from being scheduled; once it is made they only go away."""
    known = {gate.name for gate in old}
    return [
        forbidden(
            path.index(i).child("name"),
            f"only deletion is allowed, but found new scheduling gate '{gate.name}'",
        )
        for i, gate in enumerate(new)
        if gate.name not in known
    ]


def validate_scheduling_group(group: PodSchedulingGroup, spec: PodSpec, path: FieldPath) -> list[FieldError]:
    name = group.pod_group_name
    at = path.child("podGroupName")
    if name is None:
        errors = [invalid(at, None, "must specify one of: `podGroupName`")]
    else:
        errors = [invalid(at, name, fault) for fault in dns_subdomain(name)]
    if spec.eviction_responders:
        errors.append(forbidden(path, "may not be set when evictionResponders is set"))
    return errors


def validate_eviction_responders(responders: list[EvictionResponder], path: FieldPath) -> list[FieldError]:
    names = Distinct()
    return check_count(responders, path, _RESPONDERS) or check_each(
        responders, path, lambda item, at: names.add(item.name, at, item)
    ) + check_each(responders, path, _RESPONDER)


def _prefixed(name: str) -> list[str]:
    needs_prefix = [] if "/" in name else ["must include a prefix (e.g. 'example.com/key')"]
    return list(label_key_faults(name)) or needs_prefix


def _priority(priority: int | None, path: FieldPath) -> list[FieldError]:
    if priority is not None and priority > _HIGHEST_PRIORITY:
        return [invalid(path, priority, f"must be less than or equal to {_HIGHEST_PRIORITY}")]
    return given(priority, path) + check_not_negative(priority, path)


_RESPONDER: Final = Fields(EvictionResponder, name=named(_prefixed), priority=_priority)


def validate_file_key_volumes(spec: PodSpec, path: FieldPath) -> list[FieldError]:
    """A variable read from a file needs the file's volume, and it must be an emptyDir."""
    if not any(
        variable.value_from is not None and variable.value_from.file_key_ref is not None
        for container in containers_of(spec)
        for variable in container.env
    ):
        return []
    errors: list[FieldError] = []
    volumes = {volume.name: volume for volume in spec.volumes}
    for container, at in containers_with_path(spec, path):
        for i, variable in enumerate(container.env):
            source = variable.value_from
            if source is None or source.file_key_ref is None:
                continue
            name = source.file_key_ref.volume_name
            where = at.child("env").index(i).child("valueFrom", "fileKeyRef", "volumeName")
            if name not in volumes:
                errors.append(not_found(where, name))
            elif volumes[name].empty_dir is None:
                errors.append(invalid(where, name, "referenced volume must be of type emptyDir"))
    return errors

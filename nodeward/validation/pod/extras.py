"""Smaller parts of a pod's spec: scheduling gates and groups, eviction responders, variables from files."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.pod import EvictionResponder, PodSchedulingGate, PodSchedulingGroup, PodSpec
from nodeward.base.fielderror import FieldError, duplicate, forbidden, invalid, not_found, required, too_many
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import dns_subdomain, label_key_faults
from nodeward.validation.checks import check_qualified
from nodeward.validation.pod.options import containers_of, containers_with_path

_RESPONDERS: Final = 10
_HIGHEST_PRIORITY: Final = 100_000


def validate_scheduling_gates(gates: list[PodSchedulingGate], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, gate in enumerate(gates):
        errors += check_qualified(gate.name, path.index(i))
        if gate.name in seen:
            errors.append(duplicate(path.index(i), gate.name))
        seen.add(gate.name)
    return errors


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
    if len(responders) > _RESPONDERS:
        return [too_many(path, len(responders), _RESPONDERS)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, responder in enumerate(responders):
        if responder.name in seen:
            errors.append(duplicate(path.index(i), responder))
        seen.add(responder.name)
    for i, responder in enumerate(responders):
        at = path.index(i)
        if not responder.name:
            errors.append(required(at.child("name")))
        else:
            faults = list(label_key_faults(responder.name))
            if not faults and "/" not in responder.name:
                faults = ["must include a prefix (e.g. 'example.com/key')"]
            errors += [invalid(at.child("name"), responder.name, fault) for fault in faults]
        priority = responder.priority
        if priority is None:
            errors.append(required(at.child("priority")))
        elif priority > _HIGHEST_PRIORITY:
            detail = f"must be less than or equal to {_HIGHEST_PRIORITY}"
            errors.append(invalid(at.child("priority"), priority, detail))
        elif priority < 0:
            errors.append(invalid(at.child("priority"), priority, "must be greater than or equal to 0"))
    return errors


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

"""What a pod's status says of the health of its volumes."""

from __future__ import annotations

import re
from typing import Final

from nodeward.api.core_v1.pod import PodSpec
from nodeward.api.core_v1.pod_status import PodVolumeHealth, VolumeHealthCondition
from nodeward.base.fielderror import (
    FieldError,
    duplicate,
    invalid,
    not_found,
    required,
    too_many,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import regex_error
from nodeward.validation.checks import check_choice, check_size

_STATUSES: Final = ("DataLoss", "Degraded", "Inaccessible")
_CONDITIONS: Final = 16
_REASON_LIMIT: Final = 256
_MESSAGE_LIMIT: Final = 1024
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_IS_REASON: Final = re.compile(_REASON).fullmatch
_BAD_REASON: Final = regex_error(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)


def validate_volume_health(health: list[PodVolumeHealth], spec: PodSpec, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    volumes = {volume.name for volume in spec.volumes}
    seen: set[str] = set()
    for i, entry in enumerate(health):
        at = path.index(i)
        if not entry.name:
            errors.append(required(at.child("name")))
        elif entry.name not in volumes:
            errors.append(not_found(at.child("name"), entry.name))
        if entry.name in seen:
            errors.append(duplicate(at, entry))
        seen.add(entry.name)
        errors += validate_volume_health_conditions(entry.health_conditions, at.child("healthConditions"))
    return errors


def validate_volume_health_conditions(
    conditions: list[VolumeHealthCondition], path: FieldPath
) -> list[FieldError]:
    """Of a pod's volume, and of a claim."""
    if len(conditions) > _CONDITIONS:
        return [too_many(path, len(conditions), _CONDITIONS)]
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for i, condition in enumerate(conditions):
        at = path.index(i)
        if (condition.status, condition.reason) in seen:
            errors.append(duplicate(at, condition))
        seen.add((condition.status, condition.reason))
        errors += check_choice(condition.status, at.child("status"), _STATUSES)
        if not condition.reason:
            errors.append(required(at.child("reason")))
        elif not _IS_REASON(condition.reason):
            errors.append(invalid(at.child("reason"), condition.reason, _BAD_REASON))
        errors += check_size(condition.reason, at.child("reason"), _REASON_LIMIT)
        errors += check_size(condition.message, at.child("message"), _MESSAGE_LIMIT)
    return errors

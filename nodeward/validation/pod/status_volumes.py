"""What a pod's status says of the health of its volumes."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.pod import PodSpec
from nodeward.api.core_v1.pod_status import PodVolumeHealth, VolumeHealthCondition
from nodeward.base.fielderror import (
    FieldError,
    not_found,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.validation.checks import (
    Distinct,
    Fields,
    both,
    check_count,
    check_each,
    check_present,
    choice,
    most,
    named,
)
from nodeward.validation.meta.conditions import condition_reason

_CONDITIONS: Final = 16
_REASON_LIMIT: Final = 256
_MESSAGE_LIMIT: Final = 1024


def validate_volume_health(health: list[PodVolumeHealth], spec: PodSpec, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    volumes = {volume.name for volume in spec.volumes}
    seen = Distinct()
    for i, entry in enumerate(health):
        at = path.index(i)
        errors += check_present(entry.name, at.child("name"))
        if entry.name and entry.name not in volumes:
            errors.append(not_found(at.child("name"), entry.name))
        errors += seen.add(entry.name, at, entry)
        errors += _conditions(entry.health_conditions, at.child("healthConditions"))
    return errors


_CONDITION: Final = Fields(
    VolumeHealthCondition,
    status=choice("DataLoss", "Degraded", "Inaccessible"),
    reason=both(named(condition_reason), most(_REASON_LIMIT)),
    message=most(_MESSAGE_LIMIT),
)


def _conditions(conditions: list[VolumeHealthCondition], path: FieldPath) -> list[FieldError]:
    seen = Distinct()
    return check_count(conditions, path, _CONDITIONS) or check_each(
        conditions,
        path,
        lambda item, at: seen.add((item.status, item.reason), at, item) + _CONDITION(item, at),
    )

"""Numbers in workloads: how many, how many percent, never fewer than before.

In go `IntOrString` values and counters with their path, out come field errors.
"""

from __future__ import annotations

from nodeward.api.fields import IntOrString, KubeStruct
from nodeward.base.fielderror import FieldError, invalid
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import percent
from nodeward.validation.checks import check_not_negative


def validate_int_or_percent(value: IntOrString, path: FieldPath) -> list[FieldError]:
    """A number that is not negative, or a percentage."""
    if isinstance(value, str):
        return [invalid(path, value, fault) for fault in percent(value)]
    return check_not_negative(value, path)


def validate_at_most_100_percent(value: IntOrString, path: FieldPath) -> list[FieldError]:
    if isinstance(value, str) and not percent(value) and int(value[:-1]) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


def validate_counts(status: KubeStruct, path: FieldPath, *names: str) -> list[FieldError]:
    """Each named field of `status`, if set, is not negative."""
    errors: list[FieldError] = []
    for name in names:
        value = getattr(status, name)
        if value is not None and value < 0:
            json_name = status.__struct_encode_fields__[status.__struct_fields__.index(name)]
            errors += check_not_negative(value, path.child(json_name))
    return errors


def validate_not_decremented(new: int | None, old: int | None, path: FieldPath) -> list[FieldError]:
    """A collision count only grows; unset counts as zero."""
    if old is not None and (new is None or new < old):
        return [invalid(path, new or 0, "cannot be decremented")]
    return []

"""Priority classes: the reserved names, the highest value a user may give, what never changes."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.base.fielderror import FieldError, forbidden, not_supported, required
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import dns_subdomain
from nodeward.validation.checks import check_immutable
from nodeward.validation.meta.metadata import (
    METADATA,
    validate_metadata,
    validate_metadata_update,
)
from nodeward.validation.validator import Validator

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
#: The classes every cluster has.
SYSTEM_PRIORITIES: Final = {
    "system-node-critical": 2 * HIGHEST_USER_PRIORITY + 1000,
    "system-cluster-critical": 2 * HIGHEST_USER_PRIORITY,
}
_PREFIX: Final = "system-"


def _fault_of_system_class(priority: PriorityClass) -> str:
    name = priority.metadata.name
    value = SYSTEM_PRIORITIES.get(name)
    if value is None:
        return f"{name} is not a known system priority class"
    if priority.value != value:
        return f"value of {name} PriorityClass must be {value}"
    return f"globalDefault of {name} PriorityClass must be false" if priority.global_default else ""


def validate_preemption_policy(policy: str, path: FieldPath) -> list[FieldError]:
    match policy:
        case "PreemptLowerPriority" | "Never":
            return []
        case "":
            return [required(path)]
        case _:
            return [not_supported(path, policy, ("PreemptLowerPriority", "Never"))]


def _create(priority: PriorityClass, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(priority.metadata, dns_subdomain, namespaced=False)
    if priority.metadata.name.startswith(_PREFIX):
        if fault := _fault_of_system_class(priority):
            detail = f"priority class names with '{_PREFIX}' prefix are reserved for system use only. error: {fault}"
            errors.append(forbidden(METADATA.child("name"), detail))
    elif priority.value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        errors.append(forbidden(ROOT.child("value"), detail))
    if priority.preemption_policy is not None:
        errors += validate_preemption_policy(priority.preemption_policy, ROOT.child("preemptionPolicy"))
    return errors


def _update(new: PriorityClass, old: PriorityClass, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata)
    if new.value != old.value:
        errors.append(forbidden(ROOT.child("value"), "may not be changed in an update."))
    at = ROOT.child("preemptionPolicy")
    return errors + check_immutable(new.preemption_policy, old.preemption_policy, at)


PRIORITY_CLASS: Final = Validator(create=_create, update=_update, status=None, name=dns_subdomain)

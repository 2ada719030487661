"""Priority classes: the reserved names, the highest value a user may give, what never changes."""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.base.fielderror import FieldError, forbidden
from nodeward.base.fieldpath import ROOT
from nodeward.rules.names import dns_subdomain
from nodeward.validation.checks import check_choice, check_immutable
from nodeward.validation.kinds import changed, kind
from nodeward.validation.meta.metadata import (
    METADATA,
)

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


POLICIES: Final = ("PreemptLowerPriority", "Never")


def _class(new: PriorityClass, old: None, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    if new.metadata.name.startswith(_PREFIX):
        if fault := _fault_of_system_class(new):
            detail = f"priority class names with '{_PREFIX}' prefix are reserved for system use only. error: {fault}"
            errors.append(forbidden(METADATA.child("name"), detail))
    elif new.value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        errors.append(forbidden(ROOT.child("value"), detail))
    if new.preemption_policy is not None:
        errors += check_choice(new.preemption_policy, ROOT.child("preemptionPolicy"), POLICIES)
    return errors


def _change(new: PriorityClass, old: PriorityClass, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    if new.value != old.value:
        errors.append(forbidden(ROOT.child("value"), "may not be changed in an update."))
    return errors + check_immutable(
        new.preemption_policy, old.preemption_policy, ROOT.child("preemptionPolicy")
    )


PRIORITY_CLASS: Final = kind(dns_subdomain, _class, namespaced=False, update=(changed, _change))

"""Printers of namespaces, config maps, secrets, accounts, quotas, leases, priorities, component statuses."""

from __future__ import annotations

from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.cluster import ComponentStatus, ConfigMap, Namespace, ResourceQuota, Secret
from nodeward.api.meta import KubeObject
from nodeward.api.printing.cells import age
from nodeward.api.printing.printer import AGE, NAME, Cells, Column, Printer
from nodeward.api.scheduling_v1 import PriorityClass


def _name_and_age(obj: KubeObject, now_ns: int) -> Cells:
    return [obj.metadata.name, age(obj, now_ns)]


def _name_and_creation(obj: KubeObject, now_ns: int) -> Cells:
    return [obj.metadata.name, obj.metadata.creation_timestamp or "0001-01-01T00:00:00Z"]


def _namespace(obj: Namespace, now_ns: int) -> Cells:
    return [obj.metadata.name, obj.status.phase, age(obj, now_ns)]


def _secret(obj: Secret, now_ns: int) -> Cells:
    return [obj.metadata.name, obj.type, len(obj.data), age(obj, now_ns)]


def _config_map(obj: ConfigMap, now_ns: int) -> Cells:
    return [obj.metadata.name, len(obj.data) + len(obj.binary_data), age(obj, now_ns)]


def _component_status(obj: ComponentStatus, now_ns: int) -> Cells:
    healthy = next((c for c in obj.conditions if c.type == "Healthy"), None)
    if healthy is None:
        return [obj.metadata.name, "Unknown", "", ""]
    status = "Healthy" if healthy.status == "True" else "Unhealthy"
    return [obj.metadata.name, status, healthy.message, healthy.error]


def _quota(obj: ResourceQuota, now_ns: int) -> Cells:
    requests: list[str] = []
    limits: list[str] = []
    for resource, hard in sorted(obj.status.hard.items()):
        column = limits if resource.startswith("limits.") else requests
        column.append(f"{resource}: {obj.status.used.get(resource, 0)}/{hard}")
    return [obj.metadata.name, ", ".join(requests), ", ".join(limits), age(obj, now_ns)]


def _lease(obj: Lease, now_ns: int) -> Cells:
    return [obj.metadata.name, obj.spec.holder_identity or "", age(obj, now_ns)]


def _priority_class(obj: PriorityClass, now_ns: int) -> Cells:
    return [obj.metadata.name, obj.value, obj.global_default, age(obj, now_ns), obj.preemption_policy or ""]


#: Kinds that have nothing more to show.
NAME_AND_AGE = Printer((NAME, AGE), _name_and_age)
#: Kinds without columns of their own.
DEFAULT = Printer(
    (NAME, Column("Created At", "date", description="When the object was created.")), _name_and_creation
)
NAMESPACE = Printer(
    (NAME, Column("Status", description="Whether the namespace is active or going away."), AGE), _namespace
)
SECRET = Printer(
    (
        NAME,
        Column("Type", description="What the secret is for."),
        Column("Data", description="Entries."),
        AGE,
    ),
    _secret,
)
CONFIG_MAP = Printer((NAME, Column("Data", description="Entries."), AGE), _config_map)
COMPONENT_STATUS = Printer(
    (
        NAME,
        Column("Status", description="Whether the component is healthy."),
        Column("Message", description="What the component says."),
        Column("Error", description="What went wrong when it was asked."),
    ),
    _component_status,
)
RESOURCE_QUOTA = Printer(
    (
        NAME,
        Column("Request", description="Used and allowed amounts, except those of limits."),
        Column("Limit", description="Used and allowed amounts of limits."),
        AGE,
    ),
    _quota,
)
LEASE = Printer((NAME, Column("Holder", description="Who holds the lease."), AGE), _lease)
PRIORITY_CLASS = Printer(
    (
        NAME,
        Column("Value", "integer", description="Priority of pods of this class."),
        Column("Global-Default", "boolean", description="Whether pods without a class get this one."),
        AGE,
        Column("PreemptionPolicy", description="Whether its pods may displace others."),
    ),
    _priority_class,
)

"""What a pod may tell its containers about itself: fields and resources, in variables and in files.

`assigned.cpuset` (KEP-6122: the exclusive CPUs a container has) is a resource for files only, because a variable
could never follow a resize. A server that has heard of the gate DownwardAPIAssignedResources takes it, on or off,
because the kubelet serves it without asking; an older server refuses it as a resource it does not know.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.references import ObjectFieldSelector, ResourceFieldSelector
from nodeward.base.fielderror import FieldError, invalid, not_supported, required
from nodeward.base.fieldpath import FieldPath
from nodeward.base.quantity import Quantity
from nodeward.rules.names import label_key_faults

ASSIGNED_CPUSET: Final = "assigned.cpuset"
ASSIGNED_GATE: Final = "DownwardAPIAssignedResources"

#: Fields a variable may show, and a file may show.
ENV_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
FILE_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_KNOWN_FIELDS: Final = frozenset(
    {*ENV_FIELDS, *FILE_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"}
)
_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_FILE_RESOURCES: Final = (ASSIGNED_CPUSET, *_RESOURCES)
_HUGEPAGES: Final = ("requests.hugepages-", "limits.hugepages-")

_CPU_DIVISORS: Final = frozenset({"1m", "1"})
_BYTE_DIVISORS: Final = (
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
)  # fmt: skip


def validate_field_ref(
    selector: ObjectFieldSelector, supported: tuple[str, ...], path: FieldPath
) -> list[FieldError]:
    if not selector.api_version:
        return [required(path.child("apiVersion"))]
    if not selector.field_path:
        return [required(path.child("fieldPath"))]
    field = selector.field_path
    name, key = _split(field)
    problem = ""
    if selector.api_version != "v1":
        problem = f"unsupported pod version: {selector.api_version}"
    elif key is not None:
        if name not in ("metadata.annotations", "metadata.labels"):
            problem = f"field label does not support subscript: {field}"
    elif field != "spec.host" and field not in _KNOWN_FIELDS:
        problem = f"field label not supported: {field}"
    if problem:
        return [invalid(path.child("fieldPath"), field, f"error converting fieldPath: {problem}")]
    if key is not None:
        if name == "metadata.annotations":
            key = key.lower()
        return [invalid(path, key, fault) for fault in label_key_faults(key)]
    if field == "spec.host":  # the name of long ago
        field = "spec.nodeName"
    if field not in supported:
        return [not_supported(path.child("fieldPath"), field, supported)]
    return []


def _split(field: str) -> tuple[str, str | None]:
    """`metadata.labels['key']` as its two parts; the second is None when there is no key."""
    if field.endswith("']"):
        name, bracket, key = field[:-2].partition("['")
        if name and bracket:
            return name, key
    return field, None


def validate_resource_ref(
    selector: ResourceFieldSelector, path: FieldPath, ctx: Context | None = None
) -> list[FieldError]:
    """A resource shown in a file, or (without a context) in a variable."""
    in_file = ctx is not None
    supported = _FILE_RESOURCES if ctx is not None and ctx.knows(ASSIGNED_GATE) else _RESOURCES
    errors: list[FieldError] = []
    if in_file and not selector.container_name:
        errors.append(required(path.child("containerName")))
    elif not selector.resource:
        errors.append(required(path.child("resource")))
    elif selector.resource not in supported and not selector.resource.startswith(_HUGEPAGES):
        errors.append(not_supported(path.child("resource"), selector.resource, supported))
    return errors + _divisor(selector.resource, selector.divisor, path.child("divisor"))


def _divisor(resource: str, divisor: Quantity, path: FieldPath) -> list[FieldError]:
    if not divisor:
        return []
    if resource in ("limits.cpu", "requests.cpu"):
        if str(divisor) in _CPU_DIVISORS:
            return []
        detail = "only divisor's values 1m and 1 are supported with the cpu resource"
        return [invalid(path, resource, detail)]
    if resource == ASSIGNED_CPUSET:
        # Unlike upstream, which does not know the resource: a list of CPUs cannot be divided.
        if str(divisor) == "1":
            return []
        detail = "only divisor's value 1 is supported with the assigned.cpuset resource"
        return [invalid(path, resource, detail)]
    if resource in ("limits.memory", "requests.memory"):
        words = "memory resource"
    elif resource in ("limits.ephemeral-storage", "requests.ephemeral-storage"):
        words = "local ephemeral storage resource"
    elif resource.startswith(_HUGEPAGES):
        words = "hugepages resource"
    else:
        return []
    if str(divisor) in _BYTE_DIVISORS:
        return []
    detail = f"only divisor's values {', '.join(_BYTE_DIVISORS)} are supported with the {words}"
    return [invalid(path, resource, detail)]

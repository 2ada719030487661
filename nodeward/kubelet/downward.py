"""What a pod may learn about itself: its fields and its containers' resources, as the text of a variable or a file.

In go a pod (with the status its node knows) and a reference; out comes a text, or a `WorldError` with upstream's
message. All references to resources, from volumes and variables alike, go through `resource_text`: what a container
has not limited is what the node can give, as users know it. `assigned.cpuset` (KEP-6122) is for files only: a variable
could not follow a resize.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from nodeward.api.core_v1.container import Container, EphemeralContainer
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import ResourceFieldSelector
from nodeward.base.errors import WorldError
from nodeward.base.quantity import Quantity
from nodeward.features.gates import Gates
from nodeward.rules.names import qualified_name
from nodeward.validation.pod.downward_api import ASSIGNED_CPUSET, ASSIGNED_GATE

#: Gives the text of `assigned.cpuset` by pod UID and container name: exclusive CPUs, "" without.
AssignedCPUs: TypeAlias = Callable[[str, str], str]

#: A container without a limit may use what the node has; huge pages are never given twice, so they have one.
_DEFAULTED: Final = ("cpu", "memory", "ephemeral-storage")
_OF_PODS: Final = ("cpu", "memory")
_ESCAPES: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
_ZERO: Final = Quantity.of_int(0)


def no_cpus(uid: str, container: str) -> str:
    """Answer for a node on which no container has exclusive CPUs."""
    return ""


def assigned_cpus_of(gates: Gates, assigned_cpus: AssignedCPUs) -> AssignedCPUs | None:
    """Return who answers for `assigned.cpuset` on a kubelet with these gates; None on one too old to know it.

    The kubelet serves the resource whether its gate is on or off.
    """
    return assigned_cpus if gates.knows(ASSIGNED_GATE) else None


def field_text(pod: Pod, path: str) -> str:
    """A field of metadata, as volumes and variables may ask for it."""
    meta = pod.metadata
    if path.endswith("']") and "['" in path:
        holder, _, rest = path.partition("['")
        return _entry(pod, path, holder, rest[:-2])
    match path:
        case "metadata.annotations":
            return _lines(meta.annotations)
        case "metadata.labels":
            return _lines(meta.labels)
        case "metadata.name":
            return meta.name
        case "metadata.namespace":
            return meta.namespace
        case "metadata.uid":
            return meta.uid
    raise WorldError(f"unsupported fieldPath: {path}")


def variable_text(pod: Pod, path: str, host_ips: tuple[str, ...]) -> str:
    """A field as variables may ask for it: also what is known only once the pod runs somewhere."""
    ips = [each.ip for each in pod.status.pod_ips] or ([pod.status.pod_ip] if pod.status.pod_ip else [])
    match path:
        case "spec.nodeName":
            return pod.spec.node_name
        case "spec.serviceAccountName":
            return pod.spec.service_account_name
        case "status.hostIP":
            return host_ips[0] if host_ips else pod.status.host_ip
        case "status.hostIPs":
            return ",".join(host_ips) or pod.status.host_ip
        case "status.podIP":
            return ips[0] if ips else ""
        case "status.podIPs":
            return ",".join(ips)
    return field_text(pod, path)


def _entry(pod: Pod, path: str, holder: str, key: str) -> str:
    if holder == "metadata.annotations":
        found, checked = pod.metadata.annotations, key.lower()
    elif holder == "metadata.labels":
        found, checked = pod.metadata.labels, key
    else:
        raise WorldError(f"fieldPath {_quoted(path)} does not support subscript")
    problems = qualified_name(checked)
    if problems:
        raise WorldError(f"invalid key subscript in {path}: {';'.join(problems)}")
    return found.get(key, "")


def _lines(values: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))


def _quoted(text: str) -> str:
    """As Go writes a text: programs that read these files expect exactly that."""
    return '"' + "".join(_ESCAPES.get(each) or _printable(each) for each in text) + '"'


def _printable(letter: str) -> str:
    number = ord(letter)
    if letter.isprintable():
        return letter
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def resource_text(
    pod: Pod,
    reference: ResourceFieldSelector,
    allocatable: Mapping[str, Quantity],
    container: Container | EphemeralContainer | None = None,
    assigned_cpus: AssignedCPUs | None = None,
) -> str:
    """An amount of a container, in units of the divisor and rounded up, or its exclusive CPUs.

    A reference that names no container means `container`, whose variable it is. Without `assigned_cpus` the resource
    `assigned.cpuset` is unknown, as it is to kubelets before 1.37.
    """
    if reference.container_name or container is None:
        container = _container(pod, reference.container_name)
    if assigned_cpus is not None and reference.resource == ASSIGNED_CPUSET:
        return assigned_cpus(pod.metadata.uid, container.name)
    side, _, name = reference.resource.partition(".")
    if side not in ("limits", "requests") or not (name in _DEFAULTED or name.startswith("hugepages-")):
        raise WorldError(f"unsupported container resource : {reference.resource}")
    resources = container.resources
    amount = (resources.limits if side == "limits" else resources.requests).get(name)
    if side == "limits" and name in _DEFAULTED and not amount:
        amount = _most(pod, name, allocatable)
    return _in_units(amount or _ZERO, reference.divisor)


def _most(pod: Pod, name: str, allocatable: Mapping[str, Quantity]) -> Quantity | None:
    """What bounds a container that has no limit: that of the whole pod, or the node."""
    # Unlike upstream: the pod's own limit counts for files as it does for variables.
    if pod.spec.resources is not None and name in _OF_PODS:
        whole = pod.spec.resources.limits.get(name)
        if whole:
            return whole
    return allocatable.get(name)


def _in_units(amount: Quantity, divisor: Quantity) -> str:
    unit = divisor.nanos or 1_000_000_000
    return str(-(-amount.nanos // unit))


def _container(pod: Pod, name: str) -> Container | EphemeralContainer:
    spec = pod.spec
    for each in (*spec.containers, *spec.init_containers):
        if each.name == name:
            return each
    for ephemeral in spec.ephemeral_containers:
        if ephemeral.name == name:
            return ephemeral
    raise WorldError(f"container {name} not found")

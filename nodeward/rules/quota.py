"""What an object counts for in a resource quota, and which quotas it counts in.

Pure questions, asked by admission (may this object be created?) and by the controller that reports what is used, so
that both always count alike. A resource is named as quotas name it: `pods`, `deployments.apps`. Every object counts
as `count/<resource>`; pods, services, volume claims and resource claims count for more.

What must stay true: the usage of an object depends on nothing but the object, the gates and, for a pod that should
have ended by now, the time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from nodeward.api.context import FeatureGates
from nodeward.api.core_v1.affinity import PodAffinityTerm
from nodeward.api.core_v1.cluster import ResourceQuota, ScopedResourceSelectorRequirement
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.core_v1.service import Service
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.resource_v1 import ResourceClaim
from nodeward.base.duration import SECOND_NS
from nodeward.base.quantity import ZERO, Quantity
from nodeward.base.timestamp import parse_rfc3339
from nodeward.rules.pod_resources import Amounts, add, has_pod_level, pod_limits, pod_requests
from nodeward.rules.qos import BEST_EFFORT, qos_class

PODS: Final = "pods"
SERVICES: Final = "services"
VOLUME_CLAIMS: Final = "persistentvolumeclaims"
RESOURCE_CLAIMS: Final = "resourceclaims.resource.k8s.io"

#: Kinds that count for more than their number, or whose usage changes with an update.
WEIGHED: Final = (PODS, SERVICES, VOLUME_CLAIMS, RESOURCE_CLAIMS)
#: Kinds that no quota counts.
UNCOUNTED: Final = (
    "bindings",
    "events",
    "events.events.k8s.io",
    "localsubjectaccessreviews.authorization.k8s.io",
)

_ONE: Final = Quantity.of_int(1)
_LEGACY: Final = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_CONTAINERS_MUST_SAY: Final = (
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
)
_STORAGE_CLASS: Final = ".storageclass.storage.k8s.io/"
_DEVICE_CLASS: Final = ".deviceclass.resource.k8s.io/devices"
_IMPLICIT_DEVICE: Final = "deviceclass.resource.kubernetes.io/"
#: Devices one claim can be given at most: what a request for "all" counts as.
_ALL_DEVICES: Final = 32


def is_extended(name: str) -> bool:
    """Tell whether a resource is a device plugin's, `example.com/gpu`, and not one of Kubernetes' own."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


def counts(resource: str, name: str) -> bool:
    """Tell whether objects of `resource` count for the entry `name` of a quota."""
    if name == f"count/{resource}" or (name == resource and resource in (*_LEGACY, *WEIGHED)):
        return True
    if resource == PODS:
        plain = name.removeprefix("requests.")
        if plain in _COMPUTE or name.removeprefix("limits.") in _COMPUTE or plain.startswith("hugepages-"):
            return True
        return name != plain and (is_extended(plain) or plain.startswith(_IMPLICIT_DEVICE))
    if resource == SERVICES:
        return name in ("services.nodeports", "services.loadbalancers")
    if resource == VOLUME_CLAIMS:
        return name == "requests.storage" or name.endswith(
            (f"{_STORAGE_CLASS}requests.storage", f"{_STORAGE_CLASS}persistentvolumeclaims")
        )
    return resource == RESOURCE_CLAIMS and name.endswith(_DEVICE_CLASS)


def usage(resource: str, obj: Any, gates: FeatureGates, now_ns: int) -> Amounts:
    """Return what the object counts for."""
    used: Amounts = {f"count/{resource}": _ONE}
    if resource == PODS:
        if not is_over(obj, now_ns):
            used |= _pod_usage(obj, gates)
    elif resource == SERVICES:
        used |= _service_usage(obj)
    elif resource == VOLUME_CLAIMS:
        used |= _volume_usage(obj)
    elif resource == RESOURCE_CLAIMS:
        used |= _device_usage(obj)
    elif resource in _LEGACY:
        used[resource] = _ONE
    return used


def usage_in(quota: ResourceQuota, resource: str, obj: Any, gates: FeatureGates, now_ns: int) -> Amounts:
    """Return what the object uses of this quota: nothing if it is outside the quota's scopes."""
    return usage(resource, obj, gates, now_ns) if is_in_scopes(quota, resource, obj) else {}


def is_over(pod: Pod, now_ns: int) -> bool:
    """Tell whether a pod uses nothing any more: it has ended, or is overdue (its node may be lost)."""
    if is_terminal(pod):
        return True
    meta = pod.metadata
    if meta.deletion_timestamp is None or meta.deletion_grace_period_seconds is None:
        return False
    return now_ns > parse_rfc3339(meta.deletion_timestamp) + meta.deletion_grace_period_seconds * SECOND_NS


def matches(quota: ResourceQuota, resource: str, obj: Any) -> bool:
    """Tell whether the quota is about this object: about its kind, and the object within all scopes."""
    return any(counts(resource, name) for name in quota.spec.hard) and is_in_scopes(quota, resource, obj)


def is_in_scopes(quota: ResourceQuota, resource: str, obj: Any) -> bool:
    return all(_is_in_scope(resource, obj, scope) for scope in _scopes_of(quota))


def _scopes_of(quota: ResourceQuota) -> Iterator[ScopedResourceSelectorRequirement]:
    for name in quota.spec.scopes:
        yield ScopedResourceSelectorRequirement(scope_name=name, operator="Exists")
    if quota.spec.scope_selector is not None:
        yield from quota.spec.scope_selector.match_expressions


def unsaid(pod: Pod, names: Collection[str], gates: FeatureGates) -> str:
    """Return what containers would have to say because a quota limits it: `must specify ...`, or ""."""
    if gates.enabled("PodLevelResources") and has_pod_level(pod.spec):
        return ""
    missing: dict[str, set[str]] = {}
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        said = _compute(container.resources.requests, container.resources.limits)
        for name in _CONTAINERS_MUST_SAY:
            if name in names and name not in said:
                missing.setdefault(name, set()).add(container.name)
    if not missing:
        return ""
    listed = (f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))
    return f"must specify {'; '.join(listed)}"


def is_terminating(pod: Pod) -> bool:
    """Tell whether the pod is Terminating in the sense of quota scopes: it has an active deadline."""
    seconds = pod.spec.active_deadline_seconds
    return seconds is not None and seconds >= 0


def _is_in_scope(resource: str, obj: Any, scope: ScopedResourceSelectorRequirement) -> bool:
    if resource != PODS:
        return False
    pod: Pod = obj
    match scope.scope_name:
        case "Terminating":
            return is_terminating(pod)
        case "NotTerminating":
            return not is_terminating(pod)
        case "BestEffort":
            return qos_class(pod.spec) == BEST_EFFORT
        case "NotBestEffort":
            return qos_class(pod.spec) != BEST_EFFORT
        case "PriorityClass":
            return _has_priority(pod.spec.priority_class_name, scope)
        case "CrossNamespacePodAffinity":
            return any(
                term.namespaces or term.namespace_selector is not None for term in _affinity_terms(pod)
            )
    return False


def _has_priority(name: str, scope: ScopedResourceSelectorRequirement) -> bool:
    match scope.operator:
        case "Exists":
            return bool(name)
        case "DoesNotExist":
            return not name
        case "In":
            return name in scope.values and bool(name)
        case "NotIn":
            return name not in scope.values
    return False


def _affinity_terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    affinity = pod.spec.affinity
    if affinity is None:
        return
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity):
        if part is not None:
            yield from part.required_during_scheduling_ignored_during_execution
            for weighted in part.preferred_during_scheduling_ignored_during_execution:
                yield weighted.pod_affinity_term


def _pod_usage(pod: Pod, gates: FeatureGates) -> Amounts:
    with_status = gates.enabled("InPlacePodVerticalScaling")
    with_pod_level = gates.enabled("PodLevelResources")
    requests = pod_requests(pod, with_pod_level=with_pod_level, with_status=with_status)
    limits = pod_limits(pod, with_pod_level=with_pod_level, with_status=with_status)
    return {PODS: _ONE, **_compute(requests, limits)}


def _compute(requests: Mapping[str, Quantity], limits: Mapping[str, Quantity]) -> Amounts:
    used: Amounts = {}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith("hugepages-"):
            used[name] = used[f"requests.{name}"] = amount
        elif is_extended(name) or name.startswith(_IMPLICIT_DEVICE):
            used[f"requests.{name}"] = amount
    for name in _COMPUTE:
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    return used


def _service_usage(service: Service) -> Amounts:
    spec = service.spec
    node_ports = balancers = 0
    if spec.type in ("NodePort", "LoadBalancer"):
        node_ports = len(spec.ports)
    if spec.type == "LoadBalancer":
        balancers = 1
        if spec.allocate_load_balancer_node_ports is False:
            node_ports = sum(1 for port in spec.ports if port.node_port)
    return {
        SERVICES: _ONE,
        "services.nodeports": Quantity.of_int(node_ports),
        "services.loadbalancers": Quantity.of_int(balancers),
    }


def _volume_usage(claim: PersistentVolumeClaim) -> Amounts:
    beta = claim.metadata.annotations.get("volume.beta.kubernetes.io/storage-class")
    storage_class = beta or claim.spec.storage_class_name or ""
    used: Amounts = {VOLUME_CLAIMS: _ONE}
    asked = claim.spec.resources.requests.get("storage")
    if asked is not None:
        # A volume that was grown and could not be shrunk back still takes its space.
        held = max(asked, claim.status.allocated_resources.get("storage", ZERO))
        used["requests.storage"] = (
            held if held == Quantity.of_int(held.value) else Quantity.of_int(held.value)
        )
    if storage_class:
        used |= {f"{storage_class}{_STORAGE_CLASS}{name}": amount for name, amount in used.items()}
    return used


def _device_usage(claim: ResourceClaim) -> Amounts:
    used: Amounts = {}
    for request in claim.spec.devices.requests:
        worst: dict[str, int] = {}
        exactly: Iterable[Any] = () if request.exactly is None else (request.exactly,)
        for option in request.first_available or exactly:
            count = {"ExactCount": option.count, "All": _ALL_DEVICES}.get(option.allocation_mode, 0)
            worst[option.device_class_name] = max(worst.get(option.device_class_name, 0), count)
        add(used, {f"{name}{_DEVICE_CLASS}": Quantity.of_int(count) for name, count in worst.items()})
    return used

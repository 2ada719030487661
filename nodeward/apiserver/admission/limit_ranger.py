"""LimitRanger: fills in requests and limits from the namespace's LimitRanges and refuses what is outside of them.

`admit` fills in, and records in an annotation what it filled in; `validate` checks minimum, maximum and the ratio of
limit to request, for containers, whole pods and volume claims, and names all errors at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from nodeward.api.core_v1.cluster import LimitRange, LimitRangeItem
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.apiserver.admission.plugin import AdmissionPlugin, Write
from nodeward.base.quantity import ZERO, Quantity
from nodeward.rules.pod_resources import pod_limits, pod_requests

ANNOTATION: Final = "kubernetes.io/limit-ranger"

_Amounts = Mapping[str, Quantity]
_NONE: Final[_Amounts] = {}


class LimitRanger(AdmissionPlugin):
    name: ClassVar[str] = "LimitRanger"

    def admit(self, write: Write) -> None:
        if _is_limited(write) and write.is_about("pods", "", "resize"):
            for limit_range in self.env.peek_all(LimitRange, write.namespace):
                _fill_in(write.new, limit_range)

    def validate(self, write: Write) -> None:
        if not _is_limited(write):
            return
        for limit_range in self.env.peek_all(LimitRange, write.namespace):
            if write.kind.resource == "pods":
                with_pod_level = self.env.gates.enabled("PodLevelResources")
                faults = _pod_faults(write.new, limit_range, with_pod_level=with_pod_level)
            else:
                faults = _claim_faults(write.new, limit_range)
            listed = list(dict.fromkeys(faults))
            if listed:
                raise write.refuse(listed[0] if len(listed) == 1 else f"[{', '.join(listed)}]")


def _is_limited(write: Write) -> bool:
    if write.old is not None and write.old.metadata.deletion_timestamp is not None:
        return False
    if write.is_about("pods"):
        return write.operation == "CREATE"
    if write.is_about("pods", "resize"):
        return write.operation == "UPDATE"
    return write.is_about("persistentvolumeclaims") and write.operation != "DELETE"


# -- defaults


def _fill_in(pod: Pod, limit_range: LimitRange) -> None:
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}
    for item in limit_range.spec.limits:
        if item.type == "Container":
            requests |= item.default_request
            limits |= item.default
    notes: list[str] = []
    for container in pod.spec.containers:
        notes += _fill_container(container, "container", requests, limits)
    for container in pod.spec.init_containers:
        notes += _fill_container(container, "init container", requests, limits)
    if notes:
        pod.metadata.annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"


def _fill_container(container: Container, what: str, requests: _Amounts, limits: _Amounts) -> Iterator[str]:
    resources = container.resources
    # Both are compared before either is filled in: the annotation names what was missing.
    no_request = sorted(name for name in requests if name not in resources.requests)
    no_limit = sorted(name for name in limits if name not in resources.limits)
    resources.requests |= {name: requests[name] for name in no_request}
    resources.limits |= {name: limits[name] for name in no_limit}
    if no_request:
        yield f"{', '.join(no_request)} request for {what} {container.name}"
    if no_limit:
        yield f"{', '.join(no_limit)} limit for {what} {container.name}"


# -- ranges


def _pod_faults(pod: Pod, limit_range: LimitRange, *, with_pod_level: bool) -> Iterator[str]:
    for item in limit_range.spec.limits:
        if item.type == "Container":
            for container in (*pod.spec.containers, *pod.spec.init_containers):
                yield from _faults(item, container.resources.requests, container.resources.limits)
        elif item.type == "Pod":
            requests = pod_requests(pod, with_pod_level=with_pod_level, with_overhead=False)
            limits = pod_limits(pod, with_pod_level=with_pod_level, with_overhead=False)
            yield from _faults(item, requests, limits)


def _claim_faults(claim: PersistentVolumeClaim, limit_range: LimitRange) -> Iterator[str]:
    requests = claim.spec.resources.requests
    for item in limit_range.spec.limits:
        if item.type == "PersistentVolumeClaim":
            yield from _each(item, item.min, _below, requests, _NONE)
            yield from _each(item, item.max, _request_above, requests, _NONE)


def _faults(item: LimitRangeItem, requests: _Amounts, limits: _Amounts) -> Iterator[str]:
    yield from _each(item, item.min, _below, requests, limits)
    yield from _each(item, item.max, _above, requests, limits)
    yield from _each(item, item.max_limit_request_ratio, _stretched, requests, limits)


_Check = Callable[[str, Quantity, Quantity | None, Quantity | None], str]


def _each(
    item: LimitRangeItem, bounds: _Amounts, check: _Check, requests: _Amounts, limits: _Amounts
) -> Iterator[str]:
    for name in sorted(bounds):
        fault = check(f"{name} {{}} per {item.type}", bounds[name], requests.get(name), limits.get(name))
        if fault:
            yield fault


def _below(what: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    start = f"minimum {what.format('usage')} is {bound}"
    if request is None:
        return f"{start}.  No request is specified"
    if request.milli_value < bound.milli_value:
        return f"{start}, but request is {request}"
    if limit is not None and limit.milli_value < bound.milli_value:
        return f"{start}, but limit is {limit}"
    return ""


def _above(what: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    start = f"maximum {what.format('usage')} is {bound}"
    if limit is None:
        return f"{start}.  No limit is specified"
    if limit.milli_value > bound.milli_value:
        return f"{start}, but limit is {limit}"
    if request is not None and request.milli_value > bound.milli_value:
        return f"{start}, but request is {request}"
    return ""


def _request_above(what: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    start = f"maximum {what.format('usage')} is {bound}"
    if request is None:
        return f"{start}.  No request is specified"
    return f"{start}, but request is {request}" if request.milli_value > bound.milli_value else ""


def _stretched(what: str, bound: Quantity, request: Quantity | None, limit: Quantity | None) -> str:
    start = f"{what.format('max limit to request ratio')} is {bound}"
    asked, allowed = (request or ZERO).milli_value, (limit or ZERO).milli_value
    if not asked:
        return f"{start}, but no request is specified or request is 0"
    if not allowed:
        return f"{start}, but no limit is specified or limit is 0"
    if allowed * 1000 > bound.milli_value * asked:
        return f"{start}, but provided ratio is {allowed / asked:f}"
    return ""

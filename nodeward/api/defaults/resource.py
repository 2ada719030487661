"""Defaults in dynamic resource allocation: one device unless more are requested, no empty lists, the time of taints.

The time of a taint is that of the request, so it is not part of the defaults: strategies of kinds with taints call
`date_taints` with the current time.
"""

from __future__ import annotations

from nodeward.api.resource_v1 import (
    DeviceClaim,
    DeviceSubRequest,
    DeviceTaintRule,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceSlice,
)


def _request(request: ExactDeviceRequest | DeviceSubRequest) -> None:
    request.allocation_mode = request.allocation_mode or "ExactCount"
    if request.allocation_mode == "ExactCount" and request.count == 0:
        request.count = 1
    for toleration in request.tolerations:
        toleration.operator = toleration.operator or "Equal"


def _claim(claim: DeviceClaim) -> None:
    for request in claim.requests:
        if request.exactly is not None:
            _request(request.exactly)
        for alternative in request.first_available:
            _request(alternative)


def default_resource_claim(claim: ResourceClaim) -> None:
    _claim(claim.spec.devices)
    if claim.status.allocation is not None:
        for result in claim.status.allocation.devices.results:
            result.skip_node_operations = _skipped(result.skip_node_operations)


def default_resource_slice(resource_slice: ResourceSlice) -> None:
    resource_slice.spec.skip_node_operations = _skipped(resource_slice.spec.skip_node_operations)


def _skipped(operations: bool | list[str] | None) -> bool | list[str] | None:
    """Return the operations to skip: no list where it is empty, as for every list that is not required."""
    return None if operations == [] else operations


def default_resource_claim_template(template: ResourceClaimTemplate) -> None:
    _claim(template.spec.spec.devices)


def date_taints(obj: ResourceSlice | DeviceTaintRule, now: str) -> None:
    """Set the time of taints that have none (RFC 3339, whole seconds)."""
    if isinstance(obj, DeviceTaintRule):
        taints = [obj.spec.taint]
    else:
        taints = [taint for device in obj.spec.devices for taint in device.taints]
    for taint in taints:
        if taint.time_added is None:
            taint.time_added = now

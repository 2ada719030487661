"""Printers of dynamic resource allocation: claims, slices, device taints."""

from __future__ import annotations

from nodeward.api.printing.cells import age, since
from nodeward.api.printing.printer import AGE, NAME, Cells, Column, Printer
from nodeward.api.resource_v1 import DeviceTaintRule, ResourceClaim, ResourceSlice


def _state(claim: ResourceClaim) -> str:
    is_deleted = claim.metadata.deletion_timestamp is not None
    states = ["deleted"] if is_deleted else []
    if claim.status.allocation is not None:
        states.append("allocated")
        if claim.status.reserved_for:
            states.append("reserved")
    elif not is_deleted:
        states.append("pending")
    return ",".join(states)


def _claim(claim: ResourceClaim, now_ns: int) -> Cells:
    return [claim.metadata.name, _state(claim), age(claim, now_ns)]


def _slice(obj: ResourceSlice, now_ns: int) -> Cells:
    spec = obj.spec
    return [obj.metadata.name, spec.node_name or "", spec.driver, spec.pool.name, age(obj, now_ns)]


def _taint_rule(rule: DeviceTaintRule, now_ns: int) -> Cells:
    taint = rule.spec.taint
    return [
        rule.metadata.name,
        taint.key,
        taint.value,
        taint.effect,
        "" if taint.time_added is None else since(taint.time_added, now_ns),
        age(rule, now_ns),
    ]


RESOURCE_CLAIM = Printer(
    (NAME, Column("State", description="Whether devices are allocated and in use."), AGE), _claim
)
RESOURCE_SLICE = Printer(
    (
        NAME,
        Column("Node", description="Node the devices are on, if on one."),
        Column("Driver", description="Driver of the devices."),
        Column("Pool", description="Pool the devices belong to."),
        AGE,
    ),
    _slice,
)
DEVICE_TAINT_RULE = Printer(
    (
        NAME,
        Column("Key", description="Key of the taint."),
        Column("Value", description="Value of the taint."),
        Column("Effect", description="What the taint does to pods that do not tolerate it."),
        Column("TimeAdded", description="Time since the taint was added."),
        AGE,
    ),
    _taint_rule,
)

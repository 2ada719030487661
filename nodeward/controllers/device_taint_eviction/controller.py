"""Deletes pods whose claims have devices with NoExecute taints, at once or when the tolerated time is over.

What is seen of slices, rules, claims and pods is worked out at once into a moment for each pod that has to go
(`tainted_devices`); `TimedEvictions` evicts it then. A change concerns the claims with a changed device, found by an
index, and of these the pods they are reserved for.

What must stay true: the eviction follows taints and claims as they are now; a pod that a claim is not reserved for, or
that has no node yet, is not evicted. Numbers in tolerations are compared only if this component's own gate is on
(KEP-5471): with it off they tolerate nothing, and the pod goes.

Run by `controllers.runner`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.resource_v1 import DeviceTaintRule, ResourceClaim, ResourceSlice
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.device_taint_eviction.tainted_devices import TaintedDevices, earliest
from nodeward.controllers.pods.timed_evictions import EvictionTexts, TimedEvictions
from nodeward.controllers.taint_eviction.deadlines import FOR_GOOD, EvictionDeadline
from nodeward.rules.devices.taint_rules import selects_device, selects_pool
from nodeward.rules.resource_claims import is_reserved_for, used_claim_names
from nodeward.rules.taints import NO_EXECUTE

_BY_DEVICE: Final = "allocated devices"
_BY_POOL: Final = "pools of allocated devices"
_TEXTS: Final = EvictionTexts(
    queue="device_taint_eviction",
    event_reason="DeviceTaintManagerEviction",
    marking="Marking for deletion",
    cancelling="Cancelling deletion",
    condition_reason="DeletionByDeviceTaintManager",
    condition_message="Device Taint manager: deleting due to NoExecute taint",
    metric_prefix="device_taint_eviction_controller",
    deletions_help="Total number of Pods deleted by DeviceTaintEvictionController since its start.",
    duration_help="Latency, in seconds, between the time when a device taint effect has been activated and a Pod's "
    "deletion via DeviceTaintEvictionController.",
)


class DeviceTaintEvictionController:
    def __init__(self, context: ControllerContext) -> None:
        self._clock = context.clock
        self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")
        self._devices = TaintedDevices()
        self._pods = context.informers.informer(Pod)
        self._claims = context.informers.informer(ResourceClaim)
        self._evictions = TimedEvictions(context, self._pods, _TEXTS)
        self._claims.add_index(_BY_DEVICE, _device_keys)
        self._claims.add_index(_BY_POOL, _pool_keys)
        self._pods.add_handler(self._pod_seen, self._pod_changed, self._evictions.forget)
        self._claims.add_handler(self._claim_seen, self._claim_changed, self._claim_seen)
        slices = context.informers.informer(ResourceSlice)
        slices.add_handler(self._slice_seen, lambda _, new: self._slice_seen(new), self._slice_gone)
        if context.gates.enabled("DRADeviceTaintRules"):
            rules = context.informers.informer(DeviceTaintRule)
            rules.add_handler(self._rule_seen, self._rule_changed, self._rule_gone)

    def work(self) -> Sequence[Work[Any]]:
        return (self._evictions.work(),)

    # -- what is seen

    def _slice_seen(self, slice_: ResourceSlice) -> None:
        self._devices_changed(self._devices.put_slice(slice_))

    def _slice_gone(self, slice_: ResourceSlice) -> None:
        self._devices_changed(self._devices.remove_slice(slice_.metadata.name))

    def _devices_changed(self, changed: Iterable[tuple[tuple[str, str], str]]) -> None:
        for (driver, pool), device in changed:
            for claim in self._claims.by_index(_BY_DEVICE, _key(driver, pool, device)):
                self._claim_seen(claim)

    def _rule_seen(self, rule: DeviceTaintRule) -> None:
        if rule.spec.taint.effect == NO_EXECUTE:
            self._devices.rules[rule.metadata.name] = rule
            self._rule_matters(rule)

    def _rule_changed(self, old: DeviceTaintRule, new: DeviceTaintRule) -> None:
        if old.spec != new.spec:
            self._rule_gone(old, followed_by=new)

    def _rule_gone(self, rule: DeviceTaintRule, followed_by: DeviceTaintRule | None = None) -> None:
        """Drop a rule; the next one takes its place at once, so that no eviction is cancelled in between."""
        was_evicting = self._devices.rules.pop(rule.metadata.name, None) is not None
        if followed_by is not None:
            self._rule_seen(followed_by)
        if was_evicting:
            self._rule_matters(rule)

    def _rule_matters(self, rule: DeviceTaintRule) -> None:
        """Look at all claims with a device that the rule selects."""
        wanted = rule.spec.device_selector
        for key in [*self._claims.index_values(_BY_POOL)]:
            if not selects_pool(wanted, *key.split("/", 1)):
                continue
            for claim in self._claims.by_index(_BY_POOL, key):
                if any(selects_device(wanted, *each) for each in _allocated(claim)):
                    self._claim_seen(claim)

    def _claim_seen(self, claim: ResourceClaim) -> None:
        for user in claim.status.reserved_for:
            if not user.api_group and user.resource == "pods":
                pod = self._pods.get(user.name, claim.metadata.namespace)
                if pod is not None and pod.metadata.uid == user.uid:
                    self._pod_seen(pod)

    def _claim_changed(self, old: ResourceClaim, new: ResourceClaim) -> None:
        if (
            old.status.allocation == new.status.allocation
            and old.status.reserved_for == new.status.reserved_for
        ):
            return
        self._claim_seen(new)
        if old.status.reserved_for != new.status.reserved_for:
            self._claim_seen(old)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if new.metadata.uid != old.metadata.uid:
            self._evictions.forget(old)
        self._pod_seen(new)

    def _pod_seen(self, pod: Pod) -> None:
        names = used_claim_names(pod)
        if names:
            self._evictions.plan(pod, self._deadline(pod, names))

    # -- what follows

    def _deadline(self, pod: Pod, names: Iterable[str]) -> EvictionDeadline:
        if not pod.spec.node_name or is_terminal(pod):
            return FOR_GOOD
        claims = (self._claims.get(name, pod.metadata.namespace) for name in names)
        end_ns = earliest(
            self._devices.eviction_ns(claim, numeric=self._numeric)
            for claim in claims
            if claim is not None and is_reserved_for(claim, pod)
        )
        if end_ns is None:
            return FOR_GOOD
        return EvictionDeadline(end_ns - self._clock.now_ns() + self._clock.monotonic_ns())


def make(context: ControllerContext) -> DeviceTaintEvictionController | None:
    """Return the controller, if the feature is on."""
    return DeviceTaintEvictionController(context) if context.gates.enabled("DRADeviceTaints") else None


def _allocated(claim: ResourceClaim) -> list[tuple[str, str, str]]:
    if claim.status.allocation is None:
        return []
    return [(each.driver, each.pool, each.device) for each in claim.status.allocation.devices.results]


def _key(*parts: str) -> str:
    # A driver's name has no slash, a device's has none; a pool's may have some.
    return "/".join(parts)


def _device_keys(claim: ResourceClaim) -> Iterable[str]:
    return dict.fromkeys(_key(*each) for each in _allocated(claim))


def _pool_keys(claim: ResourceClaim) -> Iterable[str]:
    return dict.fromkeys(_key(driver, pool) for driver, pool, _ in _allocated(claim))

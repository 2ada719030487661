"""Deletes pods whose claims have devices with NoExecute taints, at once or when the tolerated time is over.

What is seen of slices, rules, claims and pods is worked out at once into a moment for each pod that has to go
(`tainted_devices`); `TimedEvictions` evicts it then, and `rule_status` tells of it. A change concerns the claims with
a changed device, found by an index, and of these the pods they are reserved for.

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
from nodeward.controllers.device_taint_eviction.allocated_claims import AllocatedClaims, users
from nodeward.controllers.device_taint_eviction.rule_status import RuleStatus
from nodeward.controllers.device_taint_eviction.tainted_devices import TaintedDevices, earliest, rule_evicts
from nodeward.controllers.pods.timed_evictions import EvictionTexts, TimedEvictions
from nodeward.controllers.taint_eviction.deadlines import FOR_GOOD, EvictionDeadline
from nodeward.rules.resource_claims import is_reserved_for, used_claim_names
from nodeward.rules.taints import NO_EXECUTE

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
        self._allocated = AllocatedClaims(context.informers)
        self._claims = self._allocated.informer
        self._evictions = TimedEvictions(context, self._pods, _TEXTS, self._pod_evicted)
        self._status: RuleStatus | None = None
        self._pods.add_handler(self._pod_seen, self._pod_changed, self._pod_gone)
        self._claims.add_handler(self._claim_seen, self._claim_changed, self._claim_seen)
        slices = context.informers.informer(ResourceSlice)
        slices.add_handler(self._slice_seen, lambda _, new: self._slice_seen(new), self._slice_gone)
        if context.gates.enabled("DRADeviceTaintRules"):
            self._status = RuleStatus(context, self._allocated, numeric=self._numeric)
            rules = context.informers.informer(DeviceTaintRule)
            rules.add_handler(self._rule_seen, self._rule_changed, self._rule_gone)

    def work(self) -> Sequence[Work[Any]]:
        evictions: Work[Any] = self._evictions.work()
        return (evictions,) if self._status is None else (evictions, self._status.work())

    # -- what is seen

    def _slice_seen(self, slice_: ResourceSlice) -> None:
        self._devices_changed(self._devices.put_slice(slice_))

    def _slice_gone(self, slice_: ResourceSlice) -> None:
        self._devices_changed(self._devices.remove_slice(slice_.metadata.name))

    def _devices_changed(self, changed: Iterable[tuple[tuple[str, str], str]]) -> None:
        for (driver, pool), device in changed:
            for claim in self._allocated.with_device(driver, pool, device):
                self._claim_seen(claim)

    def _rule_seen(self, rule: DeviceTaintRule) -> None:
        self._replace_rule(None, rule)

    def _rule_changed(self, old: DeviceTaintRule, new: DeviceTaintRule) -> None:
        if old.spec != new.spec or old.metadata.uid != new.metadata.uid:
            self._replace_rule(old, new)

    def _rule_gone(self, rule: DeviceTaintRule) -> None:
        self._replace_rule(rule, None)

    def _replace_rule(self, old: DeviceTaintRule | None, new: DeviceTaintRule | None) -> None:
        """Look at all claims that either rule concerns, once the new one is in the place of the old one."""
        if self._status is not None:
            if new is not None:
                self._status.changed(new)
            if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
                self._status.gone(old)
        for rule in (old, new):
            if rule is not None:
                self._devices.rules.pop(rule.metadata.name, None)
        if new is not None and new.spec.taint.effect == NO_EXECUTE:
            self._devices.rules[new.metadata.name] = new
        for rule in (old, new):
            if rule is not None and rule.spec.taint.effect == NO_EXECUTE:
                for claim in self._allocated.selected(rule.spec.device_selector):
                    self._claim_seen(claim)

    def _claim_seen(self, claim: ResourceClaim) -> None:
        for pod in users(claim, self._pods):
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
        if not names:
            return
        before, found = self._evictions.planned(pod), self._deadline(pod, names)
        self._evictions.plan(pod, found)
        if (before.end_ns is None) != (found.end_ns is None):
            self._tell_rules(pod)

    def _pod_gone(self, pod: Pod) -> None:
        self._evictions.forget(pod)
        self._tell_rules(pod)

    def _pod_evicted(self, pod: Pod) -> None:
        self._tell_rules(pod, evicted=1)

    # -- what follows

    def _tell_rules(self, pod: Pod, *, evicted: int = 0) -> None:
        """Let the rules that evict the pod say so, or that they did."""
        if self._status is None or not self._devices.rules:
            return
        claims = self._claims_of(pod, used_claim_names(pod))
        for rule in self._devices.rules.values():
            if any(rule_evicts(rule, claim, numeric=self._numeric) for claim in claims):
                self._status.concerned(rule, evicted=evicted)

    def _claims_of(self, pod: Pod, names: Iterable[str]) -> list[ResourceClaim]:
        claims = (self._claims.get(name, pod.metadata.namespace) for name in names)
        return [claim for claim in claims if claim is not None and is_reserved_for(claim, pod)]

    def _deadline(self, pod: Pod, names: Iterable[str]) -> EvictionDeadline:
        if not pod.spec.node_name or is_terminal(pod):
            return FOR_GOOD
        end_ns = earliest(
            self._devices.eviction_ns(claim, numeric=self._numeric) for claim in self._claims_of(pod, names)
        )
        if end_ns is None:
            return FOR_GOOD
        return EvictionDeadline(end_ns - self._clock.now_ns() + self._clock.monotonic_ns())


def make(context: ControllerContext) -> DeviceTaintEvictionController | None:
    """Return the controller, if the feature is on."""
    return DeviceTaintEvictionController(context) if context.gates.enabled("DRADeviceTaints") else None

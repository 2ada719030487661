"""The condition EvictionInProgress of DeviceTaintRules: how many pods still have to go, and how many went.

Written once when a rule is new or changed, then at most every ten seconds while pods that it concerns come, go or are
evicted. For a rule with effect None it tells what would happen with NoExecute.

What must stay true: counting costs what the claims selected by the rule cost, and happens only when something is due;
the count of evicted pods is since the controller's start, as upstream.

Called by `controller`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from msgspec.structs import replace

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.meta import Condition
from nodeward.api.resource_v1 import DeviceTaintRule, ResourceSlice
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339, rfc3339
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.device_taint_eviction.allocated_claims import (
    AllocatedClaims,
    allocated_devices,
    users,
)
from nodeward.controllers.device_taint_eviction.tainted_devices import rule_evicts
from nodeward.machinery.client import PatchType
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.devices.taint_rules import selects_device, selects_pool
from nodeward.rules.taints import NO_EXECUTE

IN_PROGRESS: Final = "EvictionInProgress"
FIELD_MANAGER: Final = "device-taint-eviction-controller"
#: The shortest time between two writes of the same rule's status, unless its spec changes.
PERIOD_SECONDS: Final = 10.0
_PREVIEW_ENDS: Final = (
    "if the effect was NoExecute. This information will not be updated again. "
    "Recreate the DeviceTaintRule to trigger an update."
)


class RuleStatus:
    def __init__(self, context: ControllerContext, claims: AllocatedClaims, *, numeric: bool) -> None:
        self._client = context.client
        self._clock = context.clock
        self._numeric = numeric
        self._claims = claims
        self._pods = context.informers.informer(Pod)
        self._slices = context.informers.informer(ResourceSlice)
        self._rules = context.informers.informer(DeviceTaintRule)
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="device_taint_rule_status")
        #: evicted pods, by the rule's uid
        self._evicted: Counter[str] = Counter()

    def work(self) -> Work[str]:
        return Work(self._queue, self._write)

    def changed(self, rule: DeviceTaintRule) -> None:
        """Write the status soon: the rule is new, or its spec is another."""
        self._queue.add(rule.metadata.name)

    def gone(self, rule: DeviceTaintRule) -> None:
        self._evicted.pop(rule.metadata.uid, None)

    def concerned(self, rule: DeviceTaintRule, *, evicted: int = 0) -> None:
        """Write the status in a while: pods that the rule evicts came, went or have been evicted."""
        if evicted:
            self._evicted[rule.metadata.uid] += evicted
        self._queue.add_after(rule.metadata.name, PERIOD_SECONDS)

    async def _write(self, name: str) -> float | None:
        rule, now_ns = self._rules.get(name), self._clock.now_ns()
        if rule is None:
            return None
        meta = rule.metadata
        old = next((each for each in rule.status.conditions if each.type == IN_PROGRESS), None)
        if old is not None and old.observed_generation == meta.generation and old.last_transition_time:
            wait = PERIOD_SECONDS - (now_ns - parse_rfc3339(old.last_transition_time)) / SECOND_NS
            if 0 < wait <= PERIOD_SECONDS:
                return wait
        status, reason, message = self._found(rule)
        new = Condition(IN_PROGRESS, status, meta.generation, None, reason, message)
        if old is not None and replace(old, last_transition_time=None) == new:
            return None
        condition: dict[str, Any] = {
            "type": IN_PROGRESS,
            "status": status,
            "reason": reason,
            "message": message,
            "observedGeneration": meta.generation,
            "lastTransitionTime": rfc3339(now_ns),
        }
        kind = self._rules.kind
        body = {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "metadata": {"name": name, "uid": meta.uid},
            "status": {"conditions": [condition]},
        }
        await self._client.patch(
            bytes,
            name,
            body,
            kind=kind,
            patch_type=PatchType.APPLY,
            subresource="status",
            field_manager=FIELD_MANAGER,
            force=True,
        )
        return None

    def _found(self, rule: DeviceTaintRule) -> tuple[str, str, str]:
        """Return status, reason and message of the condition."""
        effect, evicted = rule.spec.taint.effect, self._evicted[rule.metadata.uid]
        went = f"{_counted(evicted, 'pod')} evicted since starting the controller." if evicted else ""
        if effect == NO_EXECUTE:
            pods, namespaces = self._concerned_pods(rule)
            if pods:
                verb = "needs" if pods == 1 else "need"
                text = f"{_counted(pods, 'pod')} {verb} to be evicted in {_namespaces(namespaces)}."
                return "True", "PodsPendingEviction", _joined(text, went)
            return "False", "Completed" if evicted else "NotStarted", went
        if effect == "None":
            return "False", "NoEffect", _joined(self._preview(rule), went)
        return "False", "OtherEffect", _joined("Eviction only happens for the NoExecute effect.", went)

    def _concerned_pods(self, rule: DeviceTaintRule) -> tuple[int, int]:
        """Return how many pods the rule evicts with NoExecute, and in how many namespaces they are."""
        found = {
            (pod.metadata.namespace, pod.metadata.name)
            for claim in self._claims.selected(rule.spec.device_selector)
            if rule_evicts(rule, claim, numeric=self._numeric)
            for pod in users(claim, self._pods)
            if pod.spec.node_name and pod.metadata.deletion_timestamp is None and not is_terminal(pod)
        }
        return len(found), len({namespace for namespace, _ in found})

    def _preview(self, rule: DeviceTaintRule) -> str:
        wanted = rule.spec.device_selector
        newest: dict[tuple[str, str], int] = {}
        slices = [
            each.spec
            for each in self._slices.list()
            if selects_pool(wanted, each.spec.driver, each.spec.pool.name)
        ]
        for spec in slices:
            pool = (spec.driver, spec.pool.name)
            newest[pool] = max(newest.get(pool, 0), spec.pool.generation)
        published = sum(
            selects_device(wanted, spec.driver, spec.pool.name, device.name)
            for spec in slices
            if spec.pool.generation == newest[spec.driver, spec.pool.name]
            for device in spec.devices
        )
        claims = {
            f"{claim.metadata.namespace}/{claim.metadata.name}": claim
            for claim in self._claims.selected(wanted)
        }
        allocated = sum(
            selects_device(wanted, *each) for claim in claims.values() for each in allocated_devices(claim)
        )
        pods, namespaces = self._concerned_pods(rule)
        return (
            f"{_counted(published, 'published device')} selected. "
            f"{_counted(allocated, 'allocated device')} selected. "
            f"{_counted(pods, 'pod')} would be evicted in {_namespaces(namespaces)} {_PREVIEW_ENDS}"
        )


def _counted(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number} {noun}s"


def _namespaces(number: int) -> str:
    return "1 namespace" if number == 1 else f"{number} different namespaces"


def _joined(*texts: str) -> str:
    return " ".join(each for each in texts if each)

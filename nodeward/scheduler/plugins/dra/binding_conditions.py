"""Devices that are not ready when they are allocated: a pod is bound once their binding conditions hold.

A driver that attaches a device after it was chosen says so in the slice, and reports in the claim's status when the
device can be used. PreBind waits for that, up to a timeout; a failure or timeout makes the claim unusable, so that the
next attempt releases it and tries other devices.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.resource_v1 import AllocatedDeviceStatus, DeviceRequestAllocationResult, ResourceClaim
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339
from nodeward.machinery.clock import Clock
from nodeward.machinery.metrics import Counter, Histograms, exponential
from nodeward.machinery.recorder import NORMAL
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.plugins.dra.claim_tracker import ClaimTracker
from nodeward.scheduler.plugins.dra.pod_claims import PodClaimState

#: How long conditions are waited for, and how often it is looked, in seconds.
BINDING_TIMEOUT_SECONDS: Final = 600
LOOK_EVERY: Final = 5.0

_TIMEOUT: Final = "device binding timeout"
_FAILED: Final = "device binding failed"


class BindingConditions:
    """Judges and waits for one profile."""

    def __init__(self, context: PluginContext, claims: ClaimTracker) -> None:
        timeout = context.arguments.get("bindingTimeout")
        self._timeout_seconds = BINDING_TIMEOUT_SECONDS if timeout is None else float(timeout)
        self._handle = context.handle
        self._claims = claims
        self._allocations: Counter | None = None
        self._seconds: Histograms | None = None
        if context.handle is not None:
            labels = ("profile", "driver", "status")
            self._allocations = context.handle.metrics.counter(
                "scheduler_dra_bindingconditions_allocations_total",
                "Number of scheduling attempts in which devices with BindingConditions were used.",
                labels,
            )
            self._seconds = context.handle.metrics.histogram(
                "scheduler_dra_bindingconditions_wait_duration_seconds",
                "Time in seconds that PreBind waited for BindingConditions.",
                exponential(0.1, 2, 14),
                labels,
            )

    def may_become_true(self, claim: ResourceClaim) -> bool:
        """Tell whether an allocated claim is ready, or may be soon."""
        return not _failure(claim) and (_is_ready(claim) or not self._is_over(claim))

    async def wait(self, state: PodClaimState, pod: PodView, node: str) -> str:
        """Wait until the devices of all claims are ready; return what went wrong, or nothing."""
        handle = self._handle
        waiting = [claim for claim in state.claims if any(_conditional(claim))]
        if not waiting or handle is None:
            return ""
        text = f"waiting for binding conditions for device on node {node}"
        handle.recorder.event(pod.pod, NORMAL, "BindingConditionsPending", text)
        started_ns = handle.clock.monotonic_ns()
        with handle.set_aside():
            fault = await self._wait(waiting, handle.clock, started_ns)
        seconds = (handle.clock.monotonic_ns() - started_ns) / SECOND_NS
        self._count(waiting, pod.pod.spec.scheduler_name, _outcome(fault), seconds)
        return fault

    async def _wait(self, waiting: list[ResourceClaim], clock: Clock, started_ns: int) -> str:
        deadline_ns = started_ns + round(self._timeout_seconds * SECOND_NS)
        while True:
            fault, is_ready = self._look(waiting)
            if fault or is_ready:
                return fault
            if clock.monotonic_ns() >= deadline_ns:
                return _TIMEOUT
            await clock.sleep(LOOK_EVERY)

    def _count(self, waiting: list[ResourceClaim], profile: str, outcome: str, seconds: float) -> None:
        if self._allocations is None or self._seconds is None:
            return
        for claim in waiting:
            for result in claim.status.allocation.devices.results if claim.status.allocation else ():
                self._seconds.observe(seconds, profile, result.driver, outcome)
            for result in _conditional(claim):
                self._allocations.inc(profile, result.driver, outcome)

    def _look(self, waiting: list[ResourceClaim]) -> tuple[str, bool]:
        for place, before in enumerate(waiting):
            meta = before.metadata
            claim = self._claims.get(meta.name, meta.namespace)
            if claim is None or claim.metadata.uid != meta.uid:
                return f'resourceclaim.resource.k8s.io "{meta.name}" not found', False
            waiting[place] = claim
            fault = _failure(claim)
            if fault:
                return fault, False
            if not _is_ready(claim):
                return (f"{_TIMEOUT}: claim={meta.name}" if self._is_over(claim) else ""), False
        return "", True

    def _is_over(self, claim: ResourceClaim) -> bool:
        allocation, handle = claim.status.allocation, self._handle
        if allocation is None or allocation.allocation_timestamp is None or handle is None:
            return False
        end_ns = parse_rfc3339(allocation.allocation_timestamp) + round(self._timeout_seconds * SECOND_NS)
        return any(_conditional(claim)) and end_ns < handle.clock.now_ns()


def _outcome(fault: str) -> str:
    """Return the label of metrics for what became of a wait."""
    if not fault:
        return "success"
    known = {_TIMEOUT: "timeout", _FAILED: "failed"}
    return next((label for text, label in known.items() if fault.startswith(text)), "error")


def _conditional(claim: ResourceClaim) -> list[DeviceRequestAllocationResult]:
    """Return the devices of a claim that have binding conditions."""
    allocation = claim.status.allocation
    return [each for each in allocation.devices.results if each.binding_conditions] if allocation else []


def _reported(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    wanted = result.driver, result.pool, result.device
    return next(
        (each for each in claim.status.devices if (each.driver, each.pool, each.device) == wanted), None
    )


def _is_ready(claim: ResourceClaim) -> bool:
    for result in _conditional(claim):
        reported = _reported(claim, result)
        if reported is None:
            return False
        true = {each.type for each in reported.conditions if each.status == "True"}
        if not true.issuperset(result.binding_conditions):
            return False
    return True


def _failure(claim: ResourceClaim) -> str:
    for result in _conditional(claim):
        reported = _reported(claim, result)
        for each in reported.conditions if reported is not None else ():
            if each.type in result.binding_failure_conditions and each.status == "True":
                where = f"claim={claim.metadata.name}, reason={each.reason}"
                return f'{_FAILED}: {where}, message="{each.message}"'
    return ""

"""The DRA manager of a node: prepares the claims of pods before they start and unprepares them after they ended.

Pod workers call `prepare` before a sandbox starts, `cdi_ids` for each container, and `unprepare` when no container of
the pod runs any more and before its status is final. Claims come from the API under the node's own identity; drivers
are those of the node (`NodeDrivers`); what is prepared is on the disk (`ClaimCheckpoint`). The order of checks and the
texts are those of Kubernetes 1.37.

What must stay true: a claim is on the disk before a driver hears of it, and until the driver has unprepared it; a
driver that need not be called is neither looked for nor called (KEP-5945); a skipped claim is unprepared without the
API, without a driver, and whatever the gate says by then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

from nodeward.api.core_v1.container import Container, EphemeralContainer
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.api.resource_v1 import DeviceRequestAllocationResult, ResourceClaim, ResourceSlice
from nodeward.base.duration import MINUTE_NS, SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.features.gates import Gates
from nodeward.kubelet.config_error import CONFIG_ERROR, NotConfigured
from nodeward.kubelet.dra.claim_checkpoint import ClaimCheckpoint
from nodeward.kubelet.dra.claim_info import ClaimCache, ClaimInfo
from nodeward.kubelet.dra.claim_locks import ClaimLocks
from nodeward.kubelet.dra.claim_reading import (
    DRAError,
    claim_names,
    container_requests,
    has_claims,
    read_claim,
    usable_results,
)
from nodeward.kubelet.dra.dra_metrics import DRAMetrics
from nodeward.kubelet.dra.driver_calls import DriverCalls
from nodeward.kubelet.dra.driver_plugin import ClaimReference, NodeDrivers
from nodeward.kubelet.dra.skipping import (
    PREPARE,
    UNPREPARE,
    Operations,
    SkipSupport,
    disabled_text,
    skipped_operations,
    skips,
)
from nodeward.kubelet.node_services import NodeServices
from nodeward.kubelet.timer_wheel import TimerWheel
from nodeward.machinery.backoff import Curve
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock
from nodeward.machinery.eager import EagerTasks

LOG: Final = logging.getLogger(__name__)

#: How often claims of pods that are gone are looked for.
CLEANUP_NS: Final = MINUTE_NS
#: How long a pod waits after its claims could not be prepared, or unprepared.
_RETRY: Final = Curve(initial=10.0, cap=60.0)


@dataclass(frozen=True, slots=True)
class DRAParts:
    """What the DRA managers of one host have in common. `retry` starts a pod at once that waits for its claims."""

    client: Client
    clock: Clock
    wheel: TimerWheel
    metrics: DRAMetrics
    tasks: EagerTasks
    retry: Callable[[str], None]


class DRAManager:
    """The claims of one node in one kubelet run. `pods` gives the uids of the pods the node takes care of."""

    __slots__ = (
        "_cache",
        "_calls",
        "_checkpoint",
        "_failures",
        "_fetched",
        "_is_cleaning",
        "_is_stopped",
        "_locks",
        "_node",
        "_parts",
        "_pods",
        "_services",
        "_support",
    )

    def __init__(
        self,
        node: str,
        gates: Gates,
        services: NodeServices,
        pods: Callable[[], Collection[str]],
        parts: DRAParts,
    ) -> None:
        """Raises `CheckpointCorrupt`."""
        self._node = node
        self._services, self._parts, self._pods = services, parts, pods
        self._support = SkipSupport.of(gates)
        self._calls: DriverCalls | None = None
        self._cache: ClaimCache = ClaimCache()
        self._checkpoint: ClaimCheckpoint | None = None
        self._locks = ClaimLocks()
        #: how often a pod's claims could not be prepared or unprepared in a row, by uid of the pod
        self._failures: dict[str, int] = {}
        #: claims that admission has read, until the first preparation; by uid of the pod and by name
        self._fetched: dict[str, dict[str, ResourceClaim]] = {}
        self._is_cleaning = self._is_stopped = False
        if services.has_disk:
            self._cache = ClaimCache(self._file().read())
        parts.metrics.follow(self._cache)

    @property
    def claims(self) -> ClaimCache:
        """What is known of the claims of the node's pods."""
        return self._cache

    # -- the kubelet's run

    def start(self) -> None:
        """Look for drivers from now on."""
        self._drivers.start(self._registered, self._gone)

    def on_pods_known(self) -> None:
        """Learn that all pods of the node were seen after the kubelet's start: claims of others can go."""
        self._clean_up_later()

    def stop(self) -> None:
        """The kubelet stops: claims stay as they are."""
        self._is_stopped = True
        self._parts.metrics.leave(self._cache)
        self._drivers.stop()

    @property
    def _drivers(self) -> NodeDrivers:
        return self._services.drivers

    def _registered(self, driver: str) -> None:
        """Start pods that wait; whichever driver they wait for, one look more costs nothing."""
        if not self._is_stopped:
            for uid in [*self._failures]:
                self._parts.retry(uid)

    def _gone(self, driver: str) -> None:
        """Delete what a driver has published of this node: nobody is there to prepare it."""
        if not self._is_stopped:
            self._parts.tasks.start(self._delete_slices(driver))

    async def _delete_slices(self, driver: str) -> None:
        selector = f"spec.nodeName={self._node},spec.driver={driver}"
        try:
            await self._parts.client.delete_collection(ResourceSlice, field_selector=selector)
        except (ApiError, WorldError) as error:
            LOG.info("slices of driver %s are not deleted yet: %s", driver, error)
            again_ns = self._parts.clock.monotonic_ns() + CLEANUP_NS
            self._parts.wheel.at(
                again_ns, lambda: self._gone(driver) if self._drivers.find(driver) is None else None
            )

    # -- admission

    def needs_claims(self, pod: Pod) -> bool:
        """Tell whether admission must look at the pod's claims: this kubelet knows of skipping and cannot (KEP-5945).

        A kubelet that can skip need not look, and one that has never heard of it does not.
        """
        return self._support is SkipSupport.OFF and has_claims(pod)

    async def fetch_claims(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """Return the pod's claims, as far as they can be read; the first preparation uses the same ones."""
        found: dict[str, ResourceClaim] = {}
        try:
            for name, _ in claim_names(pod):
                found[name] = await read_claim(self._parts.client, pod.metadata.namespace, name)
        except DRAError as error:
            # What cannot be read now is checked again before the pod starts.
            LOG.info("pod %s/%s: %s", pod.metadata.namespace, pod.metadata.name, error)
        self._fetched[pod.metadata.uid] = found
        return tuple(found.values())

    # -- before a pod starts

    async def prepare(self, pod: Pod) -> None:
        """Prepare all claims of a pod that are not. Raises `DRAError`."""
        if not has_claims(pod):
            return
        started_ns = self._parts.clock.monotonic_ns()
        is_error = True
        try:
            await self._prepare(pod)
            is_error = False
        except DRAError as error:
            raise DRAError(f"prepare dynamic resources: {error}") from error
        finally:
            self._operated("PrepareResources", pod.metadata.uid, started_ns, is_error=is_error)

    async def _prepare(self, pod: Pod) -> None:
        wanted = await self._wanted_claims(pod)
        async with self._locks.holding(each.key for each in wanted):
            batches: dict[str, list[ClaimInfo]] = {}
            infos = [self._use(each, pod) for each in wanted]
            self._write("checkpoint ResourceClaim cache")
            self._clean_up_later()
            fresh = [info for info in infos if not info.is_prepared]
            for info in fresh:
                for driver, state in info.drivers.items():
                    if skips(state.skipped, PREPARE):
                        self._parts.metrics.skipped_prepare(driver)
                    else:
                        batches.setdefault(driver, []).append(info)
            for driver in sorted(batches):
                references = {info.uid: _reference(info) for info in batches[driver]}
                devices = await self._driver_calls().prepare(driver, references)
                for info in batches[driver]:
                    info.set_devices(driver, devices[info.uid])
            for info in fresh:
                info.is_prepared = True
            if batches:
                self._write("checkpoint ResourceClaim state")

    async def _wanted_claims(self, pod: Pod) -> list[ClaimInfo]:
        """Return the claims of a pod as the API has them, checked; nothing is changed before all are fine."""
        meta = pod.metadata
        fetched = self._fetched.pop(meta.uid, {})
        wanted = []
        for name, must_own in claim_names(pod):
            claim = fetched.get(name) or await read_claim(self._parts.client, meta.namespace, name)
            results = usable_results(claim, pod, must_own=must_own)
            skipped = self._skipped(claim, results)
            for driver, operations in skipped.items():
                # Also if the claim is prepared: without its driver something is wrong with the node.
                if not skips(operations, PREPARE) and self._drivers.find(driver) is None:
                    raise DRAError(f"DRA driver {driver} is not registered")
            wanted.append(ClaimInfo.of(meta.namespace, name, claim.metadata.uid, skipped))
        for info in wanted:
            self._check_known(info)
        return wanted

    def _check_known(self, wanted: ClaimInfo) -> None:
        """Raise `DRAError` if the claim cannot be used together with what is known under its name."""
        known = self._cache.get(*wanted.key)
        if known is None:
            return
        if known.uid != wanted.uid:
            raise DRAError(
                f"old ResourceClaim with same name {known.name} and different UID {known.uid} still exists "
                "(previous pod force-deleted?!)"
            )
        if known.is_unpreparing:
            raise DRAError(f"ResourceClaim {known.name} is being unprepared")

    def _skipped(
        self, claim: ResourceClaim, results: list[DeviceRequestAllocationResult]
    ) -> Mapping[str, Operations]:
        if self._support is SkipSupport.UNKNOWN:
            return {each.driver: () for each in results}
        text = disabled_text(results) if self._support is SkipSupport.OFF else ""
        if text:
            raise DRAError(f"ResourceClaim {claim.metadata.name}: {text}")
        return skipped_operations(results)

    def _use(self, wanted: ClaimInfo, pod: Pod) -> ClaimInfo:
        """Add a pod to a claim, which may be new."""
        self._check_known(wanted)  # again: it may have changed while its turn came
        info = self._cache.get(*wanted.key)
        if info is None:
            info = wanted
            self._cache.add(info)
        else:
            # An older kubelet may have written the claim down without what is skipped.
            for driver, state in wanted.drivers.items():
                info.set_skipped(driver, state.skipped)
        info.add_pod(pod.metadata.uid)
        return info

    # -- containers

    def cdi_ids(self, pod: Pod, container: Container | EphemeralContainer) -> tuple[str, ...]:
        """Return the CDI ids of the devices a container uses. Raises `NotConfigured`."""
        if not has_claims(pod):
            return ()
        found: dict[str, None] = {}
        try:
            for name, request in container_requests(pod, container):
                info = self._cache.get(pod.metadata.namespace, name)
                if info is None:
                    raise DRAError(
                        f"unable to get claim info for ResourceClaim {name} in namespace {pod.metadata.namespace}"
                    )
                found.update(dict.fromkeys(info.cdi_ids(request)))
        except DRAError as error:
            raise NotConfigured(CONFIG_ERROR, str(error)) from error
        return tuple(found)

    # -- after a pod ended

    async def unprepare(self, uid: str) -> None:
        """Unprepare all claims that only this pod uses, and forget the pod. Raises `DRAError`."""
        self._fetched.pop(uid, None)
        claims = self._cache.of_pod(uid)
        if not claims:
            self._failures.pop(uid, None)
            return
        started_ns = self._parts.clock.monotonic_ns()
        is_error = True
        try:
            async with self._locks.holding(each.key for each in claims):
                await self._unprepare(uid)
            is_error = False
        except DRAError as error:
            raise DRAError(f"unprepare dynamic resources: {error}") from error
        finally:
            self._operated("UnprepareResources", uid, started_ns, is_error=is_error)

    async def _unprepare(self, uid: str) -> None:
        batches: dict[str, list[ClaimInfo]] = {}
        last: list[ClaimInfo] = []
        for info in self._cache.of_pod(uid):
            if len(info.pods) > 1:
                info.remove_pod(uid)
                continue
            info.is_unpreparing = True
            last.append(info)
            for driver, state in info.drivers.items():
                if skips(state.skipped, UNPREPARE):
                    self._parts.metrics.skipped_unprepare(driver)
                else:
                    batches.setdefault(driver, []).append(info)
        for driver in sorted(batches):
            await self._driver_calls().unprepare(
                driver, {info.uid: _reference(info) for info in batches[driver]}
            )
        for info in last:
            self._cache.remove(info)
        try:
            self._write("checkpoint ResourceClaim state")
        except DRAError:
            for info in last:
                self._cache.add(info)  # it is still on the disk: tried again, which drivers must bear
            raise

    def retry_ns(self, uid: str) -> int:
        """Return how long a pod waits whose claims could not be prepared, or unprepared."""
        return int(_RETRY.wait(max(0, self._failures.get(uid, 1) - 1)) * SECOND_NS)

    # -- pods that are gone

    def _clean_up_later(self) -> None:
        if len(self._cache) and not self._is_cleaning and not self._is_stopped:
            self._is_cleaning = True
            parts = self._parts
            parts.wheel.at(parts.clock.monotonic_ns() + CLEANUP_NS, self._clean_up)

    def _clean_up(self) -> None:
        self._is_cleaning = False
        if self._is_stopped:
            return
        present = self._pods()
        for uid in sorted(self._cache.pods()):
            if uid not in present:
                self._parts.tasks.start(self.unprepare(uid))
        self._clean_up_later()

    # -- details

    def _driver_calls(self) -> DriverCalls:
        if self._calls is None:
            self._calls = DriverCalls(self._drivers, self._parts.clock, self._parts.metrics)
        return self._calls

    def _file(self) -> ClaimCheckpoint:
        if self._checkpoint is None:
            knows = self._support is not SkipSupport.UNKNOWN
            self._checkpoint = ClaimCheckpoint(self._services.disk, knows_skipping=knows)
        return self._checkpoint

    def _write(self, doing: str) -> None:
        try:
            self._file().write(self._cache)
        except (OSError, WorldError) as error:
            raise DRAError(f"{doing}: {error}") from error

    def _operated(self, operation: str, uid: str, started_ns: int, *, is_error: bool) -> None:
        seconds = (self._parts.clock.monotonic_ns() - started_ns) / SECOND_NS
        self._parts.metrics.operated(operation, seconds, is_error=is_error)
        if is_error:
            self._failures[uid] = self._failures.get(uid, 0) + 1
        else:
            self._failures.pop(uid, None)


def _reference(info: ClaimInfo) -> ClaimReference:
    return ClaimReference(info.namespace, info.uid, info.name)

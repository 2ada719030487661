"""Leader election: of several copies of a component, one works, the others wait to take over.

The copies compete for a `Lease` (coordination.k8s.io/v1). Whoever writes its name there leads, and must renew within
`renew_deadline`; a copy that has seen no renewal for the lease's duration, *measured on its own clock from when it saw
the last change*, takes over. Nobody compares clocks between machines: times in the lease are for people.

What must stay true: a leader that cannot renew stops working before anybody else may start, provided clocks run at
about the same speed; a write is always conditional on the version read, so two copies cannot both win.

Called by `cli.controllers` and `scheduler.scheduler`; calls `client`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from nodeward.api.coordination_v1 import Lease, LeaseSpec
from nodeward.api.errors import ApiError
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.base.invariant import invariant
from nodeward.base.timestamp import rfc3339_micro
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance

_log: Final = logging.getLogger(__name__)

#: Copies that wait spread their tries by up to this factor of the retry period.
_JITTER: Final = 1.2


class LeadershipLost(WorldError):
    """This copy led but could not renew its lease in time; another may lead now."""


@dataclass(frozen=True, slots=True)
class LeaderTimes:
    """Seconds. How long a lease holds, how long a leader keeps trying to renew, and the time between tries."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        invariant(self.lease_duration >= 1, "a lease lasts a second or more")
        invariant(self.lease_duration > self.renew_deadline, "a leader must stop before its lease runs out")
        invariant(
            self.renew_deadline > _JITTER * self.retry_period, "there must be time to renew more than once"
        )


class LeaderElector:
    """One copy's part in the election. `identity` must be different in each copy."""

    def __init__(
        self,
        client: Client,
        chance: Chance,
        *,
        name: str,
        namespace: str,
        identity: str,
        times: LeaderTimes | None = None,
        release_on_cancel: bool = True,
        on_new_leader: Callable[[str], None] | None = None,
    ) -> None:
        invariant(identity != "", "a candidate needs an identity")
        self._client = client
        self._clock = client.clock
        self._chance = chance
        self._name = name
        self._namespace = namespace
        self.identity: Final = identity
        self._times = times or LeaderTimes()
        self._release_on_cancel = release_on_cancel
        self._on_new_leader = on_new_leader
        #: The lease as last seen, and when, on our own clock, it was last seen to change.
        self._observed: Lease | None = None
        self._observed_at_ns = 0
        self._reported = ""

    @property
    def leader(self) -> str:
        """Who leads as far as this copy knows; empty if nobody does."""
        return (self._observed.spec.holder_identity or "") if self._observed is not None else ""

    def is_leader(self) -> bool:
        return self.leader == self.identity

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait to become leader, then run `lead` for as long as that lasts.

        Returns when `lead` does; raises what it raises, or `LeadershipLost` once it has been cancelled because the
        lease could not be renewed. When this call is cancelled, `lead` is stopped first and the lease given up then.
        """
        try:
            await self._acquire()
            await self._lead_and_renew(lead)
        finally:
            if self._release_on_cancel and self.is_leader():
                await asyncio.shield(self._release())

    async def _acquire(self) -> None:
        while not await self._try():
            period = self._times.retry_period
            await self._clock.sleep(period + self._chance.uniform(0.0, _JITTER * period))

    async def _lead_and_renew(self, lead: Callable[[], Awaitable[None]]) -> None:
        work = asyncio.ensure_future(lead())
        renewal = asyncio.create_task(self._renew(), name=f"renew {self._namespace}/{self._name}")
        try:
            await asyncio.wait((work, renewal), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, renewal):
                task.cancel()
            # Both must have ended before the lease is given up, or two copies would work at once.
            await asyncio.wait((work, renewal))
        if not work.cancelled() and (error := work.exception()) is not None:
            raise error
        if not renewal.cancelled() and (error := renewal.exception()) is not None:
            raise error

    async def _renew(self) -> None:
        """Renew until the deadline passes without success; then raise."""
        times = self._times
        while True:
            try:
                async with self._clock.timeout(times.renew_deadline):
                    while not await self._try():
                        await self._clock.sleep(times.retry_period)
            except TimeoutError:
                raise LeadershipLost(
                    f"{self.identity} could not renew lease {self._namespace}/{self._name} "
                    f"within {times.renew_deadline:g} s"
                ) from None
            await self._clock.sleep(times.retry_period)

    # -- one try --------------------------------------------------------------------------------------------------

    async def _try(self) -> bool:
        try:
            return await self._acquire_or_renew()
        except (ApiError, WorldError) as error:
            _log.warning("lease %s/%s: %s", self._namespace, self._name, error)
            return False
        finally:
            self._report()

    async def _acquire_or_renew(self) -> bool:
        now_ns = self._clock.monotonic_ns()
        if self._observed is not None and self.is_leader() and self._is_valid(now_ns):
            # A leader expects its lease to be as it left it: one request instead of two.
            try:
                await self._write(self._observed, self._observed.spec)
                return True
            except ApiError as error:
                if error.code not in (404, 409):
                    raise
        try:
            lease = await self._client.get(Lease, self._name, self._namespace)
        except ApiError as error:
            if error.code != 404:
                raise
            await self._create()
            return True
        self._observe(lease, is_ours=False)
        holder = lease.spec.holder_identity
        if holder and holder != self.identity and self._is_valid(now_ns):
            return False
        await self._write(lease, lease.spec if holder == self.identity else None)
        return True

    def _is_valid(self, now_ns: int) -> bool:
        seconds = (self._observed.spec.lease_duration_seconds or 0) if self._observed is not None else 0
        return self._observed_at_ns + seconds * SECOND_NS > now_ns

    def _observe(self, lease: Lease, *, is_ours: bool) -> None:
        if is_ours or self._observed is None or lease.spec != self._observed.spec:
            self._observed_at_ns = self._clock.monotonic_ns()
        self._observed = lease

    async def _create(self) -> None:
        now = rfc3339_micro(self._clock.now_ns())
        lease = Lease(
            metadata=ObjectMeta(name=self._name, namespace=self._namespace),
            spec=LeaseSpec(
                holder_identity=self.identity,
                lease_duration_seconds=int(self._times.lease_duration),
                acquire_time=now,
                renew_time=now,
                lease_transitions=0,
            ),
        )
        self._observe(await self._client.create(lease), is_ours=True)

    async def _write(self, lease: Lease, held: LeaseSpec | None) -> None:
        """Renew what we hold, or take over what another let go (`held` None)."""
        now = rfc3339_micro(self._clock.now_ns())
        transitions = lease.spec.lease_transitions or 0
        spec = msgspec.structs.replace(
            lease.spec,
            holder_identity=self.identity,
            lease_duration_seconds=int(self._times.lease_duration),
            renew_time=now,
            acquire_time=held.acquire_time if held is not None else now,
            lease_transitions=transitions if held is not None else transitions + 1,
        )
        written = await self._client.update(msgspec.structs.replace(lease, spec=spec))
        self._observe(written, is_ours=True)

    async def _release(self) -> None:
        """Let others take over at once; if that fails they wait the lease out."""
        try:
            async with self._clock.timeout(self._times.renew_deadline):
                while self.is_leader() and not await self._try_release():
                    await self._clock.yield_now()
        except TimeoutError:
            _log.warning("lease %s/%s could not be given up in time", self._namespace, self._name)
        self._report()

    async def _try_release(self) -> bool:
        try:
            lease = await self._client.get(Lease, self._name, self._namespace)
            self._observe(lease, is_ours=False)
            if not self.is_leader():
                return True
            now = rfc3339_micro(self._clock.now_ns())
            spec = LeaseSpec(
                holder_identity="",
                lease_duration_seconds=1,
                acquire_time=now,
                renew_time=now,
                lease_transitions=lease.spec.lease_transitions,
            )
            self._observe(await self._client.update(msgspec.structs.replace(lease, spec=spec)), is_ours=True)
            return True
        except ApiError as error:
            if error.code == 409:
                return False  # a renewal of ours was still on its way: read again
            _log.warning("lease %s/%s: %s", self._namespace, self._name, error)
            return True
        except WorldError as error:
            _log.warning("lease %s/%s: %s", self._namespace, self._name, error)
            return True

    def _report(self) -> None:
        if self.leader != self._reported:
            self._reported = self.leader
            if self._on_new_leader is not None and self._reported:
                self._on_new_leader(self._reported)

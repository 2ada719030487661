"""Drivers of simulated nodes, as a Fleet file describes them: how long they take, how often they fail.

```yaml
drivers:
- name: gpu.example.com
  prepareTime: 2s       # how long a preparation takes
  unprepareTime: 1s
  failPrepares: 3       # so many calls fail before the first succeeds; -1: all of them
  failUnprepares: 0
  absent: true          # it never registers
```

`simulated.machines` gives each node of a pool its own. Time passes on the node's clock, so a day of slow drivers is
over in a moment of virtual time. A driver remembers what it has prepared for as long as its node has a disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.kubelet.dra.claim_info import PreparedDevice
from nodeward.kubelet.dra.driver_plugin import (
    CALL_SECONDS,
    ClaimReference,
    DriverError,
    PrepareAnswer,
)
from nodeward.machinery.clock import Clock

#: Fails whenever it is called.
ALWAYS: Final = -1
_VENDOR_CLASS: Final = "device"
_LONGEST_NAME: Final = 63
#: What metrics call it, as a driver with the newest service.
SIMULATED_SERVICE: Final = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverDescription:
    """How a driver behaves."""

    name: str
    prepare_seconds: float = 0.0
    unprepare_seconds: float = 0.0
    #: calls that fail before the first that does not; `ALWAYS`
    failing_prepares: int = 0
    failing_unprepares: int = 0
    #: it is not on the node
    is_absent: bool = False

    @classmethod
    def read(cls, tree: Mapping[str, Any]) -> DriverDescription:
        """Read the description in a Fleet file, whose times are in nanoseconds by then. Raises `ConfigError`."""
        for name in ("failPrepares", "failUnprepares"):
            if tree.get(name, 0) < ALWAYS:
                raise ConfigError(
                    f"{name}: Invalid value: {tree[name]}: want a number of calls, or {ALWAYS} for all"
                )
        for name in ("prepareTime", "unprepareTime"):
            if tree.get(name, 0) < 0:
                raise ConfigError(f"{name}: want no time less than 0s")
        name = tree.get("name", "")
        if not 0 < len(name) <= _LONGEST_NAME:
            raise ConfigError(
                f"name: Invalid value: {name!r}: want the name of a driver, like gpu.example.com"
            )
        return cls(
            name=name,
            prepare_seconds=tree.get("prepareTime", 0) / SECOND_NS,
            unprepare_seconds=tree.get("unprepareTime", 0) / SECOND_NS,
            failing_prepares=tree.get("failPrepares", 0),
            failing_unprepares=tree.get("failUnprepares", 0),
            is_absent=tree.get("absent", False),
        )


@dataclass(slots=True)
class DescribedDriver:
    """One driver of one simulated node."""

    description: DriverDescription
    clock: Clock
    #: by uid, what is prepared at the moment
    prepared: dict[str, ClaimReference] = field(default_factory=dict)
    #: the calls that were made, in order: ("prepare", uids of the claims)
    calls: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    _failed: dict[str, int] = field(default_factory=dict)

    @property
    def service(self) -> str:
        return SIMULATED_SERVICE

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PrepareAnswer]:
        told = self.description
        await self._take_time("prepare", claims, told.prepare_seconds)
        if self._fails("prepare", told.failing_prepares):
            return {each.uid: PrepareAnswer(error="the simulated driver fails") for each in claims}
        self.prepared.update({each.uid: each for each in claims})
        return {each.uid: PrepareAnswer((self._device(each),)) for each in claims}

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        told = self.description
        await self._take_time("unprepare", claims, told.unprepare_seconds)
        if self._fails("unprepare", told.failing_unprepares):
            return {each.uid: "the simulated driver fails" for each in claims}
        for each in claims:
            self.prepared.pop(each.uid, None)
        return {each.uid: "" for each in claims}

    async def _take_time(self, call: str, claims: Sequence[ClaimReference], seconds: float) -> None:
        self.calls.append((call, tuple(each.uid for each in claims)))
        if seconds:
            await self.clock.sleep(min(seconds, CALL_SECONDS))
        if seconds > CALL_SECONDS:
            raise DriverError("DeadlineExceeded", "context deadline exceeded")

    def _fails(self, call: str, times: int) -> bool:
        failed = self._failed.get(call, 0)
        if times != ALWAYS and failed >= times:
            return False
        self._failed[call] = failed + 1
        return True

    def _device(self, claim: ClaimReference) -> PreparedDevice:
        return PreparedDevice("", "", cdi_ids=(f"{self.description.name}/{_VENDOR_CLASS}={claim.uid}",))


class DescribedDrivers:
    """The drivers of one simulated node; those that are not absent are registered from the start."""

    __slots__ = ("_by_name",)

    def __init__(self, drivers: Iterable[DescribedDriver]) -> None:
        self._by_name = {each.description.name: each for each in drivers if not each.description.is_absent}

    @classmethod
    def of(cls, descriptions: Sequence[DriverDescription], clock: Clock) -> DescribedDrivers:
        """Return new drivers, which have prepared nothing."""
        return cls(DescribedDriver(each, clock) for each in descriptions)

    def start(self, registered: Callable[[str], None], gone: Callable[[str], None]) -> None:
        for name in self._by_name:
            registered(name)

    def find(self, name: str) -> DescribedDriver | None:
        return self._by_name.get(name)

    def stop(self) -> None:
        """Nothing is looked for."""

    async def aclose(self) -> None:
        """Nothing is connected."""


#: Of all nodes without drivers.
NO_DRIVERS: Final = DescribedDrivers(())

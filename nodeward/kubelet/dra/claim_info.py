"""What a kubelet knows of the claims its pods use: `ClaimInfo`, one per claim, and all of a node, `ClaimCache`.

The DRA manager keeps one `ClaimCache` per node; `claim_checkpoint` writes it down. Pure state, no file is touched here.

What must stay true: a claim is in the cache from before its first prepare until after its last unprepare, whatever
fails in between; `is_prepared` is not written down, so that a restarted kubelet prepares again before it starts a pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from nodeward.kubelet.dra.skipping import Operations

#: namespace, name
ClaimKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PreparedDevice:
    """One device as its driver has prepared it."""

    pool: str
    device: str
    share_id: str | None = None
    #: the requests of the claim it is for; () is all of them
    requests: tuple[str, ...] = ()
    cdi_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DriverState:
    """The part of one driver in a claim."""

    devices: tuple[PreparedDevice, ...] = ()
    #: the operations that are not asked of the driver (KEP-5945)
    skipped: Operations = ()


@dataclass(slots=True)
class ClaimInfo:
    """One claim that pods of this node use. What is written down of it changes through its methods only."""

    namespace: str
    name: str
    uid: str
    drivers: dict[str, DriverState]
    #: uids of the pods, in the order in which they came
    pods: dict[str, None] = field(default_factory=dict)
    is_prepared: bool = False
    #: its last pod ends: no other pod may begin to use it
    is_unpreparing: bool = False
    #: the claim as it is written down, "" until somebody has written it since it changed
    text: str = field(default="", compare=False, repr=False)

    @classmethod
    def of(cls, namespace: str, name: str, uid: str, skipped: Mapping[str, Operations]) -> ClaimInfo:
        """Return the info of a claim that is allocated devices of these drivers."""
        return cls(namespace, name, uid, {driver: DriverState((), skipped[driver]) for driver in skipped})

    @property
    def key(self) -> ClaimKey:
        return self.namespace, self.name

    def add_pod(self, uid: str) -> None:
        self.pods[uid] = None
        self.text = ""

    def remove_pod(self, uid: str) -> None:
        del self.pods[uid]
        self.text = ""

    def set_devices(self, driver: str, devices: tuple[PreparedDevice, ...]) -> None:
        """Note what a driver has prepared, in place of what it had prepared before."""
        self.drivers[driver] = replace(self.drivers[driver], devices=devices)
        self.text = ""

    def set_skipped(self, driver: str, skipped: Operations) -> None:
        """Note which operations are not asked of a driver."""
        state = self.drivers.get(driver)
        if state is None or state.skipped != skipped:
            self.drivers[driver] = replace(state or DriverState(), skipped=skipped)
            self.text = ""

    def cdi_ids(self, request: str) -> Iterator[str]:
        """Return the CDI ids of the devices for a request; "" is for all of them."""
        for driver in sorted(self.drivers):
            for device in self.drivers[driver].devices:
                if not request or not device.requests or request in map(_main_request, device.requests):
                    yield from device.cdi_ids


def _main_request(name: str) -> str:
    """Containers name a request, allocations may name one of its alternatives: `main/alternative`."""
    return name.partition("/")[0]


class ClaimCache:
    """The claims of one node."""

    __slots__ = ("_by_key",)

    def __init__(self, claims: Iterable[ClaimInfo] = ()) -> None:
        self._by_key: Final[dict[ClaimKey, ClaimInfo]] = {each.key: each for each in claims}

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[ClaimInfo]:
        return iter(self._by_key.values())

    def get(self, namespace: str, name: str) -> ClaimInfo | None:
        return self._by_key.get((namespace, name))

    def add(self, info: ClaimInfo) -> None:
        self._by_key[info.key] = info

    def remove(self, info: ClaimInfo) -> None:
        """No error if it is not there."""
        self._by_key.pop(info.key, None)

    def of_pod(self, uid: str) -> list[ClaimInfo]:
        """Return the claims a pod uses."""
        return [each for each in self._by_key.values() if uid in each.pods]

    def pods(self) -> set[str]:
        """Return the uids of all pods that use a claim."""
        return {uid for each in self._by_key.values() for uid in each.pods}

    def in_use(self) -> dict[str, int]:
        """Return how many claims each driver has a part in."""
        counted: dict[str, int] = {}
        for each in self._by_key.values():
            for driver in each.drivers:
                counted[driver] = counted.get(driver, 0) + 1
        return counted

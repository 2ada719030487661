"""How fast pods may be driven off nodes that are not ready: by zone, and not at all if everything is lost.

A zone in which most nodes fail is more likely cut off than broken, so evictions slow down there (`PartialDisruption`)
or, in a small zone, stop. A zone without any ready node (`FullDisruption`) is evicted at the usual rate, since others
can take the pods; if all zones are so, nothing is: then it is this control plane that sees nothing.

In go counts of nodes by zone every few seconds; out come rates. All of it is values and arithmetic given `now`.

Called by `controller`, `health` and `metrics`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.base.duration import SECOND_NS

_LABELS: Final = (
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
)
#: Nodes with this label do not count for the state of their zone.
EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"


class ZoneState(StrEnum):
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


@dataclass(frozen=True, slots=True)
class EvictionRates:
    """The flags of kube-controller-manager, with their defaults."""

    #: nodes per second and zone (--node-eviction-rate, --secondary-node-eviction-rate)
    usual: float = 0.1
    secondary: float = 0.01
    #: --large-cluster-size-threshold: in zones of this size or smaller the secondary rate is none
    large_zone: int = 50
    #: --unhealthy-zone-threshold
    unhealthy_share: float = 0.55

    def of(self, state: ZoneState, size: int) -> float:
        if state is ZoneState.PARTIAL:
            return self.secondary if size > self.large_zone else 0.0
        return self.usual


@dataclass(slots=True)
class ZoneCensus:
    """The nodes of one zone."""

    ready: int = 0
    not_ready: int = 0

    @property
    def size(self) -> int:
        return self.ready + self.not_ready

    def state(self, rates: EvictionRates) -> ZoneState:
        if self.ready == 0 and self.not_ready > 0:
            return ZoneState.FULL
        if self.not_ready > 2 and self.not_ready / self.size >= rates.unhealthy_share:
            return ZoneState.PARTIAL
        return ZoneState.NORMAL


def zone_of(node: Node) -> str:
    """Return region and zone as one name, as in metrics; empty for a node without either label."""
    labels = node.metadata.labels
    region, zone = (labels.get(old, labels.get(new, "")) for old, new in _LABELS)
    # The null character separates names that may hold colons.
    return f"{region}:\x00:{zone}" if region or zone else ""


class TokenBucket:
    """A rate limiter of one token, refilled at a rate; a rate of zero never refills."""

    __slots__ = ("_full_ns", "rate")

    def __init__(self, rate: float, now_ns: int) -> None:
        self.rate = rate
        #: when the token is there (again)
        self._full_ns = now_ns

    def take(self, now_ns: int) -> bool:
        if self.rate <= 0 or now_ns < self._full_ns:
            return False
        self._full_ns = now_ns + round(SECOND_NS / self.rate)
        return True

    def wait_seconds(self, now_ns: int) -> float | None:
        """Return the seconds until the next token; None: never at this rate."""
        return None if self.rate <= 0 else max(0.0, (self._full_ns - now_ns) / SECOND_NS)

    def change(self, rate: float, now_ns: int) -> None:
        """Change the rate; a waiting caller waits for the first token of the new rate."""
        if rate == self.rate:
            return
        is_waiting = self.rate <= 0 or now_ns < self._full_ns
        self.rate = rate
        if rate > 0:
            self._full_ns = now_ns + round(SECOND_NS / rate) if is_waiting else now_ns


@dataclass(slots=True)
class Zone:
    """A zone's state, its limit, and the nodes that wait for their taint, oldest first."""

    bucket: TokenBucket
    waiting: dict[str, None]
    state: ZoneState = ZoneState.NORMAL


class ClusterDisruption(StrEnum):
    """What a census changes for the cluster as a whole."""

    NONE = ""
    #: all zones are lost as of now
    BEGINS = "begins"
    ENDS = "ends"


class Zones:
    """All zones."""

    def __init__(self, rates: EvictionRates) -> None:
        self.rates: Final = rates
        self.of: Final[dict[str, Zone]] = {}
        self._is_lost = False

    def zone(self, name: str, now_ns: int) -> Zone:
        found = self.of.get(name)
        if found is None:
            found = self.of[name] = Zone(TokenBucket(self.rates.usual, now_ns), {})
        return found

    def leave(self, zone: str, node: str) -> None:
        """Remove the node from those waiting for a taint."""
        found = self.of.get(zone)
        if found is not None:
            found.waiting.pop(node, None)

    def assess(self, census: Mapping[str, ZoneCensus], now_ns: int) -> ClusterDisruption:
        """Set states and rates from what was counted. Zones that are not in the census have no nodes any more."""
        for name in [name for name in self.of if name not in census]:
            del self.of[name]
        states = {name: count.state(self.rates) for name, count in census.items()}
        counted = [states[name] for name, count in census.items() if count.size]
        was_lost, self._is_lost = self._is_lost, _are_lost(counted)
        for name, state in states.items():
            zone = self.zone(name, now_ns)
            zone.state = state
            zone.bucket.change(0.0 if self._is_lost else self.rates.of(state, census[name].size), now_ns)
        if was_lost == self._is_lost:
            return ClusterDisruption.NONE
        return ClusterDisruption.BEGINS if self._is_lost else ClusterDisruption.ENDS


def _are_lost(states: Sequence[ZoneState]) -> bool:
    return bool(states) and all(state is ZoneState.FULL for state in states)

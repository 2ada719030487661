"""The heartbeat: one Lease per node in `kube-node-lease`, renewed every quarter of its duration.

A small state machine: it says what to send next and when, and is told how that went. The times are upstream's: five
tries at once, then waits from 0.2 s up to 7 s, doubling, with a fresh start by creating the lease.

Unlike upstream: a renewal is a merge patch of two fields rather than an update of the whole object, so that nobody
else's write makes it fail and no lease need be kept in memory; and the lease is created without asking first whether it
is there (if it is, it is renewed).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from nodeward.api.coordination_v1 import Lease, LeaseSpec
from nodeward.api.meta import ObjectMeta, OwnerReference
from nodeward.base.duration import MILLISECOND_NS, SECOND_NS
from nodeward.base.timestamp import rfc3339_micro
from nodeward.machinery.clock import Chance

NAMESPACE: Final = "kube-node-lease"
_TRIES: Final = 5
_FIRST_WAIT_NS: Final = 200 * MILLISECOND_NS
_LONGEST_WAIT_NS: Final = 7 * SECOND_NS
#: Renewals are spread by this part of their interval.
_JITTER: Final = 0.04


class Outcome(Enum):
    """How a request went."""

    DONE = "done"
    #: it was there already (create), so renew it
    EXISTS = "exists"
    #: it is gone (renew), so create it
    GONE = "gone"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Create:
    """POST to leases."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Renew:
    """A merge patch of the node's lease."""

    patch: dict[str, Any]


class LeaseCore:
    """The lease of one node. `next_ns` is when `request` should be asked next."""

    __slots__ = ("_failures", "_is_known", "_name", "_node_uid", "_owner_told", "_seconds", "next_ns")

    def __init__(self, name: str, lease_seconds: int, next_ns: int) -> None:
        self._name = name
        self._seconds = lease_seconds
        self._node_uid = ""
        self._is_known = False
        self._owner_told = ""
        self._failures = 0
        self.next_ns = next_ns

    def node_is(self, uid: str) -> bool:
        """The node's uid, which the lease must belong to; another one after the node was made anew.

        Whether that is news: then the lease is due.
        """
        is_new, self._node_uid = uid != self._node_uid, uid
        return is_new

    def request(self, now_ns: int) -> Create | Renew | None:
        """What to send now; None while the node itself is not known: a lease without an owner would outlive it."""
        if not self._node_uid:
            return None
        now = rfc3339_micro(now_ns)
        if not self._is_known:
            metadata = ObjectMeta(name=self._name, namespace=NAMESPACE, owner_references=[self._owner()])
            spec = LeaseSpec(holder_identity=self._name, lease_duration_seconds=self._seconds, renew_time=now)
            return Create(Lease(metadata=metadata, spec=spec))
        patch: dict[str, Any] = {"spec": {"leaseDurationSeconds": self._seconds, "renewTime": now}}
        if self._owner_told != self._node_uid:
            owner = {"apiVersion": "v1", "kind": "Node", "name": self._name, "uid": self._node_uid}
            patch["metadata"] = {"ownerReferences": [owner]}
            patch["spec"]["holderIdentity"] = self._name
        return Renew(patch)

    def ended(self, outcome: Outcome, monotonic_ns: int, chance: Chance) -> bool:
        """How it went. True: connections to the API server look broken and should be made anew."""
        if outcome is Outcome.GONE and not self._is_known:
            outcome = (
                Outcome.FAILED
            )  # it is its namespace that is not there: creating it at once helps nothing
        match outcome:
            case Outcome.DONE:
                self._is_known = True
                self._owner_told = self._node_uid
                self._failures = 0
                interval = self._seconds * SECOND_NS // 4
                self.next_ns = monotonic_ns + int(interval * (1 + _JITTER * chance.uniform(0.0, 1.0)))
            case Outcome.EXISTS:
                self._is_known, self._owner_told = True, ""
                self.next_ns = monotonic_ns
            case Outcome.GONE:
                self._is_known = False
                self.next_ns = monotonic_ns
            case Outcome.FAILED:
                self._failures += 1
                self.next_ns = monotonic_ns + self._wait_ns()
                return self._is_known and 2 <= self._failures <= _TRIES
        return False

    def _wait_ns(self) -> int:
        """A renewal is tried again at once a few times; after that, and for a lease to be made, there are waits."""
        at_once = _TRIES if self._is_known else 0
        if self._failures < at_once:
            return 0
        doublings = min(self._failures - max(at_once, 1), 16)
        return min(_FIRST_WAIT_NS << doublings, _LONGEST_WAIT_NS)

    def _owner(self) -> OwnerReference:
        return OwnerReference(api_version="v1", kind="Node", name=self._name, uid=self._node_uid)

"""Backoff for pods that fail right after they were made: replacements wait longer each time (KEP-5471).

A pod that its node refuses fails at once, and a controller that replaces it at once makes pods as fast as the cluster
can carry them, each of which stays behind as Failed. Unlike upstream, whose replica sets do just that: after such a
failure new pods wait 1 s, then twice as long each time, 5 minutes at most.

What must stay true: a pod counts once; a whole batch that fails together counts as one failure; a pod made since the
last failure that becomes ready, or another generation of the owner, ends the waiting. Deleting never waits.

Called by `replicaset`; calls `state`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339
from nodeward.controllers.pods.state import is_ready
from nodeward.machinery.backoff import Curve
from nodeward.machinery.clock import Clock

K = TypeVar("K", bound=Hashable)

FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 300.0
#: A pod that failed before it was this old failed right after it was made.
SHORT_SECONDS: Final = 10
_CURVE: Final = Curve(initial=FIRST_WAIT_SECONDS, cap=LONGEST_WAIT_SECONDS)


@dataclass(slots=True)
class _Short:
    uid: str
    generation: int
    #: failed pods that were looked at, in the order they were; those that are gone are forgotten
    seen: dict[str, None] = field(default_factory=dict)
    failures: int = 0
    failed_ns: int = 0
    until_ns: int = 0


class ReplacementBackoff(Generic[K]):
    """Failures by owner. An owner none of whose pods failed takes no memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of: dict[K, _Short] = {}

    def observe(self, key: K, owner: ObjectMeta, pods: Iterable[Pod]) -> bool:
        """Take in the owner's pods as they are now; tell whether new ones among them failed too soon."""
        failed: list[Pod] = []
        ready: list[Pod] = []
        for pod in pods:
            if pod.status.phase == "Failed":
                failed.append(pod)
            elif key in self._of and is_ready(pod):
                ready.append(pod)
        known = self._of.get(key)
        if known is None and not failed:
            return False
        if known is None or known.uid != owner.uid:
            known = self._of[key] = _Short(owner.uid, owner.generation)
        elif known.generation != owner.generation:
            known.generation = owner.generation
            known.failures = known.until_ns = 0
        if known.failures and any(_made_ns(pod) > known.failed_ns for pod in ready):
            known.failures = known.until_ns = 0
        now_ns = self._clock.now_ns()
        is_short = any(
            pod.metadata.uid not in known.seen and now_ns - _made_ns(pod) < SHORT_SECONDS * SECOND_NS
            for pod in failed
        )
        known.seen = dict.fromkeys(pod.metadata.uid for pod in failed)
        if is_short:
            known.failed_ns = now_ns
            wait_ns = round(_CURVE.wait(known.failures) * SECOND_NS)
            known.until_ns = self._clock.monotonic_ns() + wait_ns
            known.failures += 1
        elif not known.failures and not failed:
            del self._of[key]
        return is_short

    def failures(self, key: K) -> int:
        """Return how often in a row pods failed too soon."""
        known = self._of.get(key)
        return 0 if known is None else known.failures

    def seconds_left(self, key: K) -> float:
        """Return how long not to make another pod; 0: go ahead."""
        known = self._of.get(key)
        return 0.0 if known is None else max(0.0, (known.until_ns - self._clock.monotonic_ns()) / SECOND_NS)

    def forget(self, key: K) -> None:
        """Drop everything about the owner, which is gone."""
        self._of.pop(key, None)


def _made_ns(pod: Pod) -> int:
    made = pod.metadata.creation_timestamp
    return parse_rfc3339(made) if made else 0

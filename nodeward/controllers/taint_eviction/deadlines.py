"""Until when a pod may stay on a node with NoExecute taints.

In go the taints of a node, the tolerations of a pod, and since when the pod has been putting up with which of them for
a limited time; out comes the same for now, and the moment at which the pod goes. For each taint the first toleration
that covers it counts; each limited one runs from the moment it began to limit the pod, and the earliest end wins.

Unlike upstream, where a running timer is neither shortened by a second taint nor lengthened when the first one goes:
there the documented promises (the shortest time counts; a taint that goes takes its deadline along) do not hold.
As upstream, time runs from when this controller saw the taint, whatever `timeAdded` says, and a node that goes from
not-ready to unreachable or back is one failure: its pods' time does not start anew.

Called by `controller`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.rules.taints import NO_EXECUTE
from nodeward.rules.tolerations import AnyTaint, AnyToleration, first_tolerating

_NOT_READY: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class EvictionDeadline:
    """When a pod is evicted: at `end_ns`; None: never."""

    end_ns: int | None = None
    #: since when, by the keys of the taints that limit it
    since: Mapping[str, int] = field(default_factory=lambda: _NOTHING)


FOR_GOOD: Final = EvictionDeadline()


def stay(
    taints: Iterable[AnyTaint],
    tolerations: Sequence[AnyToleration],
    before: Mapping[str, int],
    now_ns: int,
    *,
    numeric: bool,
) -> EvictionDeadline:
    """Return a pod's deadline; `before` is the `since` of the last answer for the same pod on the same node."""
    limits: dict[str, int] = {}
    keys: dict[str, None] = {}
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        used = first_tolerating(tolerations, taint, numeric=numeric)
        if used is None:
            return EvictionDeadline(now_ns)
        keys[taint.key] = None
        if used.toleration_seconds is not None:
            limits[taint.key] = max(used.toleration_seconds, 0)
    if not limits:
        return FOR_GOOD
    since = {key: _since(key, keys, before, now_ns) for key in limits}
    return EvictionDeadline(min(since[key] + seconds * SECOND_NS for key, seconds in limits.items()), since)


def _since(key: str, keys: Mapping[str, None], before: Mapping[str, int], now_ns: int) -> int:
    if key in before:
        return before[key]
    if key in _NOT_READY:
        other = _NOT_READY[1 - _NOT_READY.index(key)]
        if other in before and other not in keys:
            return before[other]
    return now_ns

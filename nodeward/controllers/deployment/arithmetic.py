"""How many pods each replica set of a deployment should have next. Pure.

In go the deployment and its replica sets, out come sizes by name: only those that change.

What must stay true: a rolling step never asks for more than `replicas + maxSurge` pods altogether, and never takes
available pods below `replicas - maxUnavailable`. Percentages of surge are rounded up, of unavailability down; if both
come out as zero, one pod may be unavailable, since otherwise nothing could ever move.

Called by `controller` and `progress`; calls `revisions`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from nodeward.api.apps_v1 import Deployment, ReplicaSet
from nodeward.controllers.deployment.revisions import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    by_age,
    whole_number,
)
from nodeward.rules.int_or_percent import scaled

#: New sizes by the name of the replica set.
Sizes: TypeAlias = Mapping[str, int]

ROLLING: Final = "RollingUpdate"


def replicas(obj: Deployment | ReplicaSet) -> int:
    return obj.spec.replicas or 0


def total(sets: Iterable[ReplicaSet]) -> int:
    """Return the pods asked for."""
    return sum(map(replicas, sets))


def occupied(sets: Iterable[ReplicaSet]) -> int:
    """Return the pods asked for, and those not asked for any more that are still there.

    Unlike upstream, which lets new pods come before the old ones they replace have begun to go.
    """
    return sum(max(replicas(each), each.status.replicas) for each in sets)


def available(sets: Iterable[ReplicaSet]) -> int:
    """Count available pods, at most the size: a status may be older than the spec beside it."""
    return sum(min(each.status.available_replicas, replicas(each)) for each in sets)


def active(sets: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Return those that should have pods."""
    return [each for each in sets if replicas(each) > 0]


def is_rolling(deployment: Deployment) -> bool:
    return deployment.spec.strategy.type == ROLLING


def max_surge(deployment: Deployment) -> int:
    """Return how many pods there may be beyond those asked for."""
    return _bounds(deployment)[0] if is_rolling(deployment) else 0


def max_unavailable(deployment: Deployment) -> int:
    """Return how many of the pods asked for may be missing."""
    if not is_rolling(deployment) or not replicas(deployment):
        return 0
    return min(_bounds(deployment)[1], replicas(deployment))


def _bounds(deployment: Deployment) -> tuple[int, int]:
    rolling = deployment.spec.strategy.rolling_update
    count = replicas(deployment)
    surge = scaled(rolling.max_surge, count, round_up=True) if rolling is not None else 0
    unavailable = scaled(rolling.max_unavailable, count, round_up=False) if rolling is not None else 0
    return surge, unavailable if surge or unavailable else 1


def grown(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> int:
    """Return the size the new replica set may have now, beside the old ones."""
    wanted, present = replicas(deployment), replicas(new)
    if not is_rolling(deployment):
        return wanted
    if any(each.status.observed_generation < each.metadata.generation for each in old):
        # How many pods it has is not known: its last word is about another size.
        return present
    room = wanted + max_surge(deployment) - occupied((*old, new))
    return present + min(room, wanted - present) if room > 0 else present


def rolling_step(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> Sizes:
    """Compute one step of a rolling update: the new replica set grows if it can, otherwise the old ones shrink."""
    wanted = replicas(deployment)
    if replicas(new) > wanted:
        return {new.metadata.name: wanted}
    if replicas(new) < wanted:
        size = grown(deployment, new, old)
        if size != replicas(new):
            return {new.metadata.name: size}
    return _shrunk(deployment, new, by_age(active(old)))


def _shrunk(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> Sizes:
    """Shrink old replica sets: unavailable pods first, then as many as new pods have replaced."""
    minimum = replicas(deployment) - max_unavailable(deployment)
    new_not_available = replicas(new) - available([new])
    room = total(old) + replicas(new) - minimum - new_not_available
    if room <= 0:
        return {}
    sizes = {each.metadata.name: replicas(each) for each in old}
    for each in old:
        idle = min(room, replicas(each) - each.status.available_replicas)
        if idle > 0:
            sizes[each.metadata.name] -= idle
            room -= idle
    spare = available((*old, new)) - minimum
    for each in old:
        goes = min(spare, sizes[each.metadata.name])
        if goes > 0:
            sizes[each.metadata.name] -= goes
            spare -= goes
    return {
        each.metadata.name: sizes[each.metadata.name]
        for each in old
        if sizes[each.metadata.name] != replicas(each)
    }


def is_saturated(deployment: Deployment, new: ReplicaSet | None) -> bool:
    """Tell whether the new replica set alone is all that was asked for."""
    wanted = replicas(deployment)
    return (
        new is not None
        and whole_number(new, DESIRED_REPLICAS) == wanted
        and replicas(new) == wanted
        and new.status.available_replicas == wanted
    )


def is_scaling(deployment: Deployment, sets: Iterable[ReplicaSet]) -> bool:
    """Tell whether the number of pods asked for has changed since the replica sets were last sized."""
    remembered = (whole_number(each, DESIRED_REPLICAS) for each in active(sets))
    return any(each is not None and each != replicas(deployment) for each in remembered)


def in_proportion(deployment: Deployment, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> Sizes:
    """Return sizes after scaling: mid-rollout each replica set keeps its share, so scaling does not speed it up.

    A replica set that keeps its size is named too: what it remembers may need writing.
    """
    wanted = replicas(deployment)
    everything = [*by_age(old), *([new] if new is not None else [])]
    running = active(everything)
    if len(running) <= 1:
        only = running[0] if running else new or (everything[-1] if everything else None)
        return {} if only is None else {only.metadata.name: wanted}
    if is_saturated(deployment, new):
        return {each.metadata.name: 0 for each in active(old)}
    if not is_rolling(deployment):
        return {}
    allowed = wanted + max_surge(deployment) if wanted else 0
    to_add = allowed - total(running)
    ordered = _largest_first(running, newer_first=to_add > 0)
    sizes = {each.metadata.name: replicas(each) for each in ordered}
    if to_add:
        added = 0
        for each in ordered:
            share = _share(deployment, each, to_add, added)
            sizes[each.metadata.name] += share
            added += share
        # What rounding leaves over is the largest's. Unlike upstream, what it has not got is the next one's.
        for each in ordered:
            rest = max(to_add - added, -sizes[each.metadata.name])
            sizes[each.metadata.name] += rest
            added += rest
    return sizes


def _largest_first(sets: Sequence[ReplicaSet], *, newer_first: bool) -> list[ReplicaSet]:
    aged = by_age(sets)
    return sorted(reversed(aged) if newer_first else aged, key=lambda each: -replicas(each))


def _share(deployment: Deployment, each: ReplicaSet, to_add: int, added: int) -> int:
    """Return what this replica set gains or loses of `to_add`, of which `added` is given out already."""
    if to_add == added:
        return 0
    share, rest = _fraction(deployment, each), to_add - added
    return min(share, rest) if to_add > 0 else max(share, rest)


def _fraction(deployment: Deployment, each: ReplicaSet) -> int:
    wanted, present = replicas(deployment), replicas(each)
    if not wanted:
        return -present
    before = whole_number(each, MAX_REPLICAS) or deployment.status.replicas
    if not before:
        return 0
    # To the nearest, halves up: sizes are never negative.
    return (2 * present * (wanted + max_surge(deployment)) + before) // (2 * before) - present

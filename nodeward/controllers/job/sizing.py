"""Which pods of a job to make and to delete next. Pure.

What must stay true: never more pods at work than `parallelism`, nor than completions are missing; with
`podReplacementPolicy: Failed` pods that are going count as well; an index has one pod at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.controllers.job.backoff import Record, seconds_left_of_index
from nodeward.controllers.job.indexes import Indexes
from nodeward.controllers.job.pod_facts import (
    counts_by_index,
    index_of,
    is_indexed,
    is_suspended,
    replaces_only_failed,
)
from nodeward.controllers.job.scene import Scene, has_place
from nodeward.controllers.pods.ranking import deletion_order, first_to_delete
from nodeward.controllers.pods.state import is_terminating

#: How many pods are made or deleted at most before the informer has to confirm.
BURST: Final = 500


@dataclass(slots=True)
class Step:
    """Either deletions, or creations, or a pause; or nothing."""

    delete: Sequence[Pod] = ()
    #: One for each pod to make; None where pods have no index.
    create: list[int | None] = field(default_factory=list)
    #: Pods are missing, but not to be made for so long.
    pause_seconds: float = 0.0


def next_step(scene: Scene, backoff: Record) -> Step:
    wanted = 0 if is_suspended(scene.job) else _wanted(scene)
    doomed = _doomed(scene, max(0, len(scene.active) - wanted))
    if doomed or is_suspended(scene.job):
        return Step(delete=doomed[:BURST])
    going = scene.terminating if replaces_only_failed(scene.job) else 0
    missing = wanted - going - len(scene.active)
    if missing <= 0:
        return Step()
    by_index = counts_by_index(scene.job)
    pause = 0.0 if by_index else backoff.seconds_left(scene.now_ns)
    if pause:
        return Step(pause_seconds=pause)
    missing = min(missing, BURST)
    if not is_indexed(scene.job):
        return Step(create=[None] * missing)
    pending = list(islice(_busy(scene).absent(scene.job.spec.completions or 0), missing))
    if not by_index:
        return Step(create=[*pending])
    pauses = [seconds_left_of_index(scene.kept.get(index), scene.now_ns) for index in pending]
    ready = [index for index, left in zip(pending, pauses, strict=True) if not left]
    # Unlike upstream, the pauses of other indexes are waited for even while some can be made.
    return Step(create=[*ready], pause_seconds=min((left for left in pauses if left), default=0.0))


def _wanted(scene: Scene) -> int:
    spec = scene.job.spec
    if spec.completions is None:
        # The first success ends it: what runs may finish, and nothing more is started.
        return len(scene.active) if scene.succeeded else (spec.parallelism or 0)
    return max(0, min(spec.completions - scene.succeeded, spec.parallelism or 0))


def _busy(scene: Scene) -> Indexes:
    """Indexes that need no pod: done, given up, or at work."""
    at_work = [index_of(pod) for pod in scene.active]
    if replaces_only_failed(scene.job):
        at_work += [index_of(pod) for pod in scene.pods if is_terminating(pod)]
    running = Indexes.of(dict.fromkeys(index for index in at_work if index is not None))
    return scene.succeeded_indexes | scene.failed_indexes | running


def _doomed(scene: Scene, at_least: int) -> list[Pod]:
    """Pods without a place, all but the best of each index, and as many more as it takes."""
    doomed: list[Pod] = []
    left: Sequence[Pod] = scene.active
    if is_indexed(scene.job):
        order = deletion_order((), scene.now_ns)
        best: dict[int | None, Pod] = {}
        for pod in sorted(scene.active, key=order, reverse=True):
            index = index_of(pod)
            if has_place(scene.job, pod) and index not in best:
                best[index] = pod
            else:
                doomed.append(pod)
        left = list(best.values())
    more = at_least - len(doomed)
    return [*doomed, *first_to_delete(left, more, (), scene.now_ns)] if more > 0 else doomed

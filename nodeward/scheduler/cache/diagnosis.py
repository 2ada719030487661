"""Why a pod fits nowhere, in numbers: how many nodes have each reason, and which plugins stand in the way.

What a FailedScheduling event is written from, and what the queue must know to wake the pod. Names of nodes do not
come into it, so that it costs one count over a column, not one entry per node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from nodeward.scheduler.framework.plugin import RejectionNotes
from nodeward.scheduler.framework.status import Code, Status


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The result for one pod."""

    #: how many nodes there are
    nodes: int
    #: how many nodes have each reason; a node may have several
    counts: Mapping[str, int]
    #: the plugins that rejected it, sorted; those that wait for something outside, sorted
    rejected_by: tuple[str, ...]
    pending_for: tuple[str, ...] = ()
    #: set when the pod was rejected as such, before any node was looked at
    before: Status | None = None
    #: what each plugin said first
    codes: Mapping[str, Code] = field(default_factory=dict)
    #: what plugins told of single nodes beside their reasons: on how many nodes
    notes: Mapping[str, int] = field(default_factory=dict)


def of_nodes(
    nodes: int,
    why: NDArray[np.int32],
    reasons: Sequence[Status],
    more: Iterable[Status],
    narrowing: Iterable[str],
    notes: Mapping[str, int],
) -> Diagnosis:
    """`why`: per node the number of its reason, negative for those that fit; `more`: further nodes that do not.

    `narrowing` are the plugins that ruled nodes out before any was looked at; `notes` are counted already.
    """
    counts: dict[str, int] = {}
    rejected, pending = set(narrowing), set[str]()
    numbers = np.bincount(why[why >= 0], minlength=len(reasons)).tolist()
    found = [(status, count) for status, count in zip(reasons, numbers, strict=True) if count]
    codes: dict[str, Code] = {}
    for status, count in (*found, *((each, 1) for each in more)):
        codes.setdefault(status.plugin, status.code)
        (pending if status.code is Code.PENDING else rejected).add(status.plugin)
        for reason in status.reasons:
            counts[reason] = counts.get(reason, 0) + count
    return Diagnosis(nodes, counts, tuple(sorted(rejected)), tuple(sorted(pending)), codes=codes, notes=notes)


def counted(notes: Iterable[RejectionNotes]) -> dict[str, int]:
    """On how many rows each note is."""
    found: dict[str, int] = {}
    for each in notes:
        numbers = np.bincount(each.which, minlength=len(each.texts)).tolist()
        for texts, count in zip(each.texts, numbers, strict=True):
            for text in texts:
                found[text] = found.get(text, 0) + count
    return found


def of_pod(nodes: int, status: Status, narrowing: Iterable[str]) -> Diagnosis:
    """The pod was rejected as such."""
    is_pending = status.code is Code.PENDING
    by = {status.plugin, *narrowing} if not is_pending else set(narrowing)
    counts = dict.fromkeys(status.reasons, nodes)
    return Diagnosis(
        nodes,
        counts,
        tuple(sorted(by)),
        (status.plugin,) if is_pending else (),
        status,
        {status.plugin: status.code},
    )

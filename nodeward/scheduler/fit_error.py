"""What a pod that fits nowhere is told: one line, in the words of Kubernetes' FailedScheduling events.

Counts of reasons come in, a sentence goes out. A node may have several reasons, so the counts may add up to more than
there are nodes. What upstream says stands first, word for word; notes of plugins, which upstream has not, follow it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NONE: Final[Mapping[str, int]] = {}
NO_NODES: Final = "no nodes available to schedule pods"
#: Notes that are told; nodes with the others are counted.
MOST_NOTES: Final = 3


def fit_error_message(
    total_nodes: int,
    counts: Mapping[str, int],
    post_filter: str = "",
    pre_filter: str = "",
    notes: Mapping[str, int] = _NONE,
) -> str:
    """`counts`: how many nodes have each reason. With `pre_filter` the pod was rejected before nodes were looked at.

    `notes`: what was said of how many nodes beside the reason.
    """
    if not total_nodes:
        return NO_NODES
    parts = [f"0/{total_nodes} nodes are available:"]
    # Sorted as text, counts included, as Kubernetes does: ten of something come before two of something else.
    reasons = pre_filter or ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    if reasons:
        parts.append(f"{reasons}.")
    if post_filter:
        parts.append(post_filter)
    if notes:
        parts.append(f"In detail: {', '.join(most_notes(notes))}.")
    return " ".join(parts)


def most_notes(notes: Mapping[str, int], most: int = MOST_NOTES) -> list[str]:
    """The notes that are on most nodes, with how many; the last entry counts those that were left out."""
    ranked = sorted(notes.items(), key=lambda each: (-each[1], each[0]))
    told = [f"{count} {note}" for note, count in ranked[:most]]
    others = len(ranked) - most
    return [*told, f"and {others} more"] if others > 0 else told

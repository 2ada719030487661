"""What a pod that fits nowhere is told: one line, in the words of Kubernetes' FailedScheduling events.

Counts of reasons come in, a sentence goes out. A node may have several reasons, so the counts may add up to more than
there are nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NO_NODES: Final = "no nodes available to schedule pods"


def fit_error_message(
    total_nodes: int, counts: Mapping[str, int], post_filter: str = "", pre_filter: str = ""
) -> str:
    """`counts`: how many nodes have each reason. With `pre_filter` the pod was rejected before nodes were looked at."""
    if not total_nodes:
        return NO_NODES
    parts = [f"0/{total_nodes} nodes are available:"]
    # Sorted as text, counts included, as Kubernetes does: ten of something come before two of something else.
    reasons = pre_filter or ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    if reasons:
        parts.append(f"{reasons}.")
    if post_filter:
        parts.append(post_filter)
    return " ".join(parts)

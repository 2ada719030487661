"""The NoExecute taints of nodes that are not ready: which one a node should have, and when it may get it.

A node whose Ready is False is `not-ready`, one whose Ready is Unknown is `unreachable`, never both. Getting the first
of them makes pods leave, so that needs leave (`may_add`, from the zone's rate limit); changing one for the other, and
taking it off a node that is ready, does not. `must_clear`: all zones are lost, so the fault is not the nodes'.

Called by `health` and `plan`; calls `condition_taints`.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.references import Taint
from nodeward.controllers.node_lifecycle.condition_taints import NOT_READY, UNREACHABLE
from nodeward.rules.taints import NO_EXECUTE

_WANTED: Final = {"False": NOT_READY, "Unknown": UNREACHABLE}


def ready_status(node: Node) -> str:
    """Return the status of the condition Ready; empty if there is none."""
    for condition in node.status.conditions:
        if condition.type == "Ready":
            return condition.status
    return ""


def execute_key(node: Node) -> str:
    """Return the key of the NoExecute taint for not being ready that the node has; empty if it has none."""
    for taint in node.spec.taints:
        if taint.effect == NO_EXECUTE and taint.key in (NOT_READY, UNREACHABLE):
            return taint.key
    return ""


def with_execute_taint(
    node: Node, taints: list[Taint], now: str, *, may_add: bool, must_clear: bool
) -> list[Taint]:
    """Return the taints with the right one of the two, or none; the same list if nothing changes."""
    present = [taint.key for taint in taints if _is_ours(taint)]
    status = ready_status(node)
    wanted = _WANTED.get(status)
    if must_clear or status == "True":
        target: list[str] = []
    elif wanted is not None and (present or may_add):
        target = [wanted]
    else:
        return taints
    if present == target:
        return taints
    kept = [taint for taint in taints if not _is_ours(taint) or taint.key in target]
    missing = [key for key in target if key not in present]
    return [*kept, *(Taint(key=key, effect=NO_EXECUTE, time_added=now) for key in missing)]


def _is_ours(taint: Taint) -> bool:
    return taint.effect == NO_EXECUTE and taint.key in (NOT_READY, UNREACHABLE)

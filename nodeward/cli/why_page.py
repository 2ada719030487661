"""The output of `nodeward why`: text to read, or JSON for programs.

With many nodes, those that are rejected for the same reasons share a line, unless every node is asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from nodeward.cli.listing import aligned
from nodeward.scheduler.explanation import NodeExplanation, PluginRejection, PodExplanation
from nodeward.scheduler.fit_error import most_notes

#: With more nodes than this, those that are alike share a line.
FEW_NODES: Final = 20
#: So many names of nodes stand for a group, and so many of the best nodes are listed.
_NAMED: Final = 3
_BEST: Final = 5


@dataclass(frozen=True, slots=True)
class SchedulingAnswer:
    """The answer about one pod. `explanation` is None if there is nothing to explain."""

    pod: str
    scheduler: str
    bound_to: str = ""
    phase: str = ""
    explanation: PodExplanation | None = None
    #: what must be known to trust the answer
    notes: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The answer in one line."""
        found = self.explanation
        if found is None:
            if self.bound_to:
                return f"{self.pod} is on node {self.bound_to}; with --as-if-pending all nodes are explained"
            return f"{self.pod} has ended ({self.phase}); with --as-if-pending all nodes are explained"
        if not found.held:
            return found.sentence
        held = "; ".join(reason for verdict in found.held for reason in verdict.reasons)
        return f"{held} (then: {found.sentence})"


def as_json(answer: SchedulingAnswer) -> str:
    found = answer.explanation
    tree: dict[str, Any] = {
        "pod": answer.pod,
        "schedulerName": answer.scheduler,
        "summary": answer.summary,
        "notes": answer.notes,
    }
    if answer.bound_to:
        tree["nodeName"] = answer.bound_to
    if found is not None:
        tree["held"] = [_verdict(each) for each in found.held]
        tree["fitting"] = [node.name for node in found.fitting]
        tree["nodes"] = [_node(each) for each in found.nodes]
    return msgspec.json.format(msgspec.json.encode(tree)).decode()


def _node(node: NodeExplanation) -> dict[str, Any]:
    tree: dict[str, Any] = {"name": node.name, "fits": node.fits}
    if node.fits:
        return tree | {"score": node.total, "scores": node.scores}
    return tree | {"rejectedBy": [_verdict(each) for each in node.verdicts]}


def _verdict(verdict: PluginRejection) -> dict[str, Any]:
    tree: dict[str, Any] = {"plugin": verdict.plugin, "reasons": verdict.reasons}
    if verdict.notes:
        tree["notes"] = verdict.notes
    return tree | {"preemptionMayHelp": verdict.resolvable}


def as_text(answer: SchedulingAnswer, *, every_node: bool = False) -> str:
    """Format the summary first; then which plugins reject which nodes, and the best of those that fit."""
    parts = [answer.summary]
    if answer.bound_to and answer.explanation is not None:
        parts[0] = f"as if {answer.pod} were not on {answer.bound_to}: {parts[0]}"
    parts += [f"note: {note}" for note in answer.notes]
    found = answer.explanation
    if found is not None:
        is_long = every_node or len(found.nodes) <= FEW_NODES
        parts += _rejected([node for node in found.nodes if not node.fits], one_by_one=is_long)
        parts += _liked(found.fitting, limit=len(found.nodes) if every_node else _BEST)
    return "\n".join(parts)


def _rejected(nodes: Sequence[NodeExplanation], *, one_by_one: bool) -> list[str]:
    if not nodes:
        return []
    groups: dict[object, list[NodeExplanation]] = {}
    for node in sorted(nodes, key=lambda node: node.name):
        groups.setdefault(node.name if one_by_one else _reasons(node), []).append(node)
    lines = [("NODE" if one_by_one else "NODES", "PLUGIN", "REASON", "PREEMPTION")]
    for group in sorted(groups.values(), key=len, reverse=True) if not one_by_one else groups.values():
        name = group[0].name if one_by_one else _names(group)
        for number, verdict in enumerate(group[0].verdicts):
            for reason in _told([node.verdicts[number] for node in group]):
                lines.append((name, verdict.plugin, reason, "may help" if verdict.resolvable else "no help"))
                name = ""
    return ["", *aligned(lines)]


def _reasons(node: NodeExplanation) -> tuple[PluginRejection, ...]:
    """Return what nodes on one line have in common: everything but notes about single nodes."""
    return tuple(replace(verdict, notes=()) for verdict in node.verdicts)


def _told(verdicts: Sequence[PluginRejection]) -> Sequence[str]:
    """Return what one plugin says of a group of nodes: its exact note if it has one, else its reasons."""
    notes = Counter(note for verdict in verdicts for note in verdict.notes)
    if not notes:
        return verdicts[0].reasons
    return list(verdicts[0].notes) if len(verdicts) == 1 else most_notes(notes)


def _liked(nodes: Sequence[NodeExplanation], limit: int) -> list[str]:
    if not nodes:
        return []
    lines = [("NODE THAT FITS", "SCORE", "OF WHICH")]
    for node in nodes[:limit]:
        shares = ", ".join(f"{plugin} {score}" for plugin, score in node.scores.items() if score)
        lines.append((node.name, str(node.total), shares or "nothing"))
    more = [f"and {len(nodes) - limit} more"] if len(nodes) > limit else []
    return ["", *aligned(lines), *more]


def _names(group: Sequence[NodeExplanation]) -> str:
    names = ", ".join(node.name for node in group[:_NAMED])
    more = ", ..." if len(group) > _NAMED else ""
    return f"{len(group)}: {names}{more}"

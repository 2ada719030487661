"""Which nodes a pod's spec asks for by label or name: nodeSelector, and node affinity required and preferred.

In go a pod's spec (or a selector) and a node; out comes whether it fits, or how much it is liked. Terms are
alternatives, what is inside a term must all hold, and a term that says nothing selects nothing. `Gt` and `Lt`
compare labels as numbers the way Go reads them; a label that is no number does not match. A requirement that cannot
be understood spoils its term only.

Called by the API server, the scheduler, controllers and the kubelet; calls `selectors`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import PodSpec
from nodeward.api.core_v1.references import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from nodeward.rules.selectors import label_number

#: The one field of a node that a term may select by.
NAME_FIELD: Final = "metadata.name"


def fits_node(spec: PodSpec, node: Node) -> bool:
    """Tell whether the pod may run on this node, as far as its own wishes go."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or selects(required, node)


def selects(selector: NodeSelector, node: Node) -> bool:
    """Tell whether one of the selector's terms holds for the node. A selector without terms selects nothing."""
    return any(holds(term, node) for term in selector.node_selector_terms)


def holds(term: NodeSelectorTerm, node: Node) -> bool:
    """Tell whether all the term asks for is true of the node."""
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels
    return all(label_matches(wish, labels) for wish in term.match_expressions) and all(
        _field_matches(wish, node.metadata.name) for wish in term.match_fields
    )


def preference(spec: PodSpec, node: Node) -> int:
    """Return how much the pod would like this node: the weights of the preferred terms that hold, added up."""
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None:
        return 0
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    return sum(term.weight for term in preferred if term.weight and holds(term.preference, node))


def named_nodes(spec: PodSpec) -> list[str] | None:
    """Return the only nodes that can fit, if every required term names some; None if others may fit too."""
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    if required is None:
        return None
    names: dict[str, None] = {}
    for term in required.node_selector_terms:
        wishes = [wish for wish in term.match_fields if wish.key == NAME_FIELD and wish.operator == "In"]
        if not wishes:
            return None
        names.update(
            (name, None) for name in wishes[0].values if all(name in wish.values for wish in wishes[1:])
        )
    return sorted(names)


def label_matches(wish: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    """Tell whether one requirement holds for these labels."""
    value = labels.get(wish.key)
    match wish.operator:
        case "In":
            return value is not None and value in wish.values
        case "NotIn":
            return bool(wish.values) and (value is None or value not in wish.values)
        case "Exists":
            return value is not None and not wish.values
        case "DoesNotExist":
            return value is None and not wish.values
        case "Gt" | "Lt":
            return value is not None and len(wish.values) == 1 and _compares(wish, value)
        case _:
            return False


def _compares(wish: NodeSelectorRequirement, value: str) -> bool:
    mine, theirs = label_number(wish.values[0]), label_number(value)
    if mine is None or theirs is None:
        return False
    return theirs > mine if wish.operator == "Gt" else theirs < mine


def _field_matches(wish: NodeSelectorRequirement, name: str) -> bool:
    if wish.key != NAME_FIELD or len(wish.values) != 1:
        return False
    match wish.operator:
        case "In":
            return name == wish.values[0]
        case "NotIn":
            return name != wish.values[0]
        case _:
            return False

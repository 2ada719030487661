"""Which nodes a daemon set is for, and how its pods are tied to theirs. Pure.

The scheduler places daemon pods like all others; each is made for one node, and carries a required affinity to its
name. Daemon pods put up with what makes a node unfit for others: they stay on nodes that are not ready or out of reach,
and may come to nodes under pressure or closed for others. What a node's readiness gates say is no concern here
(KEP-5233): daemon pods are what makes nodes ready, and the scheduler lets them through.

Called by `controller` and `plan`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from nodeward.api.core_v1.affinity import Affinity, NodeAffinity
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod, PodSpec, PodTemplateSpec
from nodeward.api.core_v1.references import (
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)
from nodeward.rules.affinity import NAME_FIELD, fits_node
from nodeward.rules.taints import NO_EXECUTE, NO_SCHEDULE, blocking_taint, first_untolerated

_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_TOLERATED_ON_HOST_NETWORK: Final = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


class NodeEligibility(NamedTuple):
    """Whether a daemon set's pod should run on a node, and whether a running one may stay."""

    #: A pod should be there.
    should_run: bool
    #: A pod that is there may stay.
    may_stay: bool


_NEITHER: Final = NodeEligibility(False, False)
_BOTH: Final = NodeEligibility(True, True)


def tolerations_of(spec: PodSpec) -> list[Toleration]:
    """Return the template's tolerations with those every daemon pod gets, which win for the same taint."""
    pairs = (*_TOLERATED, _TOLERATED_ON_HOST_NETWORK) if spec.host_network else _TOLERATED
    given = [Toleration(key=key, operator="Exists", effect=effect) for key, effect in pairs]
    replaced = [(each.key, each.effect, each.operator, each.value) for each in given]
    own = [
        each
        for each in spec.tolerations
        if (each.key, each.effect, each.operator, each.value) not in replaced
    ]
    return [*own, *given]


class Placement:
    """The nodes for one template. `numeric`: whether this component compares tolerations as numbers (KEP-5471)."""

    def __init__(self, template: PodTemplateSpec, *, numeric: bool) -> None:
        self._spec = template.spec
        self._tolerations = tolerations_of(template.spec)
        self._numeric = numeric

    def on(self, node: Node) -> NodeEligibility:
        spec = self._spec
        if (spec.node_name and spec.node_name != node.metadata.name) or not fits_node(spec, node):
            return _NEITHER
        taints = node.spec.taints
        if not taints or blocking_taint(taints, self._tolerations, numeric=self._numeric) is None:
            return _BOTH
        evicting = first_untolerated(taints, self._tolerations, NO_EXECUTE, numeric=self._numeric)
        return NodeEligibility(False, evicting is None)


def pinned(spec: PodSpec, node: str) -> PodSpec:
    """Return the spec of a daemon pod for this node; what the template requires of nodes has been checked already."""
    term = NodeSelectorTerm(
        match_fields=[NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=[node])]
    )
    affinity = spec.affinity or Affinity()
    of_node = msgspec.structs.replace(
        affinity.node_affinity or NodeAffinity(),
        required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=[term]),
    )
    return msgspec.structs.replace(
        spec,
        affinity=msgspec.structs.replace(affinity, node_affinity=of_node),
        tolerations=tolerations_of(spec),
    )


def target_of(pod: Pod) -> str | None:
    """Return the node a daemon pod is on, or was made for; None if the pod names none."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for wish in term.match_fields:
            if wish.key == NAME_FIELD and wish.operator == "In":
                return wish.values[0] if len(wish.values) == 1 else None
    return None

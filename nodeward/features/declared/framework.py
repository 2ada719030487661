"""Discovery, inference and matching over all registered features (KEP-5328): what every component calls.

A kubelet asks what it is to declare, a scheduler and a kubelet what a pod needs to be placed, admission what an update
needs, and all of them whether a node has it; an autoscaler asks the same of nodes that do not exist yet. None of them
knows a feature by name, so that a new one is a file and a line in the registry.

What must stay true: the same configuration gives the same list, sorted, each name once and in its form; a feature a
node does not list is one it does not have, whatever the reason; names nobody here knows change nothing.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nodeward.features.declared.errors import FeatureError
from nodeward.features.declared.feature import (
    NODE_DECLARED_FEATURES_GATE,
    Feature,
    NodeConfiguration,
    PodInfo,
    Requirements,
    name_fault,
)
from nodeward.features.declared.feature_set import FeatureSet, FeatureTable
from nodeward.features.declared.shapes import AnyNode
from nodeward.features.declared.version import Version

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MatchResult:
    """Whether a node has what is needed, and if not, what it lacks, sorted."""

    is_match: bool
    unsatisfied: tuple[str, ...] = ()


_MATCH: Final = MatchResult(True)


class Framework:
    """A registry of features and the questions that can be asked of it. Immutable; one serves everybody."""

    def __init__(self, registry: Iterable[Feature]) -> None:
        """Entries with a wrong or repeated name are left out, with an error in the log: one bad feature must not
        make a node declare a list the API server refuses."""
        known: dict[str, Feature] = {}
        for feature in registry:
            fault = name_fault(feature.name) or ("is registered twice" if feature.name in known else "")
            if fault:
                LOG.error("declared feature %r is left out: %s", feature.name, fault)
            else:
                known[feature.name] = feature
        self.features: Final = tuple(known[name] for name in sorted(known))
        self.table: Final = FeatureTable(tuple(sorted(known)))
        self._by_name: Final = known
        # Most features have no rule of a kind; they are not asked.
        self._scheduling: Final = tuple(each for each in self.features if each.scheduling_rule is not None)
        self._update: Final = tuple(each for each in self.features if each.update_rule is not None)

    # -- nodes

    def discover_node_features(self, config: NodeConfiguration) -> tuple[str, ...]:
        """Return what a node so configured declares, sorted."""
        # Unlike upstream, where only the kubelet asks for this gate: what an autoscaler predicts must be what the
        # kubelet will say.
        if not config.gates.enabled(NODE_DECLARED_FEATURES_GATE):
            return ()
        return tuple(
            feature.name
            for feature in self.features
            if feature.matters_in(config.version) and feature.discover(config)
        )

    def feature_set(self, names: Iterable[str]) -> FeatureSet:
        """Return what a node lists, as a set; names that are not registered are passed over."""
        return self.table.set_of(names)

    def get_feature_requirements(self, name: str) -> Requirements:
        """Return what a node must have to declare a feature."""
        feature = self._by_name.get(name)
        if feature is None:
            raise FeatureError(f"feature '{name}' not registered{self._nearest(name)}")
        return feature.requirements

    def _nearest(self, name: str) -> str:
        by_lower = {each.lower(): each for each in self._by_name}
        found = difflib.get_close_matches(name.lower(), by_lower, n=1)
        return f' (did you mean "{by_lower[found[0]]}"?)' if found else ""

    # -- pods

    def infer_for_pod_scheduling(self, pod: PodInfo, target_version: Version | None) -> FeatureSet:
        """Return what a node must have for the pod to be placed there, in a cluster whose version is the target."""
        version = _target(target_version)
        bits = 0
        for feature in self._scheduling:
            if feature.matters_in(version) and feature.infer_for_scheduling(pod):
                bits |= self.table.bit(feature.name)
        return FeatureSet(self.table, bits)

    def scheduling_features(self, target_version: Version | None) -> tuple[Feature, ...]:
        """The features that may keep a pod off a node, in a cluster whose version is the target."""
        version = _target(target_version)
        return tuple(each for each in self._scheduling if each.matters_in(version))

    def infer_for_pod_update(self, old: PodInfo, new: PodInfo, target_version: Version | None) -> FeatureSet:
        """Return what the pod's node must have for the pod to be changed from old to new."""
        version = _target(target_version)
        bits = 0
        for feature in self._update:
            if feature.matters_in(version) and feature.infer_for_update(old, new):
                bits |= self.table.bit(feature.name)
        return FeatureSet(self.table, bits)

    # -- matching

    def match_node(self, required: FeatureSet, node: AnyNode | None) -> MatchResult:
        """Tell whether a node lists all that is required."""
        if node is None:
            raise FeatureError("node cannot be nil")
        return self.match_node_feature_set(required, self.feature_set(node.status.declared_features))

    def match_node_feature_set(self, required: FeatureSet, present: FeatureSet) -> MatchResult:
        """Return the same, with the node's list already made a set."""
        if required.is_empty or required.is_subset_of(present):
            return _MATCH
        return MatchResult(False, (required - present).names())


def _target(version: Version | None) -> Version:
    if version is None:
        raise FeatureError("target version cannot be nil")
    return version

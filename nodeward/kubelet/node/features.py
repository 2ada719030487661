"""What this node declares (KEP-5328): found once, when the kubelet starts, and kept for as long as it runs.

In go version, gates and static configuration; out come the names for `status.declaredFeatures` and the same as a set,
for admission. A name the API server would refuse, or one that is there twice, is dropped and logged, so that one bad
feature does not cost the node its whole status.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from nodeward.features.declared import (
    FRAMEWORK,
    FeatureSet,
    Framework,
    NodeConfiguration,
    PodInfo,
    Version,
    name_fault,
)
from nodeward.features.declared.feature import NODE_DECLARED_FEATURES_GATE
from nodeward.kubelet.node.specification import NodeModel

LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeclaredFeatures:
    """The features of one kubelet run. Nodes of one model share one."""

    #: sorted, valid, each once; empty with the gate off
    names: tuple[str, ...]
    present: FeatureSet
    #: whether pods are checked against them at all
    is_checking: bool
    version: Version
    framework: Framework = FRAMEWORK

    def missing_for(self, pod: PodInfo) -> tuple[str, ...]:
        """What a pod needs to run and this node has not, sorted."""
        if not self.is_checking:
            return ()
        required = self.framework.infer_for_pod_scheduling(pod, self.version)
        return self.framework.match_node_feature_set(required, self.present).unsatisfied

    def missing_for_update(self, old: PodInfo, new: PodInfo) -> tuple[str, ...]:
        """What a change of a pod needs and this node has not; the kubelet only warns of it."""
        if not self.is_checking:
            return ()
        required = self.framework.infer_for_pod_update(old, new, self.version)
        return self.framework.match_node_feature_set(required, self.present).unsatisfied


def discover(model: NodeModel, framework: Framework = FRAMEWORK) -> DeclaredFeatures:
    """What kubelets of this model declare. To be asked once per run: a gate that changes later changes nothing."""
    gates = model.gates
    version = Version.parse(gates.version)
    config = NodeConfiguration(version, gates, model.static_config)
    names = publishable(framework.discover_node_features(config))
    # As the KEP's downgrade script has it: a kubelet older than the gate cannot run what it has never heard of, and a
    # pod that needs it fails there. (A gate that is known and off checks nothing: what runs goes on.)
    is_checking = gates.enabled(NODE_DECLARED_FEATURES_GATE) or not gates.knows(NODE_DECLARED_FEATURES_GATE)
    return DeclaredFeatures(names, framework.feature_set(names), is_checking, version, framework)


def publishable(names: Iterable[str]) -> tuple[str, ...]:
    """The names the API server will take, sorted and each once."""
    fine: dict[str, None] = {}
    for name in names:
        fault = name_fault(name) or ("is there twice" if name in fine else "")
        if fault:
            LOG.error("declared feature %r is not published: %s", name, fault)
        else:
            fine[name] = None
    return tuple(sorted(fine))

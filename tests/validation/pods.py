"""A plain pod and a plain node to change in tests, and the gates 1.37 has on."""

from __future__ import annotations

from typing import Any

from nodeward.api.context import Context
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.validation.registry import VALIDATORS
from tests.validation.tables import Case, Tree, check, context, defaulted, edited

POD: Tree = {
    "metadata": {"name": "a", "namespace": "default"},
    "spec": {"containers": [{"name": "c", "image": "pause:3.10"}]},
}
NODE: Tree = {
    "metadata": {"name": "n1"},
    "status": {"capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
}

_ON = (
    "ClearingNominatedNodeNameAfterBinding",
    "ContainerRestartRules",
    "EnvFiles",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "MatchLabelKeysInPodAffinity",
    "MatchLabelKeysInPodTopologySpread",
    "MatchLabelKeysInPodTopologySpreadSelectorMerge",
    "NodeDeclaredFeatures",
    "PodDeletionCost",
    "PodLevelResources",
    "RelaxedEnvironmentVariableValidation",
    "StrictIPCIDRValidation",
    "TaintTolerationComparisonOperators",
)
_STORED = {"metadata.resourceVersion": "7", "metadata.uid": "u-1"}


def pod_context(one: Case | None = None) -> Context:
    if one is None:
        return context(*_ON)
    return context(*_ON, *one.gates, off=one.off)


def a_pod(changes: dict[str, Any] | None = None) -> Pod:
    return defaulted(Pod, edited(POD, changes or {}))


def a_node(changes: dict[str, Any] | None = None) -> Node:
    return defaulted(Node, edited(NODE, changes or {}))


def check_pod(one: Case) -> None:
    """The plain pod, changed, is refused with exactly these errors when it is made."""
    check(VALIDATORS[Pod].create(a_pod(dict(one.change)), pod_context(one)), one.errors)


def stored_pods(one: Case) -> tuple[Pod, Pod]:
    """The pod as it was stored, and as somebody wants it now."""
    stored = edited(edited(POD, _STORED), one.before)
    return defaulted(Pod, edited(stored, one.change)), defaulted(Pod, stored)

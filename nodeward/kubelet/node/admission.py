"""Which pods a node takes: the last word before a pod starts, and again for every running pod after a restart.

In go a pod, the node as it is known, and what the other pods take; out comes a refusal or None. The order,
reasons and messages are upstream's, and the first that applies is told: operating system, groups, resources, affinity,
node name, ports, NoExecute taints (numeric tolerations if the kubelet's version knows them, whatever its gate says,
KEP-5471), pod-level resources, declared features (KEP-5328).

A readiness gate is no reason to refuse a pod (KEP-5233), with one exception: a gate that timed out with action Taint,
and whose NoExecute taint is not on the node yet, counts as that taint for pods that are new to the node. Otherwise a
pod that no scheduler held back would start between the two writes and be evicted at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import ResourceClaim
from nodeward.features.declared import FeatureError, PodInfo
from nodeward.features.gates import Gates
from nodeward.kubelet.node.features import DeclaredFeatures
from nodeward.kubelet.node.node_capacity import NodeCapacity
from nodeward.kubelet.node.specification import OS_LABEL
from nodeward.rules.affinity import fits_node
from nodeward.rules.pod_resources import has_pod_level
from nodeward.rules.readiness import is_exempt, taint_text, views
from nodeward.rules.taints import NO_EXECUTE, first_untolerated

FEATURE_UNSUPPORTED: Final = "PodFeatureUnsupported"
OUT_OF: Final = "OutOf"
NODE_AFFINITY: Final = "NodeAffinity"
_SOURCE: Final = "kubernetes.io/config.source"
_API: Final = "api"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a pod is not taken: the reason of its status and event, and the event's message."""

    reason: str
    message: str

    @property
    def status_message(self) -> str:
        """What the status of the pod, whose phase is Failed, says."""
        return f"Pod was rejected: {self.message}"


def admit(
    pod: Pod,
    node: Node,
    capacity: NodeCapacity,
    gates: Gates,
    features: DeclaredFeatures,
    *,
    is_new: bool = True,
    claims: Sequence[ResourceClaim] = (),
) -> Refusal | None:
    """Whether a pod may run here. The pod itself is not counted yet. `is_new`: it was not admitted here before.

    `claims`: the pod's claims, as far as they may say that it needs a feature this node does not declare (KEP-5945).

    A refusal for its affinity alone is worth another look with a fresh node: labels may just have changed.
    """
    return (
        _operating_system(pod, node)
        or _groups(pod, node, gates)
        or _fit(pod, node, capacity)
        or _taints(pod, node, gates)
        or (_coming_taints(pod, node, gates) if is_new else None)
        or _pod_level(pod, gates)
        or _features(pod, features, claims)
    )


def warn_of_update(old: Pod, new: Pod, features: DeclaredFeatures) -> str:
    """The message of the FailedNodeDeclaredFeaturesCheck event when a change needs what this node has not; or ""."""
    missing = features.missing_for_update(PodInfo(old.spec, old.status), PodInfo(new.spec, new.status))
    return _not_available(missing) if missing else ""


def _operating_system(pod: Pod, node: Node) -> Refusal | None:
    system = node.status.node_info.operating_system or "linux"
    wanted = pod.metadata.labels.get(OS_LABEL)
    if wanted is not None and wanted != system:
        return Refusal(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        )
    if pod.spec.os is not None and pod.spec.os.name != system:
        return Refusal("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return None


def _groups(pod: Pod, node: Node, gates: Gates) -> Refusal | None:
    context = pod.spec.security_context
    policy = context.supplemental_groups_policy if context is not None else None
    if policy != "Strict" or not gates.enabled("SupplementalGroupsPolicy"):
        return None
    known = node.status.features
    if known is not None and known.supplemental_groups_policy:
        return None
    return Refusal(
        "SupplementalGroupsPolicyNotSupported",
        "SupplementalGroupsPolicy=Strict is not supported in this node",
    )


def _fit(pod: Pod, node: Node, capacity: NodeCapacity) -> Refusal | None:
    shortages = capacity.shortages(pod, node.status.allocatable)
    if shortages:
        return Refusal(f"{OUT_OF}{shortages[0].resource}", shortages[0].message)
    if not fits_node(pod.spec, node):
        return _predicate(NODE_AFFINITY, "node(s) didn't match Pod's node affinity/selector")
    if pod.spec.node_name and pod.spec.node_name != node.metadata.name:
        return _predicate("NodeName", "node(s) didn't match the requested node name")
    if not capacity.has_ports_for(pod):
        return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    return None


def _taints(pod: Pod, node: Node, gates: Gates) -> Refusal | None:
    if is_static(pod):
        return None
    # Not whether the gate is on: the scheduler decided that the pod tolerates the node, and kubelets are not asked
    # again (KEP-5471). A kubelet that is older than the operators cannot know them, and refuses.
    # Unlike upstream, which asks the kubelet's own gate.
    numeric = gates.knows("TaintTolerationComparisonOperators")
    if first_untolerated(node.spec.taints, pod.spec.tolerations, NO_EXECUTE, numeric=numeric) is None:
        return None
    return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")


def _coming_taints(pod: Pod, node: Node, gates: Gates) -> Refusal | None:
    """Refuse what the NoExecute taint of a gate that timed out will evict as soon as it is on the node (KEP-5233)."""
    if not node.spec.readiness_gates or not gates.enabled("NodeReadinessGates"):
        return None
    if is_static(pod) or is_exempt(pod.metadata):
        return None
    numeric = gates.knows("TaintTolerationComparisonOperators")
    for view in views(node.spec.readiness_gates, node.status.conditions):
        taint = view.missing_taint(node.spec.taints)
        if (
            taint is None
            or first_untolerated((taint,), pod.spec.tolerations, NO_EXECUTE, numeric=numeric) is None
        ):
            continue
        return _predicate(
            "TaintToleration",
            f"node(s) had taints that the pod didn't tolerate: readiness gate {view.gate.condition_type} "
            f"timed out, and its taint {taint_text(taint)} is not written yet",
        )
    return None


def _pod_level(pod: Pod, gates: Gates) -> Refusal | None:
    if gates.enabled("PodLevelResources") or not has_pod_level(pod.spec):
        return None
    return Refusal("PodLevelResourcesNotSupported", "PodLevelResources feature gate is disabled")


def _features(pod: Pod, features: DeclaredFeatures, claims: Sequence[ResourceClaim]) -> Refusal | None:
    try:
        missing = features.missing_for(PodInfo(pod.spec, pod.status, resource_claims=claims))
    except FeatureError as error:
        return Refusal(FEATURE_UNSUPPORTED, f"Failed to infer pod's feature requirements: {error}")
    return Refusal(FEATURE_UNSUPPORTED, _not_available(missing)) if missing else None


def is_static(pod: Pod) -> bool:
    """Whether the pod came from a file of the node rather than from the API."""
    return pod.metadata.annotations.get(_SOURCE, _API) != _API


def _predicate(name: str, why: str) -> Refusal:
    return Refusal(name, f"Predicate {name} failed: {why}")


def _not_available(missing: tuple[str, ...]) -> str:
    return f"Pod requires node features that are not available: {', '.join(missing)}"

"""What a kubelet may write into a Node: its own only, no taints, and no label that would attract trusted pods.

It may declare its features (KEP-5328), set its readiness gates, and set a label for each of them
(`readiness-gate.<conditionType>`, KEP-5233), also where the condition type is in a domain of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.apiserver.admission.plugin import Write
from nodeward.base.fielderror import quote
from nodeward.rules.readiness import LABEL_PREFIX, RECORD_ANNOTATION, is_restricted

_LABELS: Final = frozenset(
    (
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/zone",
        "topology.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
    )
)
_DOMAINS: Final = ("kubelet.kubernetes.io", "node.kubernetes.io")


def check_node(node: str, write: Write) -> None:
    """Refuse what the kubelet of `node` may not do to a Node."""
    me = f"node {quote(node)}"
    if write.name != node:
        raise write.refuse(f"{me} is not allowed to modify node {quote(write.name)}")
    if write.operation == "CREATE":
        new: Node = write.new
        if new.spec.config_source is not None:
            raise write.refuse(f"{me} is not allowed to create pods with a non-nil configSource")
        if RECORD_ANNOTATION in new.metadata.annotations:
            raise write.refuse(f"{me} is not allowed to set the annotation {RECORD_ANNOTATION}")
        labels = forbidden_labels(new.metadata.labels, {})
        if labels:
            raise write.refuse(f"{me} is not allowed to set the following labels: {', '.join(labels)}")
    elif write.operation == "UPDATE":
        _check_update(me, write, write.new, write.old)


def _check_update(me: str, write: Write, new: Node, old: Node) -> None:
    if new.spec.config_source is not None and new.spec.config_source != old.spec.config_source:
        raise write.refuse(f"{me} is not allowed to update configSource to a new non-nil configSource")
    if new.spec.taints != old.spec.taints:
        raise write.refuse(f"{me} is not allowed to modify taints")
    if new.metadata.annotations.get(RECORD_ANNOTATION) != old.metadata.annotations.get(RECORD_ANNOTATION):
        # The controller removes the taints that are in it: writing it would be a way to modify taints.
        raise write.refuse(f"{me} is not allowed to modify the annotation {RECORD_ANNOTATION}")
    if new.metadata.owner_references != old.metadata.owner_references:
        raise write.refuse(f"{me} is not allowed to modify ownerReferences")
    labels = forbidden_labels(new.metadata.labels, old.metadata.labels)
    if labels:
        raise write.refuse(f"is not allowed to modify labels: {', '.join(labels)}")


def forbidden_labels(new: Mapping[str, str], old: Mapping[str, str]) -> list[str]:
    """Return the changed labels that a kubelet may not change, sorted."""
    changed = {key for key in (*new, *old) if new.get(key) != old.get(key)}
    return sorted(key for key in changed if not _is_allowed(key))


def _is_allowed(key: str) -> bool:
    domain = key.rpartition("/")[0]
    if is_restricted(domain):
        return False
    if not _is_within(domain, "kubernetes.io") and not _is_within(domain, "k8s.io"):
        return True
    if domain.startswith(LABEL_PREFIX):
        return True
    return key in _LABELS or any(_is_within(domain, allowed) for allowed in _DOMAINS)


def _is_within(domain: str, parent: str) -> bool:
    return domain == parent or domain.endswith(f".{parent}")

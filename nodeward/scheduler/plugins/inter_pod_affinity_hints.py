"""Which events may help a pod that pod affinity or anti-affinity kept off all nodes.

A pod it wants near came; one it (or that) wants to be apart from is gone; labels changed so; a node joined, or moved
to, a domain.

Unlike upstream: namespace selectors are looked up here as they are when the pod is tried, so that a pod of a selected
namespace wakes those that wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nodeward.api.core_v1.cluster import Namespace
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.rules.pod_affinity import PodTerms, Term, understood_terms_of
from nodeward.scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    Resource,
)
from nodeward.scheduler.framework.listers import Listers
from nodeward.scheduler.framework.pod import PodView

_NO_LABELS: Final[Mapping[str, str]] = {}


class InterPodAffinityHints:
    """The part of the plugin that is asked about waiting pods."""

    def __init__(self, listers: Listers) -> None:
        self.listers: Final = listers

    def hints(self) -> Sequence[ClusterEventWithHint]:
        pods = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE)
        own = ClusterEvent(Resource.UNSCHEDULED_POD, Action.UPDATE_POD_LABEL)
        nodes = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        return (
            ClusterEventWithHint(pods, self._after_pod),
            # Others may have kept away a pod with its old labels, and not mind the new ones.
            ClusterEventWithHint(own, _after_own_labels),
            ClusterEventWithHint(nodes, self._after_node),
        )

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a namespace; none, if nobody has heard of it."""
        found = self.listers.get(Namespace, name)
        return found.metadata.labels if found is not None else _NO_LABELS

    def resolved(self, terms: PodTerms) -> PodTerms:
        """The terms with all namespaces they mean."""
        namespaces = ((each.metadata.name, each.metadata.labels) for each in self.listers.list(Namespace))
        return terms.among(namespaces)

    def _after_pod(self, pod: PodView, old: Pod | None, new: Pod | None) -> QueueingHint:
        if any(each is not None and not _has_place(each) for each in (old, new)):
            return QueueingHint.SKIP
        terms = self.resolved(understood_terms_of(pod.pod))
        if new is not None:
            # One pod must satisfy all terms at once.
            is_wanted = self._is_meant_by_all(terms.near, new)
            if old is None:
                return QueueingHint.QUEUE if is_wanted else QueueingHint.SKIP
            if is_wanted and not self._is_meant_by_all(terms.near, old):
                return QueueingHint.QUEUE
            is_better = self._is_meant_by_any(terms.apart, old) and not self._is_meant_by_any(
                terms.apart, new
            )
            return QueueingHint.QUEUE if is_better else QueueingHint.SKIP
        if old is None:
            return QueueingHint.SKIP
        is_rid = self._is_meant_by_any(terms.apart, old) or self._is_meant_by_any(
            understood_terms_of(old).apart, pod.pod
        )
        return QueueingHint.QUEUE if is_rid else QueueingHint.SKIP

    def _after_node(self, pod: PodView, old: Node | None, new: Node) -> QueueingHint:
        terms = understood_terms_of(pod.pod)
        after = new.metadata.labels
        if old is None:
            # A node without the label is fine for who only wants to be apart.
            helps = terms.apart or any(term.topology_key in after for term in terms.near)
            return QueueingHint.QUEUE if helps else QueueingHint.SKIP
        before = old.metadata.labels
        for term in terms.near:
            key = term.topology_key
            if key in after and before.get(key) != after[key]:
                return QueueingHint.QUEUE
        for term in terms.apart:
            key = term.topology_key
            if key in before and before[key] != after.get(key):
                return QueueingHint.QUEUE
        return QueueingHint.SKIP

    def _is_meant_by_all(self, terms: Sequence[Term], pod: Pod) -> bool:
        return bool(terms) and all(self._is_meant(term, pod) for term in terms)

    def _is_meant_by_any(self, terms: Sequence[Term], pod: Pod) -> bool:
        return any(self._is_meant(term, pod) for term in terms)

    def _is_meant(self, term: Term, pod: Pod) -> bool:
        namespace = pod.metadata.namespace
        return term.matches(namespace, pod.metadata.labels, self.namespace_labels(namespace))


def _has_place(pod: Pod) -> bool:
    return bool(pod.spec.node_name or pod.status.nominated_node_name)


def _after_own_labels(pod: PodView, old: Any, new: Any) -> QueueingHint:
    return QueueingHint.QUEUE

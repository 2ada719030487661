"""What pods ask of each other: the terms of pod affinity and anti-affinity, read once from the spec.

In goes a pod, out come terms that can be asked whether another pod is meant. A term means pods of the namespaces it
names, and of those whose labels its namespace selector selects; if it says neither, of the namespace of its own pod. A
selector that is absent selects nothing, an empty one everything. Label keys to match or mismatch were made part of the
selector by the API server when the pod was created.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from nodeward.api.core_v1.affinity import PodAffinityTerm
from nodeward.api.core_v1.pod import Pod
from nodeward.rules.selectors import LabelRequirements, SelectorError, from_label_selector


@dataclass(frozen=True, slots=True)
class Term:
    """One wish: to be (or not to be) in the same topology as pods like this. `weight` 0: a must."""

    topology_key: str
    selector: LabelRequirements | None
    namespaces: frozenset[str]
    namespace_selector: LabelRequirements | None
    weight: int = 0

    def matches(self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]) -> bool:
        """Tell whether a pod is meant that has these labels, in a namespace that has those."""
        if self.selector is None:
            return False
        if namespace not in self.namespaces:
            chosen = self.namespace_selector
            if chosen is None or not chosen.matches(namespace_labels):
                return False
        return self.selector.matches(labels)

    @property
    def is_everywhere(self) -> bool:
        """Whether pods of all namespaces are meant."""
        return self.namespace_selector is not None and self.namespace_selector.is_everything

    def among(self, namespaces: Iterable[tuple[str, Mapping[str, str]]]) -> Term:
        """Return the same wish, all namespaces it means named; unless it means all there will ever be."""
        chosen = self.namespace_selector
        if chosen is None or chosen.is_everything:
            return self
        named = {name for name, labels in namespaces if chosen.matches(labels)}
        return replace(self, namespaces=self.namespaces | named, namespace_selector=None)


@dataclass(frozen=True, slots=True)
class PodTerms:
    """All a pod asks of others: what must be near, what must not, and what it would like."""

    near: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()
    #: with their weight, which is negative for what it would rather be apart from
    liked: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.near or self.apart or self.liked)

    def among(self, namespaces: Iterable[tuple[str, Mapping[str, str]]]) -> PodTerms:
        """Return the same wishes, all namespaces they mean named."""
        if all(term.namespace_selector is None for term in (*self.near, *self.apart, *self.liked)):
            return self
        known = tuple(namespaces)
        return PodTerms(
            tuple(term.among(known) for term in self.near),
            tuple(term.among(known) for term in self.apart),
            tuple(term.among(known) for term in self.liked),
        )


NO_TERMS: Final = PodTerms()


def terms_of(pod: Pod) -> PodTerms:
    """Return what the pod asks of others. `SelectorError`: one of its selectors cannot be understood."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    mine = pod.metadata.namespace
    near: list[Term] = []
    apart: list[Term] = []
    liked: list[Term] = []
    if affinity.pod_affinity is not None:
        wishes = affinity.pod_affinity
        near = [_term(each, mine) for each in wishes.required_during_scheduling_ignored_during_execution]
        liked = [
            _term(each.pod_affinity_term, mine, each.weight)
            for each in wishes.preferred_during_scheduling_ignored_during_execution
        ]
    if affinity.pod_anti_affinity is not None:
        dislikes = affinity.pod_anti_affinity
        apart = [_term(each, mine) for each in dislikes.required_during_scheduling_ignored_during_execution]
        liked += [
            _term(each.pod_affinity_term, mine, -each.weight)
            for each in dislikes.preferred_during_scheduling_ignored_during_execution
        ]
    return PodTerms(tuple(near), tuple(apart), tuple(liked))


def understood_terms_of(pod: Pod) -> PodTerms:
    """As `terms_of`; nothing, if a selector cannot be understood (an API server that knows more took the pod)."""
    try:
        return terms_of(pod)
    except SelectorError:
        return NO_TERMS


def _term(term: PodAffinityTerm, mine: str, weight: int = 0) -> Term:
    is_silent = not term.namespaces and term.namespace_selector is None
    return Term(
        term.topology_key,
        from_label_selector(term.label_selector),
        frozenset((mine,) if is_silent else term.namespaces),
        from_label_selector(term.namespace_selector),
        weight,
    )

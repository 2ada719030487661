"""Plugins that look at other pods: affinity between pods, and how evenly they are spread."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from tests.scheduler.reference.cluster import Cluster, OnNode
from tests.scheduler.reference.matching import bars, is_empty, selects, wants

Tree = dict[str, Any]
Answer = tuple[tuple[str, ...], bool]

FITS: Answer = ((), False)
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
SYSTEM = (
    {"topologyKey": HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 3},
    {"topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 5},
)


def _labels(pod: Tree) -> dict[str, str]:
    found: dict[str, str] = pod["metadata"].get("labels", {})
    return found


def _everybody(cluster: Cluster) -> Iterator[tuple[OnNode, Tree]]:
    """All pods on nodes that are there."""
    for pod in cluster.pods.values():
        node = cluster.nodes.get(pod.tree["spec"]["nodeName"])
        if node is not None:
            yield pod, node


# -- affinity


def _terms(pod: Tree, kind: str, strength: str) -> list[Tree]:
    inside = (pod["spec"].get("affinity") or {}).get(kind) or {}
    found: list[Tree] = inside.get(f"{strength}DuringSchedulingIgnoredDuringExecution", [])
    return found


def _means(term: Tree, owner: Tree, other: Tree, cluster: Cluster) -> bool:
    """Whether a term of `owner` is about `other`."""
    names, selector = term.get("namespaces", []), term.get("namespaceSelector")
    if not names and selector is None:
        names = [owner["metadata"]["namespace"]]
    where = other["metadata"]["namespace"]
    in_reach = where in names or selects(selector, cluster.namespaces.get(where, {}))
    return in_reach and selects(term.get("labelSelector"), _labels(other))


def affinity_filter(pod: Tree, node: Tree, cluster: Cluster, arguments: Tree) -> Answer:
    here: dict[str, str] = node["metadata"]["labels"]
    terms = _terms(pod, "podAffinity", "required")
    friends = [
        there["metadata"]["labels"]
        for other, there in _everybody(cluster)
        if all(_means(term, pod, other.tree, cluster) for term in terms)
    ]
    if terms:
        if any(term["topologyKey"] not in here for term in terms):
            return ("node(s) didn't match pod affinity rules",), False
        is_near = all(
            any(labels.get(term["topologyKey"]) == here[term["topologyKey"]] for labels in friends)
            for term in terms
        )
        is_anywhere = any(term["topologyKey"] in labels for labels in friends for term in terms)
        is_first = not is_anywhere and all(_means(term, pod, pod, cluster) for term in terms)
        if not is_near and not is_first:
            return ("node(s) didn't match pod affinity rules",), False
    for term in _terms(pod, "podAntiAffinity", "required"):
        key = term["topologyKey"]
        for other, there in _everybody(cluster):
            is_near_it = key in here and there["metadata"]["labels"].get(key) == here[key]
            if is_near_it and _means(term, pod, other.tree, cluster):
                return ("node(s) didn't match pod anti-affinity rules",), True
    for other, there in _everybody(cluster):
        for term in _terms(other.tree, "podAntiAffinity", "required"):
            key = term["topologyKey"]
            is_near_it = key in here and there["metadata"]["labels"].get(key) == here[key]
            if is_near_it and _means(term, other.tree, pod, cluster):
                return ("node(s) didn't satisfy existing pods anti-affinity rules",), True
    return FITS


def affinity_scores(pod: Tree, nodes: Sequence[Tree], cluster: Cluster, arguments: Tree) -> list[int]:
    hard = arguments.get("hardPodAffinityWeight", 1)
    wishes = [(1, each) for each in _terms(pod, "podAffinity", "preferred")]
    wishes += [(-1, each) for each in _terms(pod, "podAntiAffinity", "preferred")]
    found: dict[tuple[str, str], int] = {}

    def credit(term: Tree, weight: int, there: Tree) -> None:
        key = term["topologyKey"]
        if key in there["metadata"]["labels"]:
            pair = key, there["metadata"]["labels"][key]
            found[pair] = found.get(pair, 0) + weight

    if arguments.get("ignorePreferredTermsOfExistingPods") and not wishes:
        return [0] * len(nodes)
    for other, there in _everybody(cluster):
        for sign, each in wishes:
            if _means(each["podAffinityTerm"], pod, other.tree, cluster):
                credit(each["podAffinityTerm"], sign * each["weight"], there)
        for term in _terms(other.tree, "podAffinity", "required"):
            if hard and _means(term, other.tree, pod, cluster):
                credit(term, hard, there)
        theirs = [(1, each) for each in _terms(other.tree, "podAffinity", "preferred")]
        theirs += [(-1, each) for each in _terms(other.tree, "podAntiAffinity", "preferred")]
        for sign, each in theirs:
            if _means(each["podAffinityTerm"], other.tree, pod, cluster):
                credit(each["podAffinityTerm"], sign * each["weight"], there)
    raw = [
        sum(weight for (key, value), weight in found.items() if node["metadata"]["labels"].get(key) == value)
        for node in nodes
    ]
    low, high = min(raw), max(raw)
    return [int(100 * ((each - low) / (high - low))) if high > low else 0 for each in raw]


# -- spread


def _own(pod: Tree, action: str) -> list[Tree]:
    """The pod's constraints, each with the selector it comes down to."""
    found: list[Tree] = []
    for each in pod["spec"].get("topologySpreadConstraints", ()):
        if each["whenUnsatisfiable"] != action:
            continue
        selector = each.get("labelSelector")
        if selector is not None:
            more = {k: _labels(pod)[k] for k in each.get("matchLabelKeys", ()) if k in _labels(pod)}
            exact = [{"key": k, "operator": "In", "values": [v]} for k, v in more.items()]
            selector = selector | {"matchExpressions": [*selector.get("matchExpressions", ()), *exact]}
        found.append(each | {"labelSelector": selector})
    return found


def _by_default(pod: Tree, cluster: Cluster) -> list[Tree]:
    """The cluster's constraints, for pods that services select."""
    labels: dict[str, str] = {}
    for service in cluster.services:
        is_its = service["metadata"]["namespace"] == pod["metadata"]["namespace"]
        if is_its and selects({"matchLabels": service["spec"]["selector"]}, _labels(pod)):
            labels |= service["spec"]["selector"]
    return [{**each, "labelSelector": {"matchLabels": labels}} for each in SYSTEM] if labels else []


def _is_counted(constraint: Tree, pod: Tree, node: Tree) -> bool:
    if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not wants(pod, node):
        return False
    return constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore" or not bars(pod, node)


def _alike(constraint: Tree, pod: Tree, name: str, cluster: Cluster) -> int:
    """How many pods on a node the constraint is about."""
    selector = constraint["labelSelector"]
    if selector is None or is_empty(selector):
        return 0
    return sum(
        other.tree["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and "deletionTimestamp" not in other.tree["metadata"]
        and selects(selector, _labels(other.tree))
        for other in cluster.on(name)
    )


def _domains(pod: Tree, constraints: Sequence[Tree], which: Tree, cluster: Cluster) -> dict[str, int]:
    """Pods per value of the constraint's key, over the nodes that have the keys of all constraints."""
    found: dict[str, int] = {}
    for name, node in cluster.nodes.items():
        labels = node["metadata"]["labels"]
        if all(each["topologyKey"] in labels for each in constraints) and _is_counted(which, pod, node):
            value = labels[which["topologyKey"]]
            found[value] = found.get(value, 0) + _alike(which, pod, name, cluster)
    return found


def spread_filter(pod: Tree, node: Tree, cluster: Cluster, arguments: Tree) -> Answer:
    constraints = _own(pod, "DoNotSchedule")
    for each in constraints:
        value = node["metadata"]["labels"].get(each["topologyKey"])
        if value is None:
            text = "node(s) didn't match pod topology spread constraints (missing required label)"
            return (text,), False
        domains = _domains(pod, constraints, each, cluster)
        fewest = min(domains.values()) if domains else 2**31 - 1
        if len(domains) < each.get("minDomains", 1):
            fewest = 0
        mine = int(selects(each["labelSelector"], _labels(pod)))
        if domains.get(value, 0) + mine - fewest > each["maxSkew"]:
            return ("node(s) didn't match pod topology spread constraints",), True
    return FITS


def spread_scores(pod: Tree, nodes: Sequence[Tree], cluster: Cluster, arguments: Tree) -> list[int] | None:
    """None: nothing to say."""
    is_own = bool(pod["spec"].get("topologySpreadConstraints"))
    constraints = _own(pod, "ScheduleAnyway") if is_own else _by_default(pod, cluster)
    if not constraints:
        return None
    keys = [each["topologyKey"] for each in constraints]

    def takes_part(node: Tree) -> bool:
        return not is_own or all(key in node["metadata"]["labels"] for key in keys)

    raw: list[int | None] = []
    for node in nodes:
        if not takes_part(node):
            raw.append(None)
            continue
        score = 0.0
        for each in constraints:
            key = each["topologyKey"]
            value = node["metadata"]["labels"].get(key)
            if value is None:
                continue
            asked = [other for other in nodes if takes_part(other)]
            if key == HOSTNAME:
                count, size = _alike(each, pod, node["metadata"]["name"], cluster), len(asked)
            else:
                size = len({other["metadata"]["labels"].get(key, "") for other in asked})
                count = sum(
                    _alike(each, pod, name, cluster)
                    for name, other in cluster.nodes.items()
                    if other["metadata"]["labels"].get(key, "") == value
                    and takes_part(other)
                    and _is_counted(each, pod, other)
                )
            score += count * math.log(size + 2) + (each["maxSkew"] - 1)
        raw.append(math.floor(score + 0.5))
    known = [each for each in raw if each is not None]
    low, high = min(known, default=0), max(known, default=0)
    return [0 if each is None else 100 * (high + low - each) // high if high else 100 for each in raw]

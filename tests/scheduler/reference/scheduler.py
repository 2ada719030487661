"""The whole of the reference: every node asked of every filter in turn, and the rest scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.scheduler.reference.cluster import Cluster
from tests.scheduler.reference.filters import FILTERS
from tests.scheduler.reference.matching import named_nodes
from tests.scheduler.reference.scores import SCORES

Tree = dict[str, Any]


@dataclass(frozen=True)
class Rejection:
    """What the first plugin has against a node; reasons are sorted."""

    plugin: str
    reasons: tuple[str, ...]
    may_help: bool


@dataclass(frozen=True)
class Judged:
    """Every node is in one of the two."""

    rejected: Mapping[str, Rejection]
    scores: Mapping[str, int]


class Reference:
    """`plugins` are the names of a profile in order, with their weights."""

    def __init__(self, plugins: Sequence[tuple[str, int]], arguments: Mapping[str, Tree]) -> None:
        self._plugins = plugins
        self._arguments = arguments

    def judge(self, pod: Tree, cluster: Cluster) -> Judged:
        rejected: dict[str, Rejection] = {}
        only = {
            name: names
            for name, names in (
                ("NodeAffinity", named_nodes(pod)),
                ("NodeName", {pod["spec"]["nodeName"]} if pod["spec"].get("nodeName") else None),
            )
            if names is not None
        }
        before = self._before(only)
        for name, node in cluster.nodes.items():
            if before is not None:
                rejected[name] = before
            elif any(name not in names for names in only.values()):
                text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(only))}]"
                rejected[name] = Rejection(min(only), (text,), may_help=False)
            else:
                first = self._first(pod, node, cluster)
                if first is not None:
                    rejected[name] = first
        fitting = [node for name, node in cluster.nodes.items() if name not in rejected]
        return Judged(rejected, self._totals(pod, fitting, cluster))

    def _before(self, only: Mapping[str, set[str]]) -> Rejection | None:
        """Why no node can be meant at all."""
        if only.get("NodeAffinity") == set():
            return Rejection("NodeAffinity", ("pod affinity terms conflict",), may_help=False)
        if only and not set.intersection(*only.values()):
            text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(only))}] simultaneously"
            return Rejection(min(only), (text,), may_help=False)
        return None

    def _first(self, pod: Tree, node: Tree, cluster: Cluster) -> Rejection | None:
        for plugin, _ in self._plugins:
            if plugin in FILTERS:
                reasons, may_help = FILTERS[plugin](pod, node, cluster, self._arguments.get(plugin, {}))
                if reasons:
                    return Rejection(plugin, tuple(sorted(reasons)), may_help)
        return None

    def _totals(self, pod: Tree, nodes: Sequence[Tree], cluster: Cluster) -> dict[str, int]:
        totals = {node["metadata"]["name"]: 0 for node in nodes}
        for plugin, weight in self._plugins if nodes else ():
            if weight:
                scores = SCORES[plugin](pod, nodes, cluster, self._arguments.get(plugin, {}))
                for node, score in zip(nodes, scores or (), strict=False):
                    assert 0 <= score <= 100, (plugin, score)
                    totals[node["metadata"]["name"]] += weight * score
        return totals

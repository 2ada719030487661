"""Small clusters in which pods care about each other, and what one plugin says of them in both of its forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.framework.plugin import CycleState
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status
from tests.scheduler.cache.objects import new_table, node, pod

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"


def web(
    name: str, *, namespace: str = "default", labels: Mapping[str, str] | None = None, **spec: Any
) -> PodView:
    """A pod labelled `app: web`, unless told otherwise."""
    about = {"namespace": namespace, "labels": {"app": "web"} if labels is None else dict(labels)}
    return pod(name, metadata={**about, **spec.pop("metadata", {})}, **spec)


def cluster(placed: Mapping[str, Sequence[PodView]], **labels: Mapping[str, str]) -> NodeTable:
    """Nodes by name with the pods on them; `a1` is in zone `a`, unless its labels are given."""
    table = new_table()
    for name, pods in placed.items():
        table.upsert_node(node(name, labels=labels.get(name, {HOST: name, ZONE: name[0]})))
        for view in pods:
            table.assume(view, name)
    return table


def judged(plugin: Any, view: PodView, table: NodeTable) -> dict[str, Status]:
    """What the filter says of each node. Both forms are asked, and must agree."""
    cycle = CycleState(view)
    status = plugin.pre_filter(cycle, view, table)
    if status.is_skip:
        return {table.name_of(row): SUCCESS for row in table.rows().tolist()}
    assert status.is_success
    return filtered(plugin, cycle, table)


def filtered(plugin: Any, cycle: CycleState, table: NodeTable) -> dict[str, Status]:
    rows = table.rows()
    plain = {table.name_of(row): plugin.filter(cycle, cycle.pod, table.view(row)) for row in rows.tolist()}
    answer = plugin.filter_rows(cycle, table, rows)
    which = [-1] * len(rows) if answer is None else answer.which.tolist()
    assert [SUCCESS if number < 0 else answer.reasons[number] for number in which] == list(plain.values())
    return plain


def ranked(plugin: Any, view: PodView, table: NodeTable, *feasible: str) -> dict[str, int] | None:
    """The normalised scores of all nodes (or those named); None: the plugin has nothing to say."""
    every = [row for row in table.rows().tolist() if not feasible or table.name_of(row) in feasible]
    rows = np.array(every, np.int64)
    plain_cycle, column_cycle = CycleState(view), CycleState(view)
    takes_rows = plugin.name == "PodTopologySpread"
    first = plugin.pre_score(plain_cycle, view, table, *([rows] if takes_rows else []))
    second = plugin.pre_score(column_cycle, view, table)
    assert first == second
    if first.is_skip:
        return None
    raw = plugin.score_rows(column_cycle, table, rows)
    assert raw.tolist() == [plugin.score(plain_cycle, view, table.view(row)) for row in every]
    scores = plugin.normalize(column_cycle, raw).tolist()
    assert all(0 <= score <= 100 for score in scores)
    return {table.name_of(row): score for row, score in zip(every, scores, strict=True)}


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """What the selectors below mean, the obvious way."""
    if selector is None:
        return False
    for wish in selector.get("matchExpressions", []):
        is_there = wish["key"] in labels
        if wish["operator"] == "Exists" and not is_there:
            return False
        if wish["operator"] == "NotIn" and is_there and labels[wish["key"]] in wish["values"]:
            return False
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


# -- at random

APPS = st.fixed_dictionaries({}, optional={"app": st.sampled_from(["web", "db"]), "tier": st.just("x")})
SELECTORS = st.sampled_from(
    [
        None,
        {},
        {"matchLabels": {"app": "web"}},
        {"matchLabels": {"app": "db"}},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
        {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    ]
)
NAMESPACES = st.sampled_from(["default", "other"])
NODE_LABELS = st.fixed_dictionaries(
    {},
    optional={
        HOST: st.sampled_from(["h1", "h2", "h3"]),
        ZONE: st.sampled_from(["a", "b"]),
        "disk": st.just("ssd"),
    },
)
TAINTS = st.sampled_from([[], [], [{"key": "k", "value": "v", "effect": "NoSchedule"}]])

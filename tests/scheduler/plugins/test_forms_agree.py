"""What a plugin says of a column of nodes is what it says of each of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.framework.plugin import CycleState
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS
from tests.scheduler.cache import objects
from tests.scheduler.plugins import profile

RESOURCES = [
    {"name": "cpu", "weight": 2},
    {"name": "ephemeral-storage"},
    {"name": "memory", "weight": 3},
    {"name": objects.GPU},
]
SHAPE = [
    {"utilization": 10, "score": 3},
    {"utilization": 40, "score": 10},
    {"utilization": 90, "score": 1},
]
ARGUMENTS: list[dict[str, dict[str, Any]]] = [
    {},
    {
        "NodeResourcesFit": {
            "scoringStrategy": {"type": "MostAllocated", "resources": RESOURCES},
            "ignoredResourceGroups": ["example.com"],
        },
        "NodeResourcesBalancedAllocation": {"resources": RESOURCES},
        "NodeAffinity": {
            "addedAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["b"]}]}
                    ]
                },
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 7,
                        "preference": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]},
                    }
                ],
            }
        },
    },
    {
        "NodeResourcesFit": {
            "scoringStrategy": {
                "type": "RequestedToCapacityRatio",
                "resources": RESOURCES,
                "requestedToCapacityRatio": {"shape": SHAPE},
            }
        }
    },
]


@st.composite
def clusters(draw: st.DrawFn) -> tuple[NodeTable, PodView]:
    table = objects.new_table()
    count = draw(st.integers(1, 5))
    for number in range(count):
        table.upsert_node(draw(objects.nodes(f"n{number}")))
    for number in range(draw(st.integers(0, 5))):
        table.assume(draw(objects.pods(f"old{number}")), f"n{draw(st.integers(0, count - 1))}")
    return table, draw(objects.pods("new"))


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=["default", "most", "ratio"])
@settings(max_examples=150)
@given(cluster=clusters())
def test_all_forms_of_every_plugin_agree(
    arguments: dict[str, dict[str, Any]], cluster: tuple[NodeTable, PodView]
) -> None:
    table, pod = cluster
    rows = table.rows()
    plugin: Any
    for plugin in profile.plugins(arguments):
        cycle = CycleState(pod)
        status = plugin.pre_filter(cycle, pod, table) if hasattr(plugin, "pre_filter") else SUCCESS
        if hasattr(plugin, "filter"):
            plain = [plugin.filter(cycle, pod, table.view(row)) for row in rows.tolist()]
            if status.is_skip:
                assert all(each.is_success for each in plain), plugin.name
            else:
                answer = plugin.filter_rows(cycle, table, rows)
                which = [-1] * len(rows) if answer is None else answer.which.tolist()
                column = [SUCCESS if index < 0 else answer.reasons[index] for index in which]
                assert column == plain, plugin.name
                if hasattr(plugin, "fits_row"):
                    one_by_one = [plugin.fits_row(cycle, table, row) for row in rows.tolist()]
                    assert one_by_one == [each.is_success for each in plain], plugin.name
        if hasattr(plugin, "score"):
            status = plugin.pre_score(cycle, pod, table) if hasattr(plugin, "pre_score") else SUCCESS
            if not status.is_skip:
                raw = [plugin.score(cycle, pod, table.view(row)) for row in rows.tolist()]
                assert plugin.score_rows(cycle, table, rows).tolist() == raw, plugin.name
                some = np.flatnonzero(rows % 2 == 0)
                assert plugin.score_rows(cycle, table, rows[some]).tolist() == [raw[i] for i in some]
                if hasattr(plugin, "score_row"):
                    one_by_one = [plugin.score_row(cycle, table, row) for row in rows.tolist()]
                    assert one_by_one == raw, plugin.name

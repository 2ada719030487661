"""One placement out of the hints of many resources."""

from __future__ import annotations

import pytest

from nodeward.kubelet.topology_manager.hints import TopologyHint
from nodeward.kubelet.topology_manager.merging import MergedHint, TopologyPolicy

FIRST, SECOND = TopologyHint(0b01, True), TopologyHint(0b10, True)
BOTH = TopologyHint(0b11, False)


def _policy(name: str, *, closest: bool = False) -> TopologyPolicy:
    distances = {0: (10, 30, 11), 1: (30, 10, 31), 2: (11, 31, 10)}
    return TopologyPolicy(name, (0, 1, 2) if closest else (0, 1), distances, prefers_closest=closest)


@pytest.mark.parametrize(
    ("name", "merged"),
    [
        ("none", MergedHint(TopologyHint(None, False), True)),
        ("best-effort", MergedHint(TopologyHint(0b10, True), True)),
        ("restricted", MergedHint(TopologyHint(0b10, True), True)),
        ("single-numa-node", MergedHint(TopologyHint(0b10, True), True)),
    ],
)
def test_resources_meet_on_the_numa_node_that_all_prefer(name: str, merged: MergedHint) -> None:
    assert _policy(name).merge([{"cpu": [FIRST, SECOND, BOTH]}, {"nic": [SECOND]}, {}]) == merged


@pytest.mark.parametrize(
    ("name", "mask", "is_admitted"),
    [("best-effort", 0b01, True), ("restricted", 0b01, False), ("single-numa-node", None, False)],
)
def test_resources_that_cannot_meet_are_admitted_by_best_effort_only(
    name: str, mask: int | None, is_admitted: bool
) -> None:
    merged = _policy(name).merge([{"cpu": [FIRST, BOTH]}, {"nic": [SECOND, BOTH]}])
    assert merged == MergedHint(TopologyHint(mask, False), is_admitted)


def test_a_resource_that_fits_nowhere_is_never_preferred() -> None:
    assert not _policy("restricted").merge([{"cpu": []}]).is_admitted
    assert _policy("restricted").merge([{"cpu": None}]) == (TopologyHint(0b11, True), True)


def test_closer_numa_nodes_win_with_the_option() -> None:
    hints = [TopologyHint(0b011, True), TopologyHint(0b101, True)]
    assert _policy("best-effort").merge([{"cpu": hints}]).hint.mask == 0b01
    assert _policy("best-effort", closest=True).merge([{"cpu": hints}]).hint.mask == 0b101

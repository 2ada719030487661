"""What the scheduler keeps of claims and nodes is what it would find out anew, whatever happened in which order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import DeviceTaintRule, ResourceClaim
from nodeward.features.declared import Version
from nodeward.features.gates import Gates
from nodeward.rules.devices.allocator import Allocated, PodAllocator
from nodeward.rules.devices.in_use import DevicesInUse
from nodeward.rules.devices.search import SearchBudget
from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.listers import FixedListers
from nodeward.scheduler.framework.plugin import CycleState
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status
from nodeward.scheduler.plugins.dra.claim_tracker import ClaimTracker, PoolLog
from nodeward.scheduler.plugins.dynamic_resources import DynamicResources
from tests.rounds import rounds, soak
from tests.scheduler.plugins.devices import claim, device_class, devices, exactly, made, node, slice_of, using

NODES = ("n0", "n1", "n2")
NAMES = ("a", "b", "c")


def held(name: str, version: int, *devices_: str, uid: str = "") -> ResourceClaim:
    """A claim as the API tells of it, with devices of pool p1 (or `pool/device`)."""
    results = [
        {"request": "r", "driver": "gpu.example.com", "pool": pool or "p1", "device": device}
        for pool, _, device in (each.rpartition("/") for each in devices_)
    ]
    status = {"allocation": {"devices": {"results": results}}} if results else {}
    meta = {
        "name": name,
        "namespace": "default",
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
    }
    spec = {"devices": {"requests": [exactly()]}}
    return made(ResourceClaim, {"metadata": meta, "spec": spec, "status": status})


# -- claims


def test_a_written_claim_counts_until_the_api_tells_of_it_or_something_newer() -> None:
    listers = FixedListers([held("a", 1)])
    tracker = ClaimTracker(listers, shares=True)
    tracker.assume(held("a", 3, "d0"))
    assert [each.device for each in tracker.in_use.devices] == ["d0"]
    # Late news, from before the write.
    listers.put(held("a", 2))
    assert [each.device for each in tracker.in_use.devices] == ["d0"]
    found = tracker.get("a", "default")
    assert found is not None
    assert found.metadata.resource_version == "3"
    listers.put(held("a", 4))
    assert not tracker.in_use.devices
    # An answer that is older than what is known does not count.
    tracker.assume(held("a", 3, "d0"))
    assert not tracker.in_use.devices


def test_a_decision_counts_once_also_after_it_was_written_and_told() -> None:
    listers = FixedListers([held("a", 1)])
    tracker = ClaimTracker(listers, shares=True)
    decided = held("a", 1, "d0").status.allocation
    assert decided is not None
    tracker.reserve(held("a", 1), decided)
    assert tracker.is_in_flight(held("a", 1))
    listers.put(held("a", 2, "d0"))
    tracker.assume(held("a", 2, "d0"))
    tracker.release(held("a", 1))
    assert list(tracker.in_use.devices.values()) == [1]
    listers.remove(held("a", 2, "d0"))
    assert not tracker.in_use.devices


def test_a_claim_that_was_replaced_by_another_of_its_name_holds_nothing() -> None:
    listers = FixedListers([held("a", 1, "d0")])
    tracker = ClaimTracker(listers, shares=True)
    listers.put(held("a", 5, "d1", uid="other"))
    assert [each.device for each in tracker.in_use.devices] == ["d1"]


@soak
@settings(max_examples=rounds(100, 3000), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("put", "remove", "reserve", "release", "assume")),
            st.sampled_from(NAMES),
            st.lists(st.sampled_from(("d0", "d1", "q/d2")), max_size=2, unique=True),
        ),
        max_size=25,
    )
)
def test_devices_in_use_are_those_of_the_newest_state_of_each_claim(
    steps: list[tuple[str, str, list[str]]],
) -> None:
    listers = FixedListers()
    tracker = ClaimTracker(listers, shares=True)
    told: dict[str, ResourceClaim] = {}
    written: dict[str, ResourceClaim] = {}
    flying: dict[str, list[str]] = {}
    for version, (step, name, wanted) in enumerate(steps, start=1):
        state = held(name, version, *wanted)
        if step == "put":
            listers.put(state)
            told[name] = state
            written.pop(name, None)
        elif step == "remove" and name in told:
            listers.remove(told.pop(name))
            written.pop(name, None)
        elif step == "reserve" and wanted:
            assert state.status.allocation is not None
            tracker.reserve(state, state.status.allocation)
            flying[name] = wanted
        elif step == "release":
            tracker.release(state)
            flying.pop(name, None)
        elif step == "assume" and name in told:
            tracker.assume(state)
            written[name] = state
        expected = DevicesInUse()
        for each in NAMES:
            if each in flying:
                newest: ResourceClaim | None = held(each, 1, *flying[each])
            else:
                newest = written.get(each) or told.get(each)
            if newest is not None and newest.status.allocation is not None:
                expected.add(newest.status.allocation.devices.results)
        assert tracker.in_use.devices == expected.devices


def test_the_log_of_pools_is_of_bounded_length() -> None:
    log = PoolLog()
    seen = log.version
    for number in range(30_000):
        log.add([("driver", str(number))])  # type: ignore[list-item]
    assert log.version == 30_000
    assert log.since(seen) is None
    assert len(log.since(log.version - 1) or ()) == 1
    assert len(log._pools) < 10_000


# -- nodes


@dataclass
class World:
    """Three nodes, slices and claims, and the plugin over them."""

    listers: FixedListers = field(default_factory=lambda: FixedListers([device_class()]))
    table: NodeTable = field(default_factory=NodeTable)
    version: int = 0

    def __post_init__(self) -> None:
        for name in NODES:
            self.table.upsert_node(node(name))
        self.plugin = self.fresh_plugin()

    def fresh_plugin(self) -> DynamicResources:
        gates = Gates.of("1.37", "DRAOptionalNodePreparation=true")
        return DynamicResources(PluginContext(gates, Version.parse("1.37"), listers=self.listers))

    def pod(self, *wanted: str) -> PodView:
        pod: Pod = using("p", *wanted)
        pod.metadata.uid = "p"
        return PodView(pod)

    def verdicts(self, plugin: DynamicResources, *wanted: str) -> dict[str, Status]:
        """What the column form says of each node, after the form for one node said the same."""
        view = self.pod(*wanted)
        cycle = CycleState(view)
        before = plugin.pre_filter(cycle, view, self.table)
        if not before.is_success:
            return dict.fromkeys(NODES, before)
        rows = self.table.rows()
        answer = plugin.filter_rows(cycle, self.table, rows)
        which = np.full(len(rows), -1) if answer is None else answer.which
        found = {}
        for row, number in zip(rows.tolist(), which.tolist(), strict=True):
            status = SUCCESS if number < 0 or answer is None else answer.reasons[number]
            assert plugin.filter(cycle, view, self.table.view(row)) == status
            found[self.table.name_of(row)] = status
        return found


STEPS = st.one_of(
    st.tuples(st.just("slice"), st.sampled_from(NODES), st.integers(0, 2), st.booleans()),
    st.tuples(st.just("shared"), st.integers(0, 2), st.sampled_from(("", "zone"))),
    st.tuples(
        st.just("hold"),
        st.sampled_from(("x", "y")),
        st.sampled_from((*NODES, "net", "each")),
        st.integers(0, 2),
    ),
    st.tuples(st.just("free"), st.sampled_from(("x", "y"))),
    st.tuples(st.just("label"), st.sampled_from(NODES), st.booleans()),
    st.tuples(st.just("declare"), st.sampled_from(NODES), st.booleans()),
    st.tuples(st.just("taint"), st.sampled_from((*NODES, "net"))),
    st.tuples(st.just("untaint")),
    st.tuples(st.just("node"), st.sampled_from(NODES)),
)


@soak
@settings(max_examples=rounds(60, 2000), deadline=None)
@given(st.lists(STEPS, max_size=20))
def test_kept_answers_about_nodes_are_what_a_new_scheduler_would_say(steps: list[tuple[Any, ...]]) -> None:
    world = World()
    world.listers.put(claim(name="one"))
    world.listers.put(claim(exactly(count=2), name="two"))
    world.listers.put(claim(exactly(allocationMode="All"), name="all"))
    for number, step in enumerate(steps):
        play(world, number, step)
        for wanted in (["one"], ["two"], ["all"], ["one", "two"]):
            kept, anew = (world.verdicts(each, *wanted) for each in (world.plugin, world.fresh_plugin()))
            assert kept == anew


def play(world: World, number: int, step: tuple[Any, ...]) -> None:
    kind = step[0]
    if kind == "slice":
        _, name, count, skips = step
        said = {"skipNodeOperations": True} if skips else {}
        world.listers.put(slice_of(devices(count), name=name, pool=name, nodeName=name, **said))
    elif kind == "shared":
        term = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
        where: dict[str, Any] = (
            {"nodeSelector": {"nodeSelectorTerms": [term]}} if step[2] else {"allNodes": True}
        )
        world.listers.put(slice_of(devices(step[1]), name="net", pool="net", **where))
    elif kind == "each":
        one_by_one = [
            {"name": f"d{index}", **({"nodeName": name} if name else {"allNodes": True})}
            for index, name in enumerate(step[1])
        ]
        world.listers.put(slice_of(one_by_one, name="each", pool="each", perDeviceNodeSelection=True))
    elif kind == "hold":
        world.listers.put(held(step[1], number + 1, f"{step[2]}/d{step[3]}"))
    elif kind == "free":
        world.listers.put(held(step[1], number + 1))
    elif kind == "taint":
        taint = {"key": "bad", "effect": "NoSchedule"}
        spec = {"deviceSelector": {"pool": step[1]}, "taint": taint}
        world.listers.put(made(DeviceTaintRule, {"metadata": {"name": "rule"}, "spec": spec}))
    elif kind == "untaint":
        world.listers.remove(made(DeviceTaintRule, {"metadata": {"name": "rule"}}))
    elif kind == "node":
        world.table.remove_node(step[1])
        world.table.upsert_node(node(step[1]))
    else:
        row = world.table.row_of(step[1])
        assert row is not None
        known = world.table.node(row)
        assert known is not None
        if kind == "label":
            changed = replace(
                known, metadata=replace(known.metadata, labels={"zone": "a"} if step[2] else {})
            )
        else:
            said_features = ["DraOptionalNodePreparation"] if step[2] else []
            changed = replace(known, status=replace(known.status, declared_features=said_features))
        world.table.upsert_node(changed)


class Counting(DynamicResources):
    """Writes down the nodes on which it allocated."""

    def __init__(self, context: PluginContext) -> None:
        super().__init__(context)
        self.looked: list[str] = []

    def _allocate(self, allocator: PodAllocator, node: Node, budget: SearchBudget) -> Allocated | Status:
        self.looked.append(node.metadata.name)
        return super()._allocate(allocator, node, budget)


def test_equal_pods_cost_one_look_at_every_node_and_then_one_per_placement() -> None:
    world = World()
    for name in NODES:
        world.listers.put(slice_of(devices(5), name=name, pool=name, nodeName=name))
    plugin = Counting(PluginContext(Gates.of("1.37"), Version.parse("1.37"), listers=world.listers))
    for number in range(4):
        world.listers.put(held(f"c{number}", number + 1))
        view = world.pod(f"c{number}")
        cycle = CycleState(view)
        assert plugin.pre_filter(cycle, view, world.table).is_success
        assert plugin.filter_rows(cycle, world.table, world.table.rows()) is None
        assert plugin.reserve(cycle, view, "n1").is_success
    # Three nodes, then the one that was chosen: once to reserve, once because it has less now.
    assert plugin.looked == ["n0", "n1", "n2", "n1", *["n1"] * 6]


def test_nodes_that_see_the_same_slices_share_one_look() -> None:
    world = World()
    world.listers.put(slice_of(devices(5), name="net", pool="net", allNodes=True))
    plugin = Counting(PluginContext(Gates.of("1.37"), Version.parse("1.37"), listers=world.listers))
    for number in range(3):
        world.listers.put(held(f"c{number}", number + 1))
        view = world.pod(f"c{number}")
        cycle = CycleState(view)
        assert plugin.pre_filter(cycle, view, world.table).is_success
        assert plugin.filter_rows(cycle, world.table, world.table.rows()) is None
        assert plugin.reserve(cycle, view, "n2").is_success
    assert plugin.looked == ["n0", "n2"] * 3


def test_nodes_share_no_look_where_devices_select_their_nodes_one_by_one() -> None:
    world = World()
    one_by_one = [{"name": f"d{index}", "nodeName": name} for index, name in enumerate(("n0", "n0", "n1"))]
    world.listers.put(slice_of(one_by_one, perDeviceNodeSelection=True))
    world.listers.put(claim(exactly(count=2), name="two"))
    found = world.verdicts(world.plugin, "two")
    assert {name: status.is_success for name, status in found.items()} == {
        "n0": True,
        "n1": False,
        "n2": False,
    }

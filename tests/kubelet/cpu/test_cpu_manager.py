"""The CPU manager: clean-up of pods that are gone, and containers that must be moved."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.base.errors import ConfigError
from nodeward.kubelet.config.cpu_options import CpuManagerOptions
from nodeward.kubelet.cpu.cpu_manager import CPUManager
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.static_policy import StaticPolicy
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.kubelet.topology_manager.hint_provider import AdmitOperation
from nodeward.kubelet.topology_manager.merging import TopologyPolicy
from nodeward.kubelet.topology_manager.topology_admission import TopologyManager, TopologyRefusal
from tests.kubelet.cpu.recorded_cases import recorded_pod

TWO_SOCKETS = CPUDescription(sockets=2, cores_per_numa=2, threads=2).topology()


class _Node:
    """A node with 8 CPUs, CPU 0 reserved."""

    def __init__(self, policy: str = "restricted", scope: str = "container") -> None:
        self.pods: dict[str, Pod] = {}
        static = StaticPolicy(TWO_SOCKETS, CpuManagerOptions(), reserved_count=1)
        self.cpus = CPUManager(static, CPUState(), self.pods.values)
        self.cpus.is_ready = True
        distances = {0: (10, 20), 1: (20, 10)}
        self.topology = TopologyManager(TopologyPolicy(policy, (0, 1), distances), [self.cpus], scope=scope)

    def add(self, uid: str, *cpus: str) -> TopologyRefusal | None:
        containers = [{"n": f"c{number}", "k": "app", "cpu": each} for number, each in enumerate(cpus)]
        self.pods[uid] = recorded_pod({"uid": uid, "c": containers})
        refusal = self.topology.admit(self.pods[uid])
        if refusal is not None:
            del self.pods[uid]
        return refusal

    def moves(self, *, fails: bool = False) -> list[tuple[str, str]]:
        """Reconcile with all containers running; with `fails` the runtime refuses every move."""
        moves = list(self.cpus.reconcile(lambda uid, name: f"{uid}/{name}"))
        for move in moves:
            if not fails:
                self.cpus.on_applied(move.uid, move.container, move.cpus)
        return [(move.container_id, str(move.cpus)) for move in moves]


def test_containers_are_placed_on_the_numa_node_that_has_room() -> None:
    node = _Node()
    assert node.add("a", "4") is None
    assert str(node.cpus.state.entries["a"]["c0"]) == "2-3,6-7"
    assert node.topology.affinity("a") == {"c0": (0b10, True)}
    node.topology.forget("a")
    assert node.topology.affinity("a") == {}


def test_a_pod_that_fits_no_numa_node_is_refused_and_its_cpus_return_with_the_next_admission() -> None:
    node = _Node()
    refusal = node.add("a", "3", "4", "1", "2")
    assert refusal == ("TopologyAffinityError", "Resources cannot be allocated with Topology locality")
    assert "a" in node.cpus.state.entries
    assert node.add("b", "1") is None
    assert list(node.cpus.state.entries) == ["b"]


def test_a_whole_pod_is_placed_together_in_pod_scope() -> None:
    node = _Node("single-numa-node", "pod")
    assert node.add("a", "1", "3") is None
    assert str(node.cpus.state.assigned_in_pod("a")) == "2-3,6-7"
    assert node.add("b", "2", "2") == (
        "TopologyAffinityError",
        "Resources cannot be allocated with Topology locality",
    )


def test_cpus_that_are_not_there_are_an_unexpected_refusal_without_a_topology_policy() -> None:
    assert _Node("none").add("a", "8") == (
        "UnexpectedAdmissionError",
        "Allocate failed due to not enough cpus available to satisfy request: requested=8, available=7,"
        " which is unexpected",
    )


def test_a_topology_policy_is_refused_on_a_machine_with_too_many_numa_nodes() -> None:
    nodes = tuple(range(9))
    TopologyManager(TopologyPolicy("none", nodes, {}), [], scope="pod")
    TopologyManager(TopologyPolicy("restricted", nodes, {}), [], scope="pod", most_numa_nodes=9)
    with pytest.raises(ConfigError, match=r"^unsupported on machines with more than 8 NUMA Nodes$"):
        TopologyManager(TopologyPolicy("restricted", nodes, {}), [], scope="pod")


def test_nothing_is_cleaned_up_before_all_sources_are_known() -> None:
    node = _Node()
    node.add("a", "2")
    node.pods.clear()
    node.cpus.is_ready = False
    node.cpus.clean_up()
    assert "a" in node.cpus.state.entries
    node.cpus.is_ready = True
    node.cpus.clean_up()
    assert node.cpus.state.default == TWO_SOCKETS.all_cpus


def test_running_containers_are_moved_once_and_again_when_the_runtime_refused() -> None:
    node = _Node("none")
    node.add("shared", "500m")
    assert node.moves(fails=True) == [("shared/c0", "0-7")]
    assert node.moves() == [("shared/c0", "0-7")]
    assert node.moves() == []
    node.add("own", "2")
    node.cpus.on_container_started("own", "c0")
    assert node.moves() == [("shared/c0", "0,2-4,6-7")]
    del node.pods["own"]
    assert node.moves() == [("shared/c0", "0-7")]


def test_a_resize_moves_no_cpus() -> None:
    node = _Node()
    node.add("a", "2")
    before = dict(node.cpus.state.entries["a"])
    node.pods["a"] = recorded_pod({"uid": "a", "c": [{"n": "c0", "k": "app", "cpu": "3"}]})
    assert node.topology.admit(node.pods["a"], AdmitOperation.RESIZE) is None
    assert node.cpus.state.entries["a"] == before == {"c0": CPUSet.of(1, 5)}

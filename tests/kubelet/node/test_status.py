"""A node's status: what is registered, what is patched, and when nothing is."""

from __future__ import annotations

import itertools
import sys

import pytest

from nodeward.api.core_v1.node import ContainerImage
from nodeward.base.duration import SECOND_NS
from nodeward.base.quantity import Quantity
from nodeward.kubelet.node.features import discover
from nodeward.kubelet.node.node_conditions import ALL_WELL, NodeFacts
from nodeward.kubelet.node.node_core import NodeCore
from tests.kubelet.node.nodes import Run, settings, specification

STOPPED = NodeFacts(errors=("container runtime is down",))


def test_a_node_is_registered_with_everything_users_know() -> None:
    run = Run(specification(kernel_version="6.1.0", os_image="Debian", runtime_version="containerd://2.1.0"))
    node = run.node
    assert node.metadata.labels == {
        "kubernetes.io/hostname": "n1",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": "amd64",
    }
    assert node.metadata.annotations == {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
    assert [(each.type, each.address) for each in node.status.addresses] == [
        ("InternalIP", "10.0.0.1"),
        ("Hostname", "n1"),
    ]
    assert {name: str(amount) for name, amount in node.status.capacity.items()} == {
        "cpu": "4",
        "memory": "8Gi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
    }
    assert str(node.status.allocatable["memory"]) == "8092Mi"
    assert node.status.daemon_endpoints.kubelet_endpoint.port == 10250
    info = node.status.node_info
    assert (info.kubelet_version, info.container_runtime_version) == ("v1.37.0", "containerd://2.1.0")
    assert (info.boot_id, info.machine_id, info.kube_proxy_version) == ("boot-1", "machine", "")
    assert [(each.type, each.status, each.reason, each.message) for each in node.status.conditions] == [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
    assert run.events == ["NodeHasSufficientMemory", "NodeHasNoDiskPressure", "NodeHasSufficientPID"]


def test_an_idle_node_is_checked_often_and_written_once_per_report_period() -> None:
    run = Run(specification())
    run.until(3600)
    assert 11 <= len(run.patches) <= 13
    for patch in run.patches:
        assert patch.keys() == {"status"}
        assert patch["status"].keys() == {"conditions"}
        for condition in patch["status"]["conditions"]:
            assert condition.keys() == {"type", "lastHeartbeatTime"}
    assert [each["type"] for each in run.patches[0]["status"]["conditions"]] == [
        "MemoryPressure",
        "DiskPressure",
        "PIDPressure",
        "Ready",
    ]


def test_after_the_first_report_reports_are_evenly_apart() -> None:
    run = Run(specification())
    moments: list[float] = []
    while len(moments) < 5:
        step = run.look()
        if step.patch is not None:
            moments.append(run.seconds)
        run.seconds = step.next_check_ns / SECOND_NS
    assert 150 <= moments[0] <= 460, "the first report is spread, so that a fleet does not report at once"
    assert [b - a for a, b in itertools.pairwise(moments)] == [300.0] * 4


def test_a_node_that_is_not_ready_yet_looks_again_soon_and_tells_at_once() -> None:
    run = Run(specification(), STOPPED)
    assert run.said("Ready") == ("False", "KubeletNotReady")
    assert run.look().next_check_ns == 100_000_000
    run.facts = ALL_WELL
    run.seconds = 0.1
    step = run.look()
    assert run.said("Ready") == ("True", "KubeletReady")
    assert "NodeReady" in run.events
    assert step.next_check_ns == 10_100_000_000


def test_a_change_is_told_at_the_next_check_and_keeps_what_did_not_change() -> None:
    run = Run(specification())
    before = run.condition("DiskPressure")
    run.seconds = 20
    run.facts = NodeFacts(memory_pressure=True)
    step = run.look()
    assert run.said("MemoryPressure") == ("True", "KubeletHasInsufficientMemory")
    assert [event.message for event in step.events] == ["Node n1 status is now: NodeHasInsufficientMemory"]
    after = run.condition("DiskPressure")
    assert before is not None
    assert after is not None
    assert after.last_transition_time == before.last_transition_time
    assert after.last_heartbeat_time != before.last_heartbeat_time
    run.facts = NodeFacts(errors=("container runtime is down", "network is not ready"))
    run.look()
    ready = run.condition("Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "KubeletNotReady")
    assert ready.message == "[container runtime is down, network is not ready]"


def test_conditions_resources_and_labels_of_others_are_left_alone() -> None:
    run = Run(specification())
    theirs = {"type": "KernelDeadlock", "status": "False", "reason": "KernelHasNoDeadlock"}
    run.others_write(
        {
            "metadata": {"labels": {"team": "a"}},
            "status": {"conditions": [theirs], "capacity": {"example.com/fan": "2"}},
        }
    )
    run.until(1000)
    assert run.said("KernelDeadlock") == ("False", "KernelHasNoDeadlock")
    assert run.node.metadata.labels["team"] == "a"
    assert run.node.status.capacity["example.com/fan"] == Quantity.of_int(2)
    assert run.node.status.allocatable["example.com/fan"] == Quantity.of_int(2)
    assert not any("KernelDeadlock" in str(patch) for patch in run.patches)


def test_what_others_write_over_the_kubelets_own_is_put_right_at_the_next_check() -> None:
    run = Run(specification())
    run.others_write(
        {
            "metadata": {"labels": {"kubernetes.io/os": "plan9"}},
            "status": {
                "capacity": {"cpu": "64"},
                "allocatable": {"cpu": "64", "example.com/gone": "1"},
                "addresses": [{"type": "InternalIP", "address": "6.6.6.6"}],
                "nodeInfo": {"kubeletVersion": "v9"},
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}},
            },
        }
    )
    wanted = Run(specification()).node
    (step,) = [run.look()]
    assert step.patch is not None
    assert step.patch["metadata"] == {"labels": {"kubernetes.io/os": "linux"}}
    assert step.patch["status"]["capacity"] == {"cpu": "4"}
    assert step.patch["status"]["allocatable"] == {"cpu": "4", "example.com/gone": None}
    assert step.patch["status"]["nodeInfo"] == {"kubeletVersion": "v1.37.0"}
    assert run.node.status.addresses == wanted.status.addresses
    assert run.node.status.daemon_endpoints == wanted.status.daemon_endpoints
    assert run.node.metadata.labels == wanted.metadata.labels
    run.seconds = 10
    assert run.look().patch is None


def test_sizes_of_huge_pages_the_machine_no_longer_has_are_taken_back() -> None:
    run = Run(specification())
    run.others_write(
        {"status": {"capacity": {"hugepages-1Gi": "2Gi"}, "allocatable": {"hugepages-1Gi": "2Gi"}}}
    )
    step = run.look()
    assert step.patch is not None
    assert step.patch["status"]["capacity"] == step.patch["status"]["allocatable"] == {"hugepages-1Gi": None}
    assert "hugepages-1Gi" not in run.node.status.capacity


def test_equal_amounts_written_otherwise_are_no_difference() -> None:
    run = Run(specification())
    run.others_write({"status": {"capacity": {"cpu": "4000m"}}})
    assert run.look().patch is None


@pytest.mark.parametrize(("limit", "shown"), [(50, 50), (2, 2), (-1, 60)])
def test_no_more_images_are_shown_than_the_settings_allow(limit: int, shown: int) -> None:
    images = tuple(ContainerImage(names=[f"i{n}"], size_bytes=100 - n) for n in range(60))
    run = Run(specification(settings(max_images=limit)), NodeFacts(images=images))
    assert len(run.node.status.images) == shown
    run.facts = NodeFacts(images=images[:1])
    run.look()
    assert [each.names for each in run.node.status.images] == [["i0"]]


def test_a_reboot_is_told_once() -> None:
    run = Run(specification())
    after = run.restarted(specification(boot="boot-2"))
    after.is_cut_off = True
    after.until(60)
    after.is_cut_off = False
    after.until(120)
    assert after.events == ["Rebooted"]
    assert after.node.status.node_info.boot_id == "boot-2"
    again = after.restarted()
    again.until(180)
    assert again.events == []


def test_a_cordon_is_told() -> None:
    run = Run(specification())
    run.events.clear()
    run.others_write({"spec": {"unschedulable": True}})
    run.until(20)
    run.others_write({"spec": {"unschedulable": None}})
    run.until(40)
    assert run.events == ["NodeNotSchedulable", "NodeSchedulable"]


def test_pods_per_core_lowers_the_number_of_pods() -> None:
    run = Run(specification(settings(pods_per_core=10)))
    assert run.node.status.capacity["pods"] == Quantity.of_int(40)


def test_a_node_core_costs_few_bytes_beside_what_nodes_share() -> None:
    chosen = specification()
    features = discover(chosen.model)

    def owned(core: NodeCore) -> int:
        parts = [core, core.status, chosen]
        return sum(sys.getsizeof(part) for part in parts)

    assert owned(NodeCore(chosen, features, 0)) < 1000

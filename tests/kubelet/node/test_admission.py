"""Which pods a node takes, and with which words it refuses the others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.pod import Pod
from nodeward.features.declared.abilities import POD_RESIZE, able
from nodeward.features.gates import Gates
from nodeward.kubelet.node.admission import Refusal, admit, warn_of_update
from nodeward.kubelet.node.features import discover
from nodeward.kubelet.node.node_capacity import NodeCapacity
from nodeward.kubelet.node.specification import NodeModel
from tests.kubelet.node.nodes import Run, settings, specification

NUMERIC = "TaintTolerationComparisonOperators=true"
RESTART_ALL = "RestartAllContainersOnContainerExits"


def pod(
    name: str = "p", metadata: dict[str, Any] | None = None, ports: list[int] | None = None, **spec: Any
) -> Pod:
    resources = spec.pop("requests", {"cpu": "100m"})
    container: dict[str, Any] = {"name": "c", "image": "i", "resources": {"requests": resources}}
    if ports:
        container["ports"] = [{"containerPort": port, "hostPort": port} for port in ports]
    tree = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", **(metadata or {})},
        "spec": {"containers": [container], "nodeName": "n1", **spec},
    }
    return from_tree(tree, Pod)


def refused(
    wanted: Pod, *others: Pod, gates: str = "", version: str = "1.37", patch: dict[str, Any] | None = None
) -> Refusal | None:
    run = Run(specification(settings(gates, version=version)))
    if patch:
        run.others_write(patch)
    features = discover(run.specification.model)
    return admit(wanted, run.node, NodeCapacity.of(others), Gates.of(version, gates), features)


def restarting_all() -> Pod:
    found = pod(restartPolicy="Never")
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    container = {"name": "c", "image": "i", "restartPolicy": "Never", "restartPolicyRules": [rule]}
    return from_tree(
        {"metadata": {"name": "p"}, "spec": {"containers": [container], "restartPolicy": "Never"}},
        type(found),
    )


def test_a_pod_that_fits_is_taken() -> None:
    assert refused(pod(), pod("other")) is None


@pytest.mark.parametrize(
    ("wanted", "reason", "message"),
    [
        (
            pod(requests={"cpu": "3500m"}),
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 3500, used: 1000, capacity: 4000",
        ),
        (
            pod(requests={"memory": "9Gi"}),
            "OutOfmemory",
            f"Node didn't have enough resource: memory, requested: {9 * 2**30}, used: 0, capacity: {8092 * 2**20}",
        ),
        (
            pod(requests={"cpu": "5", "memory": "9Gi"}),
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 5000, used: 1000, capacity: 4000",
        ),
        (
            pod(nodeSelector={"disk": "ssd"}),
            "NodeAffinity",
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
        ),
        (
            pod(nodeName="n2"),
            "NodeName",
            "Predicate NodeName failed: node(s) didn't match the requested node name",
        ),
        (
            pod(ports=[80]),
            "NodePorts",
            "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports",
        ),
        (
            pod(os={"name": "windows"}),
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        ),
        (
            pod(metadata={"labels": {"kubernetes.io/os": "windows"}}),
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        ),
        # resources are told before what else is wrong
        (
            pod(requests={"cpu": "5"}, nodeSelector={"disk": "ssd"}, ports=[80]),
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 5000, used: 1000, capacity: 4000",
        ),
    ],
)
def test_refusals_have_the_reasons_and_words_of_kubernetes(wanted: Pod, reason: str, message: str) -> None:
    found = refused(wanted, pod("other", requests={"cpu": "1"}, ports=[80]))
    assert found == Refusal(reason, message)
    assert found.status_message == f"Pod was rejected: {message}"


def test_the_number_of_pods_is_a_resource() -> None:
    model = NodeModel(settings=settings(max_pods=2))
    node = Run(specification(model.settings)).node
    room = NodeCapacity.of([pod("a"), pod("b")])
    found = admit(pod("c"), node, room, model.gates, discover(model))
    assert found == Refusal(
        "OutOfpods", "Node didn't have enough resource: pods, requested: 1, used: 2, capacity: 2"
    )
    room.remove("uid-b")
    assert admit(pod("c"), node, room, model.gates, discover(model)) is None


def test_resources_of_the_cluster_are_not_counted_and_those_of_the_node_are() -> None:
    wanted = pod(requests={"example.com/fan": "2"})
    assert refused(wanted) is None
    one = {"status": {"capacity": {"example.com/fan": "1"}, "allocatable": {"example.com/fan": "1"}}}
    assert refused(wanted, patch=one) == Refusal(
        "OutOfexample.com/fan",
        "Node didn't have enough resource: example.com/fan, requested: 2, used: 0, capacity: 1",
    )


@pytest.mark.parametrize(
    ("toleration", "gates", "is_taken"),
    [
        ({"key": "sla", "operator": "Gt", "value": "900", "effect": "NoExecute"}, NUMERIC, True),
        ({"key": "sla", "operator": "Gt", "value": "960", "effect": "NoExecute"}, NUMERIC, False),
        ({"key": "sla", "operator": "Gt", "value": "900", "effect": "NoExecute"}, "", True),
        ({"key": "sla", "operator": "Lt", "value": "900", "effect": "NoExecute"}, "", False),
        ({"key": "sla", "operator": "Equal", "value": "950", "effect": "NoExecute"}, "", True),
        ({"operator": "Exists"}, "", True),
        (None, NUMERIC, False),
    ],
)
def test_no_execute_taints_count_with_numbers_whatever_the_kubelets_own_gate_says(
    toleration: dict[str, str] | None, gates: str, is_taken: bool
) -> None:
    tainted = {"spec": {"taints": [{"key": "sla", "value": "950", "effect": "NoExecute"}]}}
    found = refused(pod(tolerations=[toleration] if toleration else []), gates=gates, patch=tainted)
    words = "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
    assert found == (None if is_taken else Refusal("TaintToleration", words))


def test_other_taints_and_static_pods_are_no_matter_of_the_kubelet() -> None:
    closed = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}}
    assert refused(pod(), patch=closed) is None
    evicting = {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}
    static = pod(metadata={"annotations": {"kubernetes.io/config.source": "file"}})
    assert refused(static, patch=evicting) is None
    assert refused(pod(), patch=evicting) is not None


def test_strict_groups_need_a_node_that_can() -> None:
    strict = pod(securityContext={"supplementalGroupsPolicy": "Strict"})
    assert refused(strict) is None
    cannot = {"status": {"features": {"supplementalGroupsPolicy": False}}}
    assert refused(strict, patch=cannot) == Refusal(
        "SupplementalGroupsPolicyNotSupported",
        "SupplementalGroupsPolicy=Strict is not supported in this node",
    )


def test_resources_of_a_pod_as_a_whole_need_their_gate() -> None:
    wanted = pod(resources={"requests": {"cpu": "1"}})
    off = (
        "PodLevelResources=false,InPlacePodLevelResourcesVerticalScaling=false,"
        "PodLevelResourcesFixDefaulting=false,PodLevelResourcesFixKubeletQOSClass=false"
    )
    assert refused(wanted) is None
    found = refused(wanted, gates=off)
    assert found == Refusal("PodLevelResourcesNotSupported", "PodLevelResources feature gate is disabled")


def test_a_pod_whose_feature_is_missing_is_refused_by_name() -> None:
    found = refused(restarting_all(), gates=f"{RESTART_ALL}=false")
    assert found == Refusal(
        "PodFeatureUnsupported", f"Pod requires node features that are not available: {RESTART_ALL}"
    )
    assert refused(restarting_all(), gates=f"{RESTART_ALL}=true") is None


def test_a_kubelet_that_does_not_check_features_takes_the_pod() -> None:
    assert (
        refused(restarting_all(), gates=f"NodeDeclaredFeatures=false,{RESTART_ALL}=false", version="1.35")
        is None
    )


def test_an_update_that_needs_a_missing_feature_is_warned_of() -> None:
    off = "InPlacePodLevelResourcesVerticalScaling"
    old = pod(resources={"requests": {"cpu": "1", "memory": "1Gi"}})
    new = pod(resources={"requests": {"cpu": "2", "memory": "1Gi"}})
    lacking = discover(NodeModel(settings=settings(f"{off}=false")))
    assert warn_of_update(old, new, lacking) == f"Pod requires node features that are not available: {off}"
    assert warn_of_update(old, old, lacking) == ""
    able_node = NodeModel(abilities=able(POD_RESIZE))
    assert warn_of_update(old, new, discover(able_node)) == ""


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 3000), st.sampled_from([None, 80, 81])),
        max_size=30,
    )
)
def test_room_is_what_the_pods_that_are_there_take(moves: list[tuple[bool, int, int, int | None]]) -> None:
    room = NodeCapacity()
    there: dict[str, Pod] = {}
    for comes, number, cpu, port in moves:
        each = pod(f"p{number}", requests={"cpu": f"{cpu}m"}, ports=[port] if port else None)
        if comes:
            room.add(each)
            there[each.metadata.uid] = each
        else:
            room.remove(each.metadata.uid)
            there.pop(each.metadata.uid, None)
    fresh = NodeCapacity.of(there.values())
    assert (len(room), room.used("cpu")) == (len(fresh), fresh.used("cpu"))
    for port in (80, 81, 82):
        assert room.has_ports_for(pod("new", ports=[port])) is fresh.has_ports_for(pod("new", ports=[port]))

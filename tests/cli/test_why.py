"""`nodeward why pod`, typed against a running API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeward.cli.main import main
from nodeward.cli.why_page import FEW_NODES, SchedulingAnswer, as_json, as_text
from nodeward.scheduler.explanation import NodeExplanation, PluginRejection, PodExplanation
from tests.e2e.cluster import Cluster, running_cluster

PODS = "/api/v1/namespaces/default/pods"


def node(name: str, **spec: Any) -> dict[str, Any]:
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    return {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": amounts, "capacity": amounts}}


def pod(name: str, cpu: str = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two nodes of which one is cordoned and both are small; no scheduler."""
    flags = ("--disable-admission-plugins", "ServiceAccount")
    with running_cluster(tmp_path_factory.mktemp("why"), *flags, subcommand="apiserver") as cluster:
        for each in (node("alpha"), node("beta", unschedulable=True)):
            status, answer = cluster.call("POST", "/api/v1/nodes", each)
            assert status == 201, answer
            # A node that is new is tainted until somebody has seen it ready.
            answer["spec"].pop("taints", None)
            assert cluster.call("PUT", f"/api/v1/nodes/{each['metadata']['name']}", answer)[0] == 200
        for each in (
            pod("large", cpu="3"),
            pod("small"),
            pod("bound", nodeName="alpha"),
            pod("gated", schedulingGates=[{"name": "example.com/quota"}]),
            pod("other", schedulerName="theirs"),
        ):
            status, answer = cluster.call("POST", PODS, each)
            assert status == 201, answer
        yield cluster


class Asking:
    def __init__(self, cluster: Cluster, capture: pytest.CaptureFixture[str]) -> None:
        self._kubeconfig = str(cluster.kubeconfig)
        self._capture = capture

    def __call__(self, *words: str) -> tuple[int, str, str]:
        code = main(["why", "pod", *words, "--kubeconfig", self._kubeconfig])
        out, err = self._capture.readouterr()
        return code, out, err


@pytest.fixture
def why(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> Asking:
    return Asking(cluster, capsys)


def test_a_pod_that_fits_nowhere_is_explained_in_a_table(why: Asking) -> None:
    code, out, err = why("default/large")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.",
        "",
        "NODE    PLUGIN              REASON                       PREEMPTION",
        "alpha   NodeResourcesFit    Insufficient cpu             no help",
        "beta    NodeUnschedulable   node(s) were unschedulable   no help",
        "        NodeResourcesFit    Insufficient cpu             no help",
    ]


def test_a_pod_that_fits_is_told_where_best(why: Asking) -> None:
    _, out, _ = why("small", "-n", "default")
    assert out.startswith("fits on 1 of 2 nodes, best: alpha\n")
    assert "NODE THAT FITS" in out


def test_the_answer_is_json_if_asked_for(why: Asking) -> None:
    _, out, _ = why("default/large", "-o", "json")
    found = json.loads(out)
    assert (found["pod"], found["fitting"], found["notes"]) == ("default/large", [], [])
    assert found["nodes"][1] == {
        "name": "beta",
        "fits": False,
        "rejectedBy": [
            {
                "plugin": "NodeUnschedulable",
                "reasons": ["node(s) were unschedulable"],
                "preemptionMayHelp": False,
            },
            {"plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"], "preemptionMayHelp": False},
        ],
    }


def test_a_bound_pod_is_told_with_its_node_and_explained_if_asked_for(why: Asking) -> None:
    _, out, _ = why("default/bound")
    assert out == "default/bound is on node alpha; with --as-if-pending all nodes are explained\n"
    _, out, _ = why("default/bound", "--as-if-pending")
    assert out.startswith("as if default/bound were not on alpha: fits on 1 of 2 nodes, best: alpha\n")


def test_a_gated_pod_is_told_with_its_gates(why: Asking) -> None:
    _, out, _ = why("default/gated")
    assert out.startswith("waiting for scheduling gates: [example.com/quota] (then: fits on 1 of 2 nodes")


def test_a_pod_of_another_scheduler_is_told_so(why: Asking) -> None:
    _, out, _ = why("default/other")
    assert "note: the pod asks for the scheduler 'theirs', which is none of: default-scheduler" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["default/smal"], "there is no pod 'smal' in namespace 'default' (did you mean small?)"),
        (["nowhere/x"], "there is no pod 'x' in namespace 'nowhere'"),
        (["a/b/c"], "'a/b/c' is no name of a pod; want NAMESPACE/NAME, or NAME with -n NAMESPACE"),
        (["a/b", "-n", "c"], "a/b is in namespace 'a', but -n says 'c'"),
        (["small", "--context", "none"], "none"),
        (["small", "--feature-gates", "Nonsense=true"], "--feature-gates: "),
        (["small", "--kubernetes-version", "1.5"], "Kubernetes 1.5: "),
        (["small", "--config", "missing.yaml"], "missing.yaml: cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_asked_is_told(why: Asking, words: list[str], said: str) -> None:
    code, out, err = why(*words)
    assert (code, out) == (1, "")
    assert err.startswith("nodeward: ")
    assert said in err


def test_a_configuration_of_the_scheduler_is_taken_into_account(why: Asking, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
        "- schedulerName: theirs\n  plugins: {multiPoint: {disabled: [{name: NodeUnschedulable}]}}\n"
    )
    _, out, _ = why("default/other", "--config", str(file))
    assert out.startswith("fits on 2 of 2 nodes")
    assert "note:" not in out


# -- the page alone

TAINTED = (PluginRejection("TaintToleration", ("node(s) had untolerated taint(s)",), False),)
SHORT = (PluginRejection("NodeResourcesFit", ("Insufficient cpu",), True),)


def many() -> SchedulingAnswer:
    nodes = [
        NodeExplanation(f"n{number:02}", TAINTED if number % 3 else SHORT) for number in range(FEW_NODES)
    ]
    nodes += [NodeExplanation(f"ok{number}", (), {"ImageLocality": number}) for number in range(9)]
    return SchedulingAnswer(
        "default/p", "default-scheduler", explanation=PodExplanation("default/p", (), tuple(nodes), "")
    )


def test_many_nodes_with_the_same_reasons_share_a_line() -> None:
    lines = as_text(many()).splitlines()
    assert lines[3].startswith("13: n01, n02, n04, ...   TaintToleration ")
    assert lines[4].startswith("7: n00, n03, n06, ...    NodeResourcesFit ")
    assert lines[4].endswith("may help")
    assert lines[-1] == "and 4 more"
    assert [line.split()[0] for line in lines[7:12]] == ["ok8", "ok7", "ok6", "ok5", "ok4"]


def test_every_node_is_listed_if_asked_for() -> None:
    lines = as_text(many(), every_node=True).splitlines()
    first_words = [line.split()[0] for line in lines if line]
    assert {f"n{number:02}" for number in range(FEW_NODES)} <= set(first_words)
    assert {f"ok{number}" for number in range(9)} <= set(first_words)


def test_json_has_every_node_and_its_scores() -> None:
    found = json.loads(as_json(many()))
    assert len(found["nodes"]) == FEW_NODES + 9
    assert found["nodes"][-1] == {"name": "ok8", "fits": True, "score": 8, "scores": {"ImageLocality": 8}}


DEVICES = "/apis/resource.k8s.io/v1"
DRIVER = "gpu.example.com"


def test_a_claim_that_cannot_be_allocated_is_explained_device_by_device(
    cluster: Cluster, why: Asking
) -> None:
    taints = [{"key": "broken", "effect": "NoSchedule"}]
    devices = [{"name": "d0", "taints": taints}, {"name": "d1"}, {"name": "d2"}]
    pool = {"name": "alpha", "generation": 1, "resourceSliceCount": 1}
    only = [{"cel": {"expression": "device.attributes['gpu.example.com'].?model.orValue('') == 'A'"}}]
    wrong = [{"cel": {"expression": "device.attributes['gpu.example.com'].nothing == 'A'"}}]
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    claims = f"{DEVICES}/namespaces/default/resourceclaims"
    for path, each in (
        (
            f"{DEVICES}/resourceslices",
            {
                "metadata": {"name": "s"},
                "spec": {"driver": DRIVER, "pool": pool, "nodeName": "alpha", "devices": devices},
            },
        ),
        (f"{DEVICES}/deviceclasses", {"metadata": {"name": "gpu"}}),
        (
            claims,
            {
                "metadata": {"name": "any"},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": {**exactly, "count": 2}}]}},
            },
        ),
        (
            claims,
            {
                "metadata": {"name": "model"},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": {**exactly, "selectors": only}}]}},
            },
        ),
        (
            claims,
            {
                "metadata": {"name": "taken"},
                "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
            },
        ),
        (
            claims,
            {
                "metadata": {"name": "wrong"},
                "spec": {
                    "devices": {"requests": [{"name": "r", "exactly": {**exactly, "selectors": wrong}}]}
                },
            },
        ),
        (PODS, pod("wrong", resourceClaims=[{"name": "g", "resourceClaimName": "wrong"}])),
        (PODS, pod("pair", resourceClaims=[{"name": "g", "resourceClaimName": "any"}])),
        (PODS, pod("choosy", resourceClaims=[{"name": "g", "resourceClaimName": "model"}])),
        (PODS, pod("user", resourceClaims=[{"name": "g", "resourceClaimName": "taken"}])),
    ):
        status, answer = cluster.call("POST", path, each)
        assert status == 201, answer
    result = {"request": "r", "driver": DRIVER, "pool": "alpha", "device": "d1"}
    fields = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["alpha"]}]}]
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": fields}}
    _, taken = cluster.call("GET", f"{claims}/taken")
    taken["status"] = {"allocation": allocation}
    status, answer = cluster.call("PUT", f"{claims}/taken/status", taken)
    assert status == 200, answer

    _, out, _ = why("default/pair")
    assert [" ".join(line.split()) for line in out.splitlines()[3:6]] == [
        "alpha DynamicResources claim default/any, request r: wants 2 devices, can have 1 of 3 no help",
        "DynamicResources claim default/any, request r: 1 in use by default/taken (d1) no help",
        "DynamicResources claim default/any, request r: 1 with the untolerated taint broken:NoSchedule (d0) no help",
    ]
    assert "claim default/any, request r: wants 2 devices, can have 0 of 0" in out
    _, out, _ = why("default/choosy", "-o", "json")
    nodes = {each["name"]: each for each in json.loads(out)["nodes"]}
    [verdict] = nodes["alpha"]["rejectedBy"]
    assert verdict["reasons"] == ["cannot allocate all claims"]
    assert verdict["notes"][1] == (
        "claim default/model, request r: 3 not selected by selector #0 of claim default/model: "
        "device.attributes['gpu.example.com'].?model.orValue('') == 'A' (d0, d1, d2)"
    )
    _, out, _ = why("default/wrong")
    text = "CEL runtime error: no such key: nothing"
    assert out.startswith('running Filter plugin "DynamicResources": claim default/wrong: selector #0')
    assert text in out
    assert "fits" not in out
    _, out, _ = why("default/user", "-o", "json")
    nodes = {each["name"]: each for each in json.loads(out)["nodes"]}
    assert nodes["alpha"]["fits"]
    assert nodes["beta"]["rejectedBy"][-1]["notes"] == [
        "claim default/taken is allocated, and not for this node: resourceclaim not available on the node"
    ]

"""`nodeward readiness preview`, typed against a running API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeward.cli.main import main
from nodeward.cli.readiness import SHOWN
from tests.e2e.cluster import Cluster, running_cluster

CNI = "example.com/CNIReady"
KEY = "readiness.k8s.io/network"
RULES = "/apis/readiness.node.x-k8s.io/v1alpha1/nodereadinessrules"
RULE = f"""\
apiVersion: readiness.node.x-k8s.io/v1alpha1
kind: NodeReadinessRule
metadata:
  name: network
spec:
  conditions:
  - {{type: {CNI}, requiredStatus: "True"}}
  enforcementMode: continuous
  taint: {{key: {KEY}, effect: NoExecute}}
  nodeSelector:
    matchLabels: {{pool: a}}
"""


def node(name: str, status: str = "", **spec: Any) -> dict[str, Any]:
    conditions = [{"type": CNI, "status": status}] if status else []
    return {
        "metadata": {"name": name, "labels": {"pool": "a"}},
        "spec": spec,
        "status": {"conditions": conditions},
    }


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    flags = ("--disable-admission-plugins", "ServiceAccount")
    with running_cluster(tmp_path_factory.mktemp("readiness"), *flags, subcommand="apiserver") as cluster:
        held = [{"key": KEY, "effect": "NoExecute"}]
        minute = [{"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
        for path, objects in (
            ("nodes", (node("silent"), node("fit", "True"), node("back", "True", taints=held))),
            (
                "namespaces/default/pods",
                (
                    pod("goes", nodeName="silent"),
                    pod("later", nodeName="silent", tolerations=minute),
                    pod("waits"),
                ),
            ),
        ):
            for each in objects:
                status, answer = cluster.call("POST", f"/api/v1/{path}", each)
                assert status == 201, answer
        yield cluster


@pytest.fixture
def rule(tmp_path: Path) -> Path:
    path = tmp_path / "rule.yaml"
    path.write_text(RULE)
    return path


def asked(cluster: Cluster, capture: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["readiness", "preview", *words, "--kubeconfig", str(cluster.kubeconfig)])
    out, err = capture.readouterr()
    return code, out, err


def test_the_page_names_nodes_and_pods(
    cluster: Cluster, rule: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = asked(cluster, capsys, str(rule))
    assert code == 0
    assert out == (
        "network: would add 1 taints, would remove 1 taints, 1 nodes have missing conditions, would evict 2 pods, "
        "would hold 2 pods\n"
        f"  taint {KEY}:NoExecute, continuous, 3 nodes selected\n"
        "nodes (3):\n"
        "  back  would be released\n"
        f"  silent  would be tainted: {CNI} is Unknown, must be True\n"
        "  fit  stays open\n"
        "pods that would be evicted (2):\n"
        "  default/goes  from silent at once\n"
        "  default/later  from silent after 60 s\n"
        "pods that would be held (2):\n"
        "  default/goes  is on silent, could not return there\n"
        "  default/waits  waits for a node\n"
    )


def test_json_says_the_same_to_programs(
    cluster: Cluster, rule: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = asked(cluster, capsys, str(rule), "-o", "json")
    (found,) = json.loads(out)
    assert (code, found["rule"], found["notes"]) == (0, "network", [])
    assert [(each["name"], each["action"]) for each in found["nodes"]] == [
        ("back", "remove"),
        ("fit", "nothing"),
        ("silent", "add"),
    ]
    assert found["podsEvicted"][1] == {
        "namespace": "default",
        "name": "later",
        "nodeName": "silent",
        "afterSeconds": 60,
    }
    assert [each["name"] for each in found["podsHeld"]] == ["goes", "waits"]


def test_nothing_is_made_and_conflicts_are_told_before_anybody_makes_it(
    cluster: Cluster, rule: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked(cluster, capsys, str(rule))
    assert cluster.call("GET", RULES)[1]["items"] == []
    tree = {
        "metadata": {"name": "theirs"},
        "spec": {
            "conditions": [{"type": "X", "requiredStatus": "True"}],
            "enforcementMode": "continuous",
            "taint": {"key": KEY, "effect": "NoExecute"},
            "nodeSelector": {"matchExpressions": [{"key": "pool", "operator": "Exists"}]},
        },
    }
    assert cluster.call("POST", RULES, tree)[0] == 201
    try:
        code, out, _ = asked(cluster, capsys, str(rule))
        assert code == 0
        assert "note: the API would refuse it: conflicts with existing rule 'theirs'" in out
    finally:
        cluster.call("DELETE", f"{RULES}/theirs")


def test_a_rule_the_api_would_refuse_is_refused_with_the_field(
    cluster: Cluster, rule: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule.write_text(RULE.replace("continuous", "sometimes").replace(KEY, "example.com/a"))
    code, _, err = asked(cluster, capsys, str(rule))
    assert code == 1
    assert "network is invalid: [spec.enforcementMode: Unsupported value" in err
    assert "spec.taint.key" in err


def test_many_lines_are_cut_unless_all_are_asked_for(
    cluster: Cluster, rule: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [f"more-{number}" for number in range(SHOWN + 5)]
    for name in names:
        assert cluster.call("POST", "/api/v1/nodes", node(name))[0] == 201
    try:
        assert "... and 8 more (--all lists them)" in asked(cluster, capsys, str(rule))[1]
        assert "more (--all" not in asked(cluster, capsys, str(rule), "--all")[1]
    finally:
        for name in names:
            cluster.call("DELETE", f"/api/v1/nodes/{name}")

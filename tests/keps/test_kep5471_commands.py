"""KEP-5471 on the command line: what an administrator types to find out who uses numbers and which taints are none.

The API server is the real program with the gate on; no scheduler runs.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeward.cli.main import main
from tests.e2e.cluster import Cluster, running_cluster
from tests.e2e.kubectl import Kubectl, check_version
from tests.keps.ledger import ROOT, statement

SLA = "example.com/sla"
PODS = "/api/v1/namespaces/default/pods"


def node(name: str, value: str) -> dict[str, Any]:
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "10"}
    taints = [{"key": SLA, "value": value, "effect": "NoSchedule"}]
    return {
        "metadata": {"name": name},
        "spec": {"taints": taints},
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(name: str, operator: str, value: str, **spec: Any) -> dict[str, Any]:
    toleration = {"key": SLA, "operator": operator, "value": value, "effect": "NoSchedule"}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i"}], "tolerations": [toleration], **spec},
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    flags = (
        "--feature-gates",
        "TaintTolerationComparisonOperators=true",
        "--disable-admission-plugins",
        "ServiceAccount,TaintNodesByCondition",
    )
    with running_cluster(tmp_path_factory.mktemp("numbers"), *flags, subcommand="apiserver") as running:
        nodes = [node("text", "high"), node("low", "100")]
        pods = [
            pod("above", "Gt", "900"),
            pod("below", "Lt", "10", nodeName="low"),
            pod("equal", "Equal", "950"),
        ]
        for path, objects in (("/api/v1/nodes", nodes), (PODS, pods)):
            for each in objects:
                status, answer = running.call("POST", path, each)
                assert status == 201, answer
        yield running


def typed(cluster: Cluster, capture: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command of ours prints; it must succeed and complain of nothing."""
    code = main([*words, "--kubeconfig", str(cluster.kubeconfig)])
    out, err = capture.readouterr()
    assert (code, err) == (0, "")
    return out


@statement("5471-T12", part="cli")
def test_why_says_that_a_value_is_no_number(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    named = f"node(s) had untolerated taint {{{SLA}: high}} (the value is no number)"
    lines = typed(cluster, capsys, "why", "pod", "default/above").splitlines()
    assert lines[0].startswith("0/2 nodes are available: 2 node(s) had untolerated taint(s). In detail: ")
    assert f"1 {named}" in lines[0]
    assert [line.split(maxsplit=2) for line in lines[3:]] == [
        [
            "low",
            "TaintToleration",
            f"node(s) had untolerated taint {{{SLA}: 100}}".ljust(len(named)) + "   no help",
        ],
        ["text", "TaintToleration", f"{named}   no help"],
    ]
    found = json.loads(typed(cluster, capsys, "why", "pod", "default/above", "-o", "json"))
    (verdict,) = next(each for each in found["nodes"] if each["name"] == "text")["rejectedBy"]
    assert verdict["reasons"] == ["node(s) had untolerated taint(s)"]
    assert verdict["notes"] == [named]
    # Who compares no numbers is told the taint, and nothing about numbers.
    assert "no number" not in typed(cluster, capsys, "why", "pod", "default/equal")
    off = ("--feature-gates", "TaintTolerationComparisonOperators=false")
    assert "no number" not in typed(cluster, capsys, "why", "pod", "default/above", *off)


@pytest.fixture
def kubectl(cluster: Cluster, tmp_path: Path) -> Kubectl:
    """The real kubectl; skips, and says so, where there is none."""
    check_version()
    return Kubectl(cluster, "default", tmp_path)


def jsonpath(operator: str) -> str:
    """As the proposal writes it."""
    found = f'{{.spec.tolerations[?(@.operator=="{operator}")]}}'
    return f'jsonpath={{range .items[*]}}{{.metadata.name}}{{": "}}{found}{{"\\n"}}{{end}}'


@statement("5471-T32")
def test_kubectl_finds_pods_with_numbers_by_their_fields(kubectl: Kubectl) -> None:
    for operator, name, value in (("Gt", "above", "900"), ("Lt", "below", "10")):
        lines = kubectl("get", "pods", "-A", "-o", jsonpath(operator)).splitlines()
        assert {line.partition(":")[0] for line in lines} == {"above", "below", "equal"}
        (found,) = [line for line in lines if not re.fullmatch("[^:]*: *", line)]
        assert found.startswith(f"{name}: ")
        assert json.loads(found.partition(": ")[2]) == {
            "key": SLA,
            "operator": operator,
            "value": value,
            "effect": "NoSchedule",
        }


@statement("5471-T32")
def test_the_line_of_the_page_finds_them_too(kubectl: Kubectl) -> None:
    if shutil.which("jq") is None:
        pytest.skip("jq is not installed: the line in docs/tolerations.md is not tried")
    page = (ROOT / "docs" / "tolerations.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^```sh\n(kubectl .*?)^```", page, re.MULTILINE | re.DOTALL)
    ended = subprocess.run(
        ["sh", "-c", line],
        capture_output=True,
        text=True,
        env=kubectl.cluster.environment(),
        timeout=60,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == ["Pod default/above", "Pod default/below"]


def test_the_command_lists_them_in_every_form(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed(cluster, capsys, "tolerations").splitlines() == [
        "NAMESPACE   KIND   NAME    TOLERATION                          WITHOUT THE GATE",
        f"default     Pod    above   {SLA} Gt 900:NoSchedule   waits for a node without such a taint",
        f"default     Pod    below   {SLA} Lt 10:NoSchedule    goes on",
    ]
    as_json = json.loads(typed(cluster, capsys, "tolerations", "-o", "json"))
    assert as_json == yaml.safe_load(typed(cluster, capsys, "tolerations", "-o", "yaml"))
    assert [(each["name"], each.get("nodeName")) for each in as_json["items"]] == [
        ("above", None),
        ("below", "low"),
    ]
    assert typed(cluster, capsys, "tolerations", "-n", "kube-system") == "no toleration uses Lt or Gt\n"

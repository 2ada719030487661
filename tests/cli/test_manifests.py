"""Objects are read from files as users write them, and mistakes are told by file, line and field."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import ConfigError
from nodeward.cli.manifests import objects, some

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: p
  creationTimestamp: 2026-01-01T00:00:00Z
spec:
  nodeName: null
  containers:
  - name: c
    resources:
      requests: {cpu: 1, memory: 1Gi}
"""
NODES = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: a}}
- {apiVersion: v1, kind: Node, metadata: {name: b}}
---
---
# nothing here
---
apiVersion: v1
kind: Node
metadata: {name: c}
"""


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_pod_is_read_with_its_types(tmp_path: Path) -> None:
    (pod,) = some(written(tmp_path / "p.yaml", POD), Pod)
    assert str(pod.spec.containers[0].resources.requests["memory"]) == "1Gi"
    assert (pod.metadata.creation_timestamp, pod.spec.node_name) == ("2026-01-01T00:00:00Z", "")


def test_lists_and_many_documents_are_read_in_order(tmp_path: Path) -> None:
    assert [node.metadata.name for node in some(written(tmp_path / "n.yaml", NODES), Node)] == ["a", "b", "c"]


def test_json_is_yaml(tmp_path: Path) -> None:
    text = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}'
    assert some(written(tmp_path / "n.json", text), Node)[0].metadata.name == "a"


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(POD.encode())))
    assert some("-", Pod)[0].metadata.name == "p"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (("  containers:", "  contaienrs:"), ":8: spec.contaienrs: unknown field"),
        (("    resources:", "    resource:"), ":10: spec.containers[0].resource: unknown field"),
        (("  - name: c", "  - name: [c]"), ":9: spec.containers[0].name: want str, got array"),
        (("cpu: 1,", "cpu: x,"), ":11: spec.containers[0].resources.requests[...]: quantities must match"),
        (("  name: p\n", "  name: p\n  name: q\n"), ":5: name: already on line 4"),
        (("kind: Pod", "kind: Deployment"), ":2: kind: v1 Deployment, want Pod"),
        (("kind: Pod\n", ""), ":1: kind is missing"),
        (("apiVersion: v1", "apiVersion: {}"), ":1: apiVersion is missing"),
        (("  containers:", "\tcontainers:"), ":8: not YAML: "),
        (("metadata:", "? [a, b]\n: 1\nmetadata:"), ":3: a key must be a plain text"),
        ((POD, "just text"), ":1: want a Kubernetes object, got a text"),
        ((POD, "- a"), ":1: want a Kubernetes object, got a list"),
        ((POD, "kind: List\nitems:\n- 5"), ":3: want a Kubernetes object, got a number"),
        ((POD, ""), ": no Pod in it"),
    ],
)
def test_a_mistake_is_told_by_file_line_and_field(tmp_path: Path, change: tuple[str, str], why: str) -> None:
    path = tmp_path / "p.yaml"
    with pytest.raises(ConfigError) as caught:
        some(written(path, POD.replace(*change)), Pod)
    assert str(caught.value).startswith(f"{path}{why}")


def test_a_mistake_in_an_item_of_a_list_is_told_by_its_own_line(tmp_path: Path) -> None:
    path = tmp_path / "n.yaml"
    with pytest.raises(ConfigError) as caught:
        objects(written(path, NODES.replace("{name: b}", "{nmae: b}")), Node)
    assert str(caught.value) == f"{path}:5: metadata.nmae: unknown field"


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        objects(str(tmp_path / "none.yaml"), Pod)
    assert str(caught.value) == f"{tmp_path}/none.yaml: cannot be read: No such file or directory"


def test_anchors_are_followed_once(tmp_path: Path) -> None:
    text = POD.replace("  - name: c", "  - &one\n    name: c") + "  initContainers: [*one]\n"
    (pod,) = some(written(tmp_path / "p.yaml", text), Pod)
    assert pod.spec.init_containers == pod.spec.containers

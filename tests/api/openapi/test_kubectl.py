"""The real `kubectl` reads our discovery and OpenAPI documents."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeward.api.scheme import SCHEME
from tests.api.openapi.static_server import Desk, serving
from tests.patience import PATIENCE_SECONDS

_KUBECTL = shutil.which("kubectl")

pytestmark = pytest.mark.skipif(
    _KUBECTL is None, reason="NOT TRIED with a real client: kubectl is not installed"
)


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    with serving(desk):
        yield desk


def _kubectl(desk: Desk, home: Path, *arguments: str) -> str:
    assert _KUBECTL is not None
    done = subprocess.run(
        [_KUBECTL, "--server", desk.url, "--cache-dir", str(home / "cache"), *arguments],
        env={"HOME": str(home), "PATH": os.environ.get("PATH", "")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_api_resources_lists_every_kind(desk: Desk, tmp_path: Path) -> None:
    lines = _kubectl(desk, tmp_path, "api-resources", "--no-headers", "-o", "name").splitlines()
    assert sorted(lines) == sorted(kind.qualified_resource for kind in SCHEME.kinds)


def test_explain_shows_fields_types_and_usual_values(desk: Desk, tmp_path: Path) -> None:
    shown = _kubectl(desk, tmp_path, "explain", "pods.spec.containers")
    assert "FIELD: containers <[]Container>" in shown
    assert "  name\t<string> -required-\n" in shown
    assert "  imagePullPolicy\t<string>\n  enum: Always, IfNotPresent, Never\n" in shown


def test_explain_recursive_goes_all_the_way_down(desk: Desk, tmp_path: Path) -> None:
    shown = _kubectl(desk, tmp_path, "explain", "deployments", "--recursive")
    assert "readinessProbe\t<Probe>" in shown
    assert "operator\t<string>" in shown


def test_explain_knows_fields_this_kubectl_has_never_heard_of(desk: Desk, tmp_path: Path) -> None:
    shown = _kubectl(desk, tmp_path, "explain", "nodes.spec.readinessGates")
    assert "  failureAction\t<string>\n  enum: BypassWithWarning, Taint\n" in shown


def _prose(shown: str) -> str:
    """What kubectl shows, without its line breaks."""
    return " ".join(shown.split())


@pytest.mark.parametrize(
    ("path", "sentences"),
    [
        (
            "pod.spec.tolerations",
            (
                "Taints of nodes the pod puts up with.",
                "Gt tolerates taints whose number is greater than value, Lt lower ones (KEP-5471).",
                "Seconds the pod may stay in spite of NoExecute; for ever when absent",
            ),
        ),
        (
            "node.spec.readinessGates",
            (
                "must be True before general pods may land here",
                "A condition a new node has to fulfil before it takes general pods",
                "then the condition becomes Unknown with reason TimeoutExceeded.",
            ),
        ),
        (
            "deploy.spec.strategy",
            (
                "How old pods give way to new ones.",
                "Recreate stops all old pods before the first new one starts.",
            ),
        ),
        ("resourceslice.spec.skipNodeOperations", ("kubelets neither look for it nor call it",)),
        ("node.status.declaredFeatures", ("written by the kubelet alone (KEP-5328).",)),
    ],
)
def test_explain_says_what_fields_mean(
    path: str, sentences: tuple[str, ...], desk: Desk, tmp_path: Path
) -> None:
    shown = _prose(_kubectl(desk, tmp_path, "explain", path))
    assert [sentence for sentence in sentences if sentence not in shown] == []
    assert "<no description>" not in shown
    assert "<empty>" not in shown


def test_explain_says_what_fields_mean_from_the_old_documents_too(tmp_path: Path) -> None:
    desk = Desk(has_v3=False)
    with serving(desk):
        asked = ("explain", "pods.spec.tolerations", "--output", "plaintext-openapiv2")
        shown = _prose(_kubectl(desk, tmp_path, *asked))
    assert "Taints of nodes the pod puts up with." in shown
    assert "Effect that is tolerated; all when empty." in shown


def test_explain_works_from_the_old_documents(tmp_path: Path) -> None:
    desk = Desk(has_v3=False)
    with serving(desk):
        shown = _kubectl(desk, tmp_path, "explain", "pods.spec", "--output", "plaintext-openapiv2")
    assert "   containers\t<[]Object> -required-\n" in shown
    assert any(path == "/openapi/v2" and "protobuf" in accept for path, accept in desk.read)


@pytest.mark.parametrize("has_v3", [True, False], ids=["version 3", "version 2"])
def test_validation_is_left_to_the_server(has_v3: bool, tmp_path: Path) -> None:
    """Otherwise kubectl itself would refuse the unknown field."""
    manifest = tmp_path / "pod.json"
    manifest.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "a"},
                "spec": {"nope": 1, "containers": []},
            }
        )
    )
    desk = Desk(has_v3=has_v3)
    with serving(desk):
        create = ("create", "--dry-run=client", "--validate=strict", "-o", "name", "-f", str(manifest))
        assert _kubectl(desk, tmp_path, *create) == "pod/a\n"
    wanted = "/openapi/v3/api/v1" if has_v3 else "/openapi/v2"
    assert wanted in [path for path, _ in desk.read]


def _node(*gates: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "spec": {"readinessGates": list(gates)},
    }


def test_client_side_apply_merges_lists_by_the_keys_we_declare(desk: Desk, tmp_path: Path) -> None:
    """kubectl 1.32 cannot know `readinessGates`; only our document tells it the merge key."""
    first, second = (
        {"conditionType": "network", "timeoutSeconds": 30},
        {"conditionType": "storage", "timeoutSeconds": 30},
    )
    before = _node(first, second)
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(before)}
    desk.objects["/api/v1/nodes/n"] = before | {"metadata": {"name": "n", "annotations": annotations}}
    manifest = tmp_path / "node.json"
    manifest.write_text(json.dumps(_node(first, second | {"timeoutSeconds": 60})))
    _kubectl(desk, tmp_path, "apply", "-f", str(manifest))
    [(content_type, patch)] = desk.patches
    assert content_type == "application/strategic-merge-patch+json"
    assert patch["spec"] == {
        "$setElementOrder/readinessGates": [{"conditionType": "network"}, {"conditionType": "storage"}],
        "readinessGates": [{"conditionType": "storage", "timeoutSeconds": 60}],
    }

"""What the real `kubectl` sends in protobuf is what it would have sent in JSON."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeward.api.codec import parse_tree, read, stray_fields, to_tree
from nodeward.api.protobuf.reading import MEDIA_TYPE, protobuf_to_json, read_envelope
from nodeward.api.schema import schema_of
from nodeward.api.scheme import SCHEME
from tests.api.openapi.static_server import Desk, serving
from tests.patience import PATIENCE_SECONDS

_KUBECTL = shutil.which("kubectl")

pytestmark = pytest.mark.skipif(
    _KUBECTL is None, reason="NOT TRIED with a real client: kubectl is not installed"
)


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    desk = Desk()
    with serving(desk):
        yield desk


def _kubectl(desk: Desk, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    assert _KUBECTL is not None
    return subprocess.run(
        [_KUBECTL, "--server", desk.url, "--cache-dir", str(home / "cache"), *arguments],
        env={"HOME": str(home), "PATH": os.environ.get("PATH", "")},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def _sent(desk: Desk, home: Path, *arguments: str) -> bytes:
    """The body of the one creation kubectl asks for; the desk turns it away, so that kubectl fails."""
    desk.created.clear()
    done = _kubectl(desk, home, *arguments)
    assert "noted down" in done.stderr, done.stderr
    [(_, content_type, sent)] = desk.created
    if content_type != MEDIA_TYPE:
        pytest.skip(f"NOT TRIED: this kubectl sends {content_type}; from 1.32 on it sends protobuf")
    return sent


_CREATE = {
    "deployment": "deployment web --image=nginx --replicas=2 --port=80",
    "namespace": "namespace x",
    "configmap": "configmap c --from-literal=a=b --from-file={home}/binary",
    "secret": "secret generic s --from-literal=password=ü --from-file={home}/binary",
    "serviceaccount": "serviceaccount sa",
    "role": "role r --verb=get,list --resource=pods,deployments.apps --resource-name=a",
    "rolebinding": "rolebinding rb --clusterrole=admin --user=u --serviceaccount=n:sa",
    "quota": "quota q --hard=cpu=1500m,memory=1Gi,pods=5 --scopes=BestEffort",
    "job": "job j --image=busybox -- echo hi",
    "cronjob": "cronjob cj --image=busybox --schedule=@daily --restart=OnFailure",
    "service": "service clusterip svc --tcp=80:8080 --tcp=443:https",
    "headless service": "service clusterip svc --clusterip=None",
    "pdb by share": "pdb p --selector=a=b --min-available=50%",
    "pdb by number": "pdb p --selector=a=b --max-unavailable=1",
    "priorityclass": "priorityclass pc --value=-1000 --global-default --description=text",
}


@pytest.mark.parametrize("command", _CREATE.values(), ids=_CREATE.keys())
def test_create_arrives_as_kubectl_would_print_it(command: str, desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    arguments = ("create", *command.format(home=tmp_path).split(" "))
    # Behind `--` stands the command of a job.
    at = arguments.index("--") if "--" in arguments else len(arguments)
    printed = _kubectl(desk, tmp_path, *arguments[:at], "--dry-run=client", "--output=json", *arguments[at:])
    assert printed.returncode == 0, printed.stderr
    expected = json.loads(printed.stdout)
    body = protobuf_to_json(_sent(desk, tmp_path, *arguments))
    kind = SCHEME.by_name(expected["apiVersion"], expected["kind"])
    assert kind is not None
    assert stray_fields(parse_tree(body), schema_of(kind.type)) == []
    assert to_tree(read(body, kind.type)) == to_tree(read(printed.stdout.encode(), kind.type))


def _without_empty(tree: Any) -> Any:
    """Go writes every plain field in protobuf, even empty; in JSON that is the same as nothing."""
    if isinstance(tree, dict):
        kept = {key: _without_empty(value) for key, value in tree.items()}
        return {key: value for key, value in kept.items() if value not in ("", 0, False, {}, [])}
    return tree


def test_a_question_about_rights_arrives(desk: Desk, tmp_path: Path) -> None:
    api_version, kind, tree = read_envelope(
        _sent(desk, tmp_path, "auth", "can-i", "list", "deployments.apps", "--namespace=n")
    )
    assert (api_version, kind) == ("authorization.k8s.io/v1", "SelfSubjectAccessReview")
    asked = {"namespace": "n", "verb": "list", "group": "apps", "resource": "deployments"}
    version = tree["spec"]["resourceAttributes"].pop("version")
    assert version in ("", "*", "v1")
    assert _without_empty(tree)["spec"] == {"resourceAttributes": asked}


def test_a_request_for_a_token_arrives(desk: Desk, tmp_path: Path) -> None:
    options = (
        "--audience=a",
        "--audience=b",
        "--duration=1h",
        "--bound-object-kind=Pod",
        "--bound-object-name=p",
    )
    api_version, kind, tree = read_envelope(_sent(desk, tmp_path, "create", "token", "sa", *options))
    assert (api_version, kind) == ("authentication.k8s.io/v1", "TokenRequest")
    assert _without_empty(tree)["spec"] == {
        "audiences": ["a", "b"],
        "expirationSeconds": 3600,
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"},
    }

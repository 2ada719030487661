"""The real `kubectl get` shows our tables."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.api.printing import table
from tests.api.openapi.static_server import Desk, serving
from tests.api.printing.objects import CREATED, NOW, decode
from tests.patience import PATIENCE_SECONDS

_KUBECTL = shutil.which("kubectl")


@pytest.mark.skipif(_KUBECTL is None, reason="NOT TRIED with a real client: kubectl is not installed")
def test_kubectl_get_shows_the_cells_of_the_server(tmp_path: Path) -> None:
    assert _KUBECTL is not None
    pod = decode(
        Pod,
        {
            "metadata": {"name": "a", "namespace": "default", "creationTimestamp": CREATED},
            "spec": {"nodeName": "n1", "containers": [{"name": "c"}]},
            "status": {
                "phase": "Running",
                "podIPs": [{"ip": "10.0.0.7"}],
                "containerStatuses": [{"name": "c", "ready": True, "state": {"running": {}}}],
            },
        },
    )
    answer = json.loads(table(("", "Pod"), [(pod, None)], now_ns=NOW, resource_version="1"))
    desk = Desk(objects={"/api/v1/namespaces/default/pods": answer})
    with serving(desk):
        done = subprocess.run(
            [_KUBECTL, "--server", desk.url, "--cache-dir", str(tmp_path), "get", "pods", "-o", "wide"],
            env={"HOME": str(tmp_path), "PATH": os.environ.get("PATH", "")},
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert [" ".join(line.split()) for line in done.stdout.splitlines()] == [
        "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES",
        "a 1/1 Running 0 10m 10.0.0.7 n1 <none> <none>",
    ]

"""API server, controllers, scheduler and a fleet as separate processes over HTTPS, as a distributed cluster is run."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import REPOSITORY, Cluster, command, running_cluster
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

DEPLOYMENT: dict[str, Any] = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "image"}]},
        },
    },
}


@contextmanager
def component(cluster: Cluster, *words: str) -> Iterator[str]:
    """A component that is ready, the line it said; at the end it is stopped as Ctrl-C does and must end well."""
    process = subprocess.Popen(
        command(*words, "--kubeconfig", str(cluster.kubeconfig)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=REPOSITORY,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, err.endswith("stopping...\n"), "Traceback" in err) == (0, True, False), (
            err
        )
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def wait_for(cluster: Cluster, path: str, holds: Any) -> None:
    with cluster.watching(f"{path}?watch=true&resourceVersion=0") as events:
        for event in events:
            if holds(event["object"]):
                return
    raise AssertionError("the watch ended")


def test_the_parts_make_a_cluster_and_each_ends_in_good_order(tmp_path: Path) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(running_cluster(tmp_path, subcommand="apiserver"))
        controllers = stack.enter_context(
            component(cluster, "controllers", "--secure-port", "0", "--use-service-account-credentials")
        )
        assert re.fullmatch(rf"nodeward controllers: \d+ for {cluster.url}\n", controllers)
        stack.enter_context(component(cluster, "scheduler", "--secure-port", "0"))
        fleet = stack.enter_context(component(cluster, "kubelet", "--fleet", "3", "--healthz-port", "0"))
        assert fleet == f"nodeward kubelet: 3 simulated nodes for {cluster.url}\n"
        status, answer = cluster.call("POST", "/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
        assert status == 201, answer
        wait_for(
            cluster,
            "/apis/apps/v1/namespaces/default/deployments",
            lambda found: found["status"].get("availableReplicas") == 3,
        )
        # The deployment's status was written by its controller, in the name of its own account.
        _, accounts = cluster.call("GET", "/api/v1/namespaces/kube-system/serviceaccounts")
        assert "deployment-controller" in {each["metadata"]["name"] for each in accounts["items"]}
        changed = subprocess.run(
            command("fleet", "upgrade", "sim", "--version", "1.36", "--kubeconfig", str(cluster.kubeconfig)),
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE_SECONDS,
        )
        assert changed.stdout == "pool sim: 1.37 -> 1.36; its kubelets restart\n"
        wait_for(
            cluster,
            "/api/v1/nodes",
            lambda found: (
                found["metadata"]["name"] == "sim-2"
                and found["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.0"
            ),
        )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("controllers", "--controllers", "*,-deploymnet"), "did you mean"),
        (("controllers", "--controllers=-deployment"), "--controllers: none is left to run"),
        (("controllers", "--root-ca-file", "/no/such/file"), "--root-ca-file: /no/such/file: cannot be read"),
        (
            ("kubelet", "--fleet", "3", "--fleet-config", "x"),
            "--fleet, --fleet-config and --node-name: say one of them",
        ),
        (("kubelet", "--fleet-config", "/no/such/file"), "/no/such/file: cannot be read"),
        (("kubelet", "--fleet", "3", "--feature-gates", "NodeReadinesGates=true"), "NodeReadinessGates"),
    ],
)
def test_a_mistake_stops_the_start_before_anything_is_opened(words: tuple[str, ...], said: str) -> None:
    ended = subprocess.run(
        command(*words, "--kubeconfig", "/no/such/kubeconfig"),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
        cwd=REPOSITORY,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("nodeward: ")
    assert said in ended.stderr

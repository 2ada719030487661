"""A cluster with nodes as users start it: separate processes, HTTPS, a file on disk; pods outlive them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Cluster, running_cluster

pytestmark = pytest.mark.slow

PODS = "/api/v1/namespaces/default/pods"


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "image"}]}}


def wait_running(cluster: Cluster, name: str) -> dict[str, Any]:
    """The pod once its status says that it runs."""
    with cluster.watching(
        f"{PODS}?watch=true&resourceVersion=0&fieldSelector=metadata.name={name}"
    ) as events:
        for event in events:
            found: dict[str, Any] = event["object"]
            if found.get("status", {}).get("phase") == "Running":
                return found
    raise AssertionError("the watch ended")


@pytest.mark.parametrize("is_killed", [False, True])
def test_pods_survive_the_end_of_the_whole_cluster(tmp_path: Path, is_killed: bool) -> None:
    with running_cluster(tmp_path, "--store", "sqlite", "--nodes", "2") as cluster:
        cluster.add_namespace("other")  # the controllers are at work
        status, answer = cluster.call("POST", PODS, pod("p"))
        assert status == 201, answer
        before = wait_running(cluster, "p")
        if is_killed:
            cluster.kill()
    with running_cluster(tmp_path, "--store", "sqlite", "--nodes", "2") as cluster:
        status, _ = cluster.call("POST", PODS, pod("q"))
        assert status == 201
        wait_running(cluster, "q")
        after = wait_running(cluster, "p")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["nodeName"] == before["spec"]["nodeName"]
    was, now = before["status"]["containerStatuses"][0], after["status"]["containerStatuses"][0]
    assert (now["containerID"], now["restartCount"]) == (was["containerID"], 0)

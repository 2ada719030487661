"""`nodeward up` again on the same directory: everything is as it was, and what cannot start says why."""

from __future__ import annotations

import signal
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import STILL, Cluster, refusal, running_cluster

pytestmark = pytest.mark.slow

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def create(cluster: Cluster, name: str) -> Any:
    status, made = cluster.call("POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": {"from": name}})
    assert status == 201, made
    return made


def everything(cluster: Cluster) -> dict[str, Any]:
    """Every object of every kind that can be listed, by path and name."""
    found: dict[str, Any] = {}
    groups = cluster.call("GET", "/apis")[1]["groups"]
    for path in ("/api/v1", *(f"/apis/{group['preferredVersion']['groupVersion']}" for group in groups)):
        for resource in cluster.call("GET", path)[1]["resources"]:
            if "list" in resource["verbs"] and "/" not in resource["name"]:
                for item in cluster.call("GET", f"{path}/{resource['name']}")[1]["items"]:
                    meta = item["metadata"]
                    found[f"{path}/{resource['name']}/{meta.get('namespace', '')}/{meta['name']}"] = item
    return found


def test_all_is_as_it_was_after_a_restart(tmp_path: Path) -> None:
    with running_cluster(tmp_path, *STILL) as first:
        first.add_namespace("kept")
        made = create(first, "one")
        before = everything(first)
        version = int(first.call("GET", CONFIG_MAPS)[1]["metadata"]["resourceVersion"])
        kubeconfig, port = first.kubeconfig.read_text(), first.port
    with running_cluster(tmp_path, *STILL, "--port", str(port)) as second:
        assert everything(second) == before
        assert second.call("GET", f"{CONFIG_MAPS}/one") == (200, made)
        # Certificates are kept, so a kubeconfig that somebody copied goes on working.
        assert second.kubeconfig.read_text() == kubeconfig
        assert int(create(second, "two")["metadata"]["resourceVersion"]) > version
    assert stat.S_IMODE((tmp_path / "kubeconfig").stat().st_mode) == 0o600


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_a_watcher_goes_on_where_it_was(tmp_path: Path, how: signal.Signals) -> None:
    with running_cluster(tmp_path, *STILL) as first:
        start = first.call("GET", CONFIG_MAPS)[1]["metadata"]["resourceVersion"]
        create(first, "one")
        with first.watching(f"{CONFIG_MAPS}?watch=true&resourceVersion={start}") as events:
            seen = next(events)
            assert (seen["type"], seen["object"]["metadata"]["name"]) == ("ADDED", "one")
            create(first, "two")
            assert first.call("DELETE", f"{CONFIG_MAPS}/one")[0] == 200
            if how is signal.SIGKILL:
                first.kill()
            else:
                first.stop(how)
    resumed = seen["object"]["metadata"]["resourceVersion"]
    with running_cluster(tmp_path, *STILL) as second:
        with second.watching(f"{CONFIG_MAPS}?watch=true&resourceVersion={resumed}") as events:
            create(second, "three")
            found = [next(events) for _ in range(3)]
        assert [(event["type"], event["object"]["metadata"]["name"]) for event in found] == [
            ("ADDED", "two"),
            ("DELETED", "one"),
            ("ADDED", "three"),
        ]
        versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in found]
        assert versions == sorted(set(versions))
        assert versions[0] > int(resumed)


def test_an_open_watch_ends_in_good_order_when_the_server_stops(tmp_path: Path) -> None:
    with (
        running_cluster(tmp_path, *STILL) as cluster,
        cluster.watching(f"{CONFIG_MAPS}?watch=true") as events,
    ):
        assert next(events)["type"] == "ADDED"
        cluster.stop()
        assert list(events) == []


def test_a_directory_in_use_is_refused_whatever_the_store(tmp_path: Path) -> None:
    with running_cluster(tmp_path, *STILL) as cluster:
        before = (tmp_path / "kubeconfig").read_bytes()
        said = refusal(tmp_path, "--port", "0", "--store", "memory")
        assert (tmp_path / "kubeconfig").read_bytes() == before
        assert said == (
            f"nodeward: {tmp_path} is in use by another server (process {cluster.process.pid}); "
            "stop it, or give this one a directory of its own with --dir\n"
        )
        assert cluster.call("GET", "/version")[0] == 200


def test_a_port_in_use_is_refused_and_nothing_is_begun(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "one", "--store", "memory") as cluster:
        said = refusal(tmp_path / "two", "--port", str(cluster.port))
        assert said == (
            f"nodeward: cannot listen on 127.0.0.1:{cluster.port}: Address already in use; "
            "choose another with --port\n"
        )
        assert not (tmp_path / "two" / "state.db").exists()


def test_a_damaged_state_is_refused_and_kept_as_it_is(tmp_path: Path) -> None:
    state = tmp_path / "state.db"
    with running_cluster(tmp_path, *STILL) as cluster:
        create(cluster, "one")
    good = state.read_bytes()
    middle = len(good) // 2
    damages = {
        "garbage": b"no database at all",
        "cut short": good[: middle + 100],
        "a hole in the middle": good[:4096] + bytes(len(good) - 8192) + good[-4096:],
    }
    for damage, bad in damages.items():
        state.write_bytes(bad)
        said = refusal(tmp_path, "--port", "0")
        assert said.startswith(f"nodeward: {state} "), damage
        assert said.endswith(
            "restore it from a backup, or move it away to start empty; nothing in it was changed\n"
        ), damage
        assert state.read_bytes() == bad, damage
    state.write_bytes(good)
    with running_cluster(tmp_path, *STILL) as cluster:
        assert cluster.call("GET", f"{CONFIG_MAPS}/one")[0] == 200


def test_a_memory_store_starts_empty_and_leaves_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        with running_cluster(tmp_path, "--store", "memory") as cluster:
            create(cluster, "one")
    assert not (tmp_path / "state.db").exists()

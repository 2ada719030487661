"""Two `nodeward apiserver --etcd-servers` on one real etcd: one cluster, whichever of them is asked."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from nodeward.store.etcd import EtcdStore
from tests.contracts.store_etcd_server import EtcdServer, free_port, running_etcd
from tests.e2e.cluster import Cluster, refusal, running_cluster, start

pytestmark = pytest.mark.slow

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    with running_etcd(tmp_path_factory.mktemp("etcd")) as running:
        yield running


@pytest.fixture(scope="module")
def servers(etcd: EtcdServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Cluster]]:
    """Both with the same certificates, as the servers of one cluster have."""
    home = tmp_path_factory.mktemp("shared")
    flags = ("--etcd-servers", f"http://{etcd.endpoint}")
    second = ("--kubeconfig", str(home / "second"))
    with (
        running_cluster(home, *flags, subcommand="apiserver") as one,
        running_cluster(home, *flags, *second, subcommand="apiserver") as two,
    ):
        yield one, two


def create(cluster: Cluster, name: str, value: str = "x") -> tuple[int, Any]:
    return cluster.call("POST", CONFIG_MAPS, {"metadata": {"name": name}, "data": {"value": value}})


def test_what_one_wrote_the_other_reads_at_once(servers: tuple[Cluster, Cluster]) -> None:
    for number in range(20):
        writer, reader = servers[number % 2], servers[1 - number % 2]
        status, made = create(writer, f"read-{number}")
        assert status == 201, made
        assert reader.call("GET", f"{CONFIG_MAPS}/read-{number}") == (200, made)
        listed = reader.call("GET", CONFIG_MAPS)[1]
        assert f"read-{number}" in [item["metadata"]["name"] for item in listed["items"]]
        assert int(listed["metadata"]["resourceVersion"]) >= int(made["metadata"]["resourceVersion"])
        assert writer.call("DELETE", f"{CONFIG_MAPS}/read-{number}")[0] == 200
        assert reader.call("GET", f"{CONFIG_MAPS}/read-{number}")[0] == 404


def test_watchers_of_either_see_the_writes_of_both_in_one_order(servers: tuple[Cluster, Cluster]) -> None:
    one, two = servers
    start = one.call("GET", CONFIG_MAPS)[1]["metadata"]["resourceVersion"]
    path = f"{CONFIG_MAPS}?watch=true&resourceVersion={start}"
    with one.watching(path) as of_one, two.watching(path) as of_two:
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(lambda number: create(servers[number % 2], f"watch-{number}"), range(20)))
        assert [status for status, _ in made] == [201] * 20
        seen_by_one = [next(of_one) for _ in range(20)]
        seen_by_two = [next(of_two) for _ in range(20)]
    assert seen_by_one == seen_by_two
    order = sorted(made, key=lambda answer: int(answer[1]["metadata"]["resourceVersion"]))
    assert [event["object"]["metadata"]["name"] for event in seen_by_one] == [
        made["metadata"]["name"] for _, made in order
    ]


def test_a_watch_begun_on_one_goes_on_at_the_other(servers: tuple[Cluster, Cluster]) -> None:
    one, two = servers
    start = one.call("GET", CONFIG_MAPS)[1]["metadata"]["resourceVersion"]
    for number in range(4):
        create(one, f"resume-{number}")
    with one.watching(f"{CONFIG_MAPS}?watch=true&resourceVersion={start}") as events:
        seen = [next(events) for _ in range(2)]
    last = seen[-1]["object"]["metadata"]["resourceVersion"]
    with two.watching(f"{CONFIG_MAPS}?watch=true&resourceVersion={last}") as events:
        seen += [next(events) for _ in range(2)]
    assert [event["object"]["metadata"]["name"] for event in seen] == [f"resume-{n}" for n in range(4)]


def test_a_name_is_taken_once_and_a_change_made_once_whoever_is_asked(
    servers: tuple[Cluster, Cluster],
) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda number: create(servers[number % 2], "contended", str(number)), range(8))
        )
        assert sorted(status for status, _ in answers) == [201] + [409] * 7
        made = next(answer for status, answer in answers if status == 201)

        def change(number: int) -> int:
            wanted = made | {"data": {"value": f"change {number}"}}
            return servers[number % 2].call("PUT", f"{CONFIG_MAPS}/contended", wanted)[0]

        assert sorted(pool.map(change, range(8))) == [200] + [409] * 7


def test_a_token_of_one_is_good_at_the_other(servers: tuple[Cluster, Cluster]) -> None:
    one, two = servers
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    assert one.call("POST", accounts, {"metadata": {"name": "bot"}})[0] == 201
    status, answer = one.call("POST", f"{accounts}/bot/token", {"spec": {}})
    assert status == 201, answer
    review = {"spec": {"token": answer["status"]["token"]}}
    status, reviewed = two.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", review)
    assert status == 201
    assert reviewed["status"]["user"]["username"] == "system:serviceaccount:default:bot"


def test_a_whole_cluster_keeps_its_state_in_etcd(etcd: EtcdServer, tmp_path: Path) -> None:
    store = f"etcd://{etcd.endpoint}?root=/apart"
    with running_cluster(tmp_path, "--store", store) as first:
        first.add_namespace("kept")
        made = create(first, "one")[1]
    with running_cluster(tmp_path, "--store", store) as second:
        assert second.call("GET", f"{CONFIG_MAPS}/one") == (200, made)
        assert second.call("GET", "/api/v1/namespaces/kept/serviceaccounts/default")[0] == 200
    assert not (tmp_path / "state.db").exists()


def test_an_etcd_that_is_not_there_is_said_plainly(tmp_path: Path) -> None:
    said = refusal(tmp_path, "--store", f"etcd://127.0.0.1:{free_port()}", "--port", "0")
    assert said.startswith("nodeward: ")
    assert "etcd" in said


def test_a_server_starts_again_after_any_compaction_and_serves_on_after_one(tmp_path: Path) -> None:
    """Others write and compact while the server is stopped, and while it stands still."""
    with running_etcd(tmp_path) as etcd:
        for number in range(3):
            serve_through_compaction(etcd, tmp_path, number)
            write_elsewhere_and_compact(etcd)


def serve_through_compaction(etcd: EtcdServer, home: Path, number: int) -> None:
    flags = ("--etcd-servers", f"http://{etcd.endpoint}")
    with running_cluster(home, *flags, subcommand="apiserver") as server:
        status, made = create(server, f"again-{number}")
        assert status == 201, made
        names = [item["metadata"]["name"] for item in server.call("GET", CONFIG_MAPS)[1]["items"]]
        assert [name for name in names if name.startswith("again")] == [
            f"again-{each}" for each in range(number + 1)
        ]
        start = made["metadata"]["resourceVersion"]
        with server.watching(f"{CONFIG_MAPS}?watch=true&resourceVersion={start}") as events:
            server.process.send_signal(signal.SIGSTOP)
            write_elsewhere_and_compact(etcd)
            server.process.send_signal(signal.SIGCONT)
            assert create(server, f"after-{number}")[0] == 201
            event = next(events)
        # Either nothing was lost for the watcher, or it is told to list again.
        assert event["type"] == "ADDED" or event["object"]["code"] == 410
        assert server.call("GET", f"{CONFIG_MAPS}/after-{number}")[0] == 200


def test_a_server_goes_on_when_somebody_writes_to_its_store_what_is_no_object(tmp_path: Path) -> None:
    with running_etcd(tmp_path) as etcd:
        server = start(tmp_path, "--etcd-servers", f"http://{etcd.endpoint}", subcommand="apiserver")
        try:
            write(etcd, "", ["/registry/rbac.authorization.k8s.io/clusterroles/no-object"])
            path = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
            status, roles = server.call("GET", path)
            assert status == 200
            assert "no-object" not in {each["metadata"]["name"] for each in roles["items"]}
            assert "a stored object is broken and is not served" in server.errors()
            assert "/clusterroles/no-object" in server.errors()
            assert server.process.poll() is None
        finally:
            server.kill()
            server.log.close()


def write_elsewhere_and_compact(etcd: EtcdServer) -> None:
    write(etcd, "/elsewhere", [f"/{number}" for number in range(10)], compacts=True)


def write(etcd: EtcdServer, root: str, keys: list[str], *, compacts: bool = False) -> None:
    """Write past the servers: keys with a value that is no object."""

    async def put_all() -> None:
        store = EtcdStore([etcd.endpoint], root=root)
        await store.open()
        for key in keys:
            now = await store.get(key)
            await store.put(key, b"no object", expected=now.mod_revision if now else 0)
        if compacts:
            await store.compact(await store.revision())
        await store.close()

    asyncio.run(put_all())

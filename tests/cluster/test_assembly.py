"""The assembly: what it starts it stops, pools of different kinds live side by side, and a restart loses nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.cluster.description import Pool
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.memory import MemoryStore
from tests.cluster.whole import bound_pod, deployment, ready_of, versions, whole_cluster


def test_a_deployment_becomes_pods_that_run() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, pools=(Pool(name="a", nodes=3),)) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            await client.create(deployment("web", 6))
            await clock.sleep(10)
            pods = (await client.list(Pod, "default")).items
            assert [pod.status.phase for pod in pods] == ["Running"] * 6
            assert {pod.spec.node_name for pod in pods} == {"a-0", "a-1", "a-2"}

    run_virtual(main)


def test_what_was_started_is_stopped_when_a_pool_cannot_be() -> None:
    async def main(clock: VirtualClock) -> None:
        pools = (Pool(name="a"), Pool(name="a"))
        with pytest.raises(ConfigError, match="there is a pool 'a' already"):
            async with whole_cluster(clock, pools=pools):
                raise AssertionError("it must not start")

    run_virtual(main)


def test_pools_of_different_versions_and_gates_do_not_influence_each_other() -> None:
    gate = "RestartAllContainersOnContainerExits"
    pools = (
        Pool(name="old", nodes=2, version="1.35"),
        Pool(name="new", nodes=2, version="1.37"),
        Pool(name="off", nodes=2, version="1.35", feature_gates="NodeDeclaredFeatures=false"),
    )

    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, pools=pools) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            declared = {
                node.metadata.name: tuple(node.status.declared_features)
                for node in (await client.list(Node)).items
            }
            assert declared["old-0"] == declared["old-1"]
            assert declared["new-0"] == declared["new-1"]
            assert declared["off-0"] == declared["off-1"] == ()
            assert gate in declared["new-0"]
            assert gate not in declared["old-0"]
            assert await versions(client) == {
                "old-0": "v1.35.0", "old-1": "v1.35.0", "new-0": "v1.37.0", "new-1": "v1.37.0",
                "off-0": "v1.35.0", "off-1": "v1.35.0",
            }  # fmt: skip
            # Changing one pool leaves the others alone, to the byte.
            before = {name: (await client.get(Node, name)).metadata.resource_version for name in declared}
            await cluster.change_pool(replace(pools[0], version="1.36"))
            await clock.sleep(5)
            after = {name: (await client.get(Node, name)).metadata.resource_version for name in declared}
            assert {name for name in declared if before[name] != after[name]} == {"old-0", "old-1"}

    run_virtual(main)


def test_an_upgrade_restarts_some_kubelets_at_a_time_and_no_container() -> None:
    pool = Pool(name="a", nodes=4, version="1.35", at_once=2, pause_ns=30 * SECOND_NS)

    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, pools=(pool,)) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            for number in range(4):
                await client.create(bound_pod(f"p{number}", f"a-{number}"))
            await clock.sleep(5)
            before = {pod.metadata.name: pod.status for pod in (await client.list(Pod)).items}
            started = clock.monotonic_ns()
            await cluster.change_pool(pool.upgraded("1.36"))
            assert (clock.monotonic_ns() - started) / SECOND_NS == pytest.approx(30, abs=3)
            await clock.sleep(10)
            assert set((await versions(client)).values()) == {"v1.36.0"}
            for pod in (await client.list(Pod)).items:
                was = before[pod.metadata.name].container_statuses[0]
                now = pod.status.container_statuses[0]
                assert (now.container_id, now.restart_count, now.ready) == (was.container_id, 0, True)

    run_virtual(main)


def test_a_pool_that_shrinks_loses_its_last_nodes_and_their_objects() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, pools=(Pool(name="a", nodes=3),)) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            await client.create(bound_pod("p", "a-2"))
            await clock.sleep(2)
            await cluster.change_pool(Pool(name="a", nodes=1))
            await clock.sleep(60)
            assert [node.metadata.name for node in (await client.list(Node)).items] == ["a-0"]
            await cluster.change_pool(Pool(name="a", nodes=2))
            await clock.sleep(5)
            names = {node.metadata.name: ready_of(node) for node in (await client.list(Node)).items}
            assert names == {"a-0": "True", "a-1": "True"}

    run_virtual(main)


def test_pods_survive_a_restart_of_the_whole_cluster_on_the_same_store() -> None:
    async def main(clock: VirtualClock) -> None:
        pools = (Pool(name="a", nodes=2),)
        store = MemoryStore()
        async with whole_cluster(clock, store=store, pools=pools) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            await client.create(deployment("web", 4))
            await clock.sleep(10)
            before = {pod.metadata.name: pod for pod in (await client.list(Pod, "default")).items}
        assert len(before) == 4
        await clock.sleep(20)
        async with whole_cluster(clock, store=store, pools=pools) as cluster:
            client = cluster.client("test")
            await clock.sleep(60)
            after = {pod.metadata.name: pod for pod in (await client.list(Pod, "default")).items}
            assert after.keys() == before.keys()
            for name, pod in after.items():
                was, now = before[name].status.container_statuses[0], pod.status.container_statuses[0]
                assert pod.metadata.uid == before[name].metadata.uid
                assert (now.container_id, now.restart_count, now.ready) == (was.container_id, 0, True)

    run_virtual(main)


def test_after_a_restart_sidecars_and_pods_with_other_annotations_run_on_and_no_address_is_given_twice() -> (
    None
):
    async def main(clock: VirtualClock) -> None:
        pools = (Pool(name="a", nodes=2),)
        store = MemoryStore()
        async with whole_cluster(clock, store=store, pools=pools) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            pod = bound_pod("old", "a-1")
            pod.spec.init_containers = [Container(name="side", image="image", restart_policy="Always")]
            await client.create(pod)
            await clock.sleep(5)
            edited = {"metadata": {"annotations": {"simulation.nodeward.dev/c": "nonsense=1"}}}
            await client.patch(Pod, "old", edited, namespace="default")
            debugger = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "image"}]}}
            await client.patch(Pod, "old", debugger, namespace="default", subresource="ephemeralcontainers")
            await clock.sleep(5)
            before = (await client.get(Pod, "old", "default")).status
            assert before.ephemeral_container_statuses[0].state.running is not None
        async with whole_cluster(clock, store=store, pools=pools) as cluster:
            client = cluster.client("test")
            await client.create(bound_pod("new", "a-0"))
            await clock.sleep(60)
            after = (await client.get(Pod, "old", "default")).status
            for name in ("init_container_statuses", "container_statuses", "ephemeral_container_statuses"):
                (was,), (now,) = getattr(before, name), getattr(after, name)
                assert (now.container_id, now.restart_count) == (was.container_id, 0), name
                assert now.state.running is not None, name
            new = (await client.get(Pod, "new", "default")).status
            assert new.pod_ip != after.pod_ip
            assert new.container_statuses[0].container_id != after.container_statuses[0].container_id

    run_virtual(main)


def test_a_pool_may_have_no_nodes_and_get_some() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, pools=(Pool(name="a", nodes=0),)) as cluster:
            client = cluster.client("test")
            assert (await client.list(Node)).items == []
            await cluster.change_pool(Pool(name="a", nodes=2))
            await clock.sleep(5)
            assert len((await client.list(Node)).items) == 2
            await cluster.change_pool(Pool(name="a", nodes=0))
            await clock.sleep(5)
            assert (await client.list(Node)).items == []

    run_virtual(main)


def test_a_cluster_can_be_without_scheduler_and_controllers() -> None:
    async def main(clock: VirtualClock) -> None:
        store = MemoryStore()
        async with whole_cluster(clock, store=store, has_scheduler=False, has_controllers=False) as cluster:
            assert not cluster.scheduler.is_running
            assert not cluster.controllers.is_running
            assert cluster.fleet is None
            assert (await cluster.client("test").list(Node)).items == []

    run_virtual(main)

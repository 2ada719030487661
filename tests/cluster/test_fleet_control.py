"""A fleet that is changed through the API: edits are carried out, bad ones are told and change nothing."""

from __future__ import annotations

from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1.cluster import ConfigMap, Event
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.cluster.assembly import Cluster
from nodeward.cluster.fleet import Fleet
from nodeward.cluster.fleet_control import FILE, MAP_NAME, NAMESPACE, FleetControl
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.memory import MemoryStore
from tests.cluster.whole import bound_pod, plan, ready_of, versions, whole_cluster, write_fleet

BLUE = {"name": "blue", "nodes": 3, "version": "1.35"}


async def _events(cluster: Cluster) -> list[tuple[str, str, str]]:
    events = (await cluster.client("test").list(Event, NAMESPACE)).items
    return [
        (event.type, event.reason, event.message)
        for event in events
        if event.involved_object.kind == "ConfigMap" and event.involved_object.name == MAP_NAME
    ]


def test_what_was_asked_for_is_in_the_config_map_and_an_edit_of_it_is_an_upgrade() -> None:
    async def main(clock: VirtualClock) -> None:
        asked = plan(BLUE)
        async with whole_cluster(clock, fleet=asked, fleet_map=MAP_NAME) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            assert set((await versions(client)).values()) == {"v1.35.0"}
            stored = await client.get(ConfigMap, MAP_NAME, NAMESPACE)
            assert stored.data[FILE] == asked.text
            await write_fleet(client, stored.data[FILE].replace("1.35", "1.36"))
            await clock.sleep(10)
            assert set((await versions(client)).values()) == {"v1.36.0"}
            assert (
                "Normal",
                "FleetChanged",
                "pool blue: 1.35 -> 1.36; its kubelets restart",
            ) in await _events(cluster)

    run_virtual(main)


def test_an_edit_that_makes_no_sense_is_told_with_line_and_field_and_changes_nothing() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, fleet=plan(BLUE), fleet_map=MAP_NAME) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            text = (await client.get(ConfigMap, MAP_NAME, NAMESPACE)).data[FILE]
            await write_fleet(client, text.replace("nodes: 3", "nodse: 5"))
            await clock.sleep(5)
            assert len(await versions(client)) == 3
            said = [each for each in await _events(cluster) if each[1] == "InvalidFleet"]
            assert len(said) == 1
            assert said[0][0] == "Warning"
            assert said[0][2].startswith(
                f"configmap {NAMESPACE}/{MAP_NAME}: {FILE}:5: pools[0].nodse: unknown field"
            )
            assert 'did you mean "nodes"?' in said[0][2]
            # The next good edit is carried out.
            await write_fleet(client, text.replace("nodes: 3", "nodes: 4"))
            await clock.sleep(5)
            assert len(await versions(client)) == 4

    run_virtual(main)


def test_pools_come_and_go_while_the_cluster_runs() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, fleet=plan(BLUE), fleet_map=MAP_NAME) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            await write_fleet(client, plan(BLUE | {"nodes": 1}, {"name": "green", "nodes": 2}).text)
            await clock.sleep(5)
            assert await versions(client) == {"blue-0": "v1.35.0", "green-0": "v1.37.0", "green-1": "v1.37.0"}
            await write_fleet(client, plan({"name": "green", "nodes": 2}).text)
            await clock.sleep(5)
            assert [*await versions(client)] == ["green-0", "green-1"]

    run_virtual(main)


def test_a_newer_edit_takes_the_place_of_an_upgrade_under_way() -> None:
    slow = BLUE | {"nodes": 10, "rollout": {"atOnce": 1, "pause": "1m"}}

    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, fleet=plan(slow), fleet_map=MAP_NAME) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            await write_fleet(client, plan(slow | {"version": "1.36"}).text)
            await clock.sleep(150)
            assert sorted((await versions(client)).values()) == ["v1.35.0"] * 7 + ["v1.36.0"] * 3
            await write_fleet(client, plan(BLUE | {"nodes": 10, "version": "1.37"}).text)
            await clock.sleep(30)
            assert set((await versions(client)).values()) == {"v1.37.0"}

    run_virtual(main)


def test_a_node_that_is_cut_off_is_not_heard_of_until_it_is_connected_again() -> None:
    async def main(clock: VirtualClock) -> None:
        asked = plan(BLUE)
        async with whole_cluster(clock, fleet=asked, fleet_map=MAP_NAME) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            await write_fleet(client, asked.text + "nodes:\n- name: blue-1\n  cutOff: true\n")
            await clock.sleep(120)
            nodes = {node.metadata.name: ready_of(node) for node in (await client.list(Node)).items}
            assert nodes == {"blue-0": "True", "blue-1": "Unknown", "blue-2": "True"}
            silent = await client.get(Lease, "blue-1", "kube-node-lease")
            # An upgrade meanwhile does not bring it back.
            await write_fleet(
                client, asked.text.replace("1.35", "1.36") + "nodes:\n- name: blue-1\n  cutOff: true\n"
            )
            await clock.sleep(60)
            still = await client.get(Lease, "blue-1", "kube-node-lease")
            assert still.spec.renew_time == silent.spec.renew_time
            assert (await versions(client))["blue-1"] == "v1.35.0"
            await write_fleet(client, asked.text.replace("1.35", "1.36"))
            await clock.sleep(30)
            assert ready_of(await client.get(Node, "blue-1")) == "True"
            assert set((await versions(client)).values()) == {"v1.36.0"}

    run_virtual(main)


def test_a_reboot_ends_containers_and_gives_another_boot_id_and_a_restart_does_not() -> None:
    async def main(clock: VirtualClock) -> None:
        store, asked = MemoryStore(), plan(BLUE)
        async with whole_cluster(clock, store=store, fleet=asked, fleet_map=MAP_NAME) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            await client.create(bound_pod("p", "blue-1"))
            await clock.sleep(5)
            before = (await client.get(Node, "blue-1")).status.node_info.boot_id
            await write_fleet(client, asked.text + "nodes:\n- name: blue-1\n  boots: 1\n")
            await clock.sleep(30)
            rebooted = (await client.get(Node, "blue-1")).status.node_info.boot_id
            assert rebooted != before
            status = (await client.get(Pod, "p", "default")).status.container_statuses[0]
            assert status.restart_count == 1
            ended = status.last_state.terminated
            assert ended is not None
            assert (ended.exit_code, ended.reason) == (255, "Unknown")
        async with whole_cluster(clock, store=store, fleet=asked, fleet_map=MAP_NAME) as cluster:
            await clock.sleep(30)
            client = cluster.client("test")
            assert (await client.get(Node, "blue-1")).status.node_info.boot_id == rebooted
            status = (await client.get(Pod, "p", "default")).status.container_statuses[0]
            assert status.restart_count == 1

    run_virtual(main)


def test_the_same_command_goes_on_with_what_was_edited_and_another_one_starts_over() -> None:
    async def main(clock: VirtualClock) -> None:
        store = MemoryStore()
        async with whole_cluster(clock, store=store, fleet=plan(BLUE), fleet_map=MAP_NAME) as cluster:
            await write_fleet(cluster.client("test"), plan(BLUE | {"version": "1.36"}).text)
            await clock.sleep(10)
        async with whole_cluster(clock, store=store, fleet=plan(BLUE), fleet_map=MAP_NAME) as cluster:
            await clock.sleep(10)
            assert set((await versions(cluster.client("test"))).values()) == {"v1.36.0"}
        # Without any wish of its own it goes on as well.
        async with whole_cluster(clock, store=store, fleet_map=MAP_NAME) as cluster:
            await clock.sleep(10)
            assert cluster.fleet is not None
            assert [*cluster.fleet.pools] == ["blue"]
        other = plan(BLUE | {"version": "1.34"})
        async with whole_cluster(clock, store=store, fleet=other, fleet_map=MAP_NAME) as cluster:
            await clock.sleep(10)
            assert set((await versions(cluster.client("test"))).values()) == {"v1.34.0"}

    run_virtual(main)


def test_a_config_map_that_is_deleted_leaves_the_fleet_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, fleet=plan(BLUE), fleet_map=MAP_NAME) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            await client.delete(ConfigMap, MAP_NAME, NAMESPACE)
            await clock.sleep(60)
            nodes = {node.metadata.name: ready_of(node) for node in (await client.list(Node)).items}
            assert nodes == {"blue-0": "True", "blue-1": "True", "blue-2": "True"}

    run_virtual(main)


async def _second(
    cluster: Cluster, clock: VirtualClock, *pools: dict[str, object]
) -> tuple[Fleet, FleetControl]:
    """Another process that is asked to run nodes of the same map."""
    client = cluster.client("second")
    fleet = Fleet(client, clock, SeededChance(8))
    await fleet.start()
    control = FleetControl(client, fleet, SeededChance(9), version="1.37", identity="second", name=MAP_NAME)
    await control.start(plan(*pools))
    return fleet, control


def test_a_second_process_says_who_holds_the_map_writes_nothing_and_takes_over_when_the_first_stops() -> None:
    async def main(clock: VirtualClock) -> None:
        asked = plan(BLUE)
        async with whole_cluster(clock, fleet=asked, fleet_map=MAP_NAME, fleet_holder="first") as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            fleet, second = await _second(cluster, clock, {"name": "green", "nodes": 5})
            assert (second.is_holder, second.holder) == (False, "first")
            await clock.sleep(120)
            assert len(fleet) == 0
            assert (await client.get(ConfigMap, MAP_NAME, NAMESPACE)).data[FILE] == asked.text
            assert {node.metadata.name for node in (await client.list(Node)).items} == {
                "blue-0",
                "blue-1",
                "blue-2",
            }
            assert cluster.fleet_control is not None
            assert cluster.fleet is not None
            await cluster.fleet_control.stop()
            await cluster.fleet.stop()
            await clock.sleep(60)
            assert (second.is_holder, len(fleet)) == (True, 5)
            await second.stop()
            await fleet.stop()

    run_virtual(main)


def test_a_process_without_nodes_of_its_own_leaves_the_map_to_others_and_follows_it_when_they_stop() -> None:
    async def main(clock: VirtualClock) -> None:
        none = plan(BLUE | {"nodes": 0})
        async with whole_cluster(clock, fleet=none, fleet_map=MAP_NAME, fleet_holder="first") as cluster:
            fleet, second = await _second(cluster, clock, BLUE)
            await clock.sleep(10)
            assert (second.is_holder, len(fleet)) == (True, 3)
            assert cluster.fleet is not None
            assert len(cluster.fleet) == 0, "every node has one kubelet"
            await second.stop()
            await fleet.stop()

    run_virtual(main)

"""`nodeward devices`: pools, devices and who has them, in a cluster whose scheduler allocates claims."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from nodeward.api.resource_v1 import DeviceTaintRule, ResourceClaim
from nodeward.base.errors import ConfigError
from nodeward.cli.devices import gather
from nodeward.cli.devices_page import FEW_ALIKE, MOST_HOLDERS, MOST_LINES, as_json, as_text, devices_page
from nodeward.cli.main import main as nodeward
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.e2e.cluster import running_cluster
from tests.rules.devices.allocating import SHARE_ID
from tests.scheduler.plugins.devices import add, claim, device_class, devices, exactly, made, slice_of, using
from tests.scheduler.running import Cluster, cluster, node

GATES = (
    "DRAConsumableCapacity=true,DRADeviceTaints=true,DRADeviceTaintRules=true,DRAOptionalNodePreparation=true"
)
NO_DEVICES = "there are no devices"


def played(main: Callable[[Cluster], Awaitable[None]]) -> None:
    """Run in a cluster with nodes n1 and n2, a class for all devices, and a scheduler."""

    async def run(clock: VirtualClock) -> None:
        async with cluster(clock, gates=GATES) as world:
            await world.add_nodes(node("n1"), node("n2"))
            await add(world, device_class())
            await main(world)

    run_virtual(run)


def held_by(name: str, *devices: str, **result: Any) -> ResourceClaim:
    """A claim that has devices of the pool p1."""
    results = [
        {"request": "r", "driver": "gpu.example.com", "pool": "p1", "device": each, **result}
        for each in devices
    ]
    spec = {"devices": {"requests": [exactly()]}}
    return made(
        ResourceClaim,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": spec,
            "status": {"allocation": {"devices": {"results": results}}},
        },
    )


def test_pools_devices_and_the_pods_that_have_them_are_shown() -> None:
    async def main(world: Cluster) -> None:
        rule = {"deviceSelector": {"device": "d1"}, "taint": {"key": "broken", "effect": "NoSchedule"}}
        await add(
            world,
            slice_of(devices(2)),
            slice_of([{"name": "l0"}], name="s2", pool="licences", allNodes=True, skipNodeOperations=True),
            made(DeviceTaintRule, {"metadata": {"name": "rule"}, "spec": rule}),
            claim(),
        )
        await world.add_pods(using("first", "c"), using("second", "c"))
        await world.pass_time(15)
        page = await gather(world.client)
        assert as_text(page).splitlines() == [
            "DRIVER            POOL       GENERATION   SLICES   STATE      DEVICES   IN USE   NODE OPERATIONS",
            "gpu.example.com   licences   1            1/1      complete   1         0        skipped: all",
            "gpu.example.com   p1         1            1/1      complete   2         1        called",
            "",
            "POOL                       DEVICE   NODE        TAINTS              CAPACITY TAKEN   CLAIM (PODS)",
            "gpu.example.com/licences   l0       all nodes",
            "gpu.example.com/p1         d0       n1                                               "
            "default/c (first, second)",
            "gpu.example.com/p1         d1       n1          broken:NoSchedule",
        ]
        elsewhere = json.loads(as_json(await gather(world.client, "n2")))
        assert elsewhere["node"] == "n2"
        [pool] = elsewhere["pools"]
        assert (pool["pool"], pool["skipNodeOperations"], pool["state"]) == ("licences", True, "complete")
        with pytest.raises(ConfigError, match="there is no node 'n3'"):
            await gather(world.client, "n3")

    played(main)


def test_shares_of_a_device_are_shown_with_what_they_take() -> None:
    async def main(world: Cluster) -> None:
        shared = devices(1, allowMultipleAllocations=True, capacity={"memory": {"value": "80Gi"}})
        wanted = exactly(capacity={"requests": {"memory": "20Gi"}})
        await add(world, slice_of(shared), claim(wanted, name="a"), claim(wanted, name="b"))
        await world.add_pods(using("p", "a"), using("q", "b"))
        page = await gather(world.client)
        assert [line.partition("n1")[2].split() for line in as_text(page).splitlines()[-2:]] == [
            ["memory", "40Gi/80Gi", "default/a", "(p):", "memory", "20Gi"],
            [],
        ]
        assert as_text(page).endswith("   default/b (q): memory 20Gi")
        [device] = json.loads(as_json(page))["pools"][0]["devices"]
        assert (device["capacity"], device["taken"]) == ({"memory": "80Gi"}, {"memory": "40Gi"})
        assert [each["consumedCapacity"] for each in device["claims"]] == [{"memory": "20Gi"}] * 2
        assert all(each["shareID"] for each in device["claims"])

    played(main)


def test_of_a_pool_the_newest_generation_is_shown_and_whether_it_is_whole() -> None:
    slices = [
        slice_of(devices(3), name="old"),
        slice_of(devices(1), name="new", generation=2, count=2),
        slice_of([{"name": "d"}, {"name": "d"}], name="twice", pool="p2"),
    ]
    first, second = devices_page(slices, []).pools
    assert (first.slices[0].generation, first.state, len(first.devices)) == (2, "incomplete", 1)
    assert "2            1/2      incomplete" in as_text(devices_page(slices, []))
    assert second.state == "invalid: duplicate device name d"


def test_a_node_is_shown_only_the_devices_it_reaches() -> None:
    own = [{"name": "here", "nodeName": "n1"}, {"name": "there", "nodeName": "n2"}]
    page = devices_page([slice_of(own, perDeviceNodeSelection=True)], [], node=node("n1"))
    assert [each.id.device for each in page.pools[0].devices] == ["here"]
    assert as_text(devices_page([], [], node=node("n1"))) == "node n1 reaches no devices"


def test_a_device_that_is_held_and_no_longer_published_is_shown_and_admin_access_is_no_use() -> None:
    claims = [held_by("gone", "d9"), held_by("watching", "d0", adminAccess=True)]
    page = devices_page([slice_of(devices(1))], claims)
    lines = as_text(page).splitlines()
    assert lines[1].split()[-3:] == ["1", "0", "called"]
    assert lines[-1].split() == [
        "gpu.example.com/p1",
        "d9",
        "not",
        "published",
        "default/gone",
        "(no",
        "pod)",
    ]
    assert lines[-2].endswith("default/watching (no pod) with admin access")
    [lost] = json.loads(as_json(page))["notPublished"]
    assert (lost["name"], lost["claims"][0]["claim"]) == ("d9", "default/gone")


def test_the_text_is_bounded_however_many_devices_and_claims_there_are() -> None:
    many = MOST_LINES + 100
    claims = [held_by(f"c{number:03}", "d0", shareID=SHARE_ID) for number in range(MOST_HOLDERS + 5)]
    claims.append(held_by("last", f"d{many - 1}"))
    tainted = [
        {"name": f"d{number}", "taints": [{"key": f"k{number}", "effect": "NoSchedule"}]}
        for number in range(many)
    ]
    page = devices_page([slice_of(tainted)], claims)
    lines = as_text(page).splitlines()
    assert len(lines) == 3 + 1 + MOST_LINES + MOST_HOLDERS + 1
    assert lines[-1] == "and 100 more devices, 1 of them in use; name a node, or see -o json"
    assert any(line.strip() == "and 5 more claims" for line in lines)
    assert len(json.loads(as_json(page))["pools"][0]["devices"]) == many


def test_many_devices_in_a_row_that_nobody_has_share_a_line() -> None:
    page = devices_page([slice_of(devices(1000))], [held_by("c", "d1")])
    assert [line.split()[1:] for line in as_text(page).splitlines()[4:]] == [
        ["d0", "n1"],
        ["d1", "n1", "default/c", "(no", "pod)"],
        ["d2", "to", "d999", "n1", "no", "claim", "(998", "devices)"],
    ]
    few = devices_page([slice_of(devices(FEW_ALIKE))], [])
    assert len(as_text(few).splitlines()) == 4 + FEW_ALIKE


def test_the_command_asks_a_running_api_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running_cluster(tmp_path, subcommand="apiserver") as server:
        assert nodeward(["devices", "--kubeconfig", str(server.kubeconfig)]) == 0
        assert capsys.readouterr().out == f"{NO_DEVICES}\n"
        assert nodeward(["devices", "n1", "--kubeconfig", str(server.kubeconfig)]) != 0
        assert "there is no node 'n1'" in capsys.readouterr().err

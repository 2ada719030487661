"""The kubelets that statements are proven with have a node's own rights, and outlive restarts, reboots and cuts."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.cluster import Secret
from nodeward.api.core_v1.node import Node
from nodeward.api.errors import ApiError
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.keps.node_identity import node_world
from tests.scheduler.running import pod


def test_the_kubelet_registers_runs_pods_and_has_its_nodes_rights_and_no_others() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock) as world:
            kubelet = await world.start_kubelet("n1")
            await world.start_kubelet("n2")
            assert await world.condition("Ready", "n1") == ("True", "KubeletReady")
            bound = pod("p")
            bound.spec.node_name = "n1"
            await world.add(bound)
            assert (await world.pod("p")).status.phase == "Running"
            assert all(call.status < 400 for call in kubelet.wire.calls), kubelet.wire.calls
            client = world.client_of("n1")
            tainted = {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
            with pytest.raises(ApiError, match="is not allowed to modify taints"):
                await client.patch(Node, "n1", tainted)
            with pytest.raises(ApiError, match=r'node "n1" is not allowed to modify node "n2"'):
                await client.patch(Node, "n2", {"status": {"declaredFeatures": None}}, subresource="status")
            with pytest.raises(ApiError, match="forbidden"):
                await client.list(Secret)

    run_virtual(main)


def test_a_restart_leaves_containers_running_and_a_reboot_ends_them() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock) as world:
            kubelet = await world.start_kubelet(version="1.36")
            bound = pod("p")
            bound.spec.node_name = "n1"
            await world.add(bound)
            await kubelet.restart(version="1.37", seconds=15)
            status = (await world.pod("p")).status
            assert (status.phase, status.container_statuses[0].restart_count) == ("Running", 0)
            info = (await world.node("n1")).status.node_info
            assert (info.kubelet_version, info.boot_id) == ("v1.37.0", "boot-1")
            await kubelet.reboot("boot-2", seconds=60)
            status = (await world.pod("p")).status
            assert (status.phase, status.container_statuses[0].restart_count) == ("Running", 1)
            assert (await world.node("n1")).status.node_info.boot_id == "boot-2"

    run_virtual(main)


def test_a_kubelet_that_is_cut_off_hears_and_says_nothing_until_it_is_connected_again() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock) as world:
            kubelet = await world.start_kubelet()
            await kubelet.cut_off()
            bound = pod("p")
            bound.spec.node_name = "n1"
            await world.add(bound)
            await world.pass_time(120)
            assert (await world.pod("p")).status.phase == "Pending"
            assert {call.status for call in kubelet.wire.calls[-5:]} == {0}
            kubelet.reconnect()
            await world.pass_time(60)
            assert (await world.pod("p")).status.phase == "Running"

    run_virtual(main)

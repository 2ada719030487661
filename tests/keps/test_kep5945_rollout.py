"""KEP-5945 on a whole cluster in virtual time: upgrade, rollback, and up, down, up.

Scheduler, controllers and API server are real, the kubelet has its node's own identity and no driver at all. Version N
is 1.37 with the gate on; version N-1 is 1.36, which has never heard of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import ResourceSlice
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.keps.kep5945 import FAILED, FEATURE, OFF, ON
from tests.keps.ledger import statement
from tests.keps.node_identity import Kubelet, NodeWorld, node_world
from tests.rules.devices.allocating import claim, device_class, devices, slice_of
from tests.scheduler.plugins.devices import using

NEW: dict[str, Any] = {"version": "1.37", "gates": ON}
OLD: dict[str, Any] = {"version": "1.36", "gates": ""}


class Rollout:
    """A cluster with one kubelet."""

    def __init__(self, world: NodeWorld, kubelet: Kubelet) -> None:
        self.world, self.kubelet = world, kubelet

    async def control_plane(self, version: str, gates: str) -> None:
        """Restart API server, scheduler and controllers as another version."""
        cluster = self.world.cluster
        for part in (cluster.api_server, cluster.scheduler, cluster.controllers):
            await part.restart(version=version, gates=gates)
        await self.world.pass_time(10)

    async def kubelet_as(self, version: str, gates: str) -> None:
        await self.kubelet.restart(version=version, feature_gates=gates, seconds=10)

    async def publish(self) -> None:
        """A driver without node part publishes its devices."""
        await self.world.add(device_class(), slice_of(devices(4), allNodes=True, skipNodeOperations=True))

    async def start(self, name: str) -> None:
        """A pod with a claim of its own."""
        await self.world.add(claim(name=name), using(name, name, terminationGracePeriodSeconds=1))
        await self.world.pass_time(10)

    async def phase(self, name: str) -> tuple[str, str]:
        """(phase, node)"""
        pod = await self.world.pod(name)
        return pod.status.phase, pod.spec.node_name

    async def delete(self, name: str) -> bool:
        """Delete a pod; tell whether it is gone in a moment."""
        await self.world.client.delete(Pod, name, "default")
        await self.world.pass_time(3)
        return name not in [
            each.metadata.name for each in (await self.world.client.list(Pod, "default")).items
        ]

    async def skips(self) -> Any:
        return (await self.world.client.get(ResourceSlice, "s1")).spec.skip_node_operations


def play(act: Callable[[Rollout], Awaitable[None]], control: dict[str, Any], node: dict[str, Any]) -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, **control, has_scheduler=True, has_controllers=True) as world:
            kubelet = await world.start_kubelet(
                "n1", version=node["version"], feature_gates=node["gates"], seconds=10
            )
            await act(Rollout(world, kubelet))

    run_virtual(main)


@statement("5945-E3.1a", "5945-E3.1b")
def test_pods_wait_while_kubelets_are_old_and_run_once_they_are_new() -> None:
    async def act(rollout: Rollout) -> None:
        await rollout.control_plane(**NEW)
        await rollout.publish()
        await rollout.start("p")
        assert await rollout.phase("p") == ("Pending", "")
        assert any(reason == "FailedScheduling" for reason, _ in await rollout.world.events("p"))
        await rollout.kubelet_as(**NEW)
        assert FEATURE in await rollout.world.declared()
        await rollout.world.pass_time(20)
        assert await rollout.phase("p") == ("Running", "n1")
        assert all(reason != FAILED for reason, _ in await rollout.world.events("p"))
        assert await rollout.delete("p")

    play(act, OLD, OLD)


@statement("5945-E3.2a")
def test_after_a_rollback_of_the_control_plane_slices_can_be_edited_and_pods_go_on() -> None:
    async def act(rollout: Rollout) -> None:
        await rollout.publish()
        await rollout.start("p")
        await rollout.control_plane("1.37", OFF)
        edited = {"metadata": {"labels": {"edited": "yes"}}}
        await rollout.world.client.patch(ResourceSlice, "s1", edited, patch_type=PatchType.MERGE)
        assert await rollout.skips() is True
        assert await rollout.phase("p") == ("Running", "n1")
        assert await rollout.delete("p")

    play(act, NEW, NEW)


@statement("5945-E3.2b", "5945-E3.2c")
def test_after_a_rollback_of_the_kubelet_its_gate_still_skips_and_its_older_version_waits() -> None:
    async def act(rollout: Rollout) -> None:
        await rollout.publish()
        for name in ("p", "q"):
            await rollout.start(name)
        await rollout.kubelet_as("1.37", OFF)
        assert await rollout.phase("p") == ("Running", "n1")
        assert await rollout.delete("p"), "the gate is off, and what was skipped stays so"
        await rollout.kubelet_as(**OLD)
        assert await rollout.phase("q") == ("Running", "n1")
        assert not await rollout.delete("q"), "an older kubelet looks for the driver"

    play(act, NEW, NEW)


@statement("5945-E3.3a", "5945-E3.3b", "5945-E3.3c", part="kubelet")
def test_up_down_up() -> None:
    async def act(rollout: Rollout) -> None:
        await rollout.control_plane(**NEW)
        await rollout.kubelet_as(**NEW)
        await rollout.publish()
        await rollout.start("first")
        await rollout.start("kept")
        assert await rollout.phase("first") == ("Running", "n1")
        # Down: the slice stays, deletion goes as in the rollback.
        await rollout.control_plane("1.37", OFF)
        await rollout.kubelet_as("1.37", OFF)
        assert await rollout.skips() is True
        assert await rollout.delete("first")
        # And further down, to a version that drops what was skipped from its checkpoint.
        await rollout.kubelet_as(**OLD)
        assert await rollout.phase("kept") == ("Running", "n1")
        # Up: new pods are skipped again, and the one that saw all of it can end.
        await rollout.control_plane(**NEW)
        await rollout.kubelet_as(**NEW)
        await rollout.start("second")
        assert await rollout.phase("second") == ("Running", "n1")
        assert await rollout.delete("second")

    play(act, OLD, OLD)

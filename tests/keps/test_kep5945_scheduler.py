"""KEP-5945 in the scheduler: what a slice says of node operations is copied, and such devices stay on nodes that can.

Against a real API server in process, in virtual time; slices, nodes and claims are written by the test.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import ResourceClaim, ResourceSlice
from nodeward.features.gates import Gates
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.scheduler.queue.queued_pod import Place
from tests.keps.ledger import statement
from tests.scheduler.plugins.devices import (
    add,
    allocation,
    claim,
    device_class,
    devices,
    exactly,
    release,
    slice_of,
    using,
)
from tests.scheduler.running import Cluster, cluster, node

FEATURE = "DraOptionalNodePreparation"
SHIPPED = "DRAOptionalNodeOperations"
ON = "DRAOptionalNodePreparation=true"
DECLARES = {"declaredFeatures": [FEATURE]}

Skips = bool | list[str] | None


def played(main: Callable[[Cluster], Awaitable[None]], *, declaring: bool = True) -> None:
    """Run in a cluster whose gates are on, with node n1, which declares the feature or not, and a class."""

    async def run(clock: VirtualClock) -> None:
        async with cluster(clock, gates=ON) as world:
            await world.add_nodes(node("n1", status=DECLARES if declaring else {}))
            await add(world, device_class())
            await main(world)

    run_virtual(run)


async def restart_scheduler(world: Cluster, gates: str, version: str = "1.37") -> None:
    """Replace the scheduler by one with other gates, or of another version; the API server stays."""
    await world.scheduler.stop()
    world.gates = Gates.of(version, gates)
    world.scheduler = world.new_scheduler(version=version)
    await world.scheduler.start()


def slice_with(skips: Skips, count: int = 1, **more: Any) -> ResourceSlice:
    said: dict[str, Any] = {} if skips is None else {"skipNodeOperations": skips}
    return slice_of(devices(count), **said, **more)


async def results(world: Cluster, name: str = "c") -> list[tuple[str, Skips]]:
    found = await allocation(world, name)
    assert found is not None
    return [(each.device, each.skip_node_operations) for each in found.devices.results]


async def told(world: Cluster, name: str = "p") -> str:
    return "".join(message for _, reason, message in await world.events(name) if reason == "FailedScheduling")


# -- copied


@statement("5945-11")
@statement("5945-12")
@statement("5945-U2")
@pytest.mark.parametrize(
    "skips", [True, False, None, ["*"], ["NodePrepareResources", "NodeUnprepareResources"]]
)
def test_what_the_slice_says_is_copied_into_every_result_as_it_is(skips: Skips) -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_with(skips, 2), claim(exactly(count=2)))
        await world.add_pods(using("p", "c"))
        assert await world.where("p") == "n1"
        assert await results(world) == [("d0", skips), ("d1", skips)]

    played(main)


@statement("5945-13")
@statement("5945-U2")
def test_devices_of_several_slices_carry_the_value_of_their_own() -> None:
    async def main(world: Cluster) -> None:
        for number, skips in enumerate((True, False, None)):
            pool = f"p{number}"
            await add(world, slice_with(skips, name=f"s{number}", pool=pool))
        await add(world, claim(exactly(count=3)))
        await world.add_pods(using("p", "c"))
        assert [skips for _, skips in await results(world)] == [True, False, None]

    played(main)


@statement("5945-11")
def test_a_claim_keeps_what_it_was_allocated_with_when_the_slice_changes() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_with(True), claim())
        await world.add_pods(using("p", "c"))
        body = {"spec": {"skipNodeOperations": False}}
        await world.client.patch(ResourceSlice, "s1", body, patch_type=PatchType.MERGE)
        await world.pass_time(5)
        assert await results(world) == [("d0", True)]

    played(main)


# -- the scheduler's gate is off


@statement("5945-14")
@statement("5945-45")
@statement("5945-U3")
@pytest.mark.parametrize("skips", [True, ["*"]])
def test_with_the_gate_off_such_a_slice_is_not_allocated_from_and_the_pod_says_why(skips: Skips) -> None:
    async def main(world: Cluster) -> None:
        await restart_scheduler(world, "DRAOptionalNodePreparation=false")
        await add(world, slice_with(skips), claim())
        await world.add_pods(using("p", "c"))
        assert await world.where("p") == ""
        assert await allocation(world) is None
        text = "devices have skipNodeOperations, but the DRAOptionalNodePreparation feature is disabled"
        assert f"0/1 nodes are available: 1 cannot allocate all claims: {text}." in await told(world)
        # Once the gate is on again, the pod is scheduled.
        await restart_scheduler(world, ON)
        await world.pass_time(2)
        assert await world.where("p") == "n1"
        assert await results(world) == [("d0", skips)]

    played(main)


@statement("5945-15")
@statement("5945-45")
@pytest.mark.parametrize("skips", [False, None])
def test_with_the_gate_off_other_slices_work_as_ever(skips: Skips) -> None:
    async def main(world: Cluster) -> None:
        await restart_scheduler(world, "")
        await add(world, slice_with(True, name="a", pool="a"))
        await add(world, slice_with(skips, name="b", pool="b"), claim())
        await world.add_pods(using("p", "c"))
        assert await world.where("p") == "n1"
        found = await allocation(world)
        assert found is not None
        [result] = found.devices.results
        assert (result.pool, result.skip_node_operations) == ("b", skips)

    played(main)


def test_a_scheduler_that_never_heard_of_it_allocates_and_leaves_the_field_out() -> None:
    async def main(world: Cluster) -> None:
        await restart_scheduler(world, "", "1.36")
        await add(world, slice_with(True), claim())
        await world.add_pods(using("p", "c"))
        assert await world.where("p") == "n1"
        assert await results(world) == [("d0", None)]

    played(main, declaring=False)


# -- nodes that declare the feature, and others


@statement("5945-35")
@statement("5945-I1")
@statement("5945-I2")
def test_a_claim_is_allocated_only_on_a_node_that_declares_the_feature() -> None:
    async def main(world: Cluster) -> None:
        for number in range(5):
            await world.add_nodes(node(f"old{number}", status={"declaredFeatures": ["Other"]}))
        await add(world, slice_with(True, 3, allNodes=True), claim(), claim(name="d"))
        await world.add_pods(using("p", "c"), using("q", "d"))
        assert await world.where("p") == await world.where("q") == "n1"

    played(main)


@statement("5945-35")
def test_a_pod_whose_claim_is_allocated_already_stays_on_nodes_that_declare_the_feature() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_with(True, allNodes=True), claim())
        await world.add_pods(using("first", "c"))
        assert await world.where("first") == "n1"
        await world.patch_node("n1", {"spec": {"unschedulable": True}})
        await world.add_nodes(node("old"))
        await world.add_pods(using("second", "c"))
        assert await world.where("second") == ""
        assert f"1 node(s) did not match node declared features: {FEATURE}" in await told(world, "second")
        await world.add_nodes(node("new", status=DECLARES))
        await world.pass_time(15)
        assert await world.where("second") == "new"

    played(main)


@statement("5945-36")
@statement("5945-I1")
@statement("5945-I3")
@statement("5945-37")
def test_a_pod_waits_for_a_node_that_declares_the_feature_and_says_so() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_with(True), claim())
        await world.add_pods(using("p", "c"))
        assert await world.where("p") == ""
        text = f"0/1 nodes are available: 1 node(s) did not match node declared features: {FEATURE}."
        assert text in await told(world)
        condition = await world.condition("p")
        assert condition is not None
        assert (condition.status, condition.reason) == ("False", "Unschedulable")
        uid = (await world.client.get(Pod, "p", "default")).metadata.uid
        await world.pass_time(30)
        assert world.scheduler.engine.queue.place_of(uid) is Place.UNSCHEDULABLE
        # Another feature does not help; this one does, without anything else happening.
        await world.patch_node("n1", {"status": {"declaredFeatures": ["Other"]}}, status=True)
        await world.pass_time(15)
        queued = world.scheduler.engine.queue.get(uid)
        assert queued is not None
        assert queued.attempts == 1
        await world.patch_node("n1", {"status": DECLARES}, status=True)
        await world.pass_time(2)
        assert await world.where("p") == "n1"
        assert await results(world) == [("d0", True)]

    played(main, declaring=False)


@statement("5945-35")
def test_another_device_is_taken_on_a_node_that_does_not_declare_the_feature() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_with(True, name="a", pool="a"), slice_with(False, name="b", pool="b"), claim())
        await world.add_pods(using("p", "c"))
        assert await world.where("p") == "n1"
        assert await results(world) == [("d0", False)]

    played(main, declaring=False)


@statement("5945-35")
@pytest.mark.parametrize(("skips", "fits"), [(["*"], True), (True, False)])
def test_a_node_that_declares_the_shipped_name_takes_the_list_form_only(skips: Skips, fits: bool) -> None:
    async def main(world: Cluster) -> None:
        await world.patch_node("n1", {"status": {"declaredFeatures": [SHIPPED]}}, status=True)
        await add(world, slice_with(skips), claim())
        await world.add_pods(using("p", "c"))
        assert bool(await world.where("p")) == fits

    played(main, declaring=False)


# -- KEP-5471 for devices


@statement("5471-T22", part="scheduler")
@pytest.mark.parametrize("gate", [True, False])
def test_numbers_in_taints_and_tolerations_of_devices_are_compared_under_the_gate(gate: bool) -> None:
    async def run(clock: VirtualClock) -> None:
        async with cluster(clock, gates="TaintTolerationComparisonOperators=true") as world:
            await world.add_nodes(node("n1"))
            await add(world, device_class())
            if not gate:
                await restart_scheduler(world, "TaintTolerationComparisonOperators=false")
            worn = [
                {"name": f"d{value}", "taints": [{"key": "wear", "value": value, "effect": "NoSchedule"}]}
                for value in ("90", "40", "x")
            ]
            await add(world, slice_of(worn))

            def tolerating(operator: str, value: str) -> dict[str, Any]:
                return exactly(tolerations=[{"key": "wear", "operator": operator, "value": value}])

            await add(
                world,
                claim(tolerating("Lt", "50"), name="less"),
                claim(tolerating("Gt", "50"), name="more"),
                claim(tolerating("Gt", "90"), name="none"),
            )
            await world.add_pods(*(using(name, name) for name in ("less", "more", "none")))
            where = await world.places()
            if not gate:
                assert where == {"less": "", "more": "", "none": ""}
                return
            assert where == {"less": "n1", "more": "n1", "none": ""}
            assert [device for device, _ in await results(world, "less")] == ["d40"]
            assert [device for device, _ in await results(world, "more")] == ["d90"]
            found = await world.client.get(ResourceClaim, "less", "default")
            assert found.status.allocation is not None
            [toleration] = found.status.allocation.devices.results[0].tolerations
            assert (toleration.operator, toleration.value) == ("Lt", "50")
            # A taint that changes lets the waiting pod in.
            await world.client.delete(Pod, "more", "default", grace_period=0)
            await release(world, "more")
            assert await world.where("none") == ""

    run_virtual(run)

"""DynamicResources in a cluster: claims are allocated and reserved before a pod is bound, and who is woken by what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.scheduler.binder import MOST
from nodeward.scheduler.queue.queued_pod import Place
from tests.controllers.cluster import Alter
from tests.scheduler.plugins.devices import (
    CLAIM_FINALIZER,
    add,
    allocation,
    claim,
    device_class,
    device_of,
    devices,
    exactly,
    made,
    release,
    slice_of,
    templated,
    using,
)
from tests.scheduler.running import Cluster, cluster, node

Send = Callable[[Request], Awaitable[Response]]
World = Callable[[Cluster], Awaitable[None]]


def played(main: World, **more: Any) -> None:
    """Run in a cluster with nodes n1 and n2 and a class for all devices."""

    async def run(clock: VirtualClock) -> None:
        async with cluster(clock, **more) as world:
            await world.add_nodes(node("n1"), node("n2"))
            await add(world, device_class())
            await main(world)

    run_virtual(run)


async def attempts(world: Cluster, name: str) -> int:
    uid = (await world.client.get(Pod, name, "default")).metadata.uid
    queued = world.scheduler.engine.queue.get(uid)
    assert queued is not None
    return queued.attempts


async def place(world: Cluster, name: str) -> Place:
    uid = (await world.client.get(Pod, name, "default")).metadata.uid
    return world.scheduler.engine.queue.place_of(uid)


async def told(world: Cluster, name: str) -> str:
    """What the last FailedScheduling event says."""
    events = [message for _, reason, message in await world.events(name) if reason == "FailedScheduling"]
    return events[-1] if events else ""


# -- allocation


def test_a_claim_is_allocated_reserved_and_protected_before_its_pod_is_bound() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_of(devices(2), nodeName="n2"), claim())
        await world.add_pods(using("p", "c"))
        assert await world.where("p") == "n2"
        found = await world.client.get(ResourceClaim, "c", "default")
        assert found.status.allocation is not None
        [result] = found.status.allocation.devices.results
        assert (result.request, result.pool, result.device) == ("r", "p1", "d0")
        assert found.status.allocation.allocation_timestamp is not None
        uid = (await world.client.get(Pod, "p", "default")).metadata.uid
        [reserved] = found.status.reserved_for
        assert (reserved.resource, reserved.name, reserved.uid) == ("pods", "p", uid)
        assert found.metadata.finalizers == [CLAIM_FINALIZER]

    played(main)


def test_no_device_is_given_to_two_claims_however_many_pods_come_at_once() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_of(devices(8)), slice_of(devices(8), name="s2", pool="p2", nodeName="n2"))
        await add(world, *(claim(name=f"c{number}") for number in range(20)))
        await world.add_pods(*(using(f"p{number}", f"c{number}", cpu="1m") for number in range(20)))
        await world.pass_time(5)
        held = [await allocation(world, f"c{number}") for number in range(20)]
        given = [
            (result.pool, result.device)
            for each in held
            if each is not None
            for result in each.devices.results
        ]
        assert len(given) == len(set(given)) == 16
        assert sum(bool(where) for where in (await world.places()).values()) == 16
        waiting = next(name for name, where in (await world.places()).items() if not where)
        text = "0/2 nodes are available: 2 cannot allocate all claims. "
        assert (await told(world, waiting)).startswith(text)

    played(main)


def test_pods_that_share_a_claim_land_where_it_was_allocated() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_of(devices(1), nodeName="n2"), claim())
        await world.add_pods(using("first", "c"), using("second", "c"))
        await world.pass_time(15)
        assert set((await world.places()).values()) == {"n2"}
        found = await world.client.get(ResourceClaim, "c", "default")
        assert {each.name for each in found.status.reserved_for} == {"first", "second"}

    played(main)


def test_a_pod_for_a_claim_that_is_allocated_elsewhere_says_so_and_the_unused_claim_is_released() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_of(devices(1)), claim())
        await world.add_pods(using("first", "c"))
        assert await world.where("first") == "n1"
        # Nobody uses the claim any more, and its node does not take pods.
        await world.client.delete(Pod, "first", "default", grace_period=0)
        await world.client.patch(
            ResourceClaim,
            "c",
            {"status": {"reservedFor": None}},
            namespace="default",
            patch_type=PatchType.MERGE,
            subresource="status",
        )
        await world.patch_node("n1", {"spec": {"unschedulable": True}})
        await add(world, slice_of(devices(1), name="s2", pool="p2", nodeName="n2"))
        await world.add_pods(using("second", "c"))
        text = await told(world, "second")
        assert "1 resourceclaim not available on the node" in text
        assert "deallocation of ResourceClaim completed" in text
        await world.pass_time(15)
        assert await world.where("second") == "n2"
        found = await allocation(world)
        assert found is not None
        assert found.devices.results[0].pool == "p2"

    played(main)


def test_the_better_alternative_decides_between_nodes() -> None:
    async def main(world: Cluster) -> None:
        await add(world, device_class("large", 'device.driver == "large.example.com"'))
        await add(
            world,
            slice_of(devices(4)),
            slice_of(devices(1), name="s2", pool="p2", nodeName="n2", driver="large.example.com"),
        )
        either = {
            "name": "q",
            "firstAvailable": [
                {"name": "large", **exactly(deviceClassName="large")["exactly"]},
                {"name": "any", **exactly()["exactly"]},
            ],
        }
        await add(world, claim(either, name="a"), claim(either, name="b"))
        await world.add_pods(using("first", "a"))
        await world.add_pods(using("second", "b"))
        assert await world.where("first") == "n2"
        assert await world.where("second") == "n1"

    played(main)


def test_shares_of_a_device_each_have_an_id_of_their_own() -> None:
    async def main(world: Cluster) -> None:
        policy = {"default": "1Gi", "validRange": {"min": "1Gi"}}
        memory = {"memory": {"value": "4Gi", "requestPolicy": policy}}
        await add(world, slice_of(devices(1, allowMultipleAllocations=True, capacity=memory)))
        wanted = exactly(capacity={"requests": {"memory": "2Gi"}})
        await add(world, *(claim(wanted, name=name) for name in "abc"))
        await world.add_pods(*(using(name, name) for name in "abc"))
        held = [await allocation(world, name) for name in "abc"]
        results = [each.devices.results[0] for each in held if each is not None]
        assert [str(each.consumed_capacity["memory"]) for each in results] == ["2Gi", "2Gi"]
        assert len({each.share_id for each in results}) == 2

    played(main)


def test_a_failed_binding_gives_the_reservation_back_and_keeps_the_allocation() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_of(devices(1)), claim())
        world.transport.alter = refusing("/binding")
        await world.add_pods(using("p", "c"))
        found = await world.client.get(ResourceClaim, "c", "default")
        assert found.status.allocation is not None
        assert found.status.reserved_for == []
        await world.pass_time(15)
        assert await world.where("p") == "n1"
        found = await world.client.get(ResourceClaim, "c", "default")
        assert [each.name for each in found.status.reserved_for] == ["p"]

    played(main)


def refusing(path: str, code: int = 500) -> Alter:
    """Answer the first request to a path with an error."""
    left = [1]

    async def alter(request: Request, send: Send) -> Response:
        if not request.path.endswith(path) or not left[0]:
            return await send(request)
        left[0] -= 1
        body = f'{{"kind":"Status","status":"Failure","reason":"Conflict","code":{code},"message":"no"}}'
        return Response(code, {"content-type": "application/json"}, body.encode())

    return alter


def test_a_claim_that_others_write_to_meanwhile_is_read_again() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_of(devices(1)), claim())
        world.transport.alter = refusing("/resourceclaims/c/status", 409)
        await world.add_pods(using("p", "c"))
        assert await world.where("p") == "n1"
        assert await device_of(world) == "d0"
        assert not await told(world, "p")

    played(main)


def test_a_claim_that_somebody_else_allocates_meanwhile_is_not_overwritten() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_of(devices(1)), claim())
        other = {"driver": "gpu.example.com", "pool": "other", "device": "x", "request": "r"}

        async def overtake(request: Request, send: Send) -> Response:
            if request.path.endswith("/resourceclaims/c/status") and not await device_of(world):
                body = {"status": {"allocation": {"devices": {"results": [other]}}}}
                await world.client.patch(
                    ResourceClaim,
                    "c",
                    body,
                    namespace="default",
                    patch_type=PatchType.MERGE,
                    subresource="status",
                )
            return await send(request)

        world.transport.alter = overtake
        await world.add_pods(using("p", "c"))
        assert "claim default/c got allocated elsewhere in the meantime" in await told(world, "p")
        assert await device_of(world) == "x"
        await world.pass_time(15)
        assert await world.where("p")
        assert await device_of(world) == "x"

    played(main)


# -- what keeps a pod out, and what lets it in


def test_a_pod_waits_gated_until_its_claim_exists() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_of(devices(1)))
        await world.add_pods(using("p", "c"))
        assert await place(world, "p") is Place.GATED
        await add(world, claim(name="other"))
        assert await place(world, "p") is Place.GATED
        await add(world, claim())
        assert await world.where("p") == "n1"

    played(main)


def test_a_pod_with_a_template_waits_until_its_generated_claim_is_told_and_is_its_own() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_of(devices(1)))
        await world.add_pods(templated("p"))
        assert await place(world, "p") is Place.GATED
        uid = (await world.client.get(Pod, "p", "default")).metadata.uid
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": True}
        own = made(
            ResourceClaim,
            {
                "metadata": {"name": "p-gpu-x", "namespace": "default", "ownerReferences": [owner]},
                "spec": {"devices": {"requests": [exactly()]}},
            },
        )
        await add(world, claim(name="foreign"), own)
        for name, expected in (("foreign", ""), ("p-gpu-x", "n1")):
            body = {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": name}]}}
            await world.client.patch(
                Pod, "p", body, namespace="default", patch_type=PatchType.MERGE, subresource="status"
            )
            await world.pass_time()
            assert await world.where("p") == expected

    played(main)


@pytest.mark.parametrize("by", ["slice", "class", "release", "taint rule", "node"])
def test_a_pod_that_found_no_device_is_woken_by_what_can_help_and_by_nothing_else(by: str) -> None:
    async def main(world: Cluster) -> None:
        selector = 'device.driver == "gpu.example.com"'
        await world.client.patch(
            DeviceClass,
            "gpu",
            {
                "spec": {
                    "selectors": [
                        {"cel": {"expression": selector if by != "class" else 'device.driver == "x"'}}
                    ]
                }
            },
            patch_type=PatchType.MERGE,
        )
        zone = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}
        if by == "node":
            await add(world, slice_of(devices(1), nodeSelector=zone))
        elif by != "slice":
            await add(world, slice_of(devices(1)))
        if by == "release":
            await add(world, claim(name="before"))
            await world.add_pods(using("before", "before"))
        rule = made(
            DeviceTaintRule,
            {
                "metadata": {"name": "broken"},
                "spec": {"deviceSelector": {"pool": "p1"}, "taint": {"key": "bad", "effect": "NoSchedule"}},
            },
        )
        if by == "taint rule":
            await add(world, rule)
        await add(world, claim())
        await world.add_pods(using("p", "c"))
        await world.pass_time(20)
        assert await attempts(world, "p") == 1
        # None of this can help.
        await add(world, slice_of(devices(1), name="nic", pool="nic", driver="nic.example.com"))
        await add(world, device_class("unrelated"), claim(name="unrelated"))
        await world.patch_node("n2", {"metadata": {"labels": {"color": "red"}}})
        await world.patch_node("n2", {"status": {"declaredFeatures": ["Something"]}}, status=True)
        await world.pass_time(20)
        assert await attempts(world, "p") == 1

        if by == "slice":
            await add(world, slice_of(devices(1)))
        elif by == "class":
            body = {"spec": {"selectors": [{"cel": {"expression": selector}}]}}
            await world.client.patch(DeviceClass, "gpu", body, patch_type=PatchType.MERGE)
        elif by == "release":
            await world.client.delete(Pod, "before", "default", grace_period=0)
            await release(world, "before")
        elif by == "taint rule":
            await world.client.delete(DeviceTaintRule, "broken")
        else:
            await world.patch_node("n1", {"metadata": {"labels": {"zone": "a"}}})
        await world.pass_time(20)
        assert await world.where("p") == "n1"

    played(main)


def test_a_change_that_says_nothing_new_wakes_nobody() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_of(devices(1)), claim(name="a"), claim(name="b"))
        await world.add_pods(using("a", "a"))
        await world.add_pods(using("b", "b"))
        await world.pass_time(20)
        assert await attempts(world, "b") == 1
        note = {"metadata": {"annotations": {"seen": "yes"}}}
        for kind, name, namespace in (
            (ResourceSlice, "s1", ""),
            (DeviceClass, "gpu", ""),
            (ResourceClaim, "a", "default"),
            (ResourceClaim, "b", "default"),
        ):
            await world.client.patch(kind, name, note, namespace=namespace, patch_type=PatchType.MERGE)
        await world.pass_time(20)
        assert await attempts(world, "b") == 1

    played(main)


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([claim(exactly(deviceClassName="none"))], "request r: device class none does not exist"),
        ([claim(), slice_of(devices(1), count=2)], "cannot allocate all claims"),
        (
            [
                claim(),
                slice_of([{"name": "d"}], name="a", count=2),
                slice_of([{"name": "d"}], name="b", count=2),
            ],
            "invalid resource pools were encountered",
        ),
    ],
)
def test_the_event_says_why_there_is_no_device(objects: list[Any], text: str) -> None:
    async def main(world: Cluster) -> None:
        await add(world, *objects)
        await world.add_pods(using("p", "c"))
        assert text in await told(world, "p")
        assert await world.where("p") == ""

    played(main)


def test_an_expression_that_fails_ends_the_attempt_with_its_error() -> None:
    async def main(world: Cluster) -> None:
        await world.client.patch(
            DeviceClass,
            "gpu",
            {"spec": {"selectors": [{"cel": {"expression": "device.attributes['x'].y == 1"}}]}},
            patch_type=PatchType.MERGE,
        )
        await add(world, slice_of(devices(1)), claim())
        await world.add_pods(using("p", "c"))
        text = await told(world, "p")
        assert text.startswith('running Filter plugin "DynamicResources": class gpu: selector #0')
        assert (await place(world, "p")) is Place.BACKOFF

    played(main)


# -- binding conditions


def test_a_pod_is_bound_once_the_binding_conditions_of_its_device_hold() -> None:
    async def main(world: Cluster) -> None:
        conditions = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
        await add(world, slice_of(devices(1, **conditions, bindsToNode=True)), claim())
        await world.add_pods(using("p", "c"))
        await world.pass_time(30)
        assert await world.where("p") == ""
        assert any(reason == "BindingConditionsPending" for _, reason, _ in await world.events("p"))
        await report(world, "Attached")
        await world.pass_time(6)
        assert await world.where("p") == "n1"
        labels = 'driver="gpu.example.com",profile="default-scheduler",status="success"'
        text = world.scheduler.metrics.text().decode()
        assert f"scheduler_dra_bindingconditions_allocations_total{{{labels}}} 1" in text
        assert f"scheduler_dra_bindingconditions_wait_duration_seconds_count{{{labels}}} 1" in text

    played(main)


def test_a_device_that_fails_to_be_attached_is_released_and_another_is_tried() -> None:
    async def main(world: Cluster) -> None:
        conditions = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Broken"]}
        await add(world, slice_of(devices(2, **conditions)), claim())
        await world.add_pods(using("p", "c"))
        await report(world, "Broken")
        await world.pass_time(30)
        assert "device binding failed: claim=c, reason=Because" in "".join(
            message for _, _, message in await world.events("p")
        )
        assert await device_of(world) != ""
        await world.pass_time(60)
        found = await world.client.get(ResourceClaim, "c", "default")
        assert found.status.devices == []
        await report(world, "Attached")
        await world.pass_time(6)
        assert await world.where("p") == "n1"

    played(main)


def test_pods_that_wait_for_their_devices_do_not_keep_others_from_being_bound() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("n1", allocatable={"cpu": "4", "memory": "8Gi", "pods": "1000"}))
            await add(world, device_class())
            count = MOST + 10
            for number in range(3):
                slow = devices(100, bindingConditions=["Attached"], bindingFailureConditions=["Broken"])
                await add(world, slice_of(slow, name=f"s{number}", pool=f"p{number}"))
            await add(world, *(claim(name=f"c{number}") for number in range(count)))
            await world.add_pods(*(using(f"p{number}", f"c{number}", cpu="1m") for number in range(count)))
            await world.add_pods(using("plain"))
            assert await world.where("plain") == "n1"
            held = [await allocation(world, f"c{number}") for number in range(count)]
            assert all(each is not None for each in held)
            assert (await world.places())["p0"] == ""

    run_virtual(main)


async def report(world: Cluster, condition: str) -> None:
    found = await world.client.get(ResourceClaim, "c", "default")
    assert found.status.allocation is not None
    result = found.status.allocation.devices.results[0]
    told_condition = {
        "type": condition,
        "status": "True",
        "reason": "Because",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    body = {
        "status": {
            "devices": [
                {
                    "driver": result.driver,
                    "pool": result.pool,
                    "device": result.device,
                    "conditions": [told_condition],
                }
            ]
        }
    }
    await world.client.patch(
        ResourceClaim, "c", body, namespace="default", patch_type=PatchType.MERGE, subresource="status"
    )
    await world.pass_time()


# -- others


def test_a_plain_pod_asks_the_plugin_nothing() -> None:
    async def main(world: Cluster) -> None:
        await add(world, slice_of(devices(1)), claim())
        plugins = world.scheduler.engine.profiles["default-scheduler"].plugins
        [plugin] = [each for each in plugins if each.name == "DynamicResources"]
        before = [*plugin._state.fits._known]  # type: ignore[attr-defined]
        found = (await world.client.get(Node, "n1")).metadata.name
        assert found == "n1"
        await world.add_pods(using("plain"))
        assert await world.where("plain")
        assert [*plugin._state.fits._known] == before  # type: ignore[attr-defined]

    played(main)

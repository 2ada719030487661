"""Pods whose devices get NoExecute taints, with the controller at work on a real API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import DeviceTaintRule, ResourceClaim, ResourceSlice
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.controllers import CONTROLLERS
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import Cluster, cluster
from tests.controllers.restarting import more_controllers
from tests.rules.devices.allocating import DRIVER, claim, devices, made, slice_of
from tests.scheduler.plugins.devices import using

NAME = "device-taint-eviction-controller"
ONLY = tuple(each for each in CONTROLLERS if each.name == NAME)
NUMBERS = "TaintTolerationComparisonOperators=true"
KEY = "example.com/broken"
FOR_EVER = {"key": KEY, "operator": "Exists", "effect": "NoExecute"}

Tree = dict[str, Any]


def played(
    main: Callable[[Cluster], Awaitable[None]],
    *,
    gates: str = NUMBERS,
    controller_gates: str | None = None,
    controllers: Any = ONLY,
) -> None:
    async def run(clock: VirtualClock) -> None:
        async with cluster(
            clock, controllers=controllers, gates=gates, controller_gates=controller_gates
        ) as world:
            await main(world)

    run_virtual(run)


def taint(effect: str = "NoExecute", **more: Any) -> Tree:
    return {"key": KEY, "effect": effect, **more}


def rule(name: str = "rule", effect: str = "NoExecute", **selector: str) -> DeviceTaintRule:
    spec = {"deviceSelector": selector, "taint": taint(effect)}
    return made(DeviceTaintRule, {"metadata": {"name": name}, "spec": spec})


def result(device: str = "d0", *tolerations: Tree, **more: Any) -> Tree:
    return {
        "request": "r",
        "driver": DRIVER,
        "pool": "p1",
        "device": device,
        "tolerations": [*tolerations],
        **more,
    }


async def run_pod(world: Cluster, name: str, *results: Tree, node: str = "n1") -> None:
    """A pod on a node, with a claim of the same name that has been allocated and reserved as the scheduler does."""
    await world.client.create(claim(name=name))
    pod = await world.client.create(using(name, name, nodeName=node))
    users = [{"resource": "pods", "name": name, "uid": pod.metadata.uid}]
    status = {"allocation": {"devices": {"results": [*results]}}, "reservedFor": users}
    await patch(world, ResourceClaim, name, {"status": status})
    await world.pass_time()


async def patch(world: Cluster, kind: type[Any], name: str, body: Tree) -> None:
    await world.client.patch(
        kind, name, body, namespace="default", patch_type=PatchType.MERGE, subresource="status"
    )


async def publish(world: Cluster, *taints: Tree, device: str = "d0", **more: Any) -> None:
    """A driver's slice with devices d0 and d1, one of which has these taints."""
    described = [{**each, "taints": [*taints]} if each["name"] == device else each for each in devices(2)]
    wanted = slice_of(described, **more)
    if await world.exists(ResourceSlice, wanted.metadata.name):
        body = {"spec": {"devices": described}}
        await world.client.patch(ResourceSlice, wanted.metadata.name, body, patch_type=PatchType.MERGE)
    else:
        await world.client.create(wanted)


async def pods(world: Cluster) -> list[str]:
    """The names of the pods that are not being deleted."""
    found = (await world.client.list(Pod, "default")).items
    return sorted(each.metadata.name for each in found if each.metadata.deletion_timestamp is None)


async def told(world: Cluster) -> list[tuple[str, str, str]]:
    """(source, pod, message) of the controller's events."""
    return [
        (each.source.component, each.involved_object.name, each.message)
        for each in (await world.client.list(Event)).items
        if each.reason == "DeviceTaintManagerEviction"
    ]


def test_a_pod_whose_device_gets_a_taint_goes_at_once_and_says_why() -> None:
    async def main(world: Cluster) -> None:
        await publish(world)
        await run_pod(world, "p", result("d0"))
        await run_pod(world, "other", result("d1"))
        await run_pod(world, "tolerant", result("d0", FOR_EVER))
        await world.client.patch(
            Pod, "p", {"metadata": {"finalizers": ["example.com/look"]}}, namespace="default"
        )
        await publish(world, taint())
        await world.pass_time(1.5)
        assert await pods(world) == ["other", "tolerant"]
        pod = await world.client.get(Pod, "p", "default")
        (condition,) = (each for each in pod.status.conditions if each.type == "DisruptionTarget")
        assert (condition.status, condition.reason, condition.message) == (
            "True",
            "DeletionByDeviceTaintManager",
            "Device Taint manager: deleting due to NoExecute taint",
        )
        assert await told(world) == [(NAME, "p", "Marking for deletion")]
        metrics = world.runner.metrics
        assert metrics.counter("device_taint_eviction_controller_pod_deletions_total", "").value() == 1
        name = "device_taint_eviction_controller_pod_deletion_duration_seconds"
        assert sum(metrics.histogram(name, "", ()).of().counts) == 1

    played(main)


@pytest.mark.parametrize(
    ("tolerations", "seconds"),
    [
        ([], 0),
        ([FOR_EVER], None),
        ([{**FOR_EVER, "tolerationSeconds": 30}], 30),
        ([{**FOR_EVER, "tolerationSeconds": 30}, {**FOR_EVER, "tolerationSeconds": 10}], 10),
        ([{**FOR_EVER, "tolerationSeconds": 10}, FOR_EVER], None),
        ([{**FOR_EVER, "tolerationSeconds": -5}], 0),
        # Tolerates the taint when devices are allocated, but does not say that it is to outlast it.
        ([{"key": KEY, "operator": "Exists"}], 0),
        ([{"operator": "Exists", "effect": "NoSchedule"}], 0),
        ([{"operator": "Exists", "effect": "NoExecute"}], None),
        ([{"key": KEY, "operator": "Equal", "value": "8", "effect": "NoExecute"}], None),
        ([{"key": KEY, "operator": "Equal", "value": "9", "effect": "NoExecute"}], 0),
        ([{"key": KEY, "operator": "Gt", "value": "7", "effect": "NoExecute"}], None),
        ([{"key": KEY, "operator": "Gt", "value": "8", "effect": "NoExecute"}], 0),
        ([{"key": KEY, "operator": "Lt", "value": "9", "effect": "NoExecute", "tolerationSeconds": 20}], 20),
    ],
)
def test_how_long_a_pod_stays(tolerations: list[Tree], seconds: int | None) -> None:
    async def main(world: Cluster) -> None:
        await publish(world)
        await run_pod(world, "p", result("d0", *tolerations))
        await publish(world, taint(value="8"))
        if seconds:
            # Times of taints are whole seconds.
            await world.pass_time(seconds - 1.1)
            assert await pods(world) == ["p"]
            await world.pass_time(1.2)
        else:
            await world.pass_time(1000 if seconds is None else 0.1)
        assert await pods(world) == (["p"] if seconds is None else [])

    played(main)


def test_numbers_protect_nobody_if_the_gate_of_the_controller_is_off() -> None:
    async def main(world: Cluster) -> None:
        await publish(world, taint(value="8"))
        above = {"key": KEY, "operator": "Gt", "value": "7", "effect": "NoExecute"}
        await run_pod(world, "p", result("d0", above))
        assert await pods(world) == []

    played(main, controller_gates="")


def test_time_runs_from_when_the_taint_was_added_also_for_a_controller_that_starts_later() -> None:
    async def main(world: Cluster) -> None:
        added = rfc3339(world.clock.now_ns() - 60 * SECOND_NS)
        await publish(world, taint(timeAdded=added))
        await run_pod(world, "soon", result("d0", {**FOR_EVER, "tolerationSeconds": 100}))
        await run_pod(world, "over", result("d0", {**FOR_EVER, "tolerationSeconds": 50}))
        assert await pods(world) == ["over", "soon"]
        async with more_controllers(world, ONLY):
            await world.pass_time(1)
            assert await pods(world) == ["soon"]
            await world.pass_time(10)
        async with more_controllers(world, ONLY):
            await world.pass_time(20)
            assert await pods(world) == ["soon"]
            await world.pass_time(10)
            assert await pods(world) == []

    played(main, controllers=())


def test_a_taint_that_goes_in_time_takes_the_deadline_along() -> None:
    async def main(world: Cluster) -> None:
        await publish(world, taint())
        await run_pod(world, "p", result("d0", {**FOR_EVER, "tolerationSeconds": 30}))
        await world.pass_time(20)
        await publish(world)
        await world.pass_time(1000)
        assert await pods(world) == ["p"]
        assert await told(world) == [(NAME, "p", "Cancelling deletion")]

    played(main)


@pytest.mark.parametrize(
    ("selector", "is_hit"),
    [
        ({}, True),
        ({"driver": DRIVER}, True),
        ({"driver": DRIVER, "pool": "p1", "device": "d0"}, True),
        ({"pool": "p1"}, True),
        ({"driver": "other.example.com"}, False),
        ({"driver": DRIVER, "pool": "p2"}, False),
        ({"driver": DRIVER, "pool": "p1", "device": "d1"}, False),
    ],
)
def test_a_rule_evicts_from_the_devices_it_selects_whether_they_are_published_or_not(
    selector: Tree, is_hit: bool
) -> None:
    async def main(world: Cluster) -> None:
        await run_pod(world, "p", result("d0"))
        await run_pod(world, "tolerant", result("d0", FOR_EVER))
        await world.client.create(rule(**selector))
        await world.pass_time(1.5)
        assert await pods(world) == (["tolerant"] if is_hit else ["p", "tolerant"])

    played(main)


def test_a_rule_evicts_once_its_effect_is_noexecute_and_no_more_when_it_is_gone() -> None:
    async def main(world: Cluster) -> None:
        await run_pod(world, "p", result("d0", {**FOR_EVER, "tolerationSeconds": 30}))
        await world.client.create(rule(effect="NoSchedule"))
        await world.pass_time(100)
        body = {"spec": {"taint": {"effect": "NoExecute"}}}
        await world.client.patch(DeviceTaintRule, "rule", body, patch_type=PatchType.MERGE)
        await world.pass_time(20)
        await world.client.delete(DeviceTaintRule, "rule")
        await world.pass_time(100)
        assert await pods(world) == ["p"]
        assert [message for _, _, message in await told(world)] == ["Cancelling deletion"]
        await world.client.create(rule())
        await world.pass_time(31)
        assert await pods(world) == []

    played(main)


@pytest.mark.parametrize(
    ("gates", "left"),
    [
        ("DRADeviceTaints=false,DRADeviceTaintRules=false", ["p", "q"]),
        ("DRADeviceTaintRules=false", ["q"]),
        ("", []),
    ],
)
def test_the_gates_of_the_controller_decide_which_taints_evict(gates: str, left: list[str]) -> None:
    async def main(world: Cluster) -> None:
        await publish(world, taint())
        await world.client.create(rule(device="d1"))
        await run_pod(world, "p", result("d0"))
        await run_pod(world, "q", result("d1"))
        await world.pass_time(10)
        assert await pods(world) == left

    played(main, gates="", controller_gates=gates)


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    async def main(world: Cluster) -> None:
        await publish(world, generation=2, name="new")
        await publish(world, taint(), name="old")
        await run_pod(world, "p", result("d0"))
        await world.pass_time(10)
        assert await pods(world) == ["p"]
        await world.client.delete(ResourceSlice, "new")
        await world.pass_time(1)
        assert await pods(world) == []

    played(main)


def test_pods_without_a_node_or_a_reservation_and_pods_that_have_ended_are_left_alone() -> None:
    async def main(world: Cluster) -> None:
        await publish(world, taint())
        await run_pod(world, "waiting", result("d0"), node="")
        await run_pod(world, "user", result("d1"))
        await world.client.create(using("guest", "user", nodeName="n1"))
        await run_pod(world, "ended", result("d1"))
        await patch(world, Pod, "ended", {"status": {"phase": "Succeeded"}})
        await world.client.create(rule(device="d1"))
        await world.pass_time(10)
        assert await pods(world) == ["ended", "guest", "waiting"]

    played(main)


def test_a_claim_with_several_devices_goes_with_the_first() -> None:
    async def main(world: Cluster) -> None:
        await publish(world, taint(), device="d1")
        await world.client.create(rule(device="d0"))
        await run_pod(
            world,
            "p",
            result("d0", {**FOR_EVER, "tolerationSeconds": 60}),
            result("d1", {**FOR_EVER, "tolerationSeconds": 20}),
        )
        await world.pass_time(15)
        assert await pods(world) == ["p"]
        await world.pass_time(5)
        assert await pods(world) == []

    played(main)


async def in_progress(world: Cluster, name: str = "rule") -> tuple[str, str, str]:
    """Status, reason and message of a rule's condition."""
    found = await world.client.get(DeviceTaintRule, name)
    [condition] = found.status.conditions
    assert condition.type == "EvictionInProgress"
    assert condition.observed_generation == found.metadata.generation
    return condition.status, condition.reason, condition.message


def test_a_rule_says_how_many_pods_have_to_go_and_how_many_went() -> None:
    async def main(world: Cluster) -> None:
        await publish(world)
        await run_pod(world, "p", result("d0", {**FOR_EVER, "tolerationSeconds": 60}))
        await run_pod(world, "q", result("d1", {**FOR_EVER, "tolerationSeconds": 30}))
        await run_pod(world, "tolerant", result("d0", FOR_EVER))
        await world.client.create(rule())
        await world.pass_time(1)
        pending = "2 pods need to be evicted in 1 namespace."
        assert await in_progress(world) == ("True", "PodsPendingEviction", pending)
        await world.pass_time(45)
        pending = "1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the controller."
        assert await in_progress(world) == ("True", "PodsPendingEviction", pending)
        await world.pass_time(30)
        went = "2 pods evicted since starting the controller."
        assert await in_progress(world) == ("False", "Completed", went)

    played(main)


def test_a_rule_without_effect_says_what_would_happen() -> None:
    async def main(world: Cluster) -> None:
        await publish(world)
        await run_pod(world, "p", result("d0"))
        await run_pod(world, "tolerant", result("d1", FOR_EVER))
        await world.client.create(rule(effect="None"))
        await world.client.create(rule("other", effect="NoSchedule"))
        await world.client.create(rule("idle", driver="other.example.com"))
        await world.pass_time(1)
        assert await in_progress(world) == (
            "False",
            "NoEffect",
            "2 published devices selected. 2 allocated devices selected. 1 pod would be evicted in 1 namespace if the "
            "effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger "
            "an update.",
        )
        other = "Eviction only happens for the NoExecute effect."
        assert await in_progress(world, "other") == ("False", "OtherEffect", other)
        assert await in_progress(world, "idle") == ("False", "NotStarted", "")
        version = (await world.client.get(DeviceTaintRule, "idle")).metadata.resource_version
        await world.pass_time(1000)
        assert await pods(world) == ["p", "tolerant"]
        assert (await world.client.get(DeviceTaintRule, "idle")).metadata.resource_version == version

    played(main)

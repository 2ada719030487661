"""KEP-5471 for devices, on a whole cluster in virtual time: stories 4 and 5, from allocation to eviction.

API server, scheduler, controllers and kubelets are at work; the test is the driver, which publishes its devices and
needs no node part. The stories' manifests are in the form of resource.k8s.io/v1, with a driver name that it accepts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import DeviceTaintRule, ResourceClaim, ResourceSlice
from nodeward.cluster.description import Pool
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.live import Live, a_pod, live
from tests.keps.ledger import statement
from tests.rules.devices.allocating import DRIVER, claim, device_class, exactly, made, slice_of

NUMBERS = "TaintTolerationComparisonOperators"
GATES = f"{NUMBERS}=true,DRAOptionalNodePreparation=true"
SLA = "node.kubernetes.io/sla"
BUDGET = f"{DRIVER}/error-budget-in-hours"


def played(main: Callable[[Live], Awaitable[None]]) -> None:
    async def run(clock: VirtualClock) -> None:
        async with live(clock, Pool(name="n", feature_gates=GATES), gates=GATES) as each:
            await each.client.create(device_class())
            await main(each)

    run_virtual(run)


def device(name: str, key: str, value: str, effect: str = "NoSchedule") -> dict[str, Any]:
    return {"name": name, "taints": [{"key": key, "value": value, "effect": effect}]}


def above(key: str, number: str, effect: str = "NoSchedule", **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": "Gt", "value": number, "effect": effect, **more}


async def publish(each: Live, *described: dict[str, Any]) -> None:
    """What the driver says of its devices now."""
    if (await each.client.list(ResourceSlice)).items:
        body = {"spec": {"devices": [*described]}}
        await each.client.patch(ResourceSlice, "s1", body, patch_type=PatchType.MERGE)
    else:
        await each.client.create(slice_of(described, allNodes=True, skipNodeOperations=True))


async def start(each: Live, name: str, *tolerations: dict[str, Any], **spec: Any) -> None:
    """A pod with a claim of the same name that tolerates this."""
    await each.client.create(claim(exactly(tolerations=[*tolerations]), name=name))
    wanted = [{"name": "gpu-claim", "resourceClaimName": name}]
    await each.client.create(a_pod(name, resourceClaims=wanted, **spec))
    await each.pass_time(10)


async def device_of(each: Live, name: str) -> str:
    """The device of a claim whose pod runs, or ""."""
    found = await each.client.get(ResourceClaim, name, "default")
    is_running = (await each.places()).get(name)
    if found.status.allocation is None or not is_running:
        return ""
    [result] = found.status.allocation.devices.results
    return result.device


async def told(each: Live, name: str) -> list[str]:
    return [message for _, _, message in await each.events(name, "DeviceTaintManagerEviction")]


@statement("5471-T22", part="scheduler")
@statement("5471-T22", part="controllers")
def test_story_4_a_claim_gets_and_keeps_only_devices_above_its_reliability() -> None:
    async def main(each: Live) -> None:
        await publish(each, device("reliable", SLA, "980"))
        await start(each, "strict", above(SLA, "985"))
        await start(
            each,
            "dra-workload",
            above(SLA, "950"),
            above(SLA, "950", "NoExecute"),
            tolerations=[above(SLA, "950")],
        )
        assert await device_of(each, "dra-workload") == "reliable"
        assert await device_of(each, "strict") == ""
        # The driver measures less, first above the threshold, then below.
        await publish(each, device("reliable", SLA, "960", "NoExecute"))
        await each.pass_time(60)
        assert await device_of(each, "dra-workload") == "reliable"
        assert await told(each, "dra-workload") == []
        await publish(each, device("reliable", SLA, "940", "NoExecute"))
        await each.pass_time(60)
        assert "dra-workload" not in await each.places()
        assert await told(each, "dra-workload") == ["Marking for deletion"]
        found = await each.client.get(ResourceClaim, "dra-workload", "default")
        assert found.status.allocation is None, "the device is free again"

    played(main)


@statement("5471-T22", part="scheduler")
@statement("5471-T22", part="controllers")
def test_story_5_the_error_budget_of_a_device_decides_who_gets_it_and_who_has_to_leave() -> None:
    async def main(each: Live) -> None:
        fresh, aging, worn = ("fresh", "30"), ("aging", "8"), ("worn", "0")
        await publish(each, *(device(name, BUDGET, hours) for name, hours in (worn, aging, fresh)))
        leave = {"tolerationSeconds": 120}
        await start(each, "inference", above(BUDGET, "24"), above(BUDGET, "24", "NoExecute"))
        await start(each, "training", above(BUDGET, "1"), above(BUDGET, "0", "NoExecute", **leave))
        await start(each, "late", above(BUDGET, "1"))
        assert await device_of(each, "inference") == "fresh"
        assert await device_of(each, "training") == "aging"
        assert await device_of(each, "late") == "", "the worn device is for nobody"
        # The budgets shrink; the driver asks users to leave.
        await publish(
            each,
            device("worn", BUDGET, "0"),
            device("aging", BUDGET, "1", "NoExecute"),
            device("fresh", BUDGET, "25", "NoExecute"),
        )
        await each.pass_time(100)
        assert await device_of(each, "inference") == "fresh"
        assert await device_of(each, "training") == "aging", "it has two minutes to save its work"
        await each.pass_time(60)
        assert set(await each.places()) == {"inference", "late"}
        # One hour less, and the critical workload may not use the device any more.
        await publish(each, device("fresh", BUDGET, "24", "NoExecute"))
        await each.pass_time(60)
        assert set(await each.places()) == {"late"}
        pods = (await each.client.list(Pod, "default")).items
        assert [pod.metadata.name for pod in pods] == ["late"]

    played(main)


@statement("5471-T22", part="controllers")
@pytest.mark.parametrize("gate", [True, False])
def test_numbers_keep_pods_on_tainted_devices_only_under_the_gate_of_the_controllers(gate: bool) -> None:
    async def main(each: Live) -> None:
        await publish(each, {"name": "d0"})
        await start(each, "p", above(BUDGET, "7", "NoExecute"))
        if not gate:
            await each.cluster.controllers.restart(gates=GATES.replace(f"{NUMBERS}=true", f"{NUMBERS}=false"))
        taint = {"key": BUDGET, "value": "8", "effect": "NoExecute"}
        spec = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
        await each.client.create(made(DeviceTaintRule, {"metadata": {"name": "r"}, "spec": spec}))
        await each.pass_time(60)
        assert ("p" in await each.places()) == gate
        lower = {"spec": {"taint": {"value": "7"}}}
        await each.client.patch(DeviceTaintRule, "r", lower, patch_type=PatchType.MERGE)
        await each.pass_time(60)
        assert await each.places() == {}

    played(main)

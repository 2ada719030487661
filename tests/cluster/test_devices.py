"""Whole clusters with devices: every pod gets its own, and pods that end give their devices to those who wait.

The driver has no part on the nodes: its slices say `skipNodeOperations` (KEP-5945).
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from nodeward.api.batch_v1 import Job
from nodeward.api.codec import from_tree
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from nodeward.cluster.description import Pool
from nodeward.machinery.client import Client
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.cluster.whole import whole_cluster
from tests.rules.devices.allocating import device_class, devices, exactly, slice_of

NODES = 3
PER_NODE = 2
GATES = "DRAOptionalNodePreparation=true"
POOL = Pool(name="a", nodes=NODES, feature_gates=GATES)


def template() -> ResourceClaimTemplate:
    metadata = {"name": "gpu", "namespace": "default"}
    spec = {"spec": {"devices": {"requests": [exactly()]}}}
    return from_tree({"metadata": metadata, "spec": spec}, ResourceClaimTemplate)


def slices() -> list[ResourceSlice]:
    return [
        slice_of(
            devices(PER_NODE),
            name=f"s{number}",
            pool=f"a-{number}",
            nodeName=f"a-{number}",
            skipNodeOperations=True,
        )
        for number in range(NODES)
    ]


def work(name: str, pods: int, seconds: int) -> Job:
    """A job whose pods all want to run at once, each with a device, and end by themselves."""
    pod: dict[str, Any] = {
        "metadata": {"annotations": {"simulation.nodeward.dev/pod": f"run-time={seconds}s"}},
        "spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "c", "image": "image", "resources": {"claims": [{"name": "gpu"}]}}],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
        },
    }
    spec = {"completions": pods, "parallelism": pods, "template": pod}
    return from_tree({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Job)


async def holders(client: Client) -> Counter[tuple[str, str]]:
    """How many claims hold each device."""
    listed = await client.list(ResourceClaim, "default")
    return Counter(
        (result.pool, result.device)
        for each in listed.items
        if each.status.allocation is not None
        for result in each.status.allocation.devices.results
    )


def test_pods_of_a_job_pass_their_devices_on_until_all_have_run() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, gates=GATES, pools=(POOL,)) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            for each in (device_class(), template(), *slices()):
                await client.create(each)
            await client.create(work("train", 20, 30))
            most = 0
            for _ in range(40):
                await clock.sleep(5)
                held = await holders(client)
                assert all(count == 1 for count in held.values())
                most = max(most, len(held))
            assert most == NODES * PER_NODE
            job = await client.get(Job, "train", "default")
            assert job.status.succeeded == 20
            pods = (await client.list(Pod, "default")).items
            assert {pod.status.phase for pod in pods} == {"Succeeded"}
            # Claims of pods that have run are gone although the pods are still there.
            assert (await client.list(ResourceClaim, "default")).items == []

    run_virtual(main)


def test_a_restarted_scheduler_knows_which_devices_are_taken() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, gates=GATES, pools=(POOL,)) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            for each in (device_class(), template(), *slices()):
                await client.create(each)
            await client.create(work("first", 4, 1000))
            await clock.sleep(5)
            await cluster.scheduler.restart()
            await client.create(work("second", 4, 1000))
            await clock.sleep(5)
            held = await holders(client)
            assert len(held) == NODES * PER_NODE
            assert all(count == 1 for count in held.values())
            phases = Counter(pod.status.phase for pod in (await client.list(Pod, "default")).items)
            assert phases == {"Running": 6, "Pending": 2}
            await client.delete(Job, "first", "default", propagation="Background")
            await clock.sleep(60)
            phases = Counter(pod.status.phase for pod in (await client.list(Pod, "default")).items)
            assert phases == {"Running": 4}
            assert len(await holders(client)) == 4

    run_virtual(main)


def test_a_class_that_is_deleted_leaves_running_pods_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, gates=GATES, pools=(POOL,)) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            for each in (device_class(), template(), *slices()):
                await client.create(each)
            await client.create(work("train", 2, 1000))
            await clock.sleep(5)
            await client.delete(DeviceClass, "gpu")
            await clock.sleep(60)
            assert len(await holders(client)) == 2
            phases = {pod.status.phase for pod in (await client.list(Pod, "default")).items}
            assert phases == {"Running"}

    run_virtual(main)

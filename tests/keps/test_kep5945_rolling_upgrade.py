"""KEP-5945, scenario 3.1: the control plane is upgraded before the kubelets, in a whole cluster and in virtual time."""

from __future__ import annotations

from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import ResourceClaim
from nodeward.cluster.description import Pool
from nodeward.machinery.client import Client
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.cluster.whole import whole_cluster
from tests.keps.ledger import statement
from tests.rules.devices.allocating import claim, device_class, devices, slice_of
from tests.scheduler.plugins.devices import using

ON = "DRAOptionalNodePreparation=true"
FEATURE = "DraOptionalNodePreparation"
OLD = Pool(name="a", nodes=3, version="1.36")


async def told(client: Client, name: str) -> set[str]:
    """The warnings about a pod."""
    listed = await client.list(Event, "default")
    return {
        f"{each.reason}: {each.message}"
        for each in listed.items
        if each.involved_object.name == name and each.type == "Warning"
    }


@statement("5945-E3.1a")
@statement("5945-E3.1b")
def test_a_pod_without_a_driver_waits_for_kubelets_that_can_skip_and_then_runs_and_ends_cleanly() -> None:
    async def main(clock: VirtualClock) -> None:
        async with whole_cluster(clock, gates=ON, pools=(OLD,)) as cluster:
            client = cluster.client("test")
            await clock.sleep(2)
            await client.create(device_class())
            await client.create(slice_of(devices(2), allNodes=True, skipNodeOperations=True))
            await client.create(claim())
            await client.create(using("p", "c"))
            await clock.sleep(60)
            found = await client.get(Pod, "p", "default")
            assert (found.spec.node_name, found.status.phase) == ("", "Pending")
            text = f"0/3 nodes are available: 3 node(s) did not match node declared features: {FEATURE}."
            assert any(each.startswith(f"FailedScheduling: {text}") for each in await told(client, "p"))
            assert (await client.get(ResourceClaim, "c", "default")).status.allocation is None

            await cluster.change_pool(OLD.upgraded("1.37", ON))
            await clock.sleep(60)
            found = await client.get(Pod, "p", "default")
            assert found.status.phase == "Running"
            allocation = (await client.get(ResourceClaim, "c", "default")).status.allocation
            assert allocation is not None
            assert [each.skip_node_operations for each in allocation.devices.results] == [True]
            assert not any("FailedPrepareDynamicResources" in each for each in await told(client, "p"))

            await client.delete(Pod, "p", "default", grace_period=1)
            await clock.sleep(5)
            assert not [
                each for each in (await client.list(Pod, "default")).items if each.metadata.name == "p"
            ]
            assert (await client.get(ResourceClaim, "c", "default")).status.allocation is None

    run_virtual(main)

"""A resize seen by the whole cluster: the scheduler waits for what is still held, and takes what was given back."""

from __future__ import annotations

from nodeward.api.core_v1.cluster import ResourceQuota, ResourceQuotaSpec
from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.base.quantity import Quantity
from nodeward.kubelet.runtime.resources import ContainerResources
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.keps.node_identity import NodeWorld, node_world


def pod(name: str, cpu: str) -> Pod:
    resources = ResourceRequirements(requests={"cpu": Quantity.parse(cpu)})
    spec = PodSpec(containers=[Container(name="c", image="i", resources=resources)])
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


async def resize(world: NodeWorld, name: str, cpu: str) -> None:
    await world.resize(name, {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]})
    await world.pass_time(5)


async def is_bound(world: NodeWorld, name: str) -> bool:
    return bool((await world.pod(name)).spec.node_name)


def silent(uid: str, container: str, resources: ContainerResources) -> None:
    """A runtime that does not answer."""


def test_the_scheduler_takes_what_a_resize_gave_back_once_the_runtime_has_done_it() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, has_scheduler=True, has_controllers=True) as world:
            kubelet = await world.start_kubelet(seconds=15)
            await world.add(pod("large", "6"), pod("next", "4"))
            assert (await is_bound(world, "large"), await is_bound(world, "next")) == (True, False)
            update, kubelet.runtime.update_resources = kubelet.runtime.update_resources, silent  # type: ignore[method-assign]
            await resize(world, "large", "2")
            status = (await world.pod("large")).status
            assert str(status.container_statuses[0].allocated_resources["cpu"]) == "2"
            assert not await is_bound(world, "next"), "the runtime has given nothing back yet"
            kubelet.runtime.update_resources = update  # type: ignore[method-assign]
            await kubelet.restart(seconds=10)
            assert await is_bound(world, "next")
            assert (await world.pod("next")).status.phase == "Running"

    run_virtual(main)


def test_the_scheduler_counts_what_a_deferred_resize_asks_for() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, has_scheduler=True, has_controllers=True) as world:
            await world.start_kubelet(seconds=15)
            await world.add(pod("one", "5"), pod("two", "2"))
            await resize(world, "two", "4")
            found = [
                each for each in (await world.pod("two")).status.conditions if each.type == "PodResizePending"
            ]
            assert [each.reason for each in found] == ["Deferred"]
            await world.add(pod("third", "1"))
            assert not await is_bound(world, "third"), "the node has a CPU, which is promised"
            await resize(world, "two", "2")
            await world.pass_time(10)
            assert await is_bound(world, "third"), "what was taken back is free again"

    run_virtual(main)


def test_a_quota_counts_what_is_asked_for_and_still_held() -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, has_scheduler=True, has_controllers=True) as world:
            kubelet = await world.start_kubelet(seconds=15)
            spec = ResourceQuotaSpec(hard={"requests.cpu": Quantity.parse("6")})
            await world.add(ResourceQuota(metadata=ObjectMeta(name="q", namespace="default"), spec=spec))
            await world.add(pod("web", "2"))

            async def used() -> str:
                found = await world.client.get(ResourceQuota, "q", "default")
                return str(found.status.used["requests.cpu"])

            await resize(world, "web", "5")
            await world.pass_time(10)
            assert await used() == "5"
            kubelet.runtime.update_resources = silent  # type: ignore[method-assign]
            await resize(world, "web", "1")
            await world.pass_time(10)
            assert await used() == "5", "the runtime has given nothing back yet"

    run_virtual(main)

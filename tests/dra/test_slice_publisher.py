"""Publishing devices: slices of the right size, written only when something changed, whole pools at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nodeward.api.resource_v1 import ResourceSlice
from nodeward.dra.device_profile import DeviceProfile, load_profile
from nodeward.dra.slice_publisher import SlicePublisher
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import running, settings


def profile(count: int, driver: str = "gpu.example.com", place: str = "allNodes: true") -> DeviceProfile:
    text = f"""
apiVersion: nodeward.dev/v1alpha1
kind: DeviceProfile
driver: {driver}
pools: [{{name: p, count: {count}, {place}}}]
"""
    return load_profile(text.encode(), "test")


def play(act: Callable[[Client], Awaitable[None]]) -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(settings(), clock=clock) as server:
            await act(server.client("driver"))

    run_virtual(main)


async def slices(client: Client) -> list[tuple[int, int, int]]:
    """(devices, generation, slices of the pool) of all slices."""
    found = (await client.list(ResourceSlice)).items
    return sorted(
        (len(each.spec.devices), each.spec.pool.generation, each.spec.pool.resource_slice_count)
        for each in found
    )


def test_a_pool_has_slices_of_at_most_128_devices_and_is_written_once() -> None:
    async def act(client: Client) -> None:
        publisher = SlicePublisher(client)
        assert await publisher.publish(profile(300)) == 3
        assert await slices(client) == [(44, 1, 3), (128, 1, 3), (128, 1, 3)]
        assert await publisher.publish(profile(300)) == 0

    play(act)


def test_a_pool_that_changes_gets_a_new_generation_in_all_of_its_slices() -> None:
    async def act(client: Client) -> None:
        publisher = SlicePublisher(client)
        await publisher.publish(profile(300))
        assert await publisher.publish(profile(200)) == 3  # two are written and one deleted
        assert await slices(client) == [(72, 2, 2), (128, 2, 2)]

    play(act)


def test_slices_of_other_drivers_and_nodes_stay() -> None:
    async def act(client: Client) -> None:
        await SlicePublisher(client).publish(profile(1, "other.example.com"))
        await SlicePublisher(client, "n2").publish(profile(2, place="nodeName: n2"))
        mine = SlicePublisher(client, "n1")
        await mine.publish(profile(3, place="nodeName: n1"))
        await mine.withdraw("gpu.example.com")
        assert [count for count, *_ in await slices(client)] == [1, 2]

    play(act)


def test_slices_that_somebody_deletes_or_changes_are_published_again() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(settings(), clock=clock) as server:
            client = server.client("driver")
            publisher = SlicePublisher(client, "n1")
            mine = profile(3, place="nodeName: n1")
            keeping = asyncio.create_task(publisher.keep(mine, clock, SeededChance(1)))
            await publisher.publish(mine)
            await clock.sleep(5)
            # As a real kubelet does when it starts.
            await client.delete_collection(ResourceSlice, field_selector="spec.nodeName=n1")
            await clock.sleep(5)
            assert await slices(client) == [(3, 1, 1)]
            [published] = (await client.list(ResourceSlice)).items
            published.spec.devices.pop()
            await client.update(published)
            await clock.sleep(5)
            assert await slices(client) == [(3, 2, 1)]
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    run_virtual(main)

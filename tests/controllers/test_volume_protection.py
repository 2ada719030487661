"""A volume that is deleted goes when it is not bound any more, and not before."""

from __future__ import annotations

from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeSpec
from nodeward.api.core_v1.volume_sources import HostPathVolumeSource
from nodeward.api.meta import ObjectMeta
from nodeward.base.quantity import Quantity
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.volume_protection import FINALIZER
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import Cluster, cluster

ONLY = tuple(entry for entry in CONTROLLERS if entry.name == "persistentvolume-protection-controller")
HOLD = "example.com/hold"


def volume(*finalizers: str) -> PersistentVolume:
    return PersistentVolume(
        metadata=ObjectMeta(name="v", finalizers=[*finalizers]),
        spec=PersistentVolumeSpec(
            capacity={"storage": Quantity.parse("1Gi")},
            access_modes=["ReadWriteOnce"],
            host_path=HostPathVolumeSource(path="/data"),
        ),
    )


async def set_phase(each: Cluster, phase: str) -> None:
    found = await each.client.get(PersistentVolume, "v")
    found.status.phase = phase
    await each.client.update(found, subresource="status")
    await each.pass_time()


async def finalizers(each: Cluster) -> list[str]:
    return (await each.client.get(PersistentVolume, "v")).metadata.finalizers


def test_a_volume_nobody_uses_goes_at_once() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=ONLY) as each:
            await each.client.create(volume())
            assert await finalizers(each) == [FINALIZER]
            await each.client.delete(PersistentVolume, "v")
            await each.pass_time()
            assert not await each.exists(PersistentVolume, "v")

    run_virtual(main)


def test_a_volume_stays_as_long_as_it_is_bound() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=ONLY) as each:
            await each.client.create(volume())
            await set_phase(each, "Bound")
            await each.client.delete(PersistentVolume, "v")
            await each.pass_time(3600)
            assert await finalizers(each) == [FINALIZER]
            await set_phase(each, "Released")
            assert not await each.exists(PersistentVolume, "v")

    run_virtual(main)


def test_a_volume_without_protection_is_given_it_and_other_finalizers_are_left_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=ONLY) as each:
            await each.client.create(volume(HOLD))
            await each.client.patch(PersistentVolume, "v", {"metadata": {"finalizers": None}})
            await each.pass_time()
            assert await finalizers(each) == [FINALIZER]
            await each.client.patch(PersistentVolume, "v", {"metadata": {"finalizers": [HOLD]}})
            await each.pass_time()
            assert await finalizers(each) == [HOLD, FINALIZER]
            await each.client.delete(PersistentVolume, "v")
            await each.pass_time()
            assert await finalizers(each) == [HOLD]

    run_virtual(main)

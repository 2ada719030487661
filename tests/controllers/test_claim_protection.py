"""A claim that is deleted goes when no pod uses it any more, and not before."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.core_v1.volume import Volume
from nodeward.api.core_v1.volume_sources import PersistentVolumeClaimVolumeSource
from nodeward.api.meta import ObjectMeta
from nodeward.controllers import CONTROLLERS
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import cluster
from tests.controllers.statefulset.sets import claim
from tests.controllers.workloads import NAMESPACE, template

ONLY = tuple(entry for entry in CONTROLLERS if entry.name == "persistentvolumeclaim-protection-controller")


def user(name: str, node: str) -> Pod:
    spec = template().spec
    spec.node_name = node
    source = PersistentVolumeClaimVolumeSource(claim_name="data")
    spec.volumes = [Volume(name="data", persistent_volume_claim=source)]
    return Pod(metadata=ObjectMeta(name=name, namespace=NAMESPACE), spec=spec)


@pytest.mark.parametrize(("node", "stays"), [("n1", True), ("", False)])
def test_a_claim_stays_as_long_as_a_pod_on_a_node_uses_it(node: str, stays: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=ONLY) as each:
            wanted = claim("data")
            wanted.metadata.namespace = NAMESPACE
            await each.client.create(wanted)
            for name in ("a", "b"):
                await each.client.create(user(name, node))
            await each.pass_time()
            await each.client.delete(PersistentVolumeClaim, "data", NAMESPACE)
            for name in ("a", "b"):
                await each.pass_time()
                assert await each.exists(PersistentVolumeClaim, "data", NAMESPACE) == stays
                await each.client.delete(Pod, name, NAMESPACE, grace_period=0)
            await each.pass_time()
            assert not await each.exists(PersistentVolumeClaim, "data", NAMESPACE)

    run_virtual(main)


def test_other_finalizers_are_left_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=ONLY) as each:
            wanted = claim("data")
            wanted.metadata.namespace = NAMESPACE
            wanted.metadata.finalizers = ["example.com/hold"]
            await each.client.create(wanted)
            await each.client.delete(PersistentVolumeClaim, "data", NAMESPACE)
            await each.pass_time()
            left = await each.client.get(PersistentVolumeClaim, "data", NAMESPACE)
            assert left.metadata.finalizers == ["example.com/hold"]

    run_virtual(main)

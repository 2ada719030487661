"""Every active namespace has the certificates by which pods know the API server."""

from __future__ import annotations

from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.meta import ObjectMeta
from nodeward.controllers.root_ca import ANNOTATION, DESCRIPTION, NAME
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import ROOT_CA, cluster


def test_every_namespace_old_or_new_gets_the_map() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            await each.create_namespace("fresh")
            for namespace in ("default", "kube-node-lease", "kube-public", "kube-system", "fresh"):
                found = await each.client.get(ConfigMap, NAME, namespace)
                assert found.data == {"ca.crt": ROOT_CA}
                assert found.metadata.annotations == {ANNOTATION: DESCRIPTION}

    run_virtual(main)


def test_changes_are_undone_but_labels_and_other_annotations_stay() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            found = await each.client.get(ConfigMap, NAME, "default")
            found.data = {"ca.crt": "forged", "more": "stuff"}
            found.metadata.labels = {"mine": "yes"}
            found.metadata.annotations = {"note": "kept"}
            await each.client.update(found)
            await each.pass_time()
            mended = await each.client.get(ConfigMap, NAME, "default")
            assert mended.data == {"ca.crt": ROOT_CA}
            assert mended.metadata.labels == {"mine": "yes"}
            assert mended.metadata.annotations == {"note": "kept", ANNOTATION: DESCRIPTION}

    run_virtual(main)


def test_a_deleted_map_comes_back_and_another_map_is_nobodys_business() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            other = ConfigMap(metadata=ObjectMeta(name="other", namespace="default"), data={"ca.crt": "x"})
            await each.client.create(other)
            await each.client.delete(ConfigMap, NAME, "default")
            await each.pass_time()
            assert (await each.client.get(ConfigMap, NAME, "default")).data == {"ca.crt": ROOT_CA}
            assert (await each.client.get(ConfigMap, "other", "default")).data == {"ca.crt": "x"}

    run_virtual(main)


def test_a_map_that_is_right_is_not_written_again() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            before = await each.client.get(ConfigMap, NAME, "default")
            await each.pass_time(3600)
            after = await each.client.get(ConfigMap, NAME, "default")
            assert after.metadata.resource_version == before.metadata.resource_version

    run_virtual(main)


def test_without_certificates_nothing_is_published() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, root_ca=None) as each:
            await each.pass_time()
            assert (await each.client.list(ConfigMap)).items == []

    run_virtual(main)

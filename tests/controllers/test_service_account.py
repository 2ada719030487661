"""Every active namespace has its default service account."""

from __future__ import annotations

from nodeward.api.core_v1.cluster import Namespace, ServiceAccount
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import cluster


def test_system_namespaces_have_their_account_once_the_runner_has_settled() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            accounts = (await each.client.list(ServiceAccount)).items
            found = sorted((a.metadata.namespace, a.metadata.name) for a in accounts)
            assert found == [
                (name, "default") for name in ("default", "kube-node-lease", "kube-public", "kube-system")
            ]

    run_virtual(main)


def test_a_new_namespace_gets_an_account_and_then_takes_pods() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, admits_accountless_pods=False) as each:
            await each.create_namespace("fresh")
            pod = await each.client.create(
                Pod(
                    metadata=ObjectMeta(name="p", namespace="fresh"),
                    spec=PodSpec(containers=[Container(name="c", image="i")]),
                )
            )
            assert pod.spec.service_account_name == "default"

    run_virtual(main)


def test_a_deleted_account_comes_back_and_another_does_not() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            await each.client.create(ServiceAccount(metadata=ObjectMeta(name="builder", namespace="default")))
            first = await each.client.get(ServiceAccount, "default", "default")
            for name in ("default", "builder"):
                await each.client.delete(ServiceAccount, name, "default")
            await each.pass_time()
            second = await each.client.get(ServiceAccount, "default", "default")
            assert second.metadata.uid != first.metadata.uid
            assert not await each.exists(ServiceAccount, "builder", "default")

    run_virtual(main)


def test_a_terminating_namespace_is_left_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            await each.create_namespace("going")
            await each.client.delete(Namespace, "going")
            await each.client.delete(ServiceAccount, "default", "going")
            await each.pass_time()
            assert await each.exists(Namespace, "going")
            assert not await each.exists(ServiceAccount, "default", "going")

    run_virtual(main)

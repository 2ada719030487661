"""Cascading deletion, as the Kubernetes documentation describes it: background, foreground, orphan, and bad owners."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable

import pytest

from nodeward.api.core_v1.cluster import ConfigMap, Event, Secret
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import KubeObject, ObjectMeta, OwnerReference
from nodeward.api.rbac_v1 import ClusterRole
from nodeward.controllers import CONTROLLERS
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import Caller
from tests.controllers.cluster import Cluster, cluster
from tests.controllers.restarting import more_controllers

NAME = "generic-garbage-collector"
ONLY = tuple(entry for entry in CONTROLLERS if entry.name == NAME)
HELD = "example.com/held"
Send = Callable[[Request], Awaitable[Response]]


def run(main: Callable[[Cluster], Awaitable[None]]) -> None:
    async def inner(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=ONLY) as each:
            await main(each)

    run_virtual(inner)


def owned_by(*owners: KubeObject, blocks: bool = True) -> list[OwnerReference]:
    return [
        OwnerReference(
            api_version=owner.api_version,
            kind=owner.kind,
            name=owner.metadata.name,
            uid=owner.metadata.uid,
            block_owner_deletion=blocks,
        )
        for owner in owners
    ]


async def make(
    each: Cluster,
    name: str,
    *owners: KubeObject,
    blocks: bool = True,
    finalizers: tuple[str, ...] = (),
    namespace: str = "default",
    type_: type[ConfigMap] | type[Secret] = ConfigMap,
) -> KubeObject:
    meta = ObjectMeta(
        name=name,
        namespace=namespace,
        owner_references=owned_by(*owners, blocks=blocks),
        finalizers=list(finalizers),
    )
    return await each.client.create(type_(metadata=meta))


async def names(each: Cluster, namespace: str = "default") -> list[str]:
    found = (await each.client.list(ConfigMap, namespace)).items
    return sorted(item.metadata.name for item in found)


async def owners_of(each: Cluster, name: str) -> list[str]:
    found = await each.client.get(ConfigMap, name, "default")
    return [reference.name for reference in found.metadata.owner_references]


async def release(each: Cluster, name: str) -> None:
    """As the controller of the finalizer would."""
    found = await each.client.get(ConfigMap, name, "default")
    others = [finalizer for finalizer in found.metadata.finalizers if finalizer != HELD]
    body = {"metadata": {"finalizers": others}}
    await each.client.patch(ConfigMap, name, body, namespace="default", patch_type=PatchType.MERGE)


def test_in_the_background_the_owner_goes_at_once_and_its_dependents_follow() -> None:
    async def main(each: Cluster) -> None:
        top = await make(each, "top")
        middle = await make(each, "middle", top)
        await make(each, "bottom", middle)
        await make(each, "secret", middle, type_=Secret)
        await make(each, "other")
        await each.client.delete(ConfigMap, "top", "default", propagation="Background")
        assert not await each.exists(ConfigMap, "top", "default")
        await each.pass_time()
        assert await names(each) == ["other"]
        assert not await each.exists(Secret, "secret", "default")

    run(main)


def test_without_a_policy_dependents_go_in_the_background() -> None:
    async def main(each: Cluster) -> None:
        top = await make(each, "top")
        await make(each, "leaf", top)
        await each.client.delete(ConfigMap, "top", "default")
        await each.pass_time()
        assert await names(each) == []

    run(main)


def test_in_the_foreground_the_owner_stays_until_its_blocking_dependents_are_gone() -> None:
    async def main(each: Cluster) -> None:
        top = await make(each, "top")
        middle = await make(each, "middle", top)
        await make(each, "bottom", middle, finalizers=(HELD,))
        await each.client.delete(ConfigMap, "top", "default", propagation="Foreground")
        await each.pass_time()
        assert await names(each) == ["bottom", "middle", "top"]
        for name in ("top", "middle"):
            meta = (await each.client.get(ConfigMap, name, "default")).metadata
            assert meta.deletion_timestamp is not None, name
            assert meta.finalizers == ["foregroundDeletion"], name
        await release(each, "bottom")
        await each.pass_time()
        assert await names(each) == []

    run(main)


def test_a_dependent_that_does_not_block_is_not_waited_for() -> None:
    async def main(each: Cluster) -> None:
        top = await make(each, "top")
        await make(each, "leaf", top, blocks=False, finalizers=(HELD,))
        await each.client.delete(ConfigMap, "top", "default", propagation="Foreground")
        await each.pass_time()
        assert await names(each) == ["leaf"]
        assert (await each.client.get(ConfigMap, "leaf", "default")).metadata.deletion_timestamp is not None

    run(main)


def test_orphans_stay_and_forget_their_owner() -> None:
    async def main(each: Cluster) -> None:
        top, other = await make(each, "top"), await make(each, "other")
        await make(each, "leaf", top)
        await make(each, "shared", top, other)
        await each.client.delete(ConfigMap, "top", "default", propagation="Orphan")
        await each.pass_time()
        assert await names(each) == ["leaf", "other", "shared"]
        assert await owners_of(each, "leaf") == []
        assert await owners_of(each, "shared") == ["other"]

    run(main)


def test_an_orphaning_owner_does_not_wait_for_a_dependent_that_is_held_by_another() -> None:
    async def main(each: Cluster) -> None:
        top = await make(each, "top")
        await make(each, "leaf", top, finalizers=(HELD,))
        await each.client.delete(ConfigMap, "leaf", "default")
        await each.client.delete(ConfigMap, "top", "default", propagation="Orphan")
        await each.pass_time()
        assert await names(each) == ["leaf"]
        assert await owners_of(each, "leaf") == []

    run(main)


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ({"propagationPolicy": "Background"}, []),
        ({"propagationPolicy": "Foreground"}, []),
        ({"propagationPolicy": "Orphan"}, ["leaf"]),
        ({"orphanDependents": True}, ["leaf"]),
        ({"orphanDependents": False}, []),
    ],
    ids=str,
)
def test_delete_bodies_mean_what_they_mean_in_kubernetes(body: dict[str, object], left: list[str]) -> None:
    async def main(each: Cluster) -> None:
        top = await make(each, "top")
        await make(each, "leaf", top)
        sent = {"kind": "DeleteOptions", "apiVersion": "v1", **body}
        caller = Caller.of(each.server)
        status, _ = await caller.json("DELETE", "/api/v1/namespaces/default/configmaps/top", sent)
        assert status == 200
        await each.pass_time()
        assert await names(each) == left

    run(main)


def test_with_another_owner_left_only_the_reference_goes() -> None:
    async def main(each: Cluster) -> None:
        first, second = await make(each, "first"), await make(each, "second")
        await make(each, "leaf", first, second)
        await each.client.delete(ConfigMap, "first", "default")
        await each.pass_time()
        assert await owners_of(each, "leaf") == ["second"]
        await each.client.delete(ConfigMap, "second", "default", propagation="Foreground")
        await each.pass_time()
        assert await names(each) == []

    run(main)


def test_a_foreground_owner_is_forgotten_by_dependents_that_stay_for_another() -> None:
    async def main(each: Cluster) -> None:
        first, second = await make(each, "first"), await make(each, "second")
        await make(each, "leaf", first, second)
        await each.client.delete(ConfigMap, "first", "default", propagation="Foreground")
        await each.pass_time()
        assert await names(each) == ["leaf", "second"]
        assert await owners_of(each, "leaf") == ["second"]

    run(main)


def test_an_owner_made_again_under_its_name_is_another_owner() -> None:
    async def main(each: Cluster) -> None:
        top = await make(each, "top")
        await each.client.delete(ConfigMap, "top", "default")
        await make(each, "top")
        await make(each, "leaf", top)
        await each.pass_time()
        assert await names(each) == ["top"]

    run(main)


def test_a_dependent_born_after_its_owner_is_gone_goes_too() -> None:
    async def main(each: Cluster) -> None:
        top = await make(each, "top")
        await each.client.delete(ConfigMap, "top", "default")
        await each.pass_time()
        await make(each, "late", top)
        await each.pass_time()
        assert await names(each) == []

    run(main)


def test_an_owner_in_another_namespace_is_no_owner_and_an_event_says_so() -> None:
    async def main(each: Cluster) -> None:
        await each.create_namespace("elsewhere")
        top = await make(each, "top", namespace="elsewhere")
        leaf = await make(each, "leaf", top)
        await each.pass_time()
        assert await names(each) == []
        assert await names(each, "elsewhere") == ["top"]
        (event,) = (await each.client.list(Event, "default")).items
        assert (event.type, event.reason) == ("Warning", "OwnerRefInvalidNamespace")
        assert event.involved_object.uid == leaf.metadata.uid
        assert event.source.component == "garbage-collector-controller"
        assert event.message == (
            f"ownerRef [v1/ConfigMap, namespace: default, name: top, uid: {top.metadata.uid}] "
            'does not exist in namespace "default"'
        )

    run(main)


def test_cluster_scoped_owners_own_in_every_namespace() -> None:
    async def main(each: Cluster) -> None:
        role = await each.client.create(ClusterRole(metadata=ObjectMeta(name="r")))
        await make(each, "leaf", role)
        await each.pass_time()
        assert await names(each) == ["leaf"]
        await each.client.delete(ClusterRole, "r")
        await each.pass_time()
        assert await names(each) == []

    run(main)


def test_a_cluster_scoped_dependent_of_a_namespaced_owner_is_never_collected() -> None:
    async def main(each: Cluster) -> None:
        top = await make(each, "top")
        meta = ObjectMeta(name="r", owner_references=owned_by(top))
        await each.client.create(ClusterRole(metadata=meta))
        await each.client.delete(ConfigMap, "top", "default")
        await each.pass_time(120)
        assert await each.exists(ClusterRole, "r")

    run(main)


def test_an_owner_of_a_kind_nobody_serves_keeps_its_dependents() -> None:
    async def main(each: Cluster) -> None:
        reference = OwnerReference(api_version="example.com/v1", kind="Widget", name="w", uid="u")
        meta = ObjectMeta(name="leaf", namespace="default", owner_references=[reference])
        await each.client.create(ConfigMap(metadata=meta))
        await each.pass_time(120)
        assert await names(each) == ["leaf"]

    run(main)


def test_owners_that_wait_for_each_other_in_a_circle_all_go() -> None:
    async def main(each: Cluster) -> None:
        first = await make(each, "a")
        second = await make(each, "b", first)
        third = await make(each, "c", second)
        first.metadata.owner_references = owned_by(third)
        await each.client.update(first)
        await each.client.delete(ConfigMap, "a", "default", propagation="Foreground")
        await each.pass_time()
        assert await names(each) == []

    run(main)


def test_a_dependent_that_got_a_new_owner_at_the_last_moment_is_kept() -> None:
    async def main(each: Cluster) -> None:
        top, rescuer = await make(each, "top"), await make(each, "rescuer")
        await make(each, "leaf", top)
        await each.pass_time()
        rescued: list[str] = []

        async def meddle(request: Request, send: Send) -> Response:
            if request.method == "DELETE" and not rescued:
                rescued.append(request.path)
                found = await each.client.get(ConfigMap, "leaf", "default")
                found.metadata.owner_references = owned_by(rescuer)
                await each.client.update(found)
            return await send(request)

        each.transports[NAME].alter = meddle
        await each.client.delete(ConfigMap, "top", "default")
        await each.pass_time()
        assert len(rescued) == 1
        assert await names(each) == ["leaf", "rescuer"]

    run(main)


def test_a_dependent_that_changes_in_other_ways_all_the_time_goes_nevertheless() -> None:
    async def main(each: Cluster) -> None:
        top = await make(each, "top")
        await make(each, "leaf", top)
        await each.pass_time()
        preconditions: list[dict[str, str]] = []

        async def meddle(request: Request, send: Send) -> Response:
            if request.method == "DELETE":
                preconditions.append(json.loads(request.body)["preconditions"])
                if len(preconditions) == 1:
                    body = {"data": {"count": "1"}}
                    await each.client.patch(ConfigMap, "leaf", body, namespace="default")
            return await send(request)

        each.transports[NAME].alter = meddle
        await each.client.delete(ConfigMap, "top", "default")
        await each.pass_time()
        assert await names(each) == []
        assert [sorted(each) for each in preconditions] == [["resourceVersion", "uid"], ["uid"]]

    run(main)


def test_a_pod_with_a_node_ends_with_its_grace() -> None:
    async def main(each: Cluster) -> None:
        top = await make(each, "top")
        spec = PodSpec(containers=[Container(name="c", image="i")], node_name="n")
        meta = ObjectMeta(name="p", namespace="default", owner_references=owned_by(top))
        await each.client.create(Pod(metadata=meta, spec=spec))
        await each.client.delete(ConfigMap, "top", "default", propagation="Foreground")
        await each.pass_time()
        pod = await each.client.get(Pod, "p", "default")
        assert pod.metadata.deletion_grace_period_seconds == 30
        assert await each.exists(ConfigMap, "top", "default")
        await each.client.delete(Pod, "p", "default", grace_period=0)  # as its kubelet would
        await each.pass_time()
        assert not await each.exists(ConfigMap, "top", "default")

    run(main)


def test_nothing_happens_before_the_kinds_are_known() -> None:
    async def refuse(request: Request, send: Send) -> Response:
        return Response(500, {}, b"out of order") if request.path == "/apis" else await send(request)

    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=()) as each:
            top = await make(each, "top")
            await make(each, "leaf", top, finalizers=(HELD,))
            await each.client.delete(ConfigMap, "top", "default", propagation="Foreground")
            async with more_controllers(each, ONLY, alter=refuse) as (runner, transports):
                await each.pass_time(30)
                leaf = await each.client.get(ConfigMap, "leaf", "default")
                assert leaf.metadata.deletion_timestamp is None
                errors = runner.metrics.counter("garbagecollector_controller_resources_sync_error_total", "")
                assert errors.value() > 0
                transports[NAME].alter = None
                await each.pass_time(60)
                leaf = await each.client.get(ConfigMap, "leaf", "default")
                assert leaf.metadata.deletion_timestamp is not None
                assert await names(each) == ["leaf", "top"]

    run_virtual(main)

"""A deleted namespace is emptied, and goes when nothing is left in it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from nodeward.api.core_v1.cluster import ConfigMap, Event, Namespace, ServiceAccount
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.meta import KubeObject, ObjectMeta
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import Cluster, cluster

NAMESPACE = "going"
Send = Callable[[Request], Awaitable[Response]]


def _meta(name: str, *finalizers: str) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=NAMESPACE, finalizers=list(finalizers))


def _pod(name: str, *finalizers: str, node: str = "", grace: int = 30) -> Pod:
    spec = PodSpec(
        containers=[Container(name="c", image="i")], node_name=node, termination_grace_period_seconds=grace
    )
    return Pod(metadata=_meta(name, *finalizers), spec=spec)


async def _conditions(each: Cluster) -> dict[str, tuple[str, str, str]]:
    namespace = await each.client.get(Namespace, NAMESPACE)
    return {c.type: (c.status, c.reason, c.message) for c in namespace.status.conditions}


async def _drop_finalizers(each: Cluster, type_: type[KubeObject], name: str, namespace: str) -> None:
    body = {"metadata": {"finalizers": None}}
    await each.client.patch(type_, name, body, namespace=namespace, patch_type=PatchType.MERGE)


def test_everything_in_it_goes_and_then_the_namespace_itself() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            await each.create_namespace(NAMESPACE)
            await each.create_namespace("other")
            await each.client.create(ConfigMap(metadata=_meta("a")))
            await each.client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="other")))
            await each.client.create(_pod("not-scheduled"))
            about = ObjectReference(kind="Pod", name="not-scheduled", namespace=NAMESPACE)
            await each.client.create(Event(metadata=_meta("e"), involved_object=about))
            await each.client.delete(Namespace, NAMESPACE)
            assert (await each.client.get(Namespace, NAMESPACE)).status.phase == "Terminating"
            await each.pass_time(4.9)
            assert await each.exists(ConfigMap, "a", NAMESPACE), (
                "every API server is given time to hear of it"
            )
            await each.pass_time(0.2)
            assert not await each.exists(Namespace, NAMESPACE)
            for type_ in (ConfigMap, Pod, Event, ServiceAccount):
                assert (await each.client.list(type_, NAMESPACE)).items == [], type_
            assert await each.exists(ConfigMap, "a", "other")

    run_virtual(main)


def test_pods_end_with_their_grace_before_anything_else_is_touched() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            await each.create_namespace(NAMESPACE)
            await each.client.create(ConfigMap(metadata=_meta("needed")))
            await each.client.create(Node(metadata=ObjectMeta(name="n1")))
            await each.client.create(_pod("busy", node="n1", grace=100))
            await each.client.delete(Namespace, NAMESPACE)
            await each.pass_time(60)
            pod = await each.client.get(Pod, "busy", NAMESPACE)
            assert pod.metadata.deletion_grace_period_seconds == 100
            assert await each.exists(ConfigMap, "needed", NAMESPACE)
            remaining = (await _conditions(each))["NamespaceContentRemaining"]
            message = "Some resources are remaining: pods. has 1 resource instances"
            assert remaining == ("True", "SomeResourcesRemain", message)
            await each.client.delete(Pod, "busy", NAMESPACE, grace_period=0)  # as its kubelet would
            # It looks again after half the grace, and a second.
            await each.pass_time(51)
            assert not await each.exists(Namespace, NAMESPACE)

    run_virtual(main)


def test_pods_that_outstay_their_grace_are_reported_and_tried_again_within_a_minute() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            await each.create_namespace(NAMESPACE)
            await each.client.create(Node(metadata=ObjectMeta(name="lost")))
            await each.client.create(_pod("stuck", node="lost", grace=10))
            await each.client.delete(Namespace, NAMESPACE)
            await each.pass_time(600)
            problem = "unexpected items still remain in namespace: going for gvr: /v1, Resource=pods"
            assert (await _conditions(each))["NamespaceDeletionContentFailure"] == (
                "True",
                "ContentDeletionFailed",
                f"Failed to delete all resource types, 1 remaining: {problem}",
            )
            await each.client.delete(Pod, "stuck", NAMESPACE, grace_period=0)
            await each.pass_time(60)
            assert not await each.exists(Namespace, NAMESPACE)

    run_virtual(main)


def test_finalizers_are_waited_for_and_named() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            await each.create_namespace(NAMESPACE)
            for name in ("a", "b"):
                await each.client.create(ConfigMap(metadata=_meta(name, "example.com/keep")))
            await each.client.create(ConfigMap(metadata=_meta("free")))
            await each.client.delete(Namespace, NAMESPACE)
            await each.pass_time(60)
            assert not await each.exists(ConfigMap, "free", NAMESPACE)
            assert await _conditions(each) == {
                "NamespaceDeletionDiscoveryFailure": (
                    "False", "ResourcesDiscovered", "All resources successfully discovered",
                ),
                "NamespaceDeletionGroupVersionParsingFailure": (
                    "False", "ParsedGroupVersions", "All legacy kube types successfully parsed",
                ),
                "NamespaceDeletionContentFailure": (
                    "False",
                    "ContentDeleted",
                    "All content successfully deleted, may be waiting on finalization",
                ),
                "NamespaceContentRemaining": (
                    "True",
                    "SomeResourcesRemain",
                    "Some resources are remaining: configmaps. has 2 resource instances",
                ),
                "NamespaceFinalizersRemaining": (
                    "True",
                    "SomeFinalizersRemain",
                    "Some content in the namespace has finalizers remaining: "
                    "example.com/keep in 2 resource instances",
                ),
            }  # fmt: skip
            for name in ("a", "b"):
                await _drop_finalizers(each, ConfigMap, name, NAMESPACE)
            await each.pass_time(9)
            assert not await each.exists(Namespace, NAMESPACE)

    run_virtual(main)


def test_a_namespace_with_a_finalizer_of_its_own_is_emptied_but_stays() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            metadata = ObjectMeta(name=NAMESPACE, finalizers=["example.com/mine"])
            await each.client.create(Namespace(metadata=metadata))
            await each.client.create(ConfigMap(metadata=_meta("a")))
            await each.client.delete(Namespace, NAMESPACE)
            await each.pass_time(60)
            assert not await each.exists(ConfigMap, "a", NAMESPACE)
            left = await each.client.get(Namespace, NAMESPACE)
            assert left.spec.finalizers == []
            assert {c.status for c in left.status.conditions} == {"False"}
            await _drop_finalizers(each, Namespace, NAMESPACE, "")
            assert not await each.exists(Namespace, NAMESPACE)

    run_virtual(main)


def test_a_finalizer_in_the_spec_that_is_not_ours_is_left_to_its_owner() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            await each.create_namespace(NAMESPACE)
            namespace = await each.client.get(Namespace, NAMESPACE)
            namespace.spec.finalizers.append("example.com/tenant")
            await each.client.update(namespace, subresource="finalize")
            await each.client.delete(Namespace, NAMESPACE)
            await each.pass_time(60)
            namespace = await each.client.get(Namespace, NAMESPACE)
            assert namespace.spec.finalizers == ["example.com/tenant"]
            namespace.spec.finalizers = []
            await each.client.update(namespace, subresource="finalize")
            assert not await each.exists(Namespace, NAMESPACE)

    run_virtual(main)


def test_as_long_as_kinds_cannot_be_listed_nothing_is_let_go() -> None:
    async def refuse(request: Request, send: Send) -> Response:
        return Response(500, {}, b"out of order") if request.path == "/apis" else await send(request)

    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            way = each.transports["namespace-controller"]
            way.alter = refuse
            await each.create_namespace(NAMESPACE)
            await each.client.delete(Namespace, NAMESPACE)
            await each.pass_time(300)
            status, reason, message = (await _conditions(each))["NamespaceDeletionDiscoveryFailure"]
            assert (status, reason) == ("True", "DiscoveryFailed")
            assert "out of order" in message
            way.alter = None
            await each.pass_time(60)
            assert not await each.exists(Namespace, NAMESPACE)

    run_virtual(main)


@pytest.mark.parametrize("is_listed", [True, False], ids=["said to be", "not said to be"])
def test_kinds_that_cannot_be_deleted_all_at_once_are_deleted_one_by_one(is_listed: bool) -> None:
    deleted: list[str] = []

    async def serve_less(request: Request, send: Send) -> Response:
        response = await send(request)
        if request.path == "/api/v1" and not is_listed:
            body = (response.body or b"").replace(b'"deletecollection",', b"")
            return Response(response.status, response.headers, body)
        if request.method == "DELETE":
            deleted.append(request.path)
        return response

    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            each.transports["namespace-controller"].alter = serve_less
            await each.create_namespace(NAMESPACE)
            await each.client.create(ConfigMap(metadata=_meta("a")))
            await each.client.delete(Namespace, NAMESPACE)
            await each.pass_time(60)
            assert not await each.exists(Namespace, NAMESPACE)

    run_virtual(main)
    maps = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    assert (maps in deleted) == is_listed
    assert (f"{maps}/a" in deleted) != is_listed


def test_a_kind_that_fails_does_not_keep_the_others_and_is_reported() -> None:
    async def refuse(request: Request, send: Send) -> Response:
        is_hit = request.method == "DELETE" and request.path.endswith("/secrets")
        return Response(500, {}, b"no secrets today") if is_hit else await send(request)

    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            way = each.transports["namespace-controller"]
            way.alter = refuse
            await each.create_namespace(NAMESPACE)
            await each.client.create(ConfigMap(metadata=_meta("a")))
            await each.client.delete(Namespace, NAMESPACE)
            await each.pass_time(60)
            assert not await each.exists(ConfigMap, "a", NAMESPACE)
            status, reason, message = (await _conditions(each))["NamespaceDeletionContentFailure"]
            assert (status, reason) == ("True", "ContentDeletionFailed")
            assert message.startswith("Failed to delete all resource types, 1 remaining: ")
            assert "no secrets today" in message
            way.alter = None
            await each.pass_time(60)
            assert not await each.exists(Namespace, NAMESPACE)

    run_virtual(main)


def test_somebody_elses_write_in_between_is_met_by_trying_again_on_the_newer_object() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            await each.create_namespace(NAMESPACE)
            conflicts: list[str] = []

            async def meddle(request: Request, send: Send) -> Response:
                if request.method == "PUT" and request.path not in conflicts:
                    body = {"metadata": {"labels": {"touched": str(len(conflicts))}}}
                    await each.client.patch(Namespace, NAMESPACE, body)
                    response = await send(request)
                    assert response.status == 409
                    conflicts.append(request.path)
                    return response
                return await send(request)

            each.transports["namespace-controller"].alter = meddle
            await each.client.delete(Namespace, NAMESPACE)
            await each.pass_time(5.001)
            assert [path.rpartition("/")[2] for path in conflicts] == ["status", "finalize"]
            assert not await each.exists(Namespace, NAMESPACE)

    run_virtual(main)


def test_many_namespaces_end_at_the_same_time() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as each:
            names = [f"many-{number}" for number in range(25)]
            for name in names:
                await each.client.create(Namespace(metadata=ObjectMeta(name=name)))
            await each.pass_time()
            for name in names:
                await each.client.delete(Namespace, name)
            await each.pass_time(6)
            left = [each.metadata.name for each in (await each.client.list(Namespace)).items]
            assert left == ["default", "kube-node-lease", "kube-public", "kube-system"]

    run_virtual(main)

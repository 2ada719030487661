"""ResourceClaims: made from templates, told to the pod, reserved, released when nobody uses them, and protected."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.pod import Pod
from nodeward.api.resource_v1 import ResourceClaim, ResourceClaimTemplate
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.resource_claim.generating import LONGEST_BASE, generated_base
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import Cluster, cluster
from tests.controllers.restarting import more_controllers

NAME = "resource-claim-controller"
ONLY = [each for each in CONTROLLERS if each.name == NAME]
FINALIZER = "resource.kubernetes.io/delete-protection"
ANNOTATION = "resource.kubernetes.io/pod-claim-name"
REQUESTS = [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]
RESULT = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d"}


def played(main: Callable[[Cluster], Awaitable[None]]) -> None:
    async def run(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=ONLY) as world:
            await main(world)

    run_virtual(run)


def template(name: str = "gpu", **metadata: Any) -> ResourceClaimTemplate:
    spec = {"metadata": metadata, "spec": {"devices": {"requests": REQUESTS}}}
    return from_tree(
        {"metadata": {"name": name, "namespace": "default"}, "spec": spec}, ResourceClaimTemplate
    )


def claim(name: str = "c", finalizers: list[str] | None = None, **metadata: Any) -> ResourceClaim:
    meta = {"name": name, "namespace": "default", "finalizers": finalizers or [], **metadata}
    return from_tree({"metadata": meta, "spec": {"devices": {"requests": REQUESTS}}}, ResourceClaim)


def pod(name: str = "p", *, node: str = "", **entries: str) -> Pod:
    """A pod with claims: `entry="claim"`, or from a template: `entry="@template"`."""
    wanted = [
        {"name": entry, "resourceClaimTemplateName": of[1:]}
        if of.startswith("@")
        else {"name": entry, "resourceClaimName": of}
        for entry, of in entries.items()
    ]
    spec = {"containers": [{"name": "c", "image": "i"}], "resourceClaims": wanted, "nodeName": node}
    return from_tree({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Pod)


async def add(world: Cluster, *objects: Any) -> None:
    for each in objects:
        await world.client.create(each)
    await world.pass_time()


async def patch(world: Cluster, kind: type[Any], name: str, body: dict[str, Any]) -> None:
    await world.client.patch(
        kind, name, body, namespace="default", patch_type=PatchType.MERGE, subresource="status"
    )


async def claims(world: Cluster) -> list[ResourceClaim]:
    return [*(await world.client.list(ResourceClaim, "default")).items]


async def get(world: Cluster, name: str = "c") -> ResourceClaim:
    return await world.client.get(ResourceClaim, name, "default")


async def allocate(world: Cluster, *users: Pod | str, name: str = "c", **others: Any) -> None:
    """What the scheduler writes; a user that is a name has never existed."""
    entries = []
    for each in users:
        if isinstance(each, str):
            entries.append({"resource": "pods", "name": each, "uid": f"uid-of-{each}"})
        else:
            uid = (await world.client.get(Pod, each.metadata.name, "default")).metadata.uid
            entries.append({"resource": "pods", "name": each.metadata.name, "uid": uid})
    status = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": entries, **others}
    await patch(world, ResourceClaim, name, {"status": status})
    await world.pass_time()


async def statuses(world: Cluster, name: str = "p") -> dict[str, str | None]:
    found = await world.client.get(Pod, name, "default")
    return {each.name: each.resource_claim_name for each in found.status.resource_claim_statuses}


# -- claims from templates


def test_a_claim_is_made_from_a_template_and_told_to_its_pod() -> None:
    async def main(world: Cluster) -> None:
        await add(world, template(labels={"team": "a"}, annotations={"note": "b"}), pod(gpu="@gpu"))
        [found] = await claims(world)
        assert found.metadata.name.startswith("p-gpu-")
        assert len(found.metadata.name) == len("p-gpu-") + 5
        assert found.metadata.labels == {"team": "a"}
        assert found.metadata.annotations == {"note": "b", ANNOTATION: "gpu"}
        owner = await world.client.get(Pod, "p", "default")
        [reference] = found.metadata.owner_references
        assert (reference.kind, reference.uid, reference.controller) == ("Pod", owner.metadata.uid, True)
        assert found.spec.devices.requests[0].name == "r"
        assert await statuses(world) == {"gpu": found.metadata.name}
        assert "ResourceClaimController" in {each.manager for each in owner.metadata.managed_fields}

    played(main)


def test_every_entry_of_a_pod_gets_a_claim_of_its_own_and_named_claims_are_left_alone() -> None:
    async def main(world: Cluster) -> None:
        await add(world, template(), claim("own"), pod(a="@gpu", b="@gpu", c="own"))
        names = await statuses(world)
        assert sorted(names) == ["a", "b"]
        assert {each.metadata.name for each in await claims(world)} == {*names.values(), "own"}

    played(main)


def test_a_pod_whose_template_comes_later_is_told_and_then_served() -> None:
    async def main(world: Cluster) -> None:
        await add(world, pod(gpu="@gpu"))
        events = (await world.client.list(Event, "default")).items
        assert {(each.type, each.reason) for each in events} == {("Warning", "FailedResourceClaimCreation")}
        missing = 'resourceclaimtemplate.resource.k8s.io "gpu" not found'
        assert events[0].message == f'PodResourceClaim gpu: resource claim template "gpu": {missing}'
        assert await claims(world) == []
        await add(world, template())
        assert len(await claims(world)) == 1
        assert await statuses(world)

    played(main)


def test_a_generated_claim_that_was_lost_is_made_again() -> None:
    async def main(world: Cluster) -> None:
        await add(world, template(), pod(gpu="@gpu"))
        before = await statuses(world)
        await world.client.delete(ResourceClaim, str(before["gpu"]), "default")
        await world.pass_time(2)
        after = await statuses(world)
        assert after["gpu"] not in (None, before["gpu"])
        assert [each.metadata.name for each in await claims(world)] == [after["gpu"]]

    played(main)


def test_a_claim_that_was_made_and_not_told_is_used_and_none_is_made_twice() -> None:
    async def main(world: Cluster) -> None:
        left = [3]

        async def refuse(request: Request, send: Any) -> Response:
            if request.path.endswith("/pods/p/status") and left[0]:
                left[0] -= 1
                body = (
                    b'{"kind":"Status","status":"Failure","reason":"InternalError","code":500,"message":"no"}'
                )
                return Response(500, {"content-type": "application/json"}, body)
            response: Response = await send(request)
            return response

        world.transports[NAME].alter = refuse
        await add(world, template(), pod(gpu="@gpu"))
        await world.pass_time(5)
        [found] = await claims(world)
        assert await statuses(world) == {"gpu": found.metadata.name}
        assert left == [0]

    played(main)


@pytest.mark.parametrize(
    ("pod_name", "entry", "expected"),
    [
        ("web", "gpu", "web-gpu-"),
        ("p" * 50, "gpu", "p" * 50 + "-gpu-"),
        # Both parts lose the same share.
        ("p" * 100, "e" * 20, "p" * 46 + "-" + "e" * 9),
    ],
)
def test_names_of_generated_claims_keep_a_part_of_both_names(
    pod_name: str, entry: str, expected: str
) -> None:
    assert generated_base(pod_name, entry) == expected
    assert len(expected) <= LONGEST_BASE


def test_a_pod_that_is_deleted_or_done_gets_no_claims() -> None:
    async def main(world: Cluster) -> None:
        await add(world, pod("done", gpu="@gpu"), pod("kept", gpu="@other"))
        await patch(world, Pod, "done", {"status": {"phase": "Succeeded"}})
        await add(world, template())
        await world.pass_time(60)
        assert await claims(world) == []

    played(main)


# -- reservations


def test_a_pod_that_was_bound_past_the_scheduler_is_added_to_the_users_of_its_claim() -> None:
    async def main(world: Cluster) -> None:
        await add(world, claim(finalizers=[FINALIZER]))
        await allocate(
            world, "unknown", reservedFor=[{"apiGroup": "x.io", "resource": "y", "name": "z", "uid": "1"}]
        )
        await add(world, pod(gpu="c", node="n1"))
        users = (await get(world)).status.reserved_for
        assert [(each.resource, each.name) for each in users] == [("y", "z"), ("pods", "p")]

    played(main)


def test_a_claim_is_released_when_its_last_pod_has_gone_and_not_before() -> None:
    async def main(world: Cluster) -> None:
        one, two = pod("one", gpu="c", node="n1"), pod("two", gpu="c", node="n1")
        await add(world, claim(finalizers=[FINALIZER, "example.com/other"]), one, two)
        await allocate(world, one, two)
        await world.client.delete(Pod, "one", "default", grace_period=0)
        await world.pass_time()
        found = await get(world)
        assert [each.name for each in found.status.reserved_for] == ["two"]
        assert found.status.allocation is not None
        await world.client.delete(Pod, "two", "default", grace_period=0)
        await world.pass_time()
        found = await get(world)
        assert found.status.reserved_for == []
        assert found.status.allocation is None
        assert found.metadata.finalizers == ["example.com/other"]

    played(main)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_releases_its_claim_although_it_still_exists(phase: str) -> None:
    async def main(world: Cluster) -> None:
        user = pod(gpu="c", node="n1")
        await add(world, claim(finalizers=[FINALIZER]), user)
        await allocate(world, user)
        await patch(world, Pod, "p", {"status": {"phase": "Running"}})
        await world.pass_time()
        assert (await get(world)).status.allocation is not None
        await patch(world, Pod, "p", {"status": {"phase": phase}})
        await world.pass_time()
        found = await get(world)
        assert (found.status.allocation, found.status.reserved_for, found.metadata.finalizers) == (
            None,
            [],
            [],
        )

    played(main)


def test_users_that_never_existed_or_were_replaced_are_removed_and_those_of_unknown_kinds_stay() -> None:
    async def main(world: Cluster) -> None:
        foreign = {"apiGroup": "example.com", "resource": "things", "name": "t", "uid": "1"}
        replaced = {"resource": "pods", "name": "p", "uid": "uid-before"}
        await add(world, claim(finalizers=[FINALIZER]), pod(gpu="c"))
        await allocate(
            world, reservedFor=[foreign, replaced, {"resource": "pods", "name": "gone", "uid": "2"}]
        )
        found = await get(world)
        assert [each.name for each in found.status.reserved_for] == ["t"]
        assert found.status.allocation is not None

    played(main)


def test_an_allocated_claim_that_nobody_ever_used_stays_allocated() -> None:
    async def main(world: Cluster) -> None:
        await add(world, claim(finalizers=[FINALIZER]))
        await allocate(world)
        await world.pass_time(10)
        assert (await get(world)).status.allocation is not None

    played(main)


# -- the end of a claim


def test_a_deleted_claim_goes_when_nobody_uses_it_any_more() -> None:
    async def main(world: Cluster) -> None:
        user = pod(gpu="c", node="n1")
        await add(world, claim(finalizers=[FINALIZER]), user)
        await allocate(world, user)
        await world.client.delete(ResourceClaim, "c", "default")
        await world.pass_time()
        assert (await get(world)).metadata.deletion_timestamp is not None
        await world.client.delete(Pod, "p", "default", grace_period=0)
        await world.pass_time()
        assert not await world.exists(ResourceClaim, "c", "default")

    played(main)


def test_a_deleted_claim_that_is_allocated_and_unused_goes_at_once() -> None:
    async def main(world: Cluster) -> None:
        await add(world, claim(finalizers=[FINALIZER]))
        await allocate(world)
        await world.client.delete(ResourceClaim, "c", "default")
        await world.pass_time()
        assert not await world.exists(ResourceClaim, "c", "default")

    played(main)


def test_the_generated_claim_of_a_pod_that_has_ended_is_deleted() -> None:
    async def main(world: Cluster) -> None:
        user = pod(gpu="@gpu", node="n1")
        await add(world, template(), user)
        [found] = await claims(world)
        await world.client.patch(
            ResourceClaim,
            found.metadata.name,
            {"metadata": {"finalizers": [FINALIZER]}},
            namespace="default",
            patch_type=PatchType.MERGE,
        )
        await allocate(world, user, name=found.metadata.name)
        await patch(world, Pod, "p", {"status": {"phase": "Succeeded"}})
        await world.pass_time()
        assert await claims(world) == []

    played(main)


def test_a_restarted_controller_releases_what_was_left_behind() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=ONLY) as world:
            user = pod(gpu="c", node="n1")
            await add(world, claim(finalizers=[FINALIZER]), user)
            await allocate(world, user)
            await world.runner.stop()
            await world.client.delete(Pod, "p", "default", grace_period=0)
            await world.pass_time()
            assert (await get(world)).status.allocation is not None
            async with more_controllers(world, ONLY):
                assert (await get(world)).status.allocation is None

    run_virtual(main)


def test_claims_and_their_creation_are_counted() -> None:
    async def main(world: Cluster) -> None:
        await add(world, template(), claim(), pod(gpu="@gpu"))
        await allocate(world)
        text = world.runner.metrics.text().decode()
        name = "dynamic_resource_allocation_resource_claims"
        assert f'{name}{{admin_access="false",allocated="true",source=""}} 1' in text
        assert f'{name}{{admin_access="false",allocated="false",source="resource_claim_template"}} 1' in text
        created = "dynamic_resource_allocation_resourceclaim_creates_total"
        owner = 'owner_api_group="",owner_api_kind="Pod"'
        assert f'{created}{{admin_access="false",{owner},status="success"}} 1' in text

    played(main)

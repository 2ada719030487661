"""Volumes are bound through the API before their pod is; the test plays whoever controls volumes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.meta import KubeObject
from nodeward.api.storage_v1 import StorageClass
from nodeward.base.duration import SECOND_NS
from nodeward.machinery.client import Client
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.scheduler.framework.plugin import CycleState
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code, Status
from nodeward.scheduler.plugins.volume_binding import VolumeBinding
from tests.apiserver.running import running
from tests.scheduler.cache.objects import node
from tests.scheduler.plugins.preempting import Cluster
from tests.scheduler.plugins.storage import DRIVER, ZONE, claim, only_in, storage_class, using, volume

T = TypeVar("T", bound=KubeObject)
SELECTED = "volume.kubernetes.io/selected-node"
COMPLETED = "pv.kubernetes.io/bind-completed"


class World:
    """An API server's objects, as a scheduler follows them."""

    def __init__(self, client: Client, clock: VirtualClock) -> None:
        self.client, self.clock = client, clock
        self.cluster = Cluster(client=client)
        for name in ("a0", "b0"):
            self.cluster.table.upsert_node(node(name, labels={ZONE: name[0]}))
        self.plugin = next(each for each in self.cluster.plugins if isinstance(each, VolumeBinding))

    async def follow(self, kind: type[KubeObject]) -> None:
        async with self.client.watch(kind, resource_version="0") as watch:
            async for event in watch:
                if event.type in ("ADDED", "MODIFIED"):
                    self.cluster.listers.put(event.object)

    async def create(self, obj: T, **status: Any) -> T:
        """Store an object as its owner would, status included, and wait until it is known."""
        obj.metadata.uid = obj.metadata.resource_version = ""
        stored = await self.client.create(obj)
        if status:
            stored = await self.client.patch(
                type(obj),
                obj.metadata.name,
                {"status": status},
                namespace=obj.metadata.namespace,
                subresource="status",
            )
        await self.clock.sleep(0.01)
        return stored

    def placed(self, view: PodView, at: str) -> tuple[CycleState, Status]:
        """The pod is decided to go to a node."""
        assert at in self.cluster.classes.explain(view).fitting
        cycle = self.cluster.classes.cycle(view)
        self.cluster.table.assume(view, at)
        return cycle, self.plugin.reserve(cycle, view, at)

    async def complete(self, name: str, of: str) -> None:
        """What the controller of volumes does when it sees a volume reserved for a claim."""
        body = {"metadata": {"annotations": {COMPLETED: "yes"}}, "spec": {"volumeName": of}}
        await self.client.patch(PersistentVolumeClaim, name, body, namespace="default")


@asynccontextmanager
async def world(clock: VirtualClock) -> AsyncIterator[World]:
    async with running(clock=clock) as server:
        found = World(server.client("default-scheduler"), clock)
        tasks = [
            asyncio.ensure_future(found.follow(kind))
            for kind in (PersistentVolume, PersistentVolumeClaim, StorageClass)
        ]
        try:
            yield found
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def within(test: Callable[[World], Awaitable[None]]) -> None:
    async def run(clock: VirtualClock) -> None:
        async with world(clock) as found:
            await test(found)

    run_virtual(run)


HOST: dict[str, Any] = {"hostPath": {"path": "/data"}}


def test_a_free_volume_is_reserved_and_waited_for() -> None:
    async def check(here: World) -> None:
        await here.create(storage_class())
        await here.create(volume("small", **HOST, **only_in("b")), phase="Available")
        await here.create(volume("large", "50Gi", **HOST, **only_in("b")), phase="Available")
        wanted = await here.create(claim("c"))
        view = using("p", "c")
        cycle, status = here.placed(view, "b0")
        assert status.is_success
        before = here.clock.monotonic_ns()
        binding = asyncio.ensure_future(here.plugin.pre_bind(cycle, view, "b0"))
        await here.clock.sleep(5)
        assert not binding.done()
        stored = await here.client.get(PersistentVolume, "small")
        reference = stored.spec.claim_ref
        assert reference is not None
        assert (reference.kind, reference.namespace, reference.name, reference.uid) == (
            "PersistentVolumeClaim",
            "default",
            "c",
            wanted.metadata.uid,
        )
        assert stored.metadata.annotations["pv.kubernetes.io/bound-by-controller"] == "yes"
        assert (await here.client.get(PersistentVolume, "large")).spec.claim_ref is None
        await here.complete("c", "small")
        assert (await binding).is_success
        assert here.clock.monotonic_ns() - before < 6 * SECOND_NS

    within(check)


def test_a_volume_is_made_for_the_chosen_node() -> None:
    async def check(here: World) -> None:
        await here.create(storage_class(provisioner=DRIVER))
        await here.create(claim("c"))
        view = using("p", "c")
        cycle, status = here.placed(view, "a0")
        assert status.is_success
        binding = asyncio.ensure_future(here.plugin.pre_bind(cycle, view, "a0"))
        await here.clock.sleep(1)
        stored = await here.client.get(PersistentVolumeClaim, "c", "default")
        assert stored.metadata.annotations[SELECTED] == "a0"
        await here.create(volume("made", **HOST, **only_in("a")), phase="Bound")
        await here.complete("c", "made")
        assert (await binding).is_success

    within(check)


def test_a_volume_that_cannot_be_made_sends_the_pod_back() -> None:
    async def check(here: World) -> None:
        await here.create(storage_class(provisioner=DRIVER))
        await here.create(claim("c"))
        view = using("p", "c")
        cycle, _ = here.placed(view, "a0")
        binding = asyncio.ensure_future(here.plugin.pre_bind(cycle, view, "a0"))
        await here.clock.sleep(1)
        body = {"metadata": {"annotations": {SELECTED: None}}}
        await here.client.patch(PersistentVolumeClaim, "c", body, namespace="default")
        status = await binding
        assert status.code is Code.ERROR
        assert status.message == 'binding volumes: provisioning failed for PVC "c"'
        here.plugin.unreserve(cycle, view, "a0")
        here.cluster.table.forget("p")
        assert sorted(here.cluster.classes.explain(view).fitting) == ["a0", "b0"]

    within(check)


def test_a_volume_made_where_the_node_cannot_reach_it_sends_the_pod_back() -> None:
    async def check(here: World) -> None:
        await here.create(storage_class(provisioner=DRIVER))
        await here.create(claim("c"))
        view = using("p", "c")
        cycle, _ = here.placed(view, "a0")
        binding = asyncio.ensure_future(here.plugin.pre_bind(cycle, view, "a0"))
        await here.clock.sleep(1)
        await here.create(volume("made", **HOST, **only_in("b")), phase="Bound")
        await here.complete("c", "made")
        assert (await binding).message == (
            'binding volumes: pv "made" node affinity doesn\'t match node "a0": no matching NodeSelectorTerms'
        )

    within(check)


def test_waiting_ends_after_ten_minutes() -> None:
    async def check(here: World) -> None:
        await here.create(storage_class())
        await here.create(volume("v", **HOST), phase="Available")
        await here.create(claim("c"))
        view = using("p", "c")
        cycle, _ = here.placed(view, "a0")
        before = here.clock.monotonic_ns()
        status = await here.plugin.pre_bind(cycle, view, "a0")
        assert status.message == "binding volumes: context deadline exceeded"
        assert 600 <= (here.clock.monotonic_ns() - before) / SECOND_NS < 601

    within(check)


def test_a_volume_that_somebody_else_took_is_not_taken_from_them() -> None:
    async def check(here: World) -> None:
        await here.create(storage_class())
        await here.create(volume("v", **HOST), phase="Available")
        await here.create(claim("c"))
        view = using("p", "c")
        cycle, _ = here.placed(view, "a0")
        other = {"claimRef": {"namespace": "default", "name": "other", "uid": "u"}}
        await here.client.patch(PersistentVolume, "v", {"spec": other})
        status = await here.plugin.pre_bind(cycle, view, "a0")
        assert status.code is Code.ERROR
        stored = await here.client.get(PersistentVolume, "v")
        assert stored.spec.claim_ref is not None
        assert stored.spec.claim_ref.name == "other"

    within(check)


def test_a_pod_that_is_gone_is_not_waited_for() -> None:
    async def check(here: World) -> None:
        await here.create(storage_class())
        await here.create(volume("v", **HOST), phase="Available")
        await here.create(claim("c"))
        view = using("p", "c")
        cycle, _ = here.placed(view, "a0")
        binding = asyncio.ensure_future(here.plugin.pre_bind(cycle, view, "a0"))
        await here.clock.sleep(1)
        here.cluster.table.remove_pod("p")
        assert (await binding).message == ('binding volumes: pod does not exist any more: pod "p" not found')

    within(check)


def test_claims_that_are_bound_already_need_nothing() -> None:
    async def check(here: World) -> None:
        here.cluster.listers.put(claim("c", bound="v"))
        here.cluster.listers.put(volume("v"))
        view = using("p", "c")
        cycle, status = here.placed(view, "a0")
        assert status.is_success
        assert (await here.plugin.pre_bind(cycle, view, "a0")).is_success

    within(check)

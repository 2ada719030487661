"""Adopting and releasing, with what only some controllers use: finalizers and a say of their own."""

from __future__ import annotations

import pytest

from nodeward.api.apps_v1 import ReplicaSet
from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta
from nodeward.controllers.pods.controller_ref_manager import CannotAdopt, ControllerRefManager, controller_of
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.rules.selectors import parse_labels
from tests.apiserver.running import running, settings
from tests.controllers.workloads import LABELS, NAMESPACE, replica_set, template

TRACKING = "example.com/tracking"
SELECTOR = parse_labels("app=web")


def pod(name: str) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace=NAMESPACE, labels=LABELS), spec=template().spec)


def test_finalizers_come_with_adoption_and_go_with_release() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(settings(), clock=clock) as server:
            client = server.client("test")
            owner = await client.create(replica_set())
            claims = ControllerRefManager(client, ReplicaSet, Pod, finalizers=[TRACKING])
            orphan = await client.create(pod("p"))
            assert await claims.claim(owner, SELECTOR, [orphan]) == [orphan]
            adopted = await client.get(Pod, "p", NAMESPACE)
            reference = controller_of(adopted)
            assert reference is not None
            assert (reference.uid, adopted.metadata.finalizers) == (owner.metadata.uid, [TRACKING])
            assert await claims.claim(owner, parse_labels("app=other"), [adopted]) == []
            released = await client.get(Pod, "p", NAMESPACE)
            assert (released.metadata.owner_references, released.metadata.finalizers) == ([], [])

    run_virtual(main)


def test_the_owner_may_be_choosier_than_its_selector() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(settings(), clock=clock) as server:
            client = server.client("test")
            owner = await client.create(replica_set())
            pods = [await client.create(pod(name)) for name in ("web-0", "else")]
            claims = ControllerRefManager(client, ReplicaSet, Pod)
            claimed = await claims.claim(
                owner, SELECTOR, pods, lambda each: each.metadata.name.startswith("web-")
            )
            assert [each.metadata.name for each in claimed] == ["web-0"]
            assert controller_of(await client.get(Pod, "else", NAMESPACE)) is None

    run_virtual(main)


def test_an_owner_that_is_gone_is_told_and_a_pod_that_is_gone_is_not() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(settings(), clock=clock) as server:
            client = server.client("test")
            owner = await client.create(replica_set())
            gone, there = await client.create(pod("gone")), await client.create(pod("there"))
            await client.delete(Pod, "gone", NAMESPACE, grace_period=0)
            claims = ControllerRefManager(client, ReplicaSet, Pod)
            assert await claims.claim(owner, SELECTOR, [gone, there]) == [there]
            late = await client.create(pod("late"))
            await client.delete(ReplicaSet, "web", NAMESPACE)
            with pytest.raises(CannotAdopt, match="ReplicaSet default/web is gone"):
                await claims.claim(owner, SELECTOR, [late])

    run_virtual(main)

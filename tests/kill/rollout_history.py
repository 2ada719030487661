"""Everything that happens to the pods and replica sets of a deployment, checked event by event.

Two watches, each from one version on: what they tell is the history of the store, without gaps, so a state that was
there only for a moment is looked at too.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from nodeward.api.apps_v1 import ReplicaSet
from nodeward.api.core_v1.pod import Pod
from nodeward.controllers.pods.controller_ref_manager import controller_of
from nodeward.machinery.client import Client


@dataclass
class History:
    """At most `most` pods are asked for and there, at least `least` of them serve, at every moment."""

    client: Client
    namespace: str
    most: int
    least: int
    pods: dict[str, Pod] = field(default_factory=dict)
    sets: dict[str, ReplicaSet] = field(default_factory=dict)
    #: every pod there ever was
    created: set[str] = field(default_factory=set)
    #: how many events came
    events: int = 0
    #: the most pods that were there, the fewest that served
    highest: int = 0
    lowest: int = 10**9
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def begin(self) -> list[asyncio.Task[None]]:
        """What is there now is where it begins; the tasks end only if something is wrong."""
        pods = await self.client.list(Pod, self.namespace)
        sets = await self.client.list(ReplicaSet, self.namespace)
        self.pods = {pod.metadata.uid: pod for pod in pods.items}
        self.sets = {each.metadata.uid: each for each in sets.items}
        self.created = set(self.pods)
        self._check()
        return [
            asyncio.create_task(self._follow_pods(pods.resource_version)),
            asyncio.create_task(self._follow_sets(sets.resource_version)),
        ]

    async def _follow_pods(self, version: str) -> None:
        watch = self.client.watch(Pod, self.namespace, resource_version=version, allow_bookmarks=False)
        async with watch:
            async for event in watch:
                uid = event.object.metadata.uid
                if event.type == "DELETED":
                    self.pods.pop(uid)
                else:
                    assert (event.type == "ADDED") == (uid not in self.pods), "there is a gap"
                    self.pods[uid] = event.object
                    self.created.add(uid)
                self._check()
        raise AssertionError("the watch of pods has ended")

    async def _follow_sets(self, version: str) -> None:
        watch = self.client.watch(ReplicaSet, self.namespace, resource_version=version, allow_bookmarks=False)
        async with watch:
            async for event in watch:
                if event.type == "DELETED":
                    self.sets.pop(event.object.metadata.uid)
                else:
                    self.sets[event.object.metadata.uid] = event.object
                self._check()
        raise AssertionError("the watch of replica sets has ended")

    def _check(self) -> None:
        self.events += 1
        self.news.set()
        asked = sum(each.spec.replicas or 0 for each in self.sets.values())
        assert asked <= self.most, f"{asked} pods are asked for"
        staying = [pod for pod in self.pods.values() if pod.metadata.deletion_timestamp is None]
        self.highest = max(self.highest, len(staying))
        assert len(staying) <= self.most, f"{len(staying)} pods are there"
        serving = sum(map(is_ready, staying))
        self.lowest = min(self.lowest, serving)
        assert serving >= self.least, f"only {serving} pods serve"
        for pod in self.pods.values():
            owner = controller_of(pod)
            assert owner is not None, f"{pod.metadata.name} belongs to nobody"

    async def reach(self, events: int) -> None:
        """Until so many events have come."""
        while self.events < events:
            self.news.clear()
            await self.news.wait()


def is_ready(pod: Pod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)

"""A cluster in which everything changes at once, and a witness who sees every binding and compares it with the node.

The witness follows the API, not the scheduler. A node may change while a binding is on its way: what a pod was given
must be there, or have been there a moment before (`MOMENT`, in virtual seconds).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.duration import SECOND_NS
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import Chance, VirtualClock
from nodeward.machinery.informer import InformerFactory
from nodeward.machinery.transport import ConnectionFailed, Request, Response, Transport
from nodeward.rules.host_ports import Ports, add_ports, has_conflict
from nodeward.rules.taints import blocking_taint
from nodeward.scheduler.cache.amounts import whole
from nodeward.scheduler.framework.pod import PodView
from tests.scheduler.running import node

GPU = "example.com/gpu"
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "6", GPU: "2"}
TIGHT = {"cpu": "2", "memory": "3Gi", "pods": "3", GPU: "1"}
#: As long as a binding may be on its way, and a little.
MOMENT = 1.0
SLOWEST = 0.4


def random_pod(number: int, chance: Chance) -> Pod:
    requests = {
        "cpu": chance.choice(["300m", "900m", "1500m"]),
        "memory": chance.choice(["100Mi", "1Gi", "2Gi"]),
    }
    limits = {}
    if chance.randrange(5) == 0:
        requests[GPU] = limits[GPU] = "1"
    port = {"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}
    container = {
        "name": "main",
        "image": "busybox",
        "resources": {"requests": requests, "limits": limits},
        "ports": [port] if chance.randrange(6) == 0 else [],
    }
    spec: dict[str, Any] = {"containers": [container], "terminationGracePeriodSeconds": 1}
    if chance.randrange(8) == 0:
        spec["priorityClassName"] = "system-cluster-critical"
    return from_tree({"metadata": {"name": f"p{number}", "namespace": "kube-system"}, "spec": spec}, Pod)


@dataclass(slots=True)
class Flaky:
    """A scheduler's way to the server. Half of its bindings fail; when it is killed, nothing gets through any more."""

    inner: Transport
    clock: VirtualClock
    chance: Chance
    is_dead: bool = False
    is_flaky: bool = True
    refused: int = 0

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        if self.is_dead:
            raise ConnectionFailed("killed")
        if stream or not self.is_flaky or not request.path.endswith("/binding"):
            return await self.inner.send(request, stream=stream)
        await self.clock.sleep(self.chance.uniform(0.0, SLOWEST / 2))
        fate = self.chance.randrange(6)
        self.refused += fate < 3
        if fate == 0:
            return Response(409, {}, b'{"kind":"Status","reason":"Conflict","code":409,"message":"changed"}')
        if fate == 1:
            raise ConnectionFailed("the request was lost")
        answer = await self.inner.send(request)
        if fate == 2:
            await self.clock.sleep(self.chance.uniform(0.0, SLOWEST / 2))
            raise ConnectionFailed("the answer was lost")
        return answer

    async def aclose(self) -> None:
        await self.inner.aclose()


async def meddle(
    client: Client, clock: VirtualClock, chance: Chance, names: list[str], seconds: float
) -> None:
    """Somebody who changes nodes all the time: size, labels, taints, cordons; some go, and come back."""
    end = clock.monotonic_ns() + int(seconds * SECOND_NS)
    while clock.monotonic_ns() < end:
        name, what = chance.choice(names), chance.randrange(9)
        bodies: list[dict[str, Any]] = [
            {"metadata": {"labels": {"x": str(chance.randrange(5))}}},
            {"spec": {"unschedulable": True}},
            {"spec": {"unschedulable": False}},
            {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
            {"spec": {"taints": []}},
            {"status": {"allocatable": TIGHT}},
            {"status": {"allocatable": ROOM}},
        ]
        try:
            if what == 7:
                await client.delete(Node, name)
            elif what == 8:
                await client.create(node(name, allocatable=chance.choice([ROOM, TIGHT])))
            else:
                subresource = "status" if "status" in bodies[what] else ""
                await client.patch(
                    Node, name, bodies[what], patch_type=PatchType.MERGE, subresource=subresource
                )
        except ApiError as error:
            # Another one was quicker.
            if error.code not in (404, 409):
                raise
        await clock.sleep(chance.uniform(0.0, 0.5))


@dataclass(slots=True)
class Witness:
    """Sees all pods and nodes, writes down what must not be, and ends pods that are told to go, as their node would."""

    client: Client
    clock: VirtualClock
    chance: Chance
    faults: list[str] = field(default_factory=list)
    pods: dict[str, PodView] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    bound: int = 0
    gone: int = 0
    #: per node what it had, and until when; the last is what it has
    _rooms: dict[str, list[tuple[float, Mapping[str, int]]]] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> None:
        informers = InformerFactory(self.client, self.chance)
        informers.informer(Node).add_handler(self._node, lambda _, new: self._node(new), self._node_gone)
        informers.informer(Pod).add_handler(self._pod, lambda _, new: self._pod(new), self._pod_gone)
        self._tasks.append(asyncio.create_task(informers.run()))
        await informers.wait_synced()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _now(self) -> float:
        return self.clock.monotonic_ns() / SECOND_NS

    def _node(self, new: Node) -> None:
        self.nodes[new.metadata.name] = new
        self._had(new.metadata.name, whole(new.status.allocatable))

    def _node_gone(self, old: Node) -> None:
        del self.nodes[old.metadata.name]
        self._had(old.metadata.name, {})

    def _had(self, name: str, room: Mapping[str, int]) -> None:
        rooms = self._rooms.setdefault(name, [])
        if rooms:
            rooms[-1] = self._now(), rooms[-1][1]
        rooms.append((float("inf"), room))

    def _pod(self, new: Pod) -> None:
        view, before = PodView(new), self.pods.get(new.metadata.uid)
        self.pods[view.uid] = view
        was, now = before.pod.spec.node_name if before is not None else "", new.spec.node_name
        if was and was != now:
            self.faults.append(f"{view.name} went from {was} to {now!r}")
        if now and not was:
            self.bound += 1
            self.faults += self._overbooked(now, view)
        if new.metadata.deletion_timestamp and not (before and before.pod.metadata.deletion_timestamp):
            self._tasks.append(asyncio.create_task(self._end(view)))

    async def _end(self, view: PodView) -> None:
        await self.clock.sleep(self.chance.uniform(0.0, 1.0))
        await self.client.delete(Pod, view.name, view.namespace, grace_period=0, uid=view.uid)

    def _pod_gone(self, old: Pod) -> None:
        del self.pods[old.metadata.uid]
        self.gone += 1

    def on(self, where: str) -> Iterator[PodView]:
        """The pods on a node."""
        return (each for each in self.pods.values() if each.pod.spec.node_name == where)

    def _overbooked(self, where: str, newest: PodView) -> Iterator[str]:
        """What of a node was given away twice when a pod was bound there."""
        since = self._now() - MOMENT
        rooms = [room for until, room in self._rooms.get(where, ()) if until >= since]
        taken = sums(self.on(where))
        for name in (*newest.requests, "pods"):
            most = max((room.get(name, 0) for room in rooms), default=0)
            if taken[name] > most:
                yield f"{self._now():.3f} {where}: {newest.name} makes {name} {taken[name]} of {most}"
        ports: Ports = {}
        for other in self.on(where):
            if other is not newest:
                add_ports(ports, other.host_ports)
        if has_conflict(ports, newest.host_ports):
            yield f"{where}: a port of {newest.name} was taken"

    def could_go(self, view: PodView) -> Iterator[str]:
        """The nodes a waiting pod fits on, if need be at the cost of pods that matter less."""
        for name, each in self.nodes.items():
            if each.spec.unschedulable or blocking_taint(
                each.spec.taints, view.pod.spec.tolerations, numeric=True
            ):
                continue
            stays = [other for other in self.on(name) if other.priority >= view.priority]
            there, taken = whole(each.status.allocatable), sums([*stays, view])
            ports: Ports = {}
            for other in stays:
                add_ports(ports, other.host_ports)
            if all(
                taken[what] <= there.get(what, 0) for what in (*view.requests, "pods")
            ) and not has_conflict(ports, view.host_ports):
                yield name


def sums(pods: Iterator[PodView] | list[PodView]) -> dict[str, int]:
    """What pods were promised in all, and how many they are."""
    found = {"pods": 0}
    for each in pods:
        found["pods"] += 1
        for name, amount in each.requests.items():
            found[name] = found.get(name, 0) + amount
    return found

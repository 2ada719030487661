"""Whatever fails and whoever interferes: nothing is promised twice, and no pod is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import Chance, SeededChance, VirtualClock
from nodeward.machinery.transport import ConnectionFailed, Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.scheduler.cache.amounts import whole
from nodeward.scheduler.framework.pod import PodView
from tests.controllers.cluster import Alter
from tests.scheduler.running import Cluster, cluster, node
from tests.scheduler.test_binding import Send

GPU = "example.com/gpu"
NODES = 12
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "6", GPU: "2"}


def pod(number: int, chance: Chance) -> Pod:
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
    return from_tree(
        {"metadata": {"name": f"p{number}", "namespace": "default"}, "spec": {"containers": [container]}}, Pod
    )


async def overbooked(world: Cluster) -> list[str]:
    """Every node that has promised more than it has, and every port that two pods were given."""
    nodes = {each.metadata.name: each for each in (await world.client.list(Node)).items}
    taken: dict[str, dict[str, int]] = {}
    ports: dict[tuple[str, object], str] = {}
    found: list[str] = []
    for each in (await world.client.list(Pod)).items:
        where = each.spec.node_name
        if not where:
            continue
        view = PodView(each)
        sums = taken.setdefault(where, {"pods": 0})
        sums["pods"] += 1
        for name, amount in view.requests.items():
            sums[name] = sums.get(name, 0) + amount
        for port in view.host_ports:
            other = ports.setdefault((where, port), view.name)
            if other != view.name:
                found.append(f"{where}: port {port} of {other} and {view.name}")
    for where, sums in taken.items():
        there: Mapping[str, int] = whole(nodes[where].status.allocatable)
        found += [f"{where}: {name} {n} of {there[name]}" for name, n in sums.items() if n > there[name]]
    return found


def unreliable(clock: VirtualClock, chance: Chance) -> Alter:
    """Half of all bindings fail: refused, lost on the way there, or lost on the way back."""

    async def alter(request: Request, send: Send) -> Response:
        if not request.path.endswith("/binding"):
            return await send(request)
        await clock.sleep(chance.uniform(0.0, 0.4))
        fate = chance.randrange(6)
        if fate == 0:
            return Response(409, {}, b'{"kind":"Status","reason":"Conflict","code":409,"message":"changed"}')
        if fate == 1:
            raise ConnectionFailed("the request was lost")
        answer = await send(request)
        if fate == 2:
            await clock.sleep(chance.uniform(0.0, 0.4))
            raise ConnectionFailed("the answer was lost")
        return answer

    return alter


async def meddle(world: Cluster, chance: Chance, seconds: float) -> None:
    """Somebody who changes nodes all the time: labels, taints, cordons, heartbeats."""
    end = world.clock.monotonic_ns() + int(seconds * 1e9)
    while world.clock.monotonic_ns() < end:
        name = f"n{chance.randrange(NODES)}"
        body: dict[str, object] = chance.choice(
            [
                {"metadata": {"labels": {"x": str(chance.randrange(5))}}},
                {"spec": {"unschedulable": True}},
                {"spec": {"unschedulable": False}},
                {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}},
                {"spec": {"taints": []}},
            ]
        )
        await world.client.patch(Node, name, body, patch_type=PatchType.MERGE)
        await world.clock.sleep(chance.uniform(0.0, 0.3))


@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_promised_twice_and_no_pod_is_lost(seed: int) -> None:
    async def main(clock: VirtualClock) -> None:
        chance = SeededChance(seed)
        async with cluster(clock) as world:
            world.transport.alter = unreliable(clock, chance.child("wire"))
            await world.add_nodes(*(node(f"n{number}", allocatable=ROOM) for number in range(NODES)))
            meddlers = [
                asyncio.create_task(meddle(world, chance.child(f"meddler {number}"), 40.0))
                for number in range(4)
            ]
            wanted = chance.child("pods")
            for number in range(120):
                await world.client.create(pod(number, wanted))
                await clock.sleep(wanted.uniform(0.0, 0.3))
                if number % 30 == 29:
                    # What was under way when a scheduler died is known to the server, or never will be.
                    await world.scheduler.stop()
                    await clock.sleep(1.0)
                    world.scheduler = world.new_scheduler(seed=seed * 100 + number)
                    await world.scheduler.start()
                if number % 10 == 9:
                    assert await overbooked(world) == []
                    gone = f"p{number - 5}"
                    await world.client.delete(Pod, gone, "default", grace_period=0)
            await asyncio.gather(*meddlers)
            world.transport.alter = None
            for number in range(NODES):
                await world.patch_node(f"n{number}", {"spec": {"taints": [], "unschedulable": False}})
            await world.pass_time(60)
            assert await overbooked(world) == []
            places = await world.places()
            queue = world.scheduler.engine.queue
            waiting = [name for name, where in places.items() if not where]
            assert len(places) == 120 - 12
            assert len(queue) == len(waiting), "whoever has no node waits for one"
            sizes = world.scheduler.engine.table.sizes()
            assert sizes == {"nodes": NODES, "pods": len(places) - len(waiting), "assumed_pods": 0}
            assert len(waiting) < len(places) / 2

    run_virtual(main)

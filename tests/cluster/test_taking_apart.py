"""Parts of a cluster are stopped and started as other versions and with other gates, in the middle of its work."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from nodeward.api.apps_v1 import Deployment
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import ConfigError
from nodeward.cluster.assembly import Cluster, Wrap
from nodeward.cluster.description import ClusterDescription, Pool
from nodeward.features import Gates
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import Clock, RealClock, SeededChance, VirtualClock
from nodeward.machinery.transport import ConnectionFailed, Request, Response, Transport
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.memory import MemoryStore
from tests.cluster.whole import deployment, ready_of, versions

REPLICAS = 12
#: Enough for a busy machine; nothing waits this long.
LIMIT_SECONDS = 120.0
POOLS = (Pool(name="a", nodes=2), Pool(name="b", nodes=2))


def made(clock: Clock, wrap: Wrap | None = None, *pools: Pool) -> Cluster:
    description = ClusterDescription(gates=Gates.of("1.37"), pools=pools or POOLS)
    return Cluster(description, MemoryStore(), clock, SeededChance(11), wrap=wrap)


async def until(clock: Clock, is_so: Callable[[], Awaitable[bool]], what: str) -> None:
    limit = clock.monotonic_ns() + int(LIMIT_SECONDS * 1e9)
    while not await is_so():
        assert clock.monotonic_ns() < limit, f"after {LIMIT_SECONDS:g} s: {what} is not so"
        await clock.sleep(0.05)


async def progress(client: Client) -> tuple[int, int, int]:
    """Of a deployment: pods of the newest template, pods in all, pods that are available."""
    found = (await client.get(Deployment, "web", "default")).status
    return found.updated_replicas or 0, found.replicas or 0, found.available_replicas or 0


async def all_available(client: Client) -> bool:
    return await progress(client) == (REPLICAS, REPLICAS, REPLICAS)


async def images(client: Client) -> Counter[str]:
    """How many pods there are of each image."""
    return Counter(pod.spec.containers[0].image for pod in (await client.list(Pod, "default")).items)


async def has_both(client: Client, old: str, new: str) -> bool:
    found = await images(client)
    return found[old] > 0 and found[new] > 0


async def has_only(client: Client, image: str) -> bool:
    return await images(client) == {image: REPLICAS} and await all_available(client)


async def roll_out(client: Client, image: str, min_ready_seconds: int = 0) -> None:
    template = {"spec": {"containers": [{"name": "c", "image": image}]}}
    body = {"spec": {"template": template, "minReadySeconds": min_ready_seconds}}
    await client.patch(Deployment, "web", body, namespace="default", patch_type=PatchType.STRATEGIC)


async def everything_restarted_during_a_rollout(clock: Clock) -> None:
    cluster = made(clock)
    await cluster.start()
    try:
        client = cluster.client("test")
        await client.create(deployment("web", REPLICAS))
        await until(clock, lambda: all_available(client), "12 pods are available")
        first_server = cluster.server
        # The update stops half way until pods are available sooner: the restarts fall into it, however slow they are.
        await roll_out(client, "image:2", min_ready_seconds=500)
        await until(clock, lambda: has_both(client, "image", "image:2"), "the rolling update is under way")
        # One part after the other, each with something else than before; the others go on meanwhile.
        await cluster.scheduler.restart(gates="NodeReadinessGates=true")
        await cluster.api_server.restart(gates="NodeReadinessGates=true")
        await cluster.controllers.restart(version="1.36")
        await cluster.pools["b"].restart(version="1.36", gates="NodeDeclaredFeatures=true")
        assert cluster.server is not first_server
        assert await has_both(client, "image", "image:2")
        assert (cluster.controllers.version, cluster.scheduler.version) == ("1.36", "1.37")
        assert cluster.scheduler.gates.enabled("NodeReadinessGates")
        assert cluster.server.env.gates.enabled("NodeReadinessGates")
        await roll_out(client, "image:2")
        await until(clock, lambda: has_only(client, "image:2"), "the rolling update is done")
        pods = (await client.list(Pod, "default")).items
        assert len({pod.metadata.uid for pod in pods}) == len(pods)
        assert await versions(client) == {
            "a-0": "v1.37.0", "a-1": "v1.37.0", "b-0": "v1.36.0", "b-1": "v1.36.0",
        }  # fmt: skip
        nodes = (await client.list(Node)).items
        assert {ready_of(node) for node in nodes} == {"True"}
        # And all of them still work together.
        await roll_out(client, "image:3")
        await until(clock, lambda: has_only(client, "image:3"), "the next rolling update is done")
    finally:
        await cluster.stop()


def test_control_plane_and_a_pool_are_restarted_during_a_rolling_update_in_virtual_time() -> None:
    run_virtual(everything_restarted_during_a_rollout)


@pytest.mark.slow
def test_control_plane_and_a_pool_are_restarted_during_a_rolling_update_in_real_time() -> None:
    asyncio.run(everything_restarted_during_a_rollout(RealClock()))


def test_work_waits_for_the_part_that_does_it_and_goes_on_when_it_is_back() -> None:
    async def main(clock: VirtualClock) -> None:
        cluster = made(clock)
        await cluster.start()
        client = cluster.client("test")
        await cluster.scheduler.stop()
        await client.create(deployment("web", REPLICAS))
        await clock.sleep(30)
        pods = (await client.list(Pod, "default")).items
        assert (len(pods), {pod.spec.node_name for pod in pods}) == (REPLICAS, {""})
        await cluster.scheduler.start()
        await until(clock, lambda: all_available(client), "12 pods are available")
        await cluster.controllers.stop()
        await roll_out(client, "image:2")
        await clock.sleep(30)
        assert {each.spec.containers[0].image for each in (await client.list(Pod, "default")).items} == {
            "image"
        }
        await cluster.controllers.start(gates="TaintTolerationComparisonOperators=true")
        await until(clock, lambda: has_only(client, "image:2"), "the rolling update is done")
        assert cluster.controllers.gates.enabled("TaintTolerationComparisonOperators")
        await cluster.stop()

    run_virtual(main)


def test_nodes_of_a_pool_that_is_stopped_are_missed_and_take_up_their_pods_again() -> None:
    async def main(clock: VirtualClock) -> None:
        cluster = made(clock)
        await cluster.start()
        client = cluster.client("test")
        await client.create(deployment("web", REPLICAS))
        await until(clock, lambda: all_available(client), "12 pods are available")
        before = {pod.metadata.uid for pod in (await client.list(Pod, "default")).items}
        pool = cluster.pools["b"]
        await pool.stop()
        assert not pool.is_running
        await clock.sleep(100)
        states = {node.metadata.name: ready_of(node) for node in (await client.list(Node)).items}
        assert states == {"a-0": "True", "a-1": "True", "b-0": "Unknown", "b-1": "Unknown"}
        await pool.start(version="1.36")
        await clock.sleep(20)
        states = {node.metadata.name: ready_of(node) for node in (await client.list(Node)).items}
        assert set(states.values()) == {"True"}
        assert (await versions(client))["b-1"] == "v1.36.0"
        assert {pod.metadata.uid for pod in (await client.list(Pod, "default")).items} == before
        await cluster.stop()

    run_virtual(main)


def test_while_the_api_server_is_down_requests_fail_as_on_a_wire_and_clients_outlive_it() -> None:
    async def main(clock: VirtualClock) -> None:
        cluster = made(clock)
        await cluster.start()
        client = cluster.client("test")
        await client.create(deployment("web", REPLICAS))
        await until(clock, lambda: all_available(client), "12 pods are available")
        await cluster.api_server.stop()
        await cluster.api_server.stop()
        with pytest.raises(ConnectionFailed, match="the API server is not running"):
            await client.list(Pod, "default")
        with pytest.raises(ConfigError, match="is not running"):
            _ = cluster.server
        await clock.sleep(20)
        await cluster.api_server.start(version="1.36")
        await clock.sleep(20)
        assert await all_available(client)
        await roll_out(client, "image:2")
        await until(clock, lambda: has_only(client, "image:2"), "the rolling update is done")
        uids = [pod.metadata.uid for pod in (await client.list(Pod, "default")).items]
        assert len(set(uids)) == len(uids)
        await cluster.stop()

    run_virtual(main)


def test_gates_that_make_no_sense_are_refused_before_anything_is_stopped() -> None:
    async def main(clock: VirtualClock) -> None:
        cluster = made(clock)
        await cluster.start()
        scheduler, server = cluster.scheduler.running, cluster.server
        with pytest.raises(ConfigError, match="unrecognized feature gate: NodeReadinesGates"):
            await cluster.scheduler.restart(gates="NodeReadinesGates=true")
        with pytest.raises(ConfigError, match=r"emulation version 1\.12 is not between"):
            await cluster.api_server.restart(version="1.12")
        with pytest.raises(ConfigError, match="pool 'a': "):
            await cluster.pools["a"].restart(gates="Nonsense=true")
        with pytest.raises(ConfigError, match="kube-scheduler is running already"):
            await cluster.scheduler.start()
        assert (cluster.scheduler.running, cluster.server) == (scheduler, server)
        assert cluster.pools["a"].is_running
        await cluster.stop()

    run_virtual(main)


class Traced:
    """A transport that notes what goes through, and fails while it is told to."""

    def __init__(self, name: str, inner: Transport, log: list[tuple[str, str]], broken: set[str]) -> None:
        self._name, self._inner, self._log, self._broken = name, inner, log, broken

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        if self._name in self._broken:
            raise ConnectionFailed("the network is down")
        self._log.append((self._name, request.method))
        return await self._inner.send(request, stream=stream)

    async def aclose(self) -> None:
        await self._inner.aclose()


def test_every_clients_transport_can_be_wrapped() -> None:
    async def main(clock: VirtualClock) -> None:
        log: list[tuple[str, str]] = []
        broken: set[str] = set()
        cluster = made(clock, lambda name, inner: Traced(name, inner, log, broken))
        await cluster.start()
        client = cluster.client("test")
        broken.add("kube-scheduler")
        await client.create(deployment("web", REPLICAS))
        await clock.sleep(5)
        assert {pod.spec.node_name for pod in (await client.list(Pod, "default")).items} == {""}
        broken.clear()
        await until(clock, lambda: all_available(client), "12 pods are available")
        names = {name for name, _ in log}
        assert {
            "kube-scheduler", "kube-controller-manager", "deployment-controller", "replicaset-controller",
            "kubelet", "test",
        } <= names  # fmt: skip
        assert ("kube-scheduler", "POST") in log
        await cluster.stop()

    run_virtual(main)


def test_metrics_of_a_restarted_part_are_on_the_page_once() -> None:
    async def main(clock: VirtualClock) -> None:
        cluster = made(clock)
        await cluster.start()
        await cluster.scheduler.restart()
        await cluster.controllers.restart()
        await cluster.api_server.restart()
        await cluster.scheduler.restart()
        text = cluster.server.metrics.text().decode()
        assert text.count("# TYPE scheduler_pending_pods ") == 1
        await cluster.stop()

    run_virtual(main)

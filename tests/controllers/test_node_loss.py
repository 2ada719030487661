"""A node is killed in a cluster of two hundred that is busy; a zone is lost: what users see of it."""

from __future__ import annotations

import pytest

from nodeward.api.apps_v1 import Deployment
from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.cluster.description import Pool
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.live import Live, a_deployment, live

UNREACHABLE = "node.kubernetes.io/unreachable"
WEB = 400
VICTIM = "p-7"


async def available(each: Live) -> int:
    return (await each.client.get(Deployment, "web", "default")).status.available_replicas


async def pods_on(each: Live, node: str) -> list[Pod]:
    found = await each.client.list(Pod, "default", field_selector=f"spec.nodeName={node}")
    return [pod for pod in found.items if pod.metadata.deletion_timestamp is None]


@pytest.mark.slow
def test_a_killed_node_costs_its_own_pods_for_a_while_and_nobody_elses() -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, Pool(name="p", nodes=200)) as each:
            await each.client.create(a_deployment("web", WEB))
            await each.client.create(a_deployment("load", 30))
            await each.pass_time(30)
            assert await available(each) == WEB
            lost = [pod for pod in await pods_on(each, VICTIM) if pod.metadata.labels["app"] == "web"]
            assert lost
            each.host.cut_off(VICTIM)
            killed_ns, least, sizes = clock.monotonic_ns(), WEB, (40, 20, 60, 30)
            tainted_at = evicted_at = 0.0
            while not evicted_at:
                await each.pass_time(5)
                passed = (clock.monotonic_ns() - killed_ns) / SECOND_NS
                assert passed < 500
                # The load: a deployment that goes up and down all the time.
                replicas = sizes[int(passed / 40) % len(sizes)]
                await each.client.patch(
                    Deployment, "load", {"spec": {"replicas": replicas}}, namespace="default"
                )
                least = min(least, await available(each))
                marks = await each.marks(VICTIM)
                if not tainted_at and f"{UNREACHABLE}:NoExecute" in marks:
                    tainted_at = passed
                if not tainted_at:
                    assert least == WEB
                if not await pods_on(each, VICTIM):
                    evicted_at = passed
            # Up to ten seconds since the last sign of life, fifty of grace, five between two rounds.
            assert 40 <= tainted_at <= 60
            assert 295 <= evicted_at - tainted_at <= 310
            assert least == WEB - len(lost)
            await each.pass_time(10)
            assert await available(each) == WEB
            assert all(
                pod.spec.node_name != VICTIM
                for pod in (await each.client.list(Pod, "default")).items
                if pod.metadata.deletion_timestamp is None
            )
            each.host.reconnect(VICTIM)
            await each.pass_time(60)
            assert (await each.ready(VICTIM), await each.marks(VICTIM)) == ("True", [])
            # The terminating pods of the lost node ended with it, and nothing is left over.
            web = await each.client.list(Pod, "default", label_selector="app=web")
            assert len(web.items) == WEB

    run_virtual(main)


@pytest.mark.slow
def test_a_zone_that_mostly_fails_is_emptied_slowly_and_a_lost_cluster_not_at_all() -> None:
    async def main(clock: VirtualClock) -> None:
        pools = (
            Pool(name="a", nodes=60, zones=("zone-a",)),
            Pool(name="b", nodes=5, zones=("zone-b",)),
        )
        async with live(clock, *pools) as each:

            async def driven() -> int:
                names = [f"a-{number}" for number in range(60)] + [f"b-{number}" for number in range(5)]
                return sum([f"{UNREACHABLE}:NoExecute" in await each.marks(name) for name in names])

            # Half of the zone: one node every ten seconds.
            for number in range(30):
                each.host.cut_off(f"a-{number}")
            await each.pass_time(60)
            before = await driven()
            await each.pass_time(100)
            assert await driven() - before == 10
            # Two thirds: one node every hundred seconds.
            for number in range(30, 40):
                each.host.cut_off(f"a-{number}")
            await each.pass_time(65)
            before = await driven()
            await each.pass_time(300)
            assert await driven() - before == 3
            # All of it: the other zone can take the pods, so it is emptied at the usual rate.
            for number in range(40, 60):
                each.host.cut_off(f"a-{number}")
            await each.pass_time(65)
            before = await driven()
            await each.pass_time(50)
            assert await driven() - before == 5
            # Nobody answers any more: it is not the nodes that are lost.
            for number in range(5):
                each.host.cut_off(f"b-{number}")
            await each.pass_time(65)
            assert await driven() == 0
            await each.pass_time(600)
            assert await driven() == 0

    run_virtual(main)

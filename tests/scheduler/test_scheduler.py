"""The scheduler against a real API server: pods get nodes, and what is said about those that do not."""

from __future__ import annotations

from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.scheduler.running import cluster, node, pod


def test_pods_are_bound_and_told_so() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a"), node("b"))
            await world.add_pods(*(pod(f"p{number}") for number in range(6)))
            places = await world.places()
            assert sorted(places.values()) == ["a", "a", "a", "b", "b", "b"]
            assert await world.events("p0") == [
                ("Normal", "Scheduled", f"Successfully assigned default/p0 to {places['p0']}")
            ]
            condition = await world.condition("p0")
            assert condition is not None
            assert condition.status == "True"

    run_virtual(main)

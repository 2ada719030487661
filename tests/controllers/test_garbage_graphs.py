"""Whatever owns whatever: after deletions nothing is left that should be gone, and nothing gone that should be left."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.meta import KubeObject, ObjectMeta, OwnerReference
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.cluster import Cluster, cluster
from tests.controllers.restarting import more_controllers
from tests.controllers.test_garbage_collector import ONLY


@dataclass
class Plan:
    """Owners of each object, which of these references block, and deletions in rounds."""

    owners: list[list[tuple[int, bool]]]
    rounds: list[list[tuple[int, str]]]
    #: for each round: the collector is there, is away while it is asked for, or is stopped in the middle
    collector: list[str] = field(default_factory=list)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    size = draw(st.integers(2, 9))
    anybody = st.integers(0, size - 1)
    references = st.lists(
        st.tuples(anybody, st.booleans()), max_size=3, unique_by=lambda reference: reference[0]
    )
    owners = [draw(references) for _ in range(size)]
    cascades = st.lists(
        st.tuples(anybody, st.sampled_from(["Background", "Foreground"])),
        max_size=3,
        unique_by=lambda each: each[0],
    )
    # Orphaning takes a round for itself: among other deletions the outcome depends on who is faster.
    orphaning = anybody.map(lambda number: [(number, "Orphan")])
    rounds = draw(st.lists(st.one_of(cascades, orphaning), min_size=1, max_size=3))
    presence = st.sampled_from(["there", "away", "stopped"])
    return Plan(owners, rounds, [draw(presence) for _ in rounds])


def expected(plan: Plan) -> dict[int, set[int]]:
    """Who is left, with which owners: what the documentation promises, without any order of events."""
    left = {number: {owner for owner, _ in owners} for number, owners in enumerate(plan.owners)}
    for deletions in plan.rounds:
        for number, policy in deletions:
            if left.pop(number, None) is not None and policy == "Orphan":
                for owners in left.values():
                    owners.discard(number)
        while garbage := [each for each, owners in left.items() if owners and not owners & left.keys()]:
            for number in garbage:
                del left[number]
        for owners in left.values():
            owners.intersection_update(left)
    return left


async def _build(each: Cluster, plan: Plan) -> list[str]:
    """All objects, and then who owns them: circles cannot be made in one go."""
    made: list[KubeObject] = []
    for number in range(len(plan.owners)):
        meta = ObjectMeta(name=f"o{number}", namespace="default")
        made.append(await each.client.create(ConfigMap(metadata=meta)))
    uids = [obj.metadata.uid for obj in made]
    for obj, owners in zip(made, plan.owners, strict=True):
        obj.metadata.owner_references = [
            OwnerReference(
                api_version="v1",
                kind="ConfigMap",
                name=f"o{owner}",
                uid=uids[owner],
                block_owner_deletion=blocks,
            )
            for owner, blocks in owners
        ]
        await each.client.update(obj)
    return uids


async def _delete(each: Cluster, deletions: list[tuple[int, str]]) -> None:
    for number, policy in deletions:
        if await each.exists(ConfigMap, f"o{number}", "default"):
            await each.client.delete(ConfigMap, f"o{number}", "default", propagation=policy)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(plans())
def test_what_is_left_is_what_still_has_an_owner_or_never_had_one(plan: Plan) -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, controllers=()) as each:
            uids = await _build(each, plan)
            for deletions, collector in zip(plan.rounds, plan.collector, strict=True):
                if collector == "stopped":
                    async with more_controllers(each, ONLY):
                        await each.pass_time()
                        await _delete(each, deletions)
                        # Some have been judged by now, and some have not.
                        for _ in range(len(plan.owners)):
                            await clock.yield_now()
                elif collector == "away":
                    await _delete(each, deletions)
                async with more_controllers(each, ONLY):
                    if collector == "there":
                        await _delete(each, deletions)
                    await each.pass_time(10)
            found = {
                int(item.metadata.name[1:]): {
                    uids.index(reference.uid) for reference in item.metadata.owner_references
                }
                for item in (await each.client.list(ConfigMap, "default")).items
            }
            assert found == expected(plan)

    run_virtual(main)

"""A whole cluster: nodes that register with a rule's taint open when their reporter says so."""

from __future__ import annotations

from nodeward.api.core_v1.references import Taint
from nodeward.cluster.description import Pool
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.live import live
from tests.controllers.readiness_rules.rules import CNI, KEY, a_rule


def test_a_node_that_registers_with_the_taint_opens_when_its_reporter_says_true() -> None:
    async def main(clock: VirtualClock) -> None:
        pool = Pool(name="a", nodes=2, labels={"pool": "a"}, taints=(Taint(key=KEY, effect="NoSchedule"),))
        async with live(clock, pool) as each:
            await each.client.create(a_rule())
            await each.run_pod("p")
            await each.pass_time(10)
            first, second = "a-0", "a-1"
            assert await each.marks(first) == [f"{KEY}:NoSchedule"]
            assert await each.places() == {"p": ""}
            adopted = ("Normal", "TaintAdopted", f"Taint '{KEY}:NoSchedule' is now managed by rule 'net'")
            assert await each.events(first, "TaintAdopted") == [adopted]
            await each.report(first, CNI, "True")
            await each.pass_time(10)
            assert (await each.marks(first), await each.marks(second)) == ([], [f"{KEY}:NoSchedule"])
            assert await each.places() == {"p": first}

    run_virtual(main)


def test_a_continuous_rule_with_no_execute_drives_pods_off_a_node_that_fails() -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, Pool(name="a", nodes=1, labels={"pool": "a"})) as each:
            await each.report("a-0", CNI, "True")
            await each.client.create(a_rule(taint={"key": KEY, "effect": "NoExecute"}))
            await each.run_pod("p")
            await each.run_pod("stays", tolerations=[{"key": KEY, "operator": "Exists"}])
            await each.pass_time(10)
            assert await each.places() == {"p": "a-0", "stays": "a-0"}
            await each.report("a-0", CNI, "False")
            await each.pass_time(60)
            assert await each.places() == {"stays": "a-0"}

    run_virtual(main)

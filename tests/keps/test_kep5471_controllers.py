"""KEP-5471 in the controllers: numbers in NoExecute taints, alone and from end to end with scheduler and kubelets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nodeward.api.apps_v1 import Deployment
from nodeward.api.codec import to_tree
from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import Toleration
from nodeward.cluster.description import Pool
from nodeward.cluster.identities import controller_client
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.runner import Runner
from nodeward.features.gates import Gates
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.store.memory import MemoryStore
from tests.apiserver.running import Caller
from tests.controllers.cluster import Cluster, cluster
from tests.controllers.live import Live, a_deployment, live
from tests.controllers.workloads import WORKLOADS, conditions, deployment, template
from tests.keps.ledger import statement

GATE = "TaintTolerationComparisonOperators=true"
SLA = "example.com/sla"


def taint(value: str, effect: str = "NoExecute", key: str = SLA) -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def above(number: str, seconds: int | None = None, effect: str = "NoExecute") -> dict[str, Any]:
    found: dict[str, Any] = {"key": SLA, "operator": "Gt", "value": number, "effect": effect}
    return found if seconds is None else {**found, "tolerationSeconds": seconds}


def below(number: str) -> dict[str, Any]:
    return {"key": SLA, "operator": "Lt", "value": number, "effect": "NoExecute"}


async def set_taints(each: Live, node: str, *taints: dict[str, str]) -> None:
    """As an operator with kubectl does."""
    await each.client.patch(Node, node, {"spec": {"taints": list(taints)}})


@statement("5471-T8")
def test_a_pod_goes_when_its_node_falls_past_the_threshold() -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, Pool(name="n", feature_gates=GATE), gates=GATE) as each:
            await set_taints(each, "n-0", taint("990"))
            await each.run_pod("high", tolerations=[above("950")])
            await each.run_pod("low", tolerations=[above("900")])
            await each.run_pod("cheap", tolerations=[below("1000")])
            await each.pass_time(60)
            everywhere = {"high": "n-0", "low": "n-0", "cheap": "n-0"}
            assert await each.places() == everywhere
            # Still above for one, not any more for the other: 950 itself is not above 950.
            await set_taints(each, "n-0", taint("950"))
            await each.pass_time(60)
            assert await each.places() == {"low": "n-0", "cheap": "n-0"}
            await set_taints(each, "n-0", taint("1000"))
            await each.pass_time(60)
            assert await each.places() == {"low": "n-0"}
            await set_taints(each, "n-0", taint("broken"))
            await each.pass_time(60)
            assert await each.places() == {}

    run_virtual(main)


@statement("5471-T9", part="controllers")
def test_toleration_seconds_count_with_numbers_as_without() -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, Pool(name="n", feature_gates=GATE), gates=GATE) as each:
            await each.run_pod("numbers", tolerations=[above("900", 60)])
            await each.run_pod("plain", tolerations=[{**taint("950"), "tolerationSeconds": 60}])
            await each.run_pod("for-good", tolerations=[above("900")])
            await each.pass_time(5)
            await set_taints(each, "n-0", taint("950"))
            await each.pass_time(59)
            assert sorted(await each.places()) == ["for-good", "numbers", "plain"]
            await each.pass_time(2)
            assert sorted(await each.places()) == ["for-good"]

    run_virtual(main)


@statement("5471-T9", part="controllers")
def test_a_value_that_changes_and_is_still_tolerated_does_not_restart_the_seconds() -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, Pool(name="n", feature_gates=GATE), gates=GATE) as each:
            await each.run_pod("p", tolerations=[above("900", 60)])
            await each.run_pod("worse", tolerations=[above("905", 60)])
            await each.pass_time(5)
            await set_taints(each, "n-0", taint("950"))
            # As a monitor does that writes what it measures.
            for value in ("940", "930", "920", "910", "960"):
                await each.pass_time(10)
                await set_taints(each, "n-0", taint(value))
            await each.pass_time(8)
            assert sorted(await each.places()) == ["p", "worse"]
            await each.pass_time(4)
            assert sorted(await each.places()) == [], (
                "sixty seconds after the first value, not after the last"
            )
            # A value that ceases to be tolerated gives no seconds at all.
            await set_taints(each, "n-0")
            await each.run_pod("q", tolerations=[above("900", 600)])
            await each.pass_time(5)
            await set_taints(each, "n-0", taint("950"))
            await each.pass_time(5)
            await set_taints(each, "n-0", taint("900"))
            await each.pass_time(3)
            assert sorted(await each.places()) == []

    run_virtual(main)


@statement("5471-T24", part="controllers")
def test_rolled_back_running_pods_go_on_unless_only_a_number_kept_them() -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, Pool(name="n", nodes=2, feature_gates=GATE), gates=GATE) as each:
            await set_taints(each, "n-0", taint("950", "NoSchedule"))
            await set_taints(each, "n-1", taint("950"))
            await each.run_pod("soft", tolerations=[above("900", effect="NoSchedule")])
            await each.run_pod("hard", tolerations=[above("900")])
            await each.run_pod("both", tolerations=[above("900"), {"key": SLA, "operator": "Exists"}])
            await each.pass_time(30)
            before = await each.places()
            assert (before["soft"], before["hard"]) == ("n-0", "n-1")
            # The controllers are the last that still know numbers, and are started without the gate.
            await each.cluster.controllers.stop()
            old = Runner(
                lambda name: controller_client(each.cluster.server, name),
                clock,
                SeededChance(5),
                gates=Gates.of("1.37"),
                controllers=CONTROLLERS,
            )
            await old.start()
            await each.pass_time(60)
            after = await each.places()
            assert after == {name: node for name, node in before.items() if name != "hard"}
            told = await each.events("hard", "TaintManagerEviction")
            assert told == [
                ("Normal", "TaintManagerEviction", "Marking for deletion Pod default/hard"),
            ]
            await old.stop()

    run_virtual(main)


@statement("5471-T41", part="controllers")
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute", "PreferNoSchedule"])
def test_taints_from_conditions_come_and_go_besides_numbers_and_both_must_be_tolerated(effect: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, Pool(name="n", nodes=2, feature_gates=GATE), gates=GATE) as each:
            for node in ("n-0", "n-1"):
                await set_taints(each, node, taint("950", effect))
            numbers = above("900", effect=effect)
            await each.run_pod("p", tolerations=[numbers], nodeName="n-0")
            await each.pass_time(20)
            await each.report("n-0", "NetworkUnavailable", "True")
            await each.pass_time(5)
            network = "node.kubernetes.io/network-unavailable"
            assert await each.marks("n-0") == [f"{SLA}:{effect}", f"{network}:NoSchedule"]
            # New pods need both; the one that is there stays: its number holds.
            await each.run_pod("new", tolerations=[numbers], nodeSelector={"kubernetes.io/hostname": "n-0"})
            await each.run_pod(
                "both",
                tolerations=[numbers, {"key": network, "operator": "Exists"}],
                nodeSelector={"kubernetes.io/hostname": "n-0"},
            )
            await each.pass_time(20)
            assert await each.places() == {"p": "n-0", "new": "", "both": "n-0"}
            each.host.cut_off("n-0")
            await each.pass_time(62)
            unreachable = "node.kubernetes.io/unreachable"
            assert await each.marks("n-0") == [
                f"{SLA}:{effect}",
                f"{network}:NoSchedule",
                f"{unreachable}:NoSchedule",
                f"{unreachable}:NoExecute",
            ]
            each.host.reconnect("n-0")
            await each.report("n-0", "NetworkUnavailable", "False")
            await each.pass_time(60)
            assert await each.marks("n-0") == [f"{SLA}:{effect}"]
            assert await each.places() == {"p": "n-0", "new": "n-0", "both": "n-0"}

    run_virtual(main)


@statement("5471-T43", part="scheduler")
@statement("5471-T43", part="controllers")
def test_a_deployment_moves_to_nodes_that_are_still_good_enough() -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, Pool(name="n", nodes=3, feature_gates=GATE), gates=GATE) as each:
            for number, value in enumerate(("990", "970", "900")):
                await set_taints(each, f"n-{number}", taint(value))
            tolerations = [above("950", effect="")]
            await each.client.create(a_deployment("web", 6, tolerations=tolerations))
            await each.run_pod("plain")
            await each.pass_time(30)
            places = await each.places()
            assert places.pop("plain") == ""
            assert len(places) == 6
            assert set(places.values()) == {"n-0", "n-1"}
            # The best node gets worse: its pods go at once, and come back where it is still good enough.
            await set_taints(each, "n-0", taint("940"))
            await each.pass_time(60)
            places = await each.places()
            assert places.pop("plain") == ""
            assert sorted(places.values()) == ["n-1"] * 6
            # None is: they wait, and the number that rises again frees them.
            await set_taints(each, "n-1", taint("10"))
            await each.pass_time(60)
            assert set((await each.places()).values()) == {""}
            await set_taints(each, "n-2", taint("999"))
            await each.pass_time(60)
            places = await each.places()
            assert places.pop("plain") == ""
            assert sorted(places.values()) == ["n-2"] * 6

    run_virtual(main)


def requests_in(page: str) -> Counter[str]:
    """How often the server was asked for what, by everybody: verb, resource and answer."""
    found: Counter[str] = Counter()
    for line in page.splitlines():
        if line.startswith("apiserver_request_total{"):
            labels, _, count = line.rpartition(" ")
            found[labels] += int(float(count))
    return found


def life_with(operator: str, value: str, gates: str) -> tuple[Counter[str], int]:
    """What a whole cluster asks its server while a deployment lands, moves and waits; and the size of a spec."""
    found: list[tuple[Counter[str], int]] = []

    async def main(clock: VirtualClock) -> None:
        pool = Pool(name="n", nodes=3, feature_gates=gates)
        async with live(clock, pool, gates=gates) as each:
            for number in range(3):
                await set_taints(each, f"n-{number}", taint("950"))
            toleration = {"key": SLA, "operator": operator, "value": value, "effect": ""}
            await each.client.create(a_deployment("web", 6, tolerations=[toleration]))
            await each.pass_time(30)
            assert "" not in (await each.places()).values()
            # One node loses its value; then no kubelet can reach the server.
            await set_taints(each, "n-0", taint("1"))
            await each.pass_time(60)
            places = await each.places()
            assert len(places) == 6
            assert set(places.values()) == {"n-1", "n-2"}
            for number in range(3):
                each.host.cut_off(f"n-{number}")
            await each.pass_time(20)
            assert await each.places() == places, "pods go on without it"
            for number in range(3):
                each.host.reconnect(f"n-{number}")
            await each.pass_time(60)
            assert await each.places() == places
            pods = (await each.client.list(Pod, "default")).items
            page = (await each.client.raw("GET", "/metrics")).body or b""
            size = len(str(to_tree(pods[0].spec))) - len(operator) - len(value)
            found.append((requests_in(page.decode()), size))

    run_virtual(main)
    return found[0]


@statement("5471-T35")
def test_numbers_cost_no_call_of_any_component_and_no_larger_objects() -> None:
    equal = life_with("Equal", "950", GATE)
    assert equal[0].total() > 200, "scheduler, controllers and kubelets were at work"
    assert life_with("Gt", "900", GATE) == equal
    assert life_with("Equal", "950", "") == equal, "nor does the gate"


def count_creations(each: Cluster) -> Counter[tuple[str, int]]:
    """How often its controllers try to make something, by resource and answer."""
    counts: Counter[tuple[str, int]] = Counter()

    async def count(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
        answer = await send(request)
        if request.method == "POST":
            counts[request.path.rpartition("/")[2], answer.status] += 1
        return answer

    for transport in each.transports.values():
        transport.alter = count
    return counts


@statement("5471-T28", part="controllers")
def test_a_deployment_that_uses_numbers_is_tried_ever_more_rarely_while_the_gate_is_off() -> None:
    async def main(clock: VirtualClock) -> None:
        store = MemoryStore()
        made = template()
        made.spec.tolerations = [Toleration(key=SLA, operator="Gt", value="950", effect="NoExecute")]
        async with cluster(clock, controllers=WORKLOADS, gates=GATE, store=store) as each:
            await each.client.create(deployment(replicas=2, template=made))
            await each.pass_time(10)
            assert len((await each.client.list(Pod, "default")).items) == 2
        # The gate is switched off under it; a new pod is a new object, and refused.
        async with cluster(clock, controllers=WORKLOADS, store=store) as each:
            counts = count_creations(each)
            await each.client.patch(Deployment, "web", {"spec": {"replicas": 4}}, namespace="default")
            await each.pass_time(3600)
            # 5 ms, 10 ms, ... 655 s, then every 1000 s.
            assert set(counts) <= {("pods", 422), ("events", 201)}
            assert 15 <= counts["pods", 422] <= 22
            told = [event.message for event in (await each.client.list(Event, "default")).items]
            refusals = [message for message in told if message.startswith("Error creating: ")]
            assert len(refusals) == 1
            assert 'spec.tolerations[0].operator: Unsupported value: "Gt"' in refusals[0]
            found = await each.client.get(Deployment, "web", "default")
            assert conditions(found)["ReplicaFailure"] == ("True", "FailedCreate")
            page = (await Caller.of(each.server).send("GET", "/metrics")).body or b""
            lines = [
                line for line in page.decode().splitlines() if line.startswith("apiserver_request_total{")
            ]
            shown = [line for line in lines if 'code="422"' in line and 'resource="pods"' in line]
            assert [float(line.split()[-1]) for line in shown] == [counts["pods", 422]]
        async with cluster(clock, controllers=WORKLOADS, gates=GATE, store=store) as each:
            await each.pass_time(10)
            assert len((await each.client.list(Pod, "default")).items) == 4

    run_virtual(main)

"""KEP-5233 from end to end: kubelets run the timers, the node lifecycle controller acts, the scheduler follows."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.cluster.description import Pool
from nodeward.cluster.identities import controller_client
from nodeward.controllers.runner import Runner
from nodeward.features.gates import Gates
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.controllers.live import Live, live
from tests.controllers.node_lifecycle.fleet import NODE_LIFECYCLE
from tests.keps.ledger import statement

GATE = "NodeReadinessGates=true"
CNI = "network.kubernetes.io/CNIReady"
GPU = "example.com/GpuReady"
MARK = "example.com/no-cni"


def gate(action: str, kind: str = CNI, effect: str = "NoSchedule", seconds: int = 60) -> dict[str, Any]:
    found: dict[str, Any] = {"conditionType": kind, "timeoutSeconds": seconds}
    if action:
        found["failureAction"] = action
    if action != "BypassWithWarning":
        found["readinessTaint"] = {"key": MARK, "value": "late", "effect": effect}
    return found


def gated(*gates: dict[str, Any], nodes: int = 1) -> Pool:
    return Pool(name="gated", nodes=nodes, feature_gates=GATE, kubelet={"nodeReadinessGates": list(gates)})


async def where(each: Live, name: str) -> str:
    return (await each.places())[name]


@statement("5233-R23", part="controllers")
def test_bypass_tells_one_warning_on_the_node_and_the_node_takes_pods() -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, gated(gate("BypassWithWarning")), gates=GATE) as each:
            await each.run_pod("p")
            await each.pass_time(50)
            assert await where(each, "p") == ""
            assert await each.events("gated-0", "ReadinessGateBypassed") == []
            await each.pass_time(10)
            assert await each.said("gated-0", CNI) == ("Unknown", "TimeoutExceeded")
            assert (await where(each, "p"), await each.marks("gated-0")) == ("gated-0", [])
            await each.pass_time(3000)
            ((kind, _, message),) = await each.events("gated-0", "ReadinessGateBypassed")
            assert kind == "Warning"
            assert message.startswith(f"Node gated-0 gave up its readiness gate {CNI} (TimeoutExceeded")

    run_virtual(main)


@statement("5233-R24", part="controllers")
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
@pytest.mark.parametrize("action", ["Taint", ""])
def test_a_gate_that_gives_up_puts_its_taint_and_only_pods_that_tolerate_it_land(
    action: str, effect: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, gated(gate(action, effect=effect)), gates=GATE) as each:
            await each.pass_time(70)
            (taint,) = (await each.node("gated-0")).spec.taints
            assert (taint.key, taint.value, taint.effect) == (MARK, "late", effect)
            assert taint.time_added is not None
            await each.run_pod("plain")
            await each.run_pod("tolerant", tolerations=[{"key": MARK, "operator": "Exists"}])
            await each.pass_time(600)
            assert await each.places() == {"plain": "", "tolerant": "gated-0"}
            told = await each.events("gated-0", "ReadinessGateTainted")
            assert [kind for kind, _, _ in told] == ["Warning"]
            assert f"{MARK}=late:{effect}" in told[0][2]

    run_virtual(main)


WAITING = {"tolerant": [{"key": MARK, "operator": "Exists"}]} | {f"plain-{number}": [] for number in range(6)}


@statement("5233-R24", part="controllers")
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_pods_that_wait_when_the_time_is_over_do_not_slip_in_before_the_taint(effect: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, gated(gate("Taint", effect=effect)), gates=GATE) as each:
            for name, tolerations in WAITING.items():
                await each.run_pod(name, tolerations=tolerations)
            await each.pass_time(50)
            assert set((await each.places()).values()) == {""}
            await each.pass_time(20)
            assert await each.said("gated-0", CNI) == ("Unknown", "TimeoutExceeded")
            assert await each.marks("gated-0") == [f"{MARK}:{effect}"]
            await each.pass_time(600)
            bound = {pod.metadata.name: pod.spec.node_name for pod in (await each.client.list(Pod)).items}
            assert bound == {name: "gated-0" if name == "tolerant" else "" for name in WAITING}
            await each.report("gated-0", CNI, "True")
            await each.pass_time(20)
            assert set((await each.places()).values()) == {"gated-0"}

    run_virtual(main)


@statement("5233-R24", part="controllers")
def test_without_the_controller_that_taints_the_node_stays_closed_however_long_it_takes() -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, gated(gate("Taint")), gates=GATE) as each:
            await each.cluster.controllers.stop()
            for name, tolerations in WAITING.items():
                await each.run_pod(name, tolerations=tolerations)
            await each.pass_time(1800)
            assert await each.said("gated-0", CNI) == ("Unknown", "TimeoutExceeded")
            assert set((await each.places()).values()) == {""}, "also those that tolerate the taint"
            told = [text for _, _, text in await each.events("tolerant", "FailedScheduling")]
            assert any(f"(timed out, waiting for its taint {MARK}=late:NoSchedule)" in text for text in told)
            late = Runner(
                lambda name: controller_client(each.cluster.server, name),
                clock,
                SeededChance(3),
                gates=each.cluster.description.gates,
                controllers=NODE_LIFECYCLE,
            )
            await late.start()
            try:
                await each.pass_time(15)
                assert await each.marks("gated-0") == [f"{MARK}:NoSchedule"]
                assert await each.places() == {
                    name: "gated-0" if name == "tolerant" else "" for name in WAITING
                }
            finally:
                await late.stop()

    run_virtual(main)


@statement("5233-R24", part="controllers")
def test_a_taint_that_drives_pods_away_does_so_with_those_that_were_there_before() -> None:
    """A gate that somebody adds to a node at work (counted from then, R22)."""

    async def main(clock: VirtualClock) -> None:
        async with live(clock, Pool(name="n", feature_gates=GATE), gates=GATE) as each:
            await each.run_pod("plain")
            await each.run_pod("tolerant", tolerations=[{"key": MARK, "operator": "Exists"}])
            await each.pass_time(100)
            assert await each.places() == {"plain": "n-0", "tolerant": "n-0"}
            added = {
                "conditionType": CNI,
                "timeoutSeconds": 60,
                "readinessTaint": {"key": MARK, "effect": "NoExecute"},
            }
            await each.client.patch(Node, "n-0", {"spec": {"readinessGates": [added]}})
            await each.pass_time(55)
            assert await each.places() == {"plain": "n-0", "tolerant": "n-0"}
            await each.pass_time(50)
            assert await each.places() == {"tolerant": "n-0"}

    run_virtual(main)


@statement("5233-R25", part="controllers")
def test_when_the_reporter_recovers_the_taint_goes_and_the_node_is_open() -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, gated(gate("Taint"), gate("Taint", GPU)), gates=GATE) as each:
            await each.pass_time(70)
            await each.run_pod("p")
            await each.pass_time(5)
            assert (await each.marks("gated-0"), await where(each, "p")) == ([f"{MARK}:NoSchedule"], "")
            await each.report("gated-0", CNI, "True")
            await each.pass_time(5)
            # The other gate still asks for the same taint.
            assert await each.marks("gated-0") == [f"{MARK}:NoSchedule"]
            await each.report("gated-0", GPU, "True")
            await each.pass_time(30)
            assert (await each.marks("gated-0"), await where(each, "p")) == ([], "gated-0")
            assert (
                (await each.node("gated-0"))
                .metadata.annotations.keys()
                .isdisjoint({"node-lifecycle.kubernetes.io/readiness-gates"})
            )

    run_virtual(main)


@statement("5233-R25", part="controllers")
def test_a_removed_gate_takes_its_taint_along_and_taints_of_others_stay() -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, Pool(name="n", feature_gates=GATE), gates=GATE) as each:
            theirs = {"key": "example.com/theirs", "effect": "NoSchedule"}
            added = {
                "conditionType": CNI,
                "timeoutSeconds": 10,
                "readinessTaint": {"key": MARK, "effect": "NoSchedule"},
            }
            await each.client.patch(Node, "n-0", {"spec": {"readinessGates": [added], "taints": [theirs]}})
            await each.pass_time(30)
            assert await each.marks("n-0") == ["example.com/theirs:NoSchedule", f"{MARK}:NoSchedule"]
            body = {"spec": {"readinessGates": [{"$patch": "delete", "conditionType": CNI}]}}
            await each.client.patch(Node, "n-0", body)
            await each.pass_time(5)
            assert await each.marks("n-0") == ["example.com/theirs:NoSchedule"]

    run_virtual(main)


@statement("5233-R25", part="controllers")
def test_the_ways_back_that_the_documentation_gives_to_agent_and_administrator() -> None:
    async def main(clock: VirtualClock) -> None:
        async with live(clock, Pool(name="n", feature_gates=GATE), gates=GATE) as each:
            await each.client.patch(Node, "n-0", {"spec": {"readinessGates": [gate("Taint")]}})
            await each.pass_time(70)
            assert await each.marks("n-0") == [f"{MARK}:NoSchedule"]
            await each.run_pod("p")
            # Taking the taint off by hand is no way back: the controller puts it on again, and nobody lands between.
            await each.client.patch(Node, "n-0", {"spec": {"taints": None}})
            await each.pass_time(10)
            assert (await each.marks("n-0"), await where(each, "p")) == ([f"{MARK}:NoSchedule"], "")
            # False asks for more time: a new full timeout runs.
            await each.report("n-0", CNI, "False", "Working")
            await each.pass_time(55)
            assert (await each.said("n-0", CNI), await where(each, "p")) == (("False", "Working"), "")
            await each.pass_time(10)
            assert await each.said("n-0", CNI) == ("Unknown", "TimeoutExceeded")
            # Another failure action, and the node is open.
            await each.client.patch(Node, "n-0", {"spec": {"readinessGates": [gate("BypassWithWarning")]}})
            await each.pass_time(10)
            assert (await each.marks("n-0"), await where(each, "p")) == ([], "n-0")

    run_virtual(main)


@statement("5233-R33")
def test_in_a_partition_ready_is_unknown_pods_go_and_conditions_keep_their_last_value() -> None:
    async def main(clock: VirtualClock) -> None:
        pool = gated(gate("Taint", seconds=600), nodes=3)
        async with live(clock, pool, gates=GATE) as each:
            for number in range(3):
                await each.report(f"gated-{number}", CNI, "True")
            await each.run_pod("p", nodeName="gated-0")
            await each.run_pod("stays", nodeName="gated-0", tolerations=[{"operator": "Exists"}])
            await each.pass_time(60)
            each.host.cut_off("gated-0")

            async def is_unknown() -> bool:
                return await each.ready("gated-0") == "Unknown"

            # The last sign of life was up to ten seconds before, and the monitor looks every five.
            assert 40 <= await each.seconds_until(is_unknown, 100) <= 57
            await each.pass_time(1)
            unreachable = "node.kubernetes.io/unreachable"
            assert await each.marks("gated-0") == [f"{unreachable}:NoSchedule", f"{unreachable}:NoExecute"]
            assert await each.said("gated-0", CNI) == ("True", "Checked")
            await each.run_pod("late", affinity=wants("gated-0"))
            await each.pass_time(290)
            assert (await where(each, "p"), await where(each, "late")) == ("gated-0", "")
            await each.pass_time(15)
            assert (await each.client.get(Pod, "p", "default")).metadata.deletion_timestamp is not None
            assert await where(each, "stays") == "gated-0"
            each.host.reconnect("gated-0")
            await each.pass_time(60)
            assert (await each.ready("gated-0"), await each.marks("gated-0")) == ("True", [])
            assert await each.places() == {"stays": "gated-0", "late": "gated-0"}

    run_virtual(main)


def wants(node: str) -> dict[str, object]:
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@statement("5233-R43", part="controllers")
def test_failures_of_gates_are_counted_by_condition_and_action() -> None:
    async def main(clock: VirtualClock) -> None:
        pool = gated(gate("Taint"), gate("BypassWithWarning", GPU), nodes=3)
        async with live(clock, pool, gates=GATE) as each:
            await each.report("gated-2", GPU, "True")
            await each.pass_time(100)
            assert each.cluster.controllers.running is not None
            counted = each.cluster.controllers.running.metrics.counter(
                "node_readiness_gate_failures_total", "", ("condition_type", "action")
            )
            assert dict(counted.values) == {(CNI, "Taint"): 3, (GPU, "BypassWithWarning"): 2}

    run_virtual(main)


def test_controllers_that_do_not_know_gates_leave_taints_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        old = Gates.of("1.37")
        async with live(clock, gated(gate("Taint")), gates=GATE, controller_gates=old) as each:
            await each.pass_time(100)
            assert await each.said("gated-0", CNI) == ("Unknown", "TimeoutExceeded")
            assert await each.marks("gated-0") == []

    run_virtual(main)

"""KEP-5471 in the scheduler: numbers in taints and tolerations decide where pods may go and where they go rather.

Against a real API server in process, in virtual time; nodes are written by the test. `Gt 900` tolerates a taint whose
value is greater than 900.
"""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.features.gates import Gates
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.scheduler.queue.queued_pod import Place
from nodeward.scheduler.settings import default_profile
from tests.keps.ledger import statement
from tests.scheduler.running import Cluster, cluster, node, pod
from tests.scheduler.test_metrics import page

KEY = "node.example.com/sla"
OFF = "TaintTolerationComparisonOperators=false"
PROFILE = "default-scheduler"


def taint(value: str, effect: str = "NoSchedule", key: str = KEY) -> dict[str, str]:
    return {"key": key, "value": value, "effect": effect}


def tolerates(operator: str, value: str, effect: str = "NoSchedule", key: str = KEY) -> dict[str, str]:
    return {"key": key, "operator": operator, "value": value, "effect": effect}


def tainted(name: str, value: str, effect: str = "NoSchedule", **parts: Any) -> Any:
    return node(name, taints=[taint(value, effect)], **parts)


async def message(world: Cluster, name: str) -> str:
    condition = await world.condition(name)
    assert condition is not None
    return condition.message


@statement("5471-T6")
@statement("5471-T31")
def test_a_pod_that_tolerates_nothing_stays_off_and_is_told_about_taints() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(tainted("a", "950"))
            await world.add_pods(pod("p"))
            assert not await world.where("p")
            (event,) = await world.events("p")
            assert event[:2] == ("Warning", "FailedScheduling")
            # What upstream says, word for word; then the taint, as the proposal shows it.
            assert event[2] == (
                "0/1 nodes are available: 1 node(s) had untolerated taint(s). preemption: 0/1 nodes are available: "
                "1 Preemption is not helpful for scheduling. "
                f"In detail: 1 node(s) had untolerated taint {{{KEY}: 950}}."
            )
            assert await message(world, "p") == event[2]

    run_virtual(main)


@statement("5471-T31")
def test_the_taints_most_nodes_have_are_named_and_the_others_counted() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            worst = [tainted(f"w{number}", "100") for number in range(3)]
            both = node("both", taints=[taint("200"), taint("x", key="team"), taint("200", "NoExecute")])
            await world.add_nodes(*worst, both, tainted("a", "300"), tainted("b", "400"))
            await world.add_pods(pod("p", tolerations=[tolerates("Gt", "900")]))
            assert (await message(world, "p")).endswith(
                f"In detail: 3 node(s) had untolerated taint {{{KEY}: 100}}, "
                f"1 node(s) had untolerated taint {{{KEY}: 200}}, "
                f"1 node(s) had untolerated taint {{{KEY}: 300}}, and 2 more."
            )
            # A value that changes is told as it is now, even if it is still not good enough.
            for name in ("a", "b"):
                await world.patch_node(name, {"spec": {"taints": [taint("500")]}})
            await world.add_pods(pod("q", tolerations=[tolerates("Gt", "900")]))
            assert f"2 node(s) had untolerated taint {{{KEY}: 500}}, " in await message(world, "q")

    run_virtual(main)


@statement("5471-T7")
@statement("5471-T42")
def test_a_pod_with_a_threshold_waits_until_a_node_is_good_enough() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(tainted("a", "850"), tainted("b", "15"))
            await world.add_pods(pod("gt", tolerations=[tolerates("Gt", "900")]))
            await world.add_pods(pod("lt", tolerations=[tolerates("Lt", "10")]))
            assert await world.places() == {"gt": "", "lt": ""}
            await world.patch_node("a", {"spec": {"taints": [taint("950")]}})
            await world.patch_node("b", {"spec": {"taints": [taint("5")]}})
            assert await world.places() == {"gt": "a", "lt": "b"}

    run_virtual(main)


@statement("5471-T42")
def test_thresholds_add_to_node_affinity_and_a_taint_that_goes_frees_everybody() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(
                tainted("good", "950", labels={"disk": "hdd"}), tainted("bad", "100", labels={"disk": "ssd"})
            )
            picky = pod("picky", tolerations=[tolerates("Gt", "900")], nodeSelector={"disk": "ssd"})
            await world.add_pods(picky, pod("plain"))
            assert await world.places() == {"picky": "", "plain": ""}
            await world.patch_node("bad", {"spec": {"taints": None}})
            assert await world.places() == {"picky": "bad", "plain": "bad"}

    run_virtual(main)


@statement("5471-T12", part="scheduler")
@statement("5471-T34")
def test_a_value_that_is_no_number_is_not_tolerated_and_looks_like_a_mismatch() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(tainted("text", "high"), tainted("low", "100"))
            await world.add_pods(pod("p", tolerations=[tolerates("Gt", "900")]))
            assert (await message(world, "p")).startswith(
                "0/2 nodes are available: 2 node(s) had untolerated taint(s)."
            )
            shown = page(world)
            counted = ("scheduler_plugin_evaluation_total", "Filter", "TaintToleration", PROFILE)
            assert shown[*counted, "UnschedulableAndUnresolvable"] == 1
            assert not any(key[:4] == counted and key[4] == "Error" for key in shown)
            told = await message(world, "p")
            assert f"1 node(s) had untolerated taint {{{KEY}: high}} (the value is no number)." in told
            assert f"1 node(s) had untolerated taint {{{KEY}: 100}}," in told
            await world.add_nodes(tainted("fine", "950"))
            assert await world.where("p") == "fine", "it goes elsewhere when there is an elsewhere"

    run_virtual(main)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the scheduler has logged about taints since the last look."""
    found = [each.getMessage() for each in caplog.records if "unreadable_taints" in each.name]
    caplog.clear()
    return found


@statement("5471-T12", part="scheduler")
def test_a_taint_that_is_no_number_is_logged_once_per_node_and_value(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(tainted("text", "high"), tainted("more", "high"), tainted("fine", "950"))
            await world.add_pods(pod("plain"), pod("equal", tolerations=[tolerates("Equal", "950")]))
            assert warnings(caplog) == [], "nobody compares numbers"
            # Told although the pod found its node: the administrator is to find the nodes that are set up wrongly.
            await world.add_pods(pod("p", tolerations=[tolerates("Gt", "900")]))
            assert await world.where("p") == "fine"
            first, second = warnings(caplog)
            assert first == (
                f'node text: failed to parse taint value as int64: {KEY}="high" is no number, so pod default/p, '
                "whose toleration compares numbers, does not tolerate it"
            )
            assert second.startswith("node more: ")
            many = [pod(f"q{each}", tolerations=[tolerates("Gt", str(each))]) for each in range(20)]
            await world.add_pods(*many)
            await world.patch_node("more", {"metadata": {"labels": {"touched": "yes"}}})
            await world.add_pods(pod("r", tolerations=[tolerates("Gt", "901")]))
            assert warnings(caplog) == [], "once, whatever else is scheduled"
            await world.patch_node("more", {"spec": {"taints": [taint("0950")]}})
            await world.add_pods(pod("s", tolerations=[tolerates("Gt", "900")]))
            (other,) = warnings(caplog)
            assert f'node more: failed to parse taint value as int64: {KEY}="0950"' in other

    run_virtual(main)


@statement("5471-T12", part="scheduler")
def test_without_the_gate_nothing_is_compared_and_nothing_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, starts=False) as world:
            world.gates = Gates.of("1.37", OFF)
            world.scheduler = world.new_scheduler()
            await world.scheduler.start()
            await world.add_nodes(tainted("text", "high"))
            await world.add_pods(pod("p", tolerations=[tolerates("Gt", "900")]))
            assert "no number" not in await message(world, "p")
            assert warnings(caplog) == []

    run_virtual(main)


@statement("5471-T19")
@statement("5471-T40")
def test_soft_taints_that_are_tolerated_do_not_count_and_none_blocks() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            soft = "PreferNoSchedule"
            two = [taint("100", soft), taint("1", soft, "other")]
            await world.add_nodes(
                node("two", taints=two),
                node("one", taints=[taint("100", soft)]),
                tainted("none", "950", soft),
            )
            wanted = pod("p", tolerations=[tolerates("Gt", "900", soft)])
            await world.add_pods(wanted)
            assert await world.where("p") == "none"
            # The next best is the one with the fewest, and even the worst takes pods when nothing else is left.
            await world.patch_node("none", {"spec": {"unschedulable": True}})
            await world.add_pods(pod("q", tolerations=[tolerates("Gt", "900", soft)]))
            assert await world.where("q") == "one"
            await world.patch_node("one", {"spec": {"unschedulable": True}})
            await world.add_pods(pod("r", tolerations=[tolerates("Gt", "900", soft)]))
            assert await world.where("r") == "two"

    run_virtual(main)


@statement("5471-T20")
def test_the_gate_changes_neither_plugins_nor_their_order_nor_weights() -> None:
    on = default_profile(Gates.of("1.37", "TaintTolerationComparisonOperators=true"))
    off = default_profile(Gates.of("1.37", OFF))
    assert on == off


@statement("5471-T20")
def test_preemption_does_not_help_against_a_number_and_priorities_rule_the_queue_as_ever() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(tainted("a", "950", allocatable={"cpu": "1", "pods": "9"}))
            await world.add_pods(pod("there", "1", tolerations=[tolerates("Gt", "900")]))
            await world.client.create(PriorityClass(metadata=ObjectMeta(name="important"), value=1000))
            high = pod("high", "1", tolerations=[tolerates("Gt", "960")], priorityClassName="important")
            await world.add_pods(high)
            assert "Preemption is not helpful" in await message(world, "high")
            assert await world.where("there") == "a"

    run_virtual(main)


@statement("5471-T23")
@statement("5471-T25", part="scheduler")
@statement("5471-T27", part="scheduler")
@statement("5471-T29", part="scheduler")
@statement("5471-T42")
def test_a_scheduler_with_the_gate_off_lets_pods_wait_and_one_with_it_on_places_them() -> None:
    async def main(clock: VirtualClock) -> None:
        # The API server has the gate on: it is upgraded first.
        async with cluster(clock, starts=False) as world:
            world.gates = Gates.of("1.37", OFF)
            world.scheduler = world.new_scheduler()
            await world.scheduler.start()
            await world.add_nodes(tainted("a", "950"))
            await world.add_pods(pod("p", tolerations=[tolerates("Gt", "900")]))
            await world.add_pods(pod("q", tolerations=[tolerates("Gt", "900")]))
            text = await message(world, "p")
            assert "untolerated taint" in text
            assert "Preemption is not helpful" in text
            await world.client.delete(Pod, "q", "default", grace_period=0)
            await world.pass_time()
            assert await world.places() == {"p": ""}
            assert world.scheduler.engine.queue.place_of("q") is Place.GONE
            await world.scheduler.stop()
            world.gates = Gates.of("1.37", "TaintTolerationComparisonOperators=true")
            world.scheduler = world.new_scheduler()
            await world.scheduler.start()
            await world.pass_time()
            assert await world.places() == {"p": "a"}

    run_virtual(main)


@statement("5471-T30", part="scheduler")
def test_an_older_scheduler_in_a_newer_cluster_lets_such_pods_wait_and_schedules_all_others() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, starts=False) as world:
            await world.add_nodes(tainted("a", "950"), node("open"))
            # One minor version behind the first that knows the operators: not a gate that is off, a word unheard of.
            world.gates = Gates.of("1.34")
            assert not world.gates.knows("TaintTolerationComparisonOperators")
            world.scheduler = world.new_scheduler(version="1.34")
            await world.scheduler.start()
            only_a = {"kubernetes.io/hostname": "a"}
            await world.client.patch(Node, "a", {"metadata": {"labels": only_a}})
            await world.add_pods(
                pod("numeric", tolerations=[tolerates("Gt", "900")], nodeSelector=only_a),
                pod("numeric-elsewhere", tolerations=[tolerates("Lt", "9")]),
                pod("equal", tolerations=[tolerates("Equal", "950")], nodeSelector=only_a),
                pod("plain"),
            )
            places = await world.places()
            assert places == {"numeric": "", "numeric-elsewhere": "open", "equal": "a", "plain": "open"}
            assert "1 node(s) had untolerated taint(s)" in await message(world, "numeric")
            errors = [
                key for key in page(world) if key[0] == "scheduler_schedule_attempts_total" if "error" in key
            ]
            assert not errors
            # The newer scheduler that takes over places what waited.
            await world.scheduler.stop()
            world.gates = Gates.of("1.35", "TaintTolerationComparisonOperators=true")
            world.scheduler = world.new_scheduler(version="1.35")
            await world.scheduler.start()
            await world.pass_time()
            assert await world.where("numeric") == "a"

    run_virtual(main)


@statement("5471-T33")
def test_metrics_show_evaluations_durations_and_who_holds_pods_up() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(tainted("a", "100"))
            await world.add_pods(pod("p", tolerations=[tolerates("Gt", "900")]))
            await world.add_nodes(tainted("b", "950"))
            # Durations come from every tenth decision.
            many = [pod(f"q{number}", "1m", tolerations=[tolerates("Gt", "900")]) for number in range(20)]
            await world.add_pods(*many)
            shown = page(world)
            counted = ("scheduler_plugin_evaluation_total", "Filter", "TaintToleration", PROFILE)
            assert shown[*counted, "UnschedulableAndUnresolvable"] == 1
            assert shown[*counted, "Success"] == 21
            points = "scheduler_framework_extension_point_duration_seconds_count"
            assert sum(value for key, value in shown.items() if key[:2] == (points, "Filter")) >= 1
            # What the proposal watches before a rollback, and the name upstream has for it today.
            for name in (
                "scheduler_scheduling_duration_seconds",
                "scheduler_scheduling_attempt_duration_seconds",
            ):
                assert shown[f"{name}_count", PROFILE, "scheduled"] == 21
                assert shown[f"{name}_count", PROFILE, "unschedulable"] == 1
                assert shown[f"{name}_bucket", "+Inf", PROFILE, "scheduled"] == 21
            await world.add_pods(pod("r", tolerations=[tolerates("Gt", "9000")]))
            assert page(world)["scheduler_unschedulable_pods", "TaintToleration", PROFILE] == 1

    run_virtual(main)


MAX = str(2**63 - 1)


@statement("5471-T39", part="scheduler")
@statement("5471-T37", part="scheduler")
@pytest.mark.parametrize(
    ("value", "operator", "threshold", "fits"),
    [
        ("950", "Gt", "900", True),
        ("900", "Gt", "900", False),
        ("850", "Gt", "900", False),
        ("5", "Lt", "10", True),
        ("10", "Lt", "10", False),
        ("15", "Lt", "10", False),
        ("5", "Gt", "-10", True),
        ("5", "Lt", "-10", False),
        ("1", "Gt", "0", True),
        ("0", "Gt", "0", False),
        ("0", "Lt", "1", True),
        (MAX, "Gt", str(2**63 - 2), True),
        (str(2**63 - 2), "Lt", MAX, True),
        (MAX, "Gt", MAX, False),
        ("950", "Equal", "950", True),
        ("0950", "Gt", "900", False),
    ],
)
@pytest.mark.parametrize("effect", ["NoSchedule", ""])
def test_the_filter_with_numbers(value: str, operator: str, threshold: str, fits: bool, effect: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            other = {"key": "team", "value": "a", "effect": "NoSchedule"}
            await world.add_nodes(node("n", taints=[taint(value), other]))
            tolerations = [
                tolerates(operator, threshold, effect),
                {"key": "team", "operator": "Equal", "value": "a"},
            ]
            await world.add_pods(pod("p", tolerations=tolerations))
            assert await world.where("p") == ("n" if fits else "")

    run_virtual(main)


@statement("5471-T41", part="scheduler")
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_pods_with_numbers_meet_the_taints_of_conditions_like_others(effect: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            condition = {"key": "node.kubernetes.io/disk-pressure", "effect": effect}
            await world.add_nodes(node("n", taints=[taint("950"), condition]))
            numeric = tolerates("Gt", "900")
            await world.add_pods(pod("numbers-only", tolerations=[numeric]))
            both = [numeric, {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists"}]
            await world.add_pods(pod("both", tolerations=both))
            assert await world.places() == {"numbers-only": "", "both": "n"}
            await world.patch_node("n", {"spec": {"taints": [taint("950")]}})
            assert await world.where("numbers-only") == "n"

    run_virtual(main)

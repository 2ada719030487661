"""KEP-5328 in the scheduler: pods go only where their features are, and are woken when those come.

Against a real API server in process, in virtual time; the nodes are written by the test.
"""

from __future__ import annotations

from typing import Any

from nodeward.api.core_v1.pod import Pod
from nodeward.features.declared import FRAMEWORK, Framework
from nodeward.features.declared.feature import Feature, PodInfo, Requirements
from nodeward.features.declared.version import Version
from nodeward.features.gates import Gates
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import ConnectionFailed, Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.plugin import CycleState
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code
from nodeward.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from nodeward.scheduler.queue.queued_pod import Place
from tests.keps.ledger import statement
from tests.scheduler.running import Cluster, cluster, node, pod
from tests.scheduler.test_metrics import page

FEATURE = "RestartAllContainersOnContainerExits"
#: What has to be off with it.
OFF_1_36 = (
    "NodeDeclaredFeatures=false,ExtendWebSocketsToKubelet=false,InPlacePodLevelResourcesVerticalScaling=false,"
    "InPlacePodVerticalScalingInitContainers=false,RestartAllContainersOnContainerExits=false"
)


def needy(name: str, **spec: Any) -> Pod:
    """A pod that needs the feature."""
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    container = {
        "name": "main",
        "image": "busybox",
        "restartPolicy": "Never",
        "restartPolicyRules": [rule],
    }
    return pod(name, containers=[container], **spec)


def declaring(*features: str) -> dict[str, Any]:
    return {"declaredFeatures": list(features)}


async def declare(world: Cluster, name: str, *features: str) -> None:
    await world.patch_node(name, {"status": declaring(*features)}, status=True)


def attempts(world: Cluster, name: str) -> int:
    queue = world.scheduler.engine.queue
    for place in Place:
        if place is not Place.GONE:
            for each in queue.pods_in(place):
                if each.pod.name == name:
                    return each.attempts
    raise LookupError(name)


class Counting:
    """The library, counting how often it is asked what a pod needs."""

    def __init__(self, inner: Framework) -> None:
        self._inner = inner
        self.inferred = 0

    def infer_for_pod_scheduling(self, info: PodInfo, version: Version) -> Any:
        self.inferred += 1
        return self._inner.infer_for_pod_scheduling(info, version)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@statement("5328-D25")
def test_what_a_pod_needs_is_inferred_once_for_all_nodes_and_the_filter_only_reads_it() -> None:
    counting = Counting(FRAMEWORK)
    plugin = NodeDeclaredFeatures(
        PluginContext(Gates.of("1.37"), Version.parse("1.37"), features=counting)  # type: ignore[arg-type]
    )
    table = NodeTable()
    for number in range(50):
        table.upsert_node(node(f"n{number}", status=declaring(*([FEATURE] if number % 2 else []))))
    view = PodView(needy("p"))
    cycle = CycleState(view)
    assert plugin.pre_filter(cycle, view, table).is_success
    assert counting.inferred == 1
    answer = plugin.filter_rows(cycle, table, table.rows())
    assert answer is not None
    assert int((answer.which >= 0).sum()) == 25
    for row in table.rows().tolist():
        plugin.filter(cycle, view, table.view(row))
    assert counting.inferred == 1


@statement("5328-D26")
@statement("5328-D27")
@statement("5328-D56")
def test_nodes_without_the_feature_are_out_for_good_and_the_event_names_it() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a"), node("b", status=declaring("ExtendWebSocketsToKubelet")))
            # Somebody of lower priority is there, and is not disturbed: preemption would not help.
            await world.add_pods(pod("filler", "3"))
            await world.add_pods(needy("p", priority=0))
            text = (
                f"0/2 nodes are available: 2 node(s) did not match node declared features: {FEATURE}. "
                "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
            )
            assert await world.events("p") == [("Warning", "FailedScheduling", text)]
            condition = await world.condition("p")
            assert condition is not None
            assert (condition.status, condition.reason, condition.message) == ("False", "Unschedulable", text)
            assert (await world.client.get(Pod, "p", "default")).status.phase == "Pending"
            assert await world.where("filler")
            rejected = world.scheduler.engine.profiles["default-scheduler"].classes.explain(
                PodView(await world.client.get(Pod, "p", "default"))
            )
            assert {status.code for status in rejected.rejected.values()} == {Code.UNRESOLVABLE}

    run_virtual(main)


@statement("5328-D28")
@statement("5328-D56")
def test_a_new_node_with_the_feature_wakes_the_pod_and_one_without_does_not() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("old"))
            await world.add_pods(needy("p"))
            await world.pass_time(20)
            await world.add_nodes(node("also-old"))
            await world.pass_time(20)
            assert attempts(world, "p") == 1
            await world.add_nodes(node("new", status=declaring(FEATURE)))
            assert await world.where("p") == "new"

    run_virtual(main)


@statement("5328-D29")
@statement("5328-D56")
def test_only_a_change_of_the_list_that_satisfies_the_pod_wakes_it() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a"))
            await world.add_pods(needy("p"))
            await world.pass_time(20)
            # A heartbeat, a condition, an image, and a list that does not help.
            heartbeat = [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:01:00Z"}]
            await world.patch_node("a", {"status": {"conditions": heartbeat}}, status=True)
            pressure = [*heartbeat, {"type": "DiskPressure", "status": "False"}]
            await world.patch_node("a", {"status": {"conditions": pressure}}, status=True)
            await world.patch_node("a", {"status": {"images": [{"names": ["x"]}]}}, status=True)
            await declare(world, "a", "ExtendWebSocketsToKubelet")
            await world.pass_time(20)
            assert attempts(world, "p") == 1
            await declare(world, "a", "ExtendWebSocketsToKubelet", FEATURE)
            assert await world.where("p") == "a"

    run_virtual(main)


@statement("5328-D30")
@statement("5328-D56")
def test_an_update_wakes_the_pod_only_if_it_changes_what_the_pod_needs() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a"))
            await world.add_pods(needy("p"))
            await world.pass_time(20)
            await world.client.patch(
                Pod,
                "p",
                {"metadata": {"labels": {"x": "y"}}},
                namespace="default",
                patch_type=PatchType.MERGE,
            )
            await world.pass_time(20)
            assert attempts(world, "p") == 1

    run_virtual(main)
    # No field that decides today can be changed on a pod that waits, so the plugin itself is asked.
    plugin = NodeDeclaredFeatures(PluginContext(Gates.of("1.37"), Version.parse("1.37")))
    hint = plugin.events_to_register()[1].hint
    assert hint is not None
    view = PodView(needy("p"))
    assert hint(view, needy("p"), pod("p")).value == "Queue"
    assert hint(view, needy("p"), needy("p", metadata={"labels": {"a": "b"}})).value == "QueueSkip"


def test_a_feature_nobody_has_heard_of_works_without_the_plugin_knowing_it() -> None:
    invented = Feature(
        name="Levitation",
        requirements=Requirements(("RestartAllContainersOnContainerExits",)),
        scheduling_rule=lambda info: info.spec.host_network,
    )
    library = Framework((invented,))
    plugin = NodeDeclaredFeatures(PluginContext(Gates.of("1.37"), Version.parse("1.37"), features=library))
    table = NodeTable()
    table.upsert_node(node("floats", status=declaring("Levitation")))
    table.upsert_node(node("sinks", status=declaring("ExtendWebSocketsToKubelet")))
    view = PodView(pod("p", hostNetwork=True))
    cycle = CycleState(view)
    assert plugin.pre_filter(cycle, view, table).is_success
    statuses = {
        table.name_of(row): plugin.filter(cycle, view, table.view(row)) for row in table.rows().tolist()
    }
    assert statuses["floats"].is_success
    assert statuses["sinks"].message == "node(s) did not match node declared features: Levitation"
    answer = plugin.filter_rows(cycle, table, table.rows())
    assert answer is not None
    assert [which >= 0 for which in answer.which.tolist()] == [False, True]


@statement("5328-D42")
@statement("5328-D43")
def test_the_feature_and_the_label_must_both_be_there_and_a_pod_may_have_no_node_at_all() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(
                node("label", labels={"disk": "ssd"}), node("feature", status=declaring(FEATURE))
            )
            # Without its need it could run on either; with it, and a selector, on none.
            await world.add_pods(pod("plain"), needy("picky", nodeSelector={"disk": "ssd"}))
            assert await world.where("plain")
            assert not await world.where("picky")
            await world.add_nodes(node("both", labels={"disk": "ssd"}, status=declaring(FEATURE)))
            assert await world.where("picky") == "both"

    run_virtual(main)


@statement("5328-D44", part="scheduler")
def test_a_node_without_a_list_lacks_everything() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("older-than-the-field"))
            await world.add_pods(needy("p"), pod("plain"))
            assert not await world.where("p")
            assert await world.where("plain") == "older-than-the-field"

    run_virtual(main)


@statement("5328-D45", part="scheduler")
@statement("5328-D46", part="scheduler")
@statement("5328-D47", part="scheduler")
def test_a_scheduler_with_the_gate_off_ignores_lists_and_one_with_it_on_heeds_them_at_once() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, starts=False) as world:
            off = Gates.of("1.36", OFF_1_36)
            assert not off.enabled("NodeDeclaredFeatures")
            world.gates = off
            world.scheduler = world.new_scheduler()
            plugins = world.scheduler.engine.profiles["default-scheduler"].plugins
            assert all(plugin.name != "NodeDeclaredFeatures" for plugin in plugins)
            await world.scheduler.start()
            await world.add_nodes(node("a"))
            await world.add_pods(needy("anywhere"))
            assert await world.where("anywhere") == "a"
            await world.scheduler.stop()
            world.gates = Gates.of("1.37")
            world.scheduler = world.new_scheduler()
            await world.scheduler.start()
            await world.add_pods(needy("waits"))
            assert not await world.where("waits")
            await declare(world, "a", FEATURE)
            assert await world.where("waits") == "a"

    run_virtual(main)


@statement("5328-D50")
def test_without_an_api_server_the_scheduler_decides_on_what_it_knows() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a"), node("b", status=declaring(FEATURE)))
            engine = world.scheduler.engine
            is_away = True

            async def away(request: Request, send: Any) -> Response:
                if is_away:
                    raise ConnectionFailed("nobody answers")
                answer: Response = await send(request)
                return answer

            world.transport.alter = away
            waiting = await world.client.create(needy("p"))
            await world.pass_time(3)
            # It is decided, assumed where the feature is, and tried again: nothing is bound.
            assert not await world.where("p")
            assert attempts(world, "p") >= 1
            fitting = engine.profiles["default-scheduler"].classes.fitting(PodView(waiting))
            assert [engine.table.name_of(row) for row in fitting.tolist()] == ["b"]
            is_away = False
            await world.pass_time(30)
            assert await world.where("p") == "b"

    run_virtual(main)


def _calls_for(made: Pod) -> list[tuple[str, str]]:
    """What the scheduler asks of the API to place a pod, apart from events."""
    seen: list[tuple[str, str]] = []

    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a", status=declaring(FEATURE)))

            async def count(request: Request, send: Any) -> Response:
                if "/events" not in request.path:
                    seen.append((request.method, request.path))
                answer: Response = await send(request)
                return answer

            world.transport.alter = count
            await world.add_pods(made)
            assert await world.where("p") == "a"

    run_virtual(main)
    return seen


@statement("5328-D51")
def test_no_calls_are_added_for_pods_that_need_features() -> None:
    binding = [("POST", "/api/v1/namespaces/default/pods/p/binding")]
    assert _calls_for(pod("p")) == binding
    assert _calls_for(needy("p")) == binding


@statement("5328-D58", part="scheduler")
@statement("5328-D63", part="scheduler")
def test_pods_without_needs_notice_nothing_whatever_nodes_declare() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a"), node("b", status=declaring(FEATURE, "ZNobodyKnowsThis")))
            await world.add_pods(*(pod(f"p{number}") for number in range(4)))
            assert sorted((await world.places()).values()) == ["a", "a", "b", "b"]
            await declare(world, "b")
            await world.pass_time(60)
            assert sorted((await world.places()).values()) == ["a", "a", "b", "b"]
            # And together with a pod that needs something, each finds its place.
            await declare(world, "b", FEATURE)
            await world.add_pods(needy("n"))
            assert await world.where("n") == "b"

    run_virtual(main)


def test_the_metrics_show_the_feature_at_work() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a"))
            await world.add_pods(needy("p"))
            shown = page(world)
            profile = "default-scheduler"
            assert shown["scheduler_unschedulable_pods", "NodeDeclaredFeatures", profile] == 1
            filter_ = ("scheduler_plugin_evaluation_total", "Filter", "NodeDeclaredFeatures", profile)
            assert shown[*filter_, "UnschedulableAndUnresolvable"] == 1
            assert shown["scheduler_schedule_attempts_total", profile, "unschedulable"] == 1

    run_virtual(main)

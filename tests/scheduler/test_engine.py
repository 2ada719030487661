"""The engine without an API: decisions, promises to other pods, plugins that fail, and what is counted."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from nodeward.features.declared import Version
from nodeward.machinery.clock import RealClock
from nodeward.scheduler.attempt import Attempt
from nodeward.scheduler.cache.pod_class import PodClass
from nodeward.scheduler.cycle import Engine
from nodeward.scheduler.engine_factory import alone, build_engine
from nodeward.scheduler.framework.plugin import (
    CycleState,
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterNodes,
    StatefulPlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Status, failed, unschedulable
from nodeward.scheduler.plugins import REGISTRY
from nodeward.scheduler.queue.queued_pod import Place
from nodeward.scheduler.settings import PluginUse, ProfileSettings, SchedulerSettings, default_profile
from tests.scheduler.cache.objects import node, pod
from tests.scheduler.plugins.given import given
from tests.scheduler.plugins.profile import GATES

VERSION = Version.parse("1.37")


def engine(*nodes: Any, more: tuple[Any, ...] = ()) -> Engine:
    """The default profile without preemption, and further plugins."""
    if not more:
        made = alone(GATES, VERSION, RealClock())
    else:
        whole = default_profile(GATES)
        uses = tuple(use for use in whole.plugins if use.name != "DefaultPreemption")
        profile = ProfileSettings(whole.name, (*uses, *(PluginUse(each.name) for each in more)))
        made = build_engine(
            SchedulerSettings((profile,)),
            gates=GATES,
            version=VERSION,
            clock=RealClock(),
            registry=(*REGISTRY, *map(given, more)),
        )
    for each in nodes:
        made.table.upsert_node(each)
    return made


def small(name: str) -> Any:
    return node(name, allocatable={"cpu": "1", "pods": "9"})


def mine(name: str, cpu: str = "1", **spec: Any) -> PodView:
    return pod(name, requests={"cpu": cpu}, schedulerName="default-scheduler", **spec)


def add(made: Engine, *pods: PodView) -> None:
    for each in pods:
        made.queue.add(each, made.clock.monotonic_ns())


def decide(made: Engine, view: PodView) -> Attempt:
    add(made, view)
    attempt = made.next()
    assert attempt is not None
    assert attempt.view is view
    return attempt


def test_decisions_need_no_api() -> None:
    made = engine(small("a"), small("b"))
    add(made, mine("p"), mine("q"), mine("r"))
    assert made.decide_all() == (2, 1)
    assert {made.table.node_of("p"), made.table.node_of("q")} == {"a", "b"}
    assert made.queue.place_of("r") is Place.UNSCHEDULABLE
    assert made.next() is None


def test_equal_choices_are_the_same_for_the_same_start() -> None:
    def places() -> list[str | None]:
        made = engine(*(small(f"n{number}") for number in range(20)))
        add(made, *(mine(f"p{number}") for number in range(20)))
        made.decide_all()
        return [made.table.node_of(f"p{number}") for number in range(20)]

    first = places()
    assert first == places()
    assert len(set(first)) == 20


def test_a_pod_keeps_off_a_node_that_is_promised_to_one_as_important() -> None:
    made = engine(small("a"), small("b"))
    for name, priority in (("important", 10), ("less", 5)):
        view = mine(name, priority=priority, status={"nominatedNodeName": "a"})
        if name == "important":
            made.queue.nominator.add(view)
    assert decide(made, mine("equal", priority=10)).node == "b"
    attempt = decide(made, mine("lower", priority=1))
    assert attempt.failure is not None
    assert attempt.failure.message == "0/2 nodes are available: 2 Insufficient cpu."
    assert decide(made, mine("higher", priority=11)).node == "a"


def test_a_promise_leaves_the_rest_of_the_node_to_others() -> None:
    made = engine(node("a", allocatable={"cpu": "3", "pods": "9"}))
    made.queue.nominator.add(mine("important", priority=10, status={"nominatedNodeName": "a"}))
    assert decide(made, mine("p")).node == "a"
    assert decide(made, mine("q")).node == "a"
    assert decide(made, mine("r")).node == ""


def test_a_pod_goes_where_it_was_promised_a_place_even_if_another_node_is_better() -> None:
    made = engine(small("a"), node("b", allocatable={"cpu": "64", "pods": "9"}))
    view = mine("p", priority=10, status={"nominatedNodeName": "a"})
    assert decide(made, view).node == "a"
    assert len(made.queue.nominator) == 0
    made = engine(node("b", allocatable={"cpu": "64", "pods": "9"}))
    assert decide(made, view).node == "b", "a promised node that is gone keeps nobody waiting"


class Odd(FilterPlugin):
    """A filter that fails, one way or another."""

    name: ClassVar[str] = "Odd"
    pod_fields = ()

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def filter(self, cycle: CycleState, pod: PodView, node: Any) -> Status:
        if isinstance(self.answer, Exception):
            raise self.answer
        answer: Status = self.answer
        return answer


@pytest.mark.parametrize("answer", [failed("out of order"), KeyError("a bug")], ids=["error", "exception"])
def test_a_filter_that_fails_ends_the_attempt_and_the_next_one_is_not_poisoned(answer: Any) -> None:
    odd = Odd(answer)
    made = engine(small("a"), more=(odd,))
    attempt = decide(made, mine("p"))
    assert attempt.failure is not None
    assert attempt.failure.reason == "SchedulerError"
    assert made.queue.place_of("p") is Place.BACKOFF
    odd.answer = SUCCESS
    assert decide(made, mine("q")).node == "a"


class Maker(PostFilterPlugin):
    """A PostFilter plugin that answers what it is told to."""

    name: ClassVar[str] = "Maker"

    def __init__(self, made: PostFilterResult) -> None:
        self.made = made
        self.seen: dict[str, Status] = {}

    def post_filter(self, cycle: CycleState, pod: PodView, table: Any, rejected: Any) -> PostFilterResult:
        self.seen = dict(rejected)
        return self.made


def test_room_that_is_made_is_promised() -> None:
    maker = Maker(PostFilterResult(SUCCESS, "a"))
    made = engine(small("a"), more=(maker,))
    attempt = decide(made, mine("p", "2"))
    assert attempt.failure is not None
    assert attempt.failure.nominated == "a"
    assert made.queue.nominator.node_of("p") == "a"
    assert maker.seen["a"].reasons == ("Insufficient cpu",)


@pytest.mark.parametrize(("clears", "kept"), [(True, ""), (False, "a")])
def test_a_promise_is_taken_back_only_if_it_is_of_no_use(clears: bool, kept: str) -> None:
    maker = Maker(PostFilterResult(unschedulable("preemption: not now."), clears=clears))
    made = engine(small("a"), more=(maker,))
    attempt = decide(made, mine("p", "2", status={"nominatedNodeName": "a"}))
    assert attempt.failure is not None
    assert attempt.failure.message.endswith("1 Insufficient cpu. preemption: not now.")
    assert made.queue.nominator.node_of("p") == kept


def test_pods_being_deleted_are_not_scheduled() -> None:
    made = engine(small("a"))
    attempt = decide(made, mine("p", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    assert attempt.failure is not None
    assert attempt.failure.message == "skip schedule deleting pod: default/p"
    assert len(made.queue) == 0


def test_a_failure_is_counted_without_naming_nodes_and_remembered_while_nothing_changes() -> None:
    made = engine(small("a"), small("b"))
    classes = made.profiles["default-scheduler"].classes
    decide(made, mine("p", "2"))
    first = classes.diagnose(mine("q", "2"))
    assert classes.diagnose(mine("r", "2")) is first
    assert (first.nodes, dict(first.counts), first.rejected_by) == (
        2,
        {"Insufficient cpu": 2},
        ("NodeResourcesFit",),
    )
    made.table.upsert_node(small("c"))
    assert classes.diagnose(mine("s", "2")).counts == {"Insufficient cpu": 3}


def test_evaluations_are_counted_by_plugin_and_outcome() -> None:
    made = engine(small("a"))
    made.metrics.follow(made.queue, made.table, made.profiles.values(), lambda: 0)
    add(made, mine("p"), mine("q"))
    made.decide_all()
    counter = made.metrics.all.counter("scheduler_plugin_evaluation_total", "")
    fit = ("NodeResourcesFit", "Filter", "default-scheduler")
    assert counter.value(*fit, "Success") == 1
    assert counter.value(*fit, "Unschedulable") == 1
    assert counter.value("NodeResourcesFit", "Score", "default-scheduler", "Success") == 1
    assert counter.value("TaintToleration", "Filter", "default-scheduler", "Success") == 2


class Narrow(PreFilterNodes, StatefulPlugin):
    """Stateful, and knows the only nodes a pod can go to."""

    name: ClassVar[str] = "Narrow"
    pod_fields = ()

    def __init__(self) -> None:
        pass

    def concerns(self, pod: PodView, table: Any = None) -> bool:
        return "only" in pod.labels

    def pre_filter(self, cycle: CycleState, pod: PodView, table: Any) -> Status:
        return SUCCESS

    def only_nodes(self, cycle: CycleState, pod: PodView) -> list[str] | None:
        return [pod.labels["only"]] if "only" in pod.labels else None


def test_a_plugin_that_looks_at_every_pod_may_name_the_only_nodes_for_it() -> None:
    made = engine(small("a"), small("b"), small("c"), more=(Narrow(),))
    assert decide(made, mine("p", metadata={"labels": {"only": "b"}})).node == "b"
    attempt = decide(made, mine("q", metadata={"labels": {"only": "b"}}))
    assert attempt.failure is not None
    assert attempt.failure.message == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [Narrow]."
    )
    assert made.queue.get("q").unschedulable_plugins == ("Narrow", "NodeResourcesFit")  # type: ignore[union-attr]


def test_columns_are_not_worked_out_for_pods_a_plugin_rejects_as_such() -> None:
    made = engine(small("a"))
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {
                        "matchFields": [
                            {"key": "metadata.name", "operator": "In", "values": ["a"]},
                            {"key": "metadata.name", "operator": "In", "values": ["b"]},
                        ]
                    }
                ]
            }
        }
    }
    attempt = decide(made, mine("p", affinity=affinity))
    assert attempt.failure is not None
    assert attempt.failure.message == "0/1 nodes are available: pod affinity terms conflict."
    assert len(made.profiles["default-scheduler"].classes) == 0
    assert isinstance(made.profiles["default-scheduler"].classes.pick(mine("q")).found, PodClass)

"""Who must go so that a pod gets a node, and who is spared."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.scheduler.cache.node import NodeView
from nodeward.scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from nodeward.scheduler.framework.plugin import CycleState, FilterPlugin, PostFilterResult
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Code, Status
from nodeward.scheduler.plugins.preemption.candidate import Wanted, enough
from nodeward.scheduler.plugins.preemption.search import PreemptionResult, Search
from tests.scheduler.cache.objects import pod
from tests.scheduler.plugins.preempting import Cluster, budget


def at(second: int) -> dict[str, Any]:
    return {"startTime": f"2026-01-01T00:00:{second:02d}Z"}


def high(cpu: str = "3", **spec: Any) -> PodView:
    return pod("high", requests={"cpu": cpu}, priority=100, **spec)


def search(cluster: Cluster, view: PodView, wanted: int = 100) -> PreemptionResult:
    """What is found, without anything being done."""
    rows = cluster.classes.rejected_rows(view, Code.UNSCHEDULABLE)
    preemption = cluster.preemption
    return Search(
        cluster.classes.cycle(view),
        view,
        cluster.table,
        preemption._tenants_of(cluster.table),
        cluster.filters,
        preemption._current_budgets(),
        cluster.nominator,
    ).run(rows, 0, wanted)


def victims(cluster: Cluster, view: PodView) -> tuple[str, list[str]]:
    found = search(cluster, view).best
    assert found is not None
    return found.node, [each.name for each in found.victims]


def message(made: PostFilterResult) -> str:
    return made.status.message


class TestWhoGoes:
    def test_only_as_many_as_it_takes_go_and_the_least_important_first(self) -> None:
        cluster = Cluster()
        cluster.nodes(1)
        cluster.run("a", "n0", "1", priority=5, status=at(1))
        cluster.run("b", "n0", "1", priority=1, status=at(1))
        cluster.run("c", "n0", "2", priority=1, status=at(2))
        assert victims(cluster, high("2")) == ("n0", ["c"])

    def test_of_equal_priority_the_one_that_runs_longer_is_spared(self) -> None:
        cluster = Cluster()
        cluster.nodes(1)
        cluster.run("young", "n0", "2", status=at(30))
        cluster.run("old", "n0", "2", status=at(10))
        cluster.run("unborn", "n0", "0")
        assert victims(cluster, high("2")) == ("n0", ["young"])

    def test_a_start_told_later_counts(self) -> None:
        cluster = Cluster()
        cluster.nodes(1)
        cluster.run("a", "n0", "2", status=at(10))
        cluster.run("b", "n0", "2")
        assert victims(cluster, high("2")) == ("n0", ["b"])
        cluster.run("b", "n0", "2", status=at(5))
        assert victims(cluster, high("2")) == ("n0", ["a"])

    def test_pods_of_equal_or_higher_priority_stay(self) -> None:
        cluster = Cluster()
        cluster.nodes(2)
        cluster.run("same", "n0", "3", priority=100)
        cluster.run("above", "n1", "3", priority=101)
        made = cluster.make_room(high())
        assert message(made) == (
            "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."
        )
        assert made.clears

    def test_a_pod_whose_budget_is_used_up_is_spared_first(self) -> None:
        cluster = Cluster([budget("b", "web", 0)])
        cluster.nodes(1)
        cluster.run("web", "n0", "2", priority=1, metadata={"labels": {"app": "web"}})
        cluster.run("other", "n0", "2", priority=9)
        assert victims(cluster, high("2")) == ("n0", ["other"])

    def test_a_budget_is_broken_if_nothing_else_helps(self) -> None:
        cluster = Cluster([budget("b", "web", 0)])
        cluster.nodes(1)
        cluster.run("web", "n0", "3", metadata={"labels": {"app": "web"}})
        found = search(cluster, high()).best
        assert found is not None
        assert found.violations == 1

    def test_a_budget_counts_down_over_the_pods_of_a_node(self) -> None:
        cluster = Cluster([budget("b", "web", 1)])
        cluster.nodes(2)
        for name in ("w1", "w2"):
            cluster.run(name, "n0", "2", metadata={"labels": {"app": "web"}})
        cluster.run("x1", "n1", "2", priority=1)
        cluster.run("x2", "n1", "2", priority=1)
        assert victims(cluster, high("4")) == ("n1", ["x1", "x2"])

    def test_a_pod_the_budget_already_counts_as_gone_breaks_nothing(self) -> None:
        disrupted = {"disruptedPods": {"web": "2026-01-01T00:00:00Z"}}
        cluster = Cluster([budget("b", "web", 0, **disrupted)])
        cluster.nodes(1)
        cluster.run("web", "n0", "3", metadata={"labels": {"app": "web"}})
        found = search(cluster, high()).best
        assert found is not None
        assert found.violations == 0

    def test_ports_are_made_free_too(self) -> None:
        cluster = Cluster()
        cluster.nodes(1)
        port = [{"containerPort": 80, "hostPort": 80}]
        cluster.table.add_pod(pod("holder", ports=port, nodeName="n0"))
        cluster.run("bystander", "n0", "1")
        assert victims(cluster, high("1", ports=port)) == ("n0", ["holder"])

    def test_a_node_that_the_pod_may_not_use_anyway_is_no_candidate(self) -> None:
        cluster = Cluster()
        cluster.nodes(1)
        cluster.nodes(1, taints=[{"key": "k", "effect": "NoSchedule"}])
        cluster.run("low", "n0", "3")
        assert message(cluster.make_room(high())) == (
            "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )

    def test_what_is_missing_even_then_is_named(self) -> None:
        cluster = Cluster()
        cluster.nodes(2)
        for number in range(2):
            cluster.run(f"low{number}", f"n{number}", "1")
            cluster.run(f"top{number}", f"n{number}", "2", priority=200)
        assert message(cluster.make_room(high())) == (
            "preemption: 0/2 nodes are available: 2 Insufficient cpu."
        )


class TestWhichNode:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            # (priority, cpu, start) of the victims; the second node is better
            ([(9, "3", 1)], [(8, "3", 1)]),
            ([(5, "1", 1), (5, "2", 1)], [(5, "1", 1), (4, "2", 1)]),
            ([(5, "1", 1), (5, "2", 1)], [(5, "3", 1)]),
            ([(-5, "1", 1), (-5, "2", 1)], [(-5, "3", 1)]),
            ([(5, "3", 10)], [(5, "3", 20)]),
            ([(5, "1", 10), (5, "2", 50)], [(5, "1", 20), (5, "2", 20)]),
        ],
        ids=["highest", "sum", "count", "negative", "start", "earliest-start"],
    )
    def test_the_node_where_it_hurts_least_is_chosen(
        self, first: list[tuple[int, str, int]], second: list[tuple[int, str, int]]
    ) -> None:
        cluster = Cluster()
        cluster.nodes(2)
        for node, group in (("n0", first), ("n1", second)):
            for number, (priority, cpu, start) in enumerate(group):
                cluster.run(f"{node}-{number}", node, cpu, priority=priority, status=at(start))
        assert victims(cluster, high("4"))[0] == "n1"

    def test_fewer_broken_budgets_come_before_all_else(self) -> None:
        cluster = Cluster([budget("b", "web", 0)])
        cluster.nodes(2)
        cluster.run("web", "n0", "3", priority=1, metadata={"labels": {"app": "web"}})
        cluster.run("dear", "n1", "3", priority=99)
        assert victims(cluster, high())[0] == "n1"

    def test_all_else_equal_the_first_is_chosen(self) -> None:
        cluster = Cluster()
        cluster.nodes(3)
        for number in range(3):
            cluster.run(f"p{number}", f"n{number}", "3", status=at(1))
        assert victims(cluster, high())[0] == "n0"

    def test_room_promised_to_others_is_not_given_away(self) -> None:
        cluster = Cluster()
        cluster.nodes(2)
        cluster.run("a", "n0", "3", priority=1)
        cluster.run("b", "n1", "3", priority=2)
        cluster.nominator.add(pod("other", requests={"cpu": "3"}, priority=100), "n0")
        assert victims(cluster, high())[0] == "n1"
        cluster.nominator.add(pod("other", requests={"cpu": "3"}, priority=99), "n0")
        assert victims(cluster, high())[0] == "n0"

    def test_the_search_ends_when_enough_is_known_and_goes_on_there_next_time(self) -> None:
        arguments = {"minCandidateNodesPercentage": 1, "minCandidateNodesAbsolute": 3}
        cluster = Cluster(arguments={"DefaultPreemption": arguments})
        cluster.nodes(12)
        for number in range(12):
            cluster.run(f"p{number}", f"n{number}", "3", priority=1 + (number != 11))
        # The best of all is the last one, which the first searches do not reach.
        assert [cluster.make_room(high()).node for _ in range(5)] == ["n0", "n3", "n6", "n11", "n0"]

    def test_how_many_are_enough(self) -> None:
        assert [Wanted().of(nodes) for nodes in (5, 100, 999, 1000, 5000)] == [5, 100, 100, 100, 500]
        assert enough([0, 1], 3) is None
        assert enough([1, 1, 1], 3) is None
        assert enough([1, 1, 1, 0, 1], 3) == 4
        assert enough([0, 1, 1, 1], 3) == 3


class TestWhoMayPreempt:
    def test_not_a_pod_that_never_does(self) -> None:
        cluster = Cluster()
        cluster.nodes(1)
        cluster.run("low", "n0", "3")
        made = cluster.make_room(high(preemptionPolicy="Never"))
        assert made.status == Status(
            Code.UNSCHEDULABLE, ("preemption: not eligible due to preemptionPolicy=Never.",)
        )
        assert not made.clears

    def test_not_again_while_victims_are_on_their_way_out(self) -> None:
        cluster = Cluster()
        cluster.nodes(2)
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        leaving = {"deletionTimestamp": "2026-01-01T00:00:09Z"}
        cluster.run("low", "n0", "3", metadata=leaving, status={"conditions": [condition]})
        cluster.run("other", "n1", "3")
        waiting = high(status={"nominatedNodeName": "n0"})
        made = cluster.make_room(waiting)
        assert message(made) == ("preemption: not eligible due to a terminating pod on the nominated node.")
        cluster.run("low", "n0", "3", metadata=leaving)
        assert cluster.make_room(waiting).status.is_success

    def test_again_if_the_promised_node_became_useless(self) -> None:
        cluster = Cluster()
        cluster.nodes(2)
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        leaving = {"deletionTimestamp": "2026-01-01T00:00:09Z"}
        cluster.run("low", "n0", "3", metadata=leaving, status={"conditions": [condition]})
        cluster.run("other", "n1", "3")
        cluster.nodes(1, unschedulable=True)
        assert cluster.make_room(high(status={"nominatedNodeName": "n0"})).node == "n1"

    def test_the_deletion_of_a_pod_does_not_wake_by_itself(self) -> None:
        (line,) = Cluster().preemption.events_to_register()
        assert line.event.covers(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE))
        assert line.hint is not None
        assert line.hint(high(), None, None) is QueueingHint.SKIP


class Indifferent(FilterPlugin):
    """A filter that looks at pods and never minds: with it, every node is asked about one by one."""

    name: ClassVar[str] = "Indifferent"
    pod_fields = ()

    def __init__(self) -> None:
        pass

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        return SUCCESS


RUNNING = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["0", "500m", "1", "2", "3"]),
        st.integers(-1, 3),
        st.integers(0, 4),
        st.sampled_from(["", "web", "db"]),
    ),
    max_size=14,
)
PROMISED = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=2)


@settings(max_examples=300)
@given(
    running=RUNNING,
    promised=PROMISED,
    allowed=st.tuples(st.integers(0, 1), st.integers(0, 2)),
    cpu=st.sampled_from(["1", "2", "4"]),
)
def test_columns_choose_what_is_chosen_node_by_node(
    running: list[tuple[int, str, int, int, str]],
    promised: list[tuple[int, int]],
    allowed: tuple[int, int],
    cpu: str,
) -> None:
    view = pod("new", requests={"cpu": cpu}, priority=2)
    answers: list[object] = []
    for extra in ((), (Indifferent(),)):
        cluster = Cluster([budget("w", "web", allowed[0]), budget("d", "db", allowed[1])], extra=extra)
        cluster.nodes(4, allocatable={"cpu": "4", "memory": "8Gi", "pods": "4"})
        for number, (node, asked, priority, start, app) in enumerate(running):
            status = at(start) if start else {}
            metadata = {"labels": {"app": app} if app else {}}
            cluster.run(f"p{number}", f"n{node}", asked, priority=priority, status=status, metadata=metadata)
        for number, (node, priority) in enumerate(promised):
            other = pod(f"promised{number}", requests={"cpu": "1"}, priority=priority)
            cluster.nominator.add(other, f"n{node}")
        found = search(cluster, view)
        best = found.best
        answers.append(
            (dict(found.reasons),)
            if best is None
            else (best.node, [each.name for each in best.victims], best.violations)
        )
        if best is not None:
            assert all(each.priority < view.priority for each in best.victims)
    assert answers[0] == answers[1]

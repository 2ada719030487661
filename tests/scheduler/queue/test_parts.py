"""The parts of the queue: backoff grows and ends, hints are asked in order, nominations follow their pod."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSchedulingGate, PodSpec
from nodeward.api.core_v1.pod_status import ContainerStatus, PodResourceClaimStatus, PodStatus
from nodeward.api.core_v1.references import Toleration
from nodeward.api.meta import ObjectMeta
from nodeward.api.storage_v1 import CSINode
from nodeward.base.duration import SECOND_NS
from nodeward.base.quantity import Quantity
from nodeward.scheduler.framework.events import Action, ClusterEvent, QueueingHint, Resource
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.queue.backoff import BackoffRule
from nodeward.scheduler.queue.heap import PodHeap
from nodeward.scheduler.queue.hints import HintLine, Hints, QueueingStrategy, event_label, verdict
from nodeward.scheduler.queue.nominator import Nominator
from nodeward.scheduler.queue.pod_changes import pod_changes
from nodeward.scheduler.queue.queued_pod import QueuedPod
from tests.scheduler.queue.pods import NODE_ADD, view


@pytest.mark.parametrize(
    ("count", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (16, 10), (10_000, 10)]
)
def test_backoff_doubles_up_to_its_maximum(count: int, seconds: int) -> None:
    assert BackoffRule().duration_ns(count) == seconds * SECOND_NS


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.integers(1, 80))
def test_backoff_never_shrinks_and_never_passes_its_maximum(initial: int, maximum: int, count: int) -> None:
    rule = BackoffRule(initial, maximum)
    assert rule.duration_ns(count) <= rule.duration_ns(count + 1) <= maximum


@given(st.integers(0, 10**12), st.integers(1, 8), st.booleans())
def test_a_pod_backs_off_until_the_moment_its_backoff_is_over(
    start: int, count: int, is_windowed: bool
) -> None:
    rule = BackoffRule(is_windowed=is_windowed)
    queued = QueuedPod(view("a"), start)
    queued.unschedulable_count = count
    over = rule.over_ns(queued)
    assert rule.is_backing_off(queued, over - 1)
    assert not rule.is_backing_off(queued, over)
    assert 0 < over - start - rule.duration_ns(count) <= (SECOND_NS if is_windowed else 1)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["push", "remove", "pop"]), st.integers(0, 30))))
def test_a_heap_gives_the_smallest_key_and_the_oldest_of_equals(steps: list[tuple[int, str, int]]) -> None:
    heap = PodHeap(lambda queued: queued.timestamp_ns)
    pods = {number: QueuedPod(view(str(number)), 0) for number in range(31)}
    model: dict[str, tuple[int, int]] = {}
    for turn, (key, step, number) in enumerate(steps):
        queued = pods[number]
        if step == "push":
            queued.timestamp_ns = key
            heap.push(queued)
            model[queued.uid] = (key, model.get(queued.uid, (0, turn))[1])
        elif step == "remove":
            assert heap.remove(queued.uid) == (model.pop(queued.uid, None) is not None)
        else:
            first, popped = heap.first(), heap.pop()
            assert first is popped
            expected = min(model, key=model.__getitem__, default=None)
            assert (popped and popped.uid) == expected
            model.pop(expected or "", None)
        assert len(heap) == len(model)
        assert sorted(each.uid for each in heap) == sorted(model)


def test_a_heap_does_not_keep_what_was_taken_out() -> None:
    heap = PodHeap(lambda queued: queued.timestamp_ns)
    for number in range(2000):
        heap.push(QueuedPod(view(str(number)), 2000 - number))
        if number >= 5:
            heap.remove(f"uid-{number - 5}")
    assert len(heap) == 5
    assert len(heap._heap) < 100


def test_no_more_plugins_are_asked_than_it_takes_and_pending_ones_first() -> None:
    asked: list[str] = []

    def says(name: str, hint: QueueingHint) -> Any:
        def function(pod: PodView, old: Any, new: Any) -> QueueingHint:
            asked.append(name)
            return hint

        return function

    hints = Hints(
        {
            "p": {
                NODE_ADD: [
                    HintLine("A", says("A", QueueingHint.SKIP)),
                    HintLine("B", says("B", QueueingHint.QUEUE)),
                    HintLine("C", says("C", QueueingHint.QUEUE)),
                ],
                ClusterEvent(Resource.NODE, Action.ALL): [HintLine("D", says("D", QueueingHint.SKIP))],
            }
        }
    )
    pod = view("a")
    assert (
        verdict(hints.asked("p", ("A", "B", "C"), ("D",), NODE_ADD), pod, None, None)
        is QueueingStrategy.AFTER_BACKOFF
    )
    assert asked == ["D", "A", "B"]
    asked.clear()
    assert (
        verdict(hints.asked("p", ("A",), ("C",), NODE_ADD), pod, None, None) is QueueingStrategy.IMMEDIATELY
    )
    assert asked == ["C"]
    assert hints.asked("p", ("E",), (), NODE_ADD) is QueueingStrategy.SKIP
    assert hints.asked("p", (), (), NODE_ADD) is QueueingStrategy.AFTER_BACKOFF


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (NODE_ADD, "NodeAdd"),
        (ClusterEvent(Resource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE), "NodeUpdateNodeDeclaredFeature"),
        (ClusterEvent(Resource.ASSIGNED_POD, Action.UPDATE_OTHER), "AssignedPodUpdate"),
        (ClusterEvent(CSINode, Action.UPDATE), "storage.k8s.io/CSINodeUpdate"),
        (ClusterEvent(Resource.WILDCARD, Action.ALL, "ForceActivate"), "ForceActivate"),
    ],
)
def test_events_are_labelled_as_in_kubernetes(event: ClusterEvent, label: str) -> None:
    assert event_label(event) == label


def test_a_pod_is_nominated_for_one_node_at_a_time() -> None:
    nominator = Nominator()
    pod = view("a")
    nominator.add(pod, "node-1")
    nominator.add(pod, "node-2")
    assert nominator.for_node("node-1") == []
    assert nominator.for_node("node-2") == [pod]
    assert nominator.node_of(pod.uid) == "node-2"
    assert nominator.nodes() == ["node-2"]
    nominator.add(pod, "")
    assert (len(nominator), nominator.nodes()) == (0, [])


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [("", "", "memory"), ("", "node-1", "node-1"), ("node-1", "node-2", "node-2"), ("node-1", "", "")],
)
def test_an_update_decides_a_nomination_only_if_it_ever_spoke_of_one(
    before: str, after: str, expected: str
) -> None:
    nominator = Nominator()
    nominator.add(view("a"), "memory")
    new = view("a", nominated=after)
    nominator.update(view("a", nominated=before), new)
    assert nominator.node_of(new.uid) == expected
    assert nominator.for_node(expected) == ([new] if expected else [])


def test_an_update_of_a_pod_nobody_nominated_takes_what_its_status_says() -> None:
    nominator = Nominator()
    nominator.update(view("a"), view("a"))
    assert len(nominator) == 0
    nominator.update(view("a"), view("a", nominated="node-1"))
    assert nominator.node_of("uid-a") == "node-1"


def _pod(
    *,
    labels: dict[str, str] | None = None,
    node: str = "",
    cpu: str = "1",
    allocated: str = "",
    gates: int = 0,
    tolerations: int = 0,
    claims: int = 0,
    phase: str = "Pending",
) -> PodView:
    return PodView(
        Pod(
            metadata=ObjectMeta(name="a", namespace="default", uid="a", labels=labels or {}),
            spec=PodSpec(
                containers=[
                    Container(name="c", resources=ResourceRequirements(requests={"cpu": Quantity.parse(cpu)}))
                ],
                node_name=node,
                scheduling_gates=[PodSchedulingGate(name=f"gate-{each}") for each in range(gates)],
                tolerations=[Toleration(key=f"key-{each}") for each in range(tolerations)],
            ),
            status=PodStatus(
                phase=phase,
                container_statuses=(
                    [ContainerStatus(name="c", allocated_resources={"cpu": Quantity.parse(allocated)})]
                    if allocated
                    else []
                ),
                resource_claim_statuses=[
                    PodResourceClaimStatus(name=f"claim-{each}") for each in range(claims)
                ],
            ),
        )
    )


@pytest.mark.parametrize(
    ("old", "new", "labels"),
    [
        (_pod(), _pod(labels={"x": "y"}), ["TargetPodUpdatePodLabel"]),
        (_pod(cpu="2"), _pod(), ["TargetPodUpdatePodScaleDown"]),
        (_pod(), _pod(cpu="2"), ["TargetPodUpdate"]),
        (_pod(gates=2), _pod(gates=1), ["TargetPodUpdate"]),
        (_pod(gates=1), _pod(), ["TargetPodUpdatePodSchedulingGatesEliminated"]),
        (_pod(), _pod(tolerations=1), ["TargetPodUpdatePodToleration"]),
        (_pod(), _pod(claims=1), ["TargetPodUpdatePodGeneratedResourceClaim"]),
        (_pod(node="n"), _pod(node="n", phase="Running"), ["AssignedPodUpdate"]),
        # The spec asks for less, but the node still holds what it had.
        (_pod(node="n", cpu="2", allocated="2"), _pod(node="n", allocated="2"), ["AssignedPodUpdate"]),
        (_pod(node="n", allocated="2"), _pod(node="n", allocated="1"), ["AssignedPodUpdatePodScaleDown"]),
        (
            _pod(node="n", cpu="2"),
            _pod(node="n", labels={"x": "y"}),
            ["AssignedPodUpdatePodLabel", "AssignedPodUpdatePodScaleDown"],
        ),
    ],
)
def test_an_update_is_told_by_what_changed(old: PodView, new: PodView, labels: list[str]) -> None:
    assert [event_label(event) for event in pod_changes(old, new)] == labels

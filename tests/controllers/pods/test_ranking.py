"""Which pod is missed least."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.pod_status import ContainerStatus, PodCondition, PodStatus
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.controllers.pods.ranking import DELETION_COST, deletion_cost, first_to_delete
from nodeward.machinery.clock import VIRTUAL_START_NS

NOW = VIRTUAL_START_NS


def pod(
    name: str,
    *,
    node: str = "n",
    phase: str = "Running",
    ready: int | None = 100,
    age: int = 100,
    restarts: int = 0,
    sidecar_restarts: int = 0,
    cost: str | None = None,
) -> Pod:
    """`ready` and `age` in seconds before now; None: not ready."""
    sidecar = Container(name="s", image="i", restart_policy="Always")
    conditions = []
    if ready is not None:
        since = rfc3339(NOW - ready * SECOND_NS)
        conditions = [PodCondition(type="Ready", status="True", last_transition_time=since)]
    return Pod(
        metadata=ObjectMeta(
            name=name,
            uid=name,
            creation_timestamp=rfc3339(NOW - age * SECOND_NS),
            annotations={DELETION_COST: cost} if cost is not None else {},
        ),
        spec=PodSpec(node_name=node, containers=[Container(name="c", image="i")], init_containers=[sidecar]),
        status=PodStatus(
            phase=phase,
            conditions=conditions,
            container_statuses=[ContainerStatus(name="c", restart_count=restarts)],
            init_container_statuses=[ContainerStatus(name="s", restart_count=sidecar_restarts)],
        ),
    )


RULES: dict[str, tuple[Pod, Pod]] = {
    "one without a node": (pod("z", node="", cost="9"), pod("a", phase="Pending", ready=None)),
    "a pending one": (pod("z", phase="Pending", cost="9"), pod("a", ready=None)),
    "an unknown one before a running one": (pod("z", phase="Unknown", cost="9"), pod("a", ready=None)),
    "one that is not ready": (pod("z", ready=None, cost="9"), pod("a")),
    "one that costs less": (pod("z", cost="-1"), pod("a", ready=1)),
    "one whose cost is no number costs nothing": (pod("z", cost="cheap"), pod("a", cost="1")),
    "one that became ready lately": (pod("z", ready=10), pod("a", ready=1000, restarts=5)),
    "one with more restarts": (pod("z", restarts=2), pod("a", restarts=1, sidecar_restarts=9)),
    "one whose sidecar restarted more": (pod("z", sidecar_restarts=2), pod("a", sidecar_restarts=1, age=1)),
    "a younger one": (pod("z", age=10), pod("a", age=1000)),
    "of the same age, the smaller uid": (pod("a", age=100), pod("z", age=99)),
}


@pytest.mark.parametrize("rule", RULES)
def test_first_goes(rule: str) -> None:
    first, other = RULES[rule]
    for pods in ([first, other], [other, first]):
        assert first_to_delete(pods, 1, [], NOW) == [first]


def test_first_goes_one_from_the_fullest_node() -> None:
    crowded, alone = pod("z", node="n1"), pod("a", node="n2")
    sibling = pod("of another replica set", node="n1")
    assert first_to_delete([alone, crowded], 1, [alone, crowded, sibling], NOW) == [crowded]


def test_a_pod_that_is_over_does_not_make_a_node_full() -> None:
    one, two = pod("z", node="n1"), pod("a", node="n2")
    assert first_to_delete([one, two], 1, [one, two, pod("over", node="n1", phase="Failed")], NOW) == [two]


def test_costs_are_not_heeded_when_the_gate_is_off() -> None:
    cheap, young = pod("z", cost="-5"), pod("a", ready=1)
    assert first_to_delete([cheap, young], 1, [], NOW, heeds_cost=False) == [young]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("7", 7),
        ("-7", -7),
        ("0", 0),
        ("", 0),
        ("+7", 0),
        ("07", 0),
        ("7.5", 0),
        ("2147483648", 0),
        ("2147483647", 2**31 - 1),
    ],
)
def test_a_deletion_cost_is_a_whole_number_of_32_bits(text: str, cost: int) -> None:
    assert deletion_cost(pod("p", cost=text)) == cost


PODS = st.builds(
    pod,
    st.uuids().map(str),
    node=st.sampled_from(["", "n1", "n2"]),
    phase=st.sampled_from(["Pending", "Running", "Unknown"]),
    ready=st.none() | st.integers(0, 10_000),
    age=st.integers(0, 10_000),
    restarts=st.integers(0, 2),
)


@given(st.lists(PODS, max_size=12), st.integers(0, 12))
def test_the_choice_does_not_depend_on_the_order_pods_are_known_in(pods: list[Pod], count: int) -> None:
    shuffled = sorted(pods, key=lambda each: each.metadata.uid)
    one = first_to_delete(pods, count, pods, NOW)
    other = first_to_delete(shuffled, count, shuffled, NOW)
    assert sorted(p.metadata.uid for p in one) == sorted(p.metadata.uid for p in other)
    assert len(one) == min(count, len(pods))

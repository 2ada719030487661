"""A node's gates, its conditions, and what follows: open or not, taints, labels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.core_v1.node import Node, NodeCondition, NodeReadinessGate, NodeSpec, NodeStatus
from nodeward.api.core_v1.references import Taint
from nodeward.api.meta import ObjectMeta, OwnerReference
from nodeward.rules.readiness import (
    GateState,
    is_exempt,
    is_open,
    label_changes,
    state_of,
    taint_changes,
    views,
    waiting_for,
    warned,
)

CNI = "network.kubernetes.io/CNIReady"
DISK = "example.com/DiskReady"


def gate(name: str, action: str = "", taint: Taint | None = None, seconds: int = 180) -> NodeReadinessGate:
    return NodeReadinessGate(
        condition_type=name, timeout_seconds=seconds, failure_action=action, readiness_taint=taint
    )


def condition(name: str, status: str, reason: str = "", message: str = "") -> NodeCondition:
    return NodeCondition(type=name, status=status, reason=reason, message=message)


def node(
    gates: list[NodeReadinessGate], *conditions: NodeCondition, taints: list[Taint] | None = None
) -> Node:
    return Node(
        spec=NodeSpec(readiness_gates=gates, taints=taints or []),
        status=NodeStatus(conditions=list(conditions)),
    )


READY = condition("Ready", "True")


@pytest.mark.parametrize(
    ("seen", "state"),
    [
        (None, GateState.WAITS),
        (condition(CNI, "True"), GateState.HOLDS),
        (condition(CNI, "False"), GateState.WAITS),
        (condition(CNI, "False", "TimeoutExceeded"), GateState.WAITS),
        (condition(CNI, "Unknown"), GateState.WAITS),
        (condition(CNI, "Unknown", "NodeRestarted"), GateState.WAITS),
        (condition(CNI, "Unknown", "TimeoutExceeded"), GateState.GIVEN_UP),
    ],
)
def test_what_a_condition_means_for_its_gate(seen: NodeCondition | None, state: GateState) -> None:
    assert state_of(seen) is state


def test_a_node_opens_when_its_last_gate_holds_and_ready_is_true() -> None:
    gates = [gate(CNI), gate(DISK), gate("example.com/KernelReady")]
    seen = [READY]
    for each in gates:
        assert not is_open(node(gates, *seen))
        seen.append(condition(each.condition_type, "True"))
    assert is_open(node(gates, *seen))
    assert waiting_for(node(gates, condition("Ready", "False"), *seen[1:])) == ["Ready"]
    assert waiting_for(node(gates, READY, condition(DISK, "True"))) == [CNI, "example.com/KernelReady"]


def test_without_gates_nothing_is_asked_not_even_ready() -> None:
    assert is_open(node([]))
    assert is_open(node([], condition("Ready", "False")))


@given(st.lists(st.sampled_from(["True", "False", "Unknown", "gone", "over"]), max_size=5), st.booleans())
def test_one_gate_that_waits_closes_the_node_whatever_the_others_say(states: list[str], ready: bool) -> None:
    gates = [gate(f"example.com/G{n}") for n in range(len(states))]
    seen = [condition("Ready", str(ready))]
    for each, state in zip(gates, states, strict=True):
        if state == "over":
            seen.append(condition(each.condition_type, "Unknown", "TimeoutExceeded"))
        elif state != "gone":
            seen.append(condition(each.condition_type, state))
    expected = not states or (ready and all(state in ("True", "over") for state in states))
    assert is_open(node(gates, *seen)) is expected


def test_pods_of_a_daemon_set_do_not_wait() -> None:
    def owned(**fields: object) -> ObjectMeta:
        return ObjectMeta(owner_references=[OwnerReference(**fields)])  # type: ignore[arg-type]

    assert is_exempt(owned(api_version="apps/v1", kind="DaemonSet", name="cni", controller=True))
    assert not is_exempt(owned(api_version="apps/v1", kind="DaemonSet", name="cni", controller=False))
    assert not is_exempt(owned(api_version="apps/v1", kind="ReplicaSet", name="web", controller=True))
    assert not is_exempt(owned(api_version="example.com/v1", kind="DaemonSet", name="x", controller=True))
    assert not is_exempt(ObjectMeta())


TAINT = Taint(key="example.com/no-cni", effect="NoSchedule")
OVER = condition(CNI, "Unknown", "TimeoutExceeded")


def test_a_gate_that_is_given_up_puts_its_taint_on_once() -> None:
    gates = [gate(CNI, "Taint", TAINT)]
    assert taint_changes(node(gates, READY, OVER)).add == (TAINT,)
    assert not taint_changes(node(gates, READY, OVER, taints=[TAINT]))
    assert not taint_changes(node(gates, READY))
    assert taint_changes(node([gate(CNI, "", TAINT)], READY, OVER)).add == (TAINT,)


def test_the_taint_stays_while_the_gate_fails_and_goes_when_it_holds() -> None:
    gates = [gate(CNI, "Taint", TAINT)]
    assert not taint_changes(node(gates, READY, condition(CNI, "False"), taints=[TAINT]))
    held = node(gates, READY, condition(CNI, "True"), taints=[TAINT])
    assert taint_changes(held, [TAINT]).remove == (TAINT,)


def test_a_taint_that_somebody_else_put_is_never_taken_off_nor_changed() -> None:
    held = node([gate(CNI, "Taint", TAINT)], READY, condition(CNI, "True"), taints=[TAINT])
    assert not taint_changes(held)
    theirs = Taint(key=TAINT.key, value="theirs", effect=TAINT.effect)
    assert not taint_changes(node([gate(CNI, "Taint", TAINT)], READY, OVER, taints=[theirs]))
    assert not taint_changes(node([gate(CNI, "Taint", TAINT)], READY, OVER, taints=[theirs]), [TAINT])


def test_a_gate_whose_taint_has_another_value_now_changes_it() -> None:
    new = Taint(key=TAINT.key, value="new", effect=TAINT.effect)
    changed = taint_changes(node([gate(CNI, "Taint", new)], READY, OVER, taints=[TAINT]), [TAINT])
    assert (changed.add, changed.remove) == ((new,), (TAINT,))


def test_the_taint_of_a_gate_that_is_gone_goes_and_other_taints_stay() -> None:
    other = Taint(key="example.com/other", effect="NoSchedule")
    before = [TAINT]
    assert taint_changes(node([], READY, OVER, taints=[other, TAINT]), before).remove == (TAINT,)
    assert not taint_changes(node([], READY, OVER, taints=[other, TAINT]))
    stronger = Taint(key=TAINT.key, effect="NoExecute")
    changed = taint_changes(node([gate(CNI, "Taint", stronger)], READY, OVER, taints=[TAINT]), before)
    assert (changed.add, changed.remove) == ((stronger,), (TAINT,))


def test_two_gates_may_share_a_taint() -> None:
    gates = [gate(CNI, "Taint", TAINT), gate(DISK, "Taint", TAINT)]
    late = condition(DISK, "Unknown", "TimeoutExceeded")
    assert taint_changes(node(gates, READY, OVER, late)).add == (TAINT,)
    assert not taint_changes(node(gates, READY, condition(CNI, "True"), late, taints=[TAINT]))


def test_bypass_warns_and_taints_nothing_even_with_a_taint_written_down() -> None:
    held = node([gate(CNI, "BypassWithWarning", TAINT)], READY, OVER)
    assert not taint_changes(held)
    assert warned(held) == [CNI]
    assert is_open(held)
    assert warned(node([gate(CNI, "Taint", TAINT)], READY, OVER)) == []


def test_labels_follow_the_gates() -> None:
    label = f"readiness-gate.{CNI}"
    gone = f"readiness-gate.{DISK}"
    changes = label_changes([gate(CNI)], {gone: "true", "zone": "a", "readiness-gate.mine": "x"})
    assert (changes.put, changes.remove) == ((label,), (gone,))
    assert not label_changes([gate(CNI)], {label: "true"})
    assert label_changes([gate(CNI)], {label: "false"}).put == (label,)


def test_a_view_tells_what_the_condition_says_and_what_would_be_done() -> None:
    (seen,) = views([gate(CNI)], [condition(CNI, "False", "Initializing", "waiting for the agent")])
    assert (seen.status, seen.reason, seen.message) == ("False", "Initializing", "waiting for the agent")
    assert seen.action == "Taint"

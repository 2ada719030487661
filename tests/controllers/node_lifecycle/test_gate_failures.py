"""What is done about readiness gates that were given up, and that it is done once (KEP-5233)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.core_v1.node import Node, NodeCondition, NodeReadinessGate
from nodeward.api.core_v1.references import Taint
from nodeward.controllers.node_lifecycle.gate_failures import read_record
from nodeward.controllers.node_lifecycle.plan import NodeUpdatePlan, plan
from nodeward.rules.readiness import RECORD_ANNOTATION
from tests.controllers.node_lifecycle.nodes import NOW, marks, node, taint

CNI = "network.kubernetes.io/CNIReady"
GPU = "example.com/GPU"
NO_CNI = taint("example.com/no-cni", value="late")


def gate(kind: str = CNI, action: str = "Taint", mark: Taint | None = NO_CNI) -> NodeReadinessGate:
    return NodeReadinessGate(
        condition_type=kind, timeout_seconds=180, failure_action=action, readiness_taint=mark
    )


def say(held: Node, kind: str, status: str, reason: str = "") -> None:
    held.status.conditions = [each for each in held.status.conditions if each.type != kind]
    held.status.conditions.append(NodeCondition(type=kind, status=status, reason=reason))


def give_up(held: Node, kind: str = CNI) -> None:
    say(held, kind, "Unknown", "TimeoutExceeded")


def step(held: Node) -> NodeUpdatePlan | None:
    """One look, written."""
    found = plan(held, NOW, has_gates=True)
    if found is None:
        return None
    if "spec" in found.patch:
        held.spec.taints = found.patch["spec"]["taints"]
    record = found.patch["metadata"].get("annotations", {}).get(RECORD_ANNOTATION)
    held.metadata.annotations = {} if record is None else {RECORD_ANNOTATION: record}
    return found


def failures(found: NodeUpdatePlan | None) -> list[tuple[str, str]]:
    if found is None or found.gates is None:
        return []
    return [(each.condition_type, each.action) for each in found.gates.failures]


def test_a_gate_that_is_given_up_taints_the_node_once_and_recovery_takes_the_taint_off() -> None:
    held = node(gates=(gate(),))
    assert step(held) is None
    give_up(held)
    assert failures(step(held)) == [(CNI, "Taint")]
    assert held.spec.taints == [Taint(key=NO_CNI.key, value="late", effect="NoSchedule", time_added=NOW)]
    assert step(held) is None
    say(held, CNI, "True")
    step(held)
    assert (held.spec.taints, held.metadata.annotations, step(held)) == ([], {}, None)


def test_the_taint_stays_while_the_reporter_says_false_and_a_second_timeout_is_a_second_failure() -> None:
    held = node(gates=(gate(),))
    give_up(held)
    step(held)
    say(held, CNI, "False")
    step(held)
    assert marks(held.spec.taints) == ["no-cni:NoSchedule"]
    give_up(held)
    assert failures(step(held)) == [(CNI, "Taint")]
    assert marks(held.spec.taints) == ["no-cni:NoSchedule"]


def test_a_bypass_warns_once_and_again_only_after_it_failed_anew() -> None:
    held = node(gates=(gate(action="BypassWithWarning"),))
    give_up(held)
    assert failures(step(held)) == [(CNI, "BypassWithWarning")]
    assert (held.spec.taints, step(held)) == ([], None)
    say(held, CNI, "False")
    assert failures(step(held)) == []
    give_up(held)
    assert failures(step(held)) == [(CNI, "BypassWithWarning")]


def test_a_removed_gate_takes_its_taint_along_also_if_this_controller_never_saw_it() -> None:
    held = node(gates=(gate(),))
    give_up(held)
    step(held)
    held.spec.readiness_gates = []
    step(held)
    assert (held.spec.taints, held.metadata.annotations) == ([], {})


def test_a_gate_whose_action_changes_is_acted_upon_anew() -> None:
    held = node(gates=(gate(),))
    give_up(held)
    step(held)
    held.spec.readiness_gates = [gate(action="BypassWithWarning")]
    assert failures(step(held)) == [(CNI, "BypassWithWarning")]
    assert held.spec.taints == []
    held.spec.readiness_gates = [gate(action="", mark=taint("example.com/other", "NoExecute"))]
    assert failures(step(held)) == [(CNI, "Taint")]
    assert marks(held.spec.taints) == ["other:NoExecute"]


def test_a_taint_somebody_else_put_is_left_alone() -> None:
    held = node(gates=(gate(),), taints=(NO_CNI,))
    give_up(held)
    assert failures(step(held)) == [(CNI, "Taint")]
    say(held, CNI, "True")
    step(held)
    assert held.spec.taints == [NO_CNI]


def test_a_taint_that_somebody_takes_off_comes_back_while_the_gate_is_given_up() -> None:
    held = node(gates=(gate(),))
    give_up(held)
    step(held)
    held.spec.taints = []
    assert failures(step(held)) == []
    assert marks(held.spec.taints) == ["no-cni:NoSchedule"]


def test_two_gates_with_one_taint_keep_it_until_both_hold() -> None:
    held = node(gates=(gate(), gate(GPU)))
    give_up(held)
    give_up(held, GPU)
    assert failures(step(held)) == [(CNI, "Taint"), (GPU, "Taint")]
    say(held, CNI, "True")
    step(held)
    assert marks(held.spec.taints) == ["no-cni:NoSchedule"]
    say(held, GPU, "True")
    step(held)
    assert held.spec.taints == []


def test_a_gate_that_was_never_given_up_puts_no_taint_whatever_its_condition() -> None:
    for status, reason in (("False", ""), ("Unknown", ""), ("Unknown", "NodeRestarted"), ("True", "")):
        held = node(gates=(gate(),))
        say(held, CNI, status, reason)
        assert step(held) is None


def test_a_controller_that_does_not_know_gates_does_nothing_about_them() -> None:
    held = node(gates=(gate(),))
    give_up(held)
    assert plan(held, NOW) is None


def test_a_record_that_cannot_be_read_takes_no_taint_off() -> None:
    for text in (
        "",
        "[]",
        "{}",
        '{"acted":[],"taints":[]}',
        '{"acted":{},"taints":[{"key":"a"}]}',
        "nonsense",
    ):
        held = node(taints=(NO_CNI,))
        held.metadata.annotations = {RECORD_ANNOTATION: text}
        assert read_record(held).taints == ()
        step(held)
        assert held.spec.taints == [NO_CNI]


_ACTS = st.sampled_from(
    ("give up", "true", "false", "remove gate", "bypass", "taint", "execute", "steal", "put", "take")
)


@given(st.lists(st.tuples(_ACTS, st.sampled_from((CNI, GPU))), max_size=14), st.booleans())
def test_whatever_happens_taints_of_others_stay_and_none_of_ours_is_left_behind(
    acts: list[tuple[str, str]], is_theirs_like_ours: bool
) -> None:
    theirs = NO_CNI if is_theirs_like_ours else taint("example.com/theirs")
    held = node(gates=(gate(), gate(GPU)), taints=(theirs,))
    for act, kind in acts:
        others = [each for each in held.spec.readiness_gates if each.condition_type != kind]
        match act:
            case "give up":
                give_up(held, kind)
            case "true":
                say(held, kind, "True")
            case "false":
                say(held, kind, "False")
            case "remove gate":
                held.spec.readiness_gates = others
            case "bypass":
                held.spec.readiness_gates = [*others, gate(kind, "BypassWithWarning")]
            case "taint":
                held.spec.readiness_gates = [*others, gate(kind)]
            case "execute":
                held.spec.readiness_gates = [*others, gate(kind, "", taint("example.com/x", "NoExecute"))]
            case "steal":
                held.spec.taints = [each for each in held.spec.taints if each == theirs]
            case "put":
                held.spec.taints.append(taint("example.com/more", value=str(len(held.spec.taints))))
            case _:
                held.spec.taints = [each for each in held.spec.taints if each.key != "example.com/more"]
        step(held)
        assert step(held) is None
        assert theirs in held.spec.taints
    for kind in (CNI, GPU):
        say(held, kind, "True")
    step(held)
    assert {each.key for each in held.spec.taints} <= {theirs.key, "example.com/more"}
    assert held.metadata.annotations == {}

"""KEP-5233, the library: when a node is open, when its gates give up, which taints and labels follow.

More cases are in tests/rules/test_readiness.py and test_readiness_timers.py.
"""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.node import NodeCondition
from nodeward.api.core_v1.references import Taint, Toleration
from nodeward.api.meta import ObjectMeta, OwnerReference
from nodeward.base.duration import SECOND_NS
from nodeward.rules.names import label_key_faults
from nodeward.rules.readiness import (
    failure_action,
    is_exempt,
    is_open,
    label_changes,
    taint_changes,
    waiting_for,
    warned,
    why_closed,
)
from nodeward.rules.readiness_timers import Timers, advance, unsettled_by_reboot
from nodeward.rules.taints import blocking_taint, seconds_until_eviction
from nodeward.validation.core.node_readiness import CONDITION_TYPE_LIMIT
from tests.keps.ledger import statement
from tests.rules.test_readiness import CNI, DISK, READY, condition, gate, node

OVER = condition(CNI, "Unknown", "TimeoutExceeded")
TAINT = Taint(key="example.com/no-cni", effect="NoSchedule")


@statement("5233-R3", part="library")
def test_an_absent_action_means_taint_and_a_taint_beside_another_action_is_ignored() -> None:
    assert failure_action(gate(CNI)) == "Taint"
    assert taint_changes(node([gate(CNI, "", TAINT)], READY, OVER)).add == (TAINT,)
    assert not taint_changes(node([gate(CNI, "BypassWithWarning", TAINT)], READY, OVER))


@statement("5233-R7", part="library")
@pytest.mark.parametrize("ready", [None, condition("Ready", "False"), condition("Ready", "Unknown")])
def test_a_node_that_is_not_ready_is_closed_although_its_gates_hold(ready: NodeCondition | None) -> None:
    seen = [condition(CNI, "True")] if ready is None else [ready, condition(CNI, "True")]
    assert waiting_for(node([gate(CNI)], *seen)) == ["Ready"]


@statement("5233-R8", part="library")
@pytest.mark.parametrize("seen", [None, condition(CNI, "False"), condition(CNI, "Unknown")])
def test_missing_false_and_unknown_hold_pods_off(seen: NodeCondition | None) -> None:
    assert not is_open(node([gate(CNI)], READY, *([seen] if seen else [])))


@statement("5233-R9", part="library")
@pytest.mark.parametrize(
    ("reason", "opens"),
    [("TimeoutExceeded", True), ("NodeRestarted", False), ("Initializing", False), ("", False)],
)
def test_unknown_counts_as_satisfied_for_one_reason_only(reason: str, opens: bool) -> None:
    bypass = gate(CNI, "BypassWithWarning")
    tainting = gate(CNI, "Taint", TAINT)
    seen = condition(CNI, "Unknown", reason)
    assert is_open(node([bypass], READY, seen)) is opens
    assert is_open(node([tainting], READY, seen, taints=[TAINT])) is opens
    assert not is_open(node([tainting], READY, seen))


@statement("5233-R10", part="library")
def test_the_slowest_gate_opens_the_node() -> None:
    names = [CNI, DISK, "example.com/KernelReady"]
    gates = [gate(name) for name in names]
    answers = [
        is_open(node(gates, READY, *(condition(name, "True") for name in names[:count])))
        for count in range(4)
    ]
    assert answers == [False, False, False, True]


@statement("5233-R11", part="library")
@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
def test_without_gates_nothing_is_decided_here(status: str) -> None:
    assert is_open(node([], condition("Ready", status), condition(CNI, "False")))
    assert not taint_changes(node([], condition(CNI, "False"), taints=[TAINT]))


@statement("5233-R12", part="library")
def test_pods_of_a_daemon_set_are_let_through_and_others_wait() -> None:
    def owned(kind: str) -> ObjectMeta:
        owner = OwnerReference(api_version="apps/v1", kind=kind, name="x", uid="u", controller=True)
        return ObjectMeta(owner_references=[owner])

    assert [is_exempt(owned(kind)) for kind in ("DaemonSet", "ReplicaSet", "StatefulSet")] == [
        True,
        False,
        False,
    ]
    assert not is_exempt(ObjectMeta())


@statement("5233-R14", part="library")
def test_a_condition_that_fails_again_closes_the_node_until_it_is_true_again() -> None:
    answers = [
        is_open(node([gate(CNI)], READY, condition(CNI, status))) for status in ("True", "False", "True")
    ]
    assert answers == [True, False, True]


@statement("5233-R16", part="library")
def test_the_timer_starts_with_ready() -> None:
    timers = Timers()
    for second, seen, expected in [(0, [], []), (60, [READY], []), (239, [READY], []), (240, [READY], [CNI])]:
        timers, expired = advance(timers, [gate(CNI, seconds=180)], seen, second * SECOND_NS)
        assert expired == expected


@statement("5233-R17", part="library")
@statement("5233-R18", part="library")
def test_each_gate_expires_on_its_own() -> None:
    gates = [gate(CNI, seconds=180), gate(DISK, seconds=300)]
    timers, _ = advance(Timers(), gates, [READY], 0)
    timers, first = advance(timers, gates, [READY], 180 * SECOND_NS)
    timers, second = advance(timers, gates, [READY, OVER], 300 * SECOND_NS)
    assert (first, second) == ([CNI], [DISK])


@statement("5233-R19", part="library")
def test_a_condition_that_became_true_in_time_is_never_given_up() -> None:
    timers, _ = advance(Timers(), [gate(CNI)], [READY], 0)
    timers, early = advance(timers, [gate(CNI)], [READY, condition(CNI, "True")], 179 * SECOND_NS)
    _, late = advance(timers, [gate(CNI)], [READY, condition(CNI, "True")], 180 * SECOND_NS)
    assert (early, late) == ([], [])


@statement("5233-R21", part="library")
def test_a_new_run_of_the_kubelet_starts_all_timers_anew() -> None:
    timers, _ = advance(Timers(), [gate(CNI)], [READY], 0)
    timers, _ = advance(timers, [gate(CNI)], [READY], 100 * SECOND_NS)
    restarted, _ = advance(Timers(), [gate(CNI)], [READY], 100 * SECOND_NS)
    assert timers.next_expiry_ns([gate(CNI)]) == 180 * SECOND_NS
    assert restarted.next_expiry_ns([gate(CNI)]) == 280 * SECOND_NS


@statement("5233-R22", part="library")
def test_a_gate_added_later_counts_from_then() -> None:
    timers, _ = advance(Timers(), [], [READY], 0)
    timers, _ = advance(timers, [gate(CNI)], [READY], 500 * SECOND_NS)
    assert timers.next_expiry_ns([gate(CNI)]) == 680 * SECOND_NS


@statement("5233-R23", part="library")
def test_bypass_opens_the_node_and_asks_for_a_warning() -> None:
    held = node([gate(CNI, "BypassWithWarning")], READY, OVER)
    assert (is_open(held), warned(held), bool(taint_changes(held))) == (True, [CNI], False)


@statement("5233-R24", part="library")
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_a_taint_takes_the_place_of_a_gate_that_gave_up(effect: str) -> None:
    taint = Taint(key="example.com/no-cni", value="x", effect=effect)
    held = node([gate(CNI, "Taint", taint)], READY, OVER)
    (added,) = taint_changes(held).add
    assert is_open(node([gate(CNI, "Taint", taint)], READY, OVER, taints=[added]))
    assert blocking_taint([added], [], numeric=False) is added
    tolerating = [Toleration(key="example.com/no-cni", operator="Exists")]
    assert blocking_taint([added], tolerating, numeric=False) is None
    assert seconds_until_eviction([added], [], numeric=False) == (0 if effect == "NoExecute" else None)


@statement("5233-R24", part="library")
@pytest.mark.parametrize("action", ["Taint", ""])
def test_a_gate_that_timed_out_keeps_the_node_closed_until_its_taint_is_there(action: str) -> None:
    taint = Taint(key="example.com/no-cni", value="x", effect="NoSchedule")
    gates = [gate(CNI, action, taint)]
    assert waiting_for(node(gates, READY, OVER)) == [CNI]
    assert why_closed(node(gates, READY, OVER)) == [
        f"{CNI} (timed out, waiting for its taint example.com/no-cni=x:NoSchedule)"
    ]
    other_effect = Taint(key="example.com/no-cni", value="x", effect="NoExecute")
    assert not is_open(node(gates, READY, OVER, taints=[other_effect]))
    assert is_open(node(gates, READY, OVER, taints=[taint]))
    theirs = Taint(key="example.com/no-cni", value="somebody-elses", effect="NoSchedule")
    assert is_open(node(gates, READY, OVER, taints=[theirs])), "the controller leaves that one as it is"
    assert is_open(node([gate(CNI, "BypassWithWarning", taint)], READY, OVER))


@statement("5233-R25", part="library")
def test_the_taint_goes_when_the_condition_is_true_after_all() -> None:
    late = node([gate(CNI, "Taint", TAINT)], READY, condition(CNI, "True"), taints=[TAINT])
    assert taint_changes(late, [TAINT]).remove == (TAINT,)


@statement("5233-R27", part="library")
def test_labels_come_with_gates_and_go_with_them() -> None:
    label = f"readiness-gate.{CNI}"
    assert label_changes([gate(CNI)], {}).put == (label,)
    assert label_changes([], {label: "true"}).remove == (label,)


@statement("5233-R28", part="library")
def test_the_longest_type_still_makes_a_label_key() -> None:
    domain = ".".join(["d" * 63, "d" * 63, "d" * 48])
    name = f"{domain}/{'N' * (CONDITION_TYPE_LIMIT - len(domain) - 1)}"
    (label,) = label_changes([gate(name)], {}).put
    assert len(label) == 253
    assert not label_key_faults(label)


@statement("5233-R30", part="library")
def test_a_reboot_unsettles_what_was_there_and_the_node_waits() -> None:
    gates = [gate(CNI), gate(DISK)]
    assert unsettled_by_reboot(gates, [READY, condition(CNI, "True")]) == [CNI]
    restarted = condition(CNI, "Unknown", "NodeRestarted")
    assert waiting_for(node(gates, READY, restarted)) == [CNI, DISK]
    assert is_open(node(gates, READY, condition(CNI, "True"), condition(DISK, "True")))


@statement("5233-R38", part="library")
def test_removing_the_gates_opens_a_held_node_and_takes_its_taint_off() -> None:
    before = [gate(CNI, "Taint", TAINT)]
    assert not is_open(node(before, READY))
    assert is_open(node([], READY))
    assert taint_changes(node([], READY, OVER, taints=[TAINT]), [TAINT]).remove == (TAINT,)


@statement("5233-R40", part="library")
@pytest.mark.parametrize(
    "name", ["example.com/ConfigApplied", "example.com/KernelFeature", "systemd.example.com/Chrony"]
)
def test_no_condition_type_is_special(name: str) -> None:
    assert not is_open(node([gate(name)], READY))
    assert is_open(node([gate(name)], READY, condition(name, "True")))


@statement("5233-R42", part="library")
def test_gates_change_nothing_about_ready_and_promise_no_order() -> None:
    gates = [gate(CNI), gate(DISK)]
    first = node(gates, READY, condition(DISK, "True"), condition(CNI, "True"))
    second = node(gates, READY, condition(CNI, "True"), condition(DISK, "True"))
    assert is_open(first)
    assert is_open(second)
    timers, expired = advance(Timers(), gates, [condition("Ready", "False")], 10**15)
    assert (timers, expired) == (Timers(), [])
    assert unsettled_by_reboot(gates, [READY]) == []

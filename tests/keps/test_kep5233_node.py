"""KEP-5233 on the node: gates, timers, labels, reboots and restarts, as the kubelet's core decides them.

The core alone, with the API server's own merging; more cases are in tests/kubelet/node/test_readiness.py.
"""

from __future__ import annotations

from nodeward.api.core_v1.node import NodeReadinessGate
from nodeward.api.core_v1.references import Taint
from nodeward.kubelet.node.conditions import ALL_WELL, NodeFacts
from nodeward.kubelet.node.registration import reconcile
from nodeward.rules.readiness import waiting_for
from tests.keps.ledger import statement
from tests.kubelet.node.nodes import READINESS, Run, merged, settings, specification
from tests.rules.test_readiness import CNI, DISK, gate

STOPPED = NodeFacts(errors=("container runtime is down",))
TAINT = Taint(key="example.com/no-cni", effect="NoSchedule")
TIMEOUT = ("Unknown", "TimeoutExceeded")
RESTARTED = ("Unknown", "NodeRestarted")


def started(*gates: NodeReadinessGate, facts: NodeFacts = ALL_WELL) -> Run:
    return Run(specification(settings(READINESS, *gates)), facts)


def bypass(name: str, seconds: int = 180) -> NodeReadinessGate:
    return gate(name, "BypassWithWarning", seconds=seconds)


@statement("5233-R6", part="kubelet")
def test_gates_of_the_configuration_are_in_the_spec_from_registration_and_those_of_others_count_too() -> None:
    run = started(bypass(CNI, 30))
    assert [each.condition_type for each in run.node.spec.readiness_gates] == [CNI]
    plain = Run(specification(settings(READINESS)))
    found = reconcile(plain.node, run.specification)
    assert found.spec_patch is not None
    assert merged(plain.node, found.spec_patch).spec.readiness_gates == [bypass(CNI, 30)]
    theirs = {"conditionType": DISK, "timeoutSeconds": 20, "failureAction": "BypassWithWarning"}
    plain.others_write({"spec": {"readinessGates": [theirs]}})
    plain.until(21)
    assert plain.said(DISK) == TIMEOUT


@statement("5233-R16", part="kubelet")
def test_the_timer_starts_when_the_kubelet_says_ready() -> None:
    run = started(bypass(CNI), facts=STOPPED)
    run.until(60)
    run.facts = ALL_WELL
    run.look()
    run.until(239)
    assert run.said(CNI) == ("", "")
    run.until(240)
    assert run.said(CNI) == TIMEOUT


@statement("5233-R17", part="kubelet")
def test_each_gate_has_its_own_timer() -> None:
    run = started(bypass(CNI, 180), bypass(DISK, 300))
    run.until(180)
    assert (run.said(CNI), run.said(DISK)) == (TIMEOUT, ("", ""))
    run.until(300)
    assert (run.said(CNI), run.said(DISK)) == (TIMEOUT, TIMEOUT)


@statement("5233-R18", part="kubelet")
def test_at_expiry_the_kubelet_writes_unknown_and_why() -> None:
    run = started(bypass(CNI))
    run.report(CNI, "False", "Initializing")
    run.until(180)
    found = run.condition(CNI)
    assert found is not None
    assert (found.status, found.reason) == TIMEOUT
    assert found.message == "the condition was not True within 180 seconds"
    assert found.last_transition_time is not None


@statement("5233-R19", part="kubelet")
def test_a_condition_that_held_in_time_is_left_alone() -> None:
    run = started(bypass(CNI))
    run.until(179)
    run.report(CNI, "True", "Works")
    run.until(2000)
    assert run.said(CNI) == ("True", "Works")
    assert not any(CNI in str(patch) for patch in run.patches)


@statement("5233-R20")
def test_without_an_api_server_an_expiry_is_kept_and_sent_later() -> None:
    run = started(bypass(CNI))
    run.until(100)
    run.is_cut_off = True
    run.until(900)
    assert run.said(CNI) == ("", "")
    assert run.expired == [CNI], "it expired on time, and once"
    run.is_cut_off = False
    run.until(910)
    assert run.said(CNI) == TIMEOUT


@statement("5233-R21", part="kubelet")
def test_a_kubelet_restart_starts_all_timers_anew() -> None:
    run = started(bypass(CNI), bypass(DISK, 150))
    run.until(100)
    after = run.restarted()
    after.until(249)
    assert (after.said(CNI), after.said(DISK)) == (("", ""), ("", ""))
    after.until(279)
    assert (after.said(CNI), after.said(DISK)) == (("", ""), TIMEOUT)
    after.until(280)
    assert after.said(CNI) == TIMEOUT


@statement("5233-R22", part="kubelet")
def test_a_gate_added_later_counts_from_when_the_kubelet_sees_it() -> None:
    run = Run(specification(settings(READINESS)))
    run.until(1000)
    added = {"conditionType": CNI, "timeoutSeconds": 60, "failureAction": "BypassWithWarning"}
    run.others_write({"spec": {"readinessGates": [added]}})
    run.look()
    run.until(1059)
    assert run.said(CNI) == ("", "")
    run.until(1060)
    assert run.said(CNI) == TIMEOUT


@statement("5233-R26")
def test_the_kubelet_never_touches_taints() -> None:
    run = started(gate(CNI, "Taint", TAINT, 30))
    assert run.node.spec.taints == []
    run.until(60)
    assert run.said(CNI) == TIMEOUT
    run.others_write({"spec": {"taints": [{"key": TAINT.key, "effect": TAINT.effect}]}})
    run.report(CNI, "True")
    run.until(600)
    after = run.restarted(specification(run.specification.settings, boot="boot-2"))
    after.until(1200)
    assert after.node.spec.taints == [TAINT]
    assert not any("spec" in patch for patch in (*run.patches, *after.patches))
    found = reconcile(after.node, after.specification)
    assert found.spec_patch is None


@statement("5233-R27", part="kubelet")
def test_labels_follow_the_gates() -> None:
    run = started(bypass(CNI))
    key, other = f"readiness-gate.{CNI}", f"readiness-gate.{DISK}"
    assert run.node.metadata.labels[key] == "true"
    added = {"conditionType": DISK, "timeoutSeconds": 60, "failureAction": "BypassWithWarning"}
    run.others_write({"spec": {"readinessGates": [added]}, "metadata": {"labels": {key: "vandal"}}})
    run.until(10)
    assert (run.node.metadata.labels[key], run.node.metadata.labels[other]) == ("true", "true")
    run.others_write({"spec": {"readinessGates": [{"conditionType": CNI, "$patch": "delete"}]}})
    run.until(20)
    assert key not in run.node.metadata.labels
    assert run.node.metadata.labels[other] == "true"
    assert run.node.metadata.labels["kubernetes.io/hostname"] == "n1"


@statement("5233-R29")
def test_network_conditions_are_not_summed_up() -> None:
    proxy = "network.kubernetes.io/NetworkProxyReady"
    run = started(bypass(CNI), bypass(proxy))
    run.report(CNI, "True")
    run.report(proxy, "False", "Starting")
    run.until(100)
    types = sorted(each.type for each in run.node.status.conditions)
    assert types == sorted(["MemoryPressure", "DiskPressure", "PIDPressure", "Ready", CNI, proxy])
    assert run.said("Ready") == ("True", "KubeletReady")


@statement("5233-R30", part="kubelet")
def test_after_a_reboot_present_conditions_are_unknown_and_missing_ones_stay_missing() -> None:
    run = started(bypass(CNI), bypass(DISK))
    run.report(CNI, "True", "Works")
    run.report("example.com/Other", "True", "NoGate")
    after = run.restarted(specification(run.specification.settings, boot="boot-2"))
    after.until(10)
    assert after.said(CNI) == RESTARTED
    assert after.said(DISK) == ("", "")
    assert after.said("example.com/Other") == ("True", "NoGate")
    assert after.events == ["Rebooted"]
    assert waiting_for(after.node) == [CNI, DISK]
    after.report(CNI, "True", "Works")
    after.until(100)
    assert after.said(CNI) == ("True", "Works")
    assert waiting_for(after.node) == [DISK]


@statement("5233-R32")
def test_a_kubelet_restart_leaves_conditions_alone() -> None:
    run = started(bypass(CNI), bypass(DISK))
    run.report(CNI, "True", "Works")
    run.report(DISK, "False", "KubeletAway")
    after = run.restarted()
    after.until(100)
    assert (after.said(CNI), after.said(DISK)) == (("True", "Works"), ("False", "KubeletAway"))
    assert not any(CNI in str(patch) or DISK in str(patch) for patch in after.patches)
    after.report(DISK, "True", "KubeletBack")
    after.until(600)
    assert after.said(DISK) == ("True", "KubeletBack")


@statement("5233-R40", part="kubelet")
def test_configuration_kernel_and_service_gates_are_nothing_special() -> None:
    names = [
        "node.my-corp.com/CustomConfigApplied",
        "kernel.my-corp.com/Ready",
        "systemd.my-corp.com/MyServiceHealthy",
    ]
    run = started(*(bypass(name, 60) for name in names))
    assert waiting_for(run.node) == names
    for number, name in enumerate(names, start=1):
        run.report(name, "True", "Verified")
        assert waiting_for(run.node) == names[number:]
    after = run.restarted(specification(run.specification.settings, boot="boot-2"))
    after.look()
    assert [after.said(name) for name in names] == [RESTARTED] * 3

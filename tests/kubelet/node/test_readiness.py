"""Readiness gates on the node: timers, reboots, labels, and probes the kubelet runs itself (KEP-5233)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.core_v1.container import Probe, TCPSocketAction
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.config.settings import GateProbe
from nodeward.kubelet.node.gate_probes import GateProber, ProbeOutcome
from nodeward.kubelet.node.node_conditions import ALL_WELL, NodeFacts
from tests.kubelet.node.nodes import READINESS, Run, settings, specification
from tests.rules.test_readiness import gate

AGENT = "example.com/Agent"
STOPPED = NodeFacts(errors=("container runtime is down",))
PROBE = GateProbe(Probe(tcp_socket=TCPSocketAction(port=1)), success_threshold=2, failure_threshold=3)
GOOD = ProbeOutcome(True)


def bad(message: str = "") -> ProbeOutcome:
    return ProbeOutcome(False, message)


def run_of(*, probe: GateProbe | None = None, seconds: int = 180, facts: NodeFacts = ALL_WELL) -> Run:
    chosen = settings(READINESS, gate(AGENT, "BypassWithWarning", seconds=seconds), probe=probe)
    return Run(specification(chosen), facts)


def test_labels_are_there_from_the_first_moment() -> None:
    assert run_of().node.metadata.labels[f"readiness-gate.{AGENT}"] == "true"


def test_expiry_is_not_late_by_a_whole_check() -> None:
    run = run_of(seconds=15)
    run.until(14.99)
    assert run.said(AGENT) == ("", "")
    run.until(15)
    assert run.said(AGENT) == ("Unknown", "TimeoutExceeded")
    found = run.condition(AGENT)
    assert found is not None
    assert found.message == "the condition was not True within 15 seconds"
    assert run.expired == [AGENT]
    run.until(3000)
    assert run.expired == [AGENT]


def test_ready_of_a_former_run_starts_no_timer() -> None:
    run = run_of(seconds=15)
    after = run.restarted(facts=STOPPED)
    after.until(100)
    assert after.said(AGENT) == ("", "")
    after.facts = ALL_WELL
    after.until(100.1)
    after.until(114)
    assert after.said(AGENT) == ("", "")
    after.until(116)
    assert after.said(AGENT) == ("Unknown", "TimeoutExceeded")


def test_a_new_boot_id_and_what_it_unsettles_are_one_patch() -> None:
    run = run_of()
    run.report(AGENT, "True", "Works")
    after = run.restarted(specification(run.specification.settings, boot="boot-2"))
    after.look()
    (patch,) = after.patches
    assert patch["status"]["nodeInfo"] == {"bootID": "boot-2"}
    assert after.said(AGENT) == ("Unknown", "NodeRestarted")
    after.report(AGENT, "True", "Works")
    after.until(600)
    assert after.said(AGENT) == ("True", "Works")


def test_with_the_gate_off_nothing_is_done() -> None:
    run = Run(specification())
    wanted = {"conditionType": AGENT, "timeoutSeconds": 1, "failureAction": "BypassWithWarning"}
    run.others_write({"spec": {"readinessGates": [wanted]}})
    run.until(1000)
    assert run.said(AGENT) == ("", "")
    assert not [key for key in run.node.metadata.labels if key.startswith("readiness-gate.")]


# -- probes


def test_a_probed_condition_begins_as_initializing_and_follows_its_probe() -> None:
    run = run_of(probe=PROBE)
    assert run.said(AGENT) == ("False", "Initializing")
    run.look(Agent=GOOD)
    assert run.said(AGENT) == ("False", "Initializing"), "one success of two"
    run.look(Agent=GOOD)
    assert run.said(AGENT) == ("True", "ProbeSucceeded")
    for _ in range(2):
        run.look(Agent=bad("refused"))
    assert run.said(AGENT) == ("True", "ProbeSucceeded")
    run.look(Agent=bad("refused again"))
    assert run.said(AGENT) == ("False", "ProbeFailed")
    count = len(run.patches)
    run.look(Agent=bad("another text"))
    found = run.condition(AGENT)
    assert found is not None
    assert found.message == "refused again"
    assert len(run.patches) == count, "another error text is no news"


def test_a_kubelet_restart_leaves_a_probed_condition_until_enough_results_are_in() -> None:
    run = run_of(probe=PROBE)
    run.look(Agent=GOOD)
    run.look(Agent=GOOD)
    after = run.restarted()
    after.look()
    after.look(Agent=bad())
    after.look(Agent=bad())
    assert after.said(AGENT) == ("True", "ProbeSucceeded")
    after.look(Agent=bad())
    assert after.said(AGENT) == ("False", "ProbeFailed")


def test_a_gate_that_was_given_up_stays_so_while_its_probe_fails_and_holds_when_it_succeeds() -> None:
    run = run_of(probe=PROBE, seconds=15)
    for _ in range(3):
        run.look(Agent=bad())
    run.until(16)
    assert run.said(AGENT) == ("Unknown", "TimeoutExceeded")
    for _ in range(5):
        run.look(Agent=bad())
    run.until(100)
    assert run.said(AGENT) == ("Unknown", "TimeoutExceeded")
    assert run.expired == [AGENT]
    run.look(Agent=GOOD)
    run.look(Agent=GOOD)
    assert run.said(AGENT) == ("True", "ProbeSucceeded")


def test_what_somebody_else_writes_into_a_probed_condition_is_put_right() -> None:
    run = run_of(probe=PROBE)
    run.look(Agent=GOOD)
    run.look(Agent=GOOD)
    run.report(AGENT, "False", "Vandalism")
    run.look()
    assert run.said(AGENT) == ("True", "ProbeSucceeded")


def test_a_gate_that_left_the_spec_is_probed_no_more() -> None:
    run = run_of(probe=PROBE)
    readiness = run.core.readiness
    assert readiness is not None
    assert [name for name, _ in readiness.probes_due(run.node, 0)] == [AGENT]
    run.others_write({"spec": {"readinessGates": [{"conditionType": AGENT, "$patch": "delete"}]}})
    assert readiness.probes_due(run.node, 10**12) == []
    count = len(run.patches)
    for _ in range(3):
        run.look(Agent=bad())
    assert not any(AGENT in str(patch["status"]["conditions"]) for patch in run.patches[count:])
    assert f"readiness-gate.{AGENT}" not in run.node.metadata.labels


def test_probes_keep_their_period_and_never_overlap() -> None:
    prober = GateProber(GateProbe(Probe(), period_ns=5 * SECOND_NS, initial_delay_ns=3 * SECOND_NS), 0)
    assert not prober.start(2 * SECOND_NS)
    assert prober.start(3 * SECOND_NS)
    assert not prober.start(20 * SECOND_NS), "the first one still runs"
    prober.note(GOOD)
    assert prober.start(20 * SECOND_NS)
    assert prober.next_ns == 25 * SECOND_NS


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 4), st.integers(1, 4))
def test_a_verdict_turns_only_after_enough_results_in_a_row(
    results: list[bool], good: int, failed: int
) -> None:
    prober = GateProber(GateProbe(Probe(), success_threshold=good, failure_threshold=failed), 0)
    for count, result in enumerate(results, start=1):
        before = prober.verdict
        prober.note(ProbeOutcome(result))
        needed = good if result else failed
        is_enough = count >= needed and all(each is result for each in results[count - needed : count])
        assert prober.verdict is (result if is_enough else before)

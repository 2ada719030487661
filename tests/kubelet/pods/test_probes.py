"""Probes: which run when, what their verdicts do to a pod, and how a row of results becomes a verdict."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.container import Container, Probe
from nodeward.api.core_v1.pod import PodReadinessGate
from nodeward.api.core_v1.pod_status import PodCondition
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.pods.probing import ProbePlan, ProbeVerdict, ProbeWorker, probe_warning
from tests.kubelet.pods.driver import BEGIN, Node, a_pod, container, sidecar


def all_three(name: str = "c") -> Container:
    return container(name, startup_probe=Probe(), liveness_probe=Probe(), readiness_probe=Probe())


def kinds(node: Node) -> list[str]:
    return [f"{plan.container} {plan.kind}" for plan in node.life.probes()]


def verdict(node: Node, kind: str, ok: bool | None, name: str = "c", message: str = "HTTP 500") -> None:
    node.do(node.life.probed(name, kind, ok, message, node.now))


def test_the_startup_probe_comes_first_and_alone() -> None:
    node = Node(a_pod(all_three())).start()
    assert kinds(node) == ["c startup"]
    assert (node.of().started, node.of().ready) == (False, False)
    verdict(node, "startup", True)
    assert kinds(node) == ["c readiness", "c liveness"]
    assert (node.of().started, node.of().ready) == (True, False)
    verdict(node, "readiness", True)
    assert node.condition("Ready").status == "True"


def test_plans_are_the_same_object_while_nothing_changes() -> None:
    node = Node(a_pod(all_three())).start()
    verdict(node, "startup", True)
    plans = node.life.probes()
    verdict(node, "readiness", True)
    node.do(node.life.update(a_pod(all_three()), node.now))
    assert node.life.probes() is plans
    assert Node(a_pod()).life.probes() == ()


def test_readiness_comes_and_goes_without_touching_the_container() -> None:
    node = Node(a_pod(container(readiness_probe=Probe()))).start()
    node.flush()
    verdict(node, "readiness", True)
    assert node.of().ready
    verdict(node, "readiness", False)
    assert not node.of().ready
    assert node.condition("Ready").message == "containers with unready status: [c]"
    assert node.events()[-1] == "Unhealthy: Readiness probe failed: HTTP 500"
    assert node.flush() == []


@pytest.mark.parametrize(("policy", "end"), [("Always", ", will be restarted"), ("Never", "")])
@pytest.mark.parametrize("kind", ["liveness", "startup"])
def test_a_failed_liveness_or_startup_probe_kills_the_container(kind: str, policy: str, end: str) -> None:
    node = Node(a_pod(container(liveness_probe=Probe()), policy=policy))
    if kind == "startup":
        node = Node(a_pod(container(startup_probe=Probe()), policy=policy))
    node.start()
    node.flush()
    verdict(node, kind, False)
    assert node.events()[3:5] == [
        f"Unhealthy: {kind.title()} probe failed: HTTP 500",
        f"Killing: Container c failed {kind} probe{end}",
    ]
    assert node.flush() == (["stop c 30", "start c 1"] if end else ["stop c 30"])


def test_a_container_killed_for_its_probe_restarts_although_it_left_cleanly() -> None:
    node = Node(a_pod(container(liveness_probe=Probe()), policy="OnFailure")).start()
    node.code_on_stop = 0
    verdict(node, "liveness", False)
    assert node.of().restart_count == 1
    assert node.status().phase == "Running"


def test_a_probe_may_bring_its_own_grace_period() -> None:
    node = Node(a_pod(container(liveness_probe=Probe(termination_grace_period_seconds=7)))).start()
    node.flush()
    verdict(node, "liveness", False)
    assert node.flush()[0] == "stop c 7"


def test_a_sidecar_that_fails_its_probe_is_called_an_init_container() -> None:
    node = Node(a_pod(inits=[sidecar("s", liveness_probe=Probe())], policy="Never")).start()
    verdict(node, "liveness", False, "s")
    assert "Killing: Init container s failed liveness probe" in node.events()
    assert node.of("s").restart_count == 1


def test_a_container_that_stops_is_asked_only_whether_it_is_ready() -> None:
    node = Node(a_pod(container(liveness_probe=Probe(), readiness_probe=Probe())))
    node.stubborn = {"c"}
    node.start()
    verdict(node, "readiness", True)
    node.delete()
    assert kinds(node) == ["c readiness"]
    node.flush()
    verdict(node, "liveness", False)
    assert node.flush() == []
    verdict(node, "readiness", False)
    assert not node.of().ready


def test_a_probe_that_could_not_be_made_is_told_and_forgotten() -> None:
    node = Node(a_pod(container(readiness_probe=Probe()))).start()
    verdict(node, "readiness", True)
    verdict(node, "readiness", None, message="no port")
    assert node.of().ready
    assert node.events()[-1] == "Unhealthy: Readiness probe errored and resulted in unknown state: no port"


def test_a_new_instance_is_probed_anew() -> None:
    node = Node(a_pod(all_three())).start()
    verdict(node, "startup", True)
    node.exit("c", 1)
    assert kinds(node) == ["c startup"]
    assert node.life.probes()[0].container_id == "c-1"


def test_readiness_gates_hold_back_ready_and_nothing_else() -> None:
    pod = a_pod(
        readiness_gates=[PodReadinessGate(condition_type="lb"), PodReadinessGate(condition_type="dns")]
    )
    pod.status.conditions = [PodCondition(type="lb", status="False")]
    node = Node(pod).start()
    assert node.condition("ContainersReady").status == "True"
    ready = node.condition("Ready")
    assert (ready.status, ready.reason) == ("False", "ReadinessGatesNotReady")
    assert ready.message == (
        'the status of pod readiness gate "lb" is not "True", but False, '
        'corresponding condition of pod readiness gate "dns" does not exist.'
    )
    newer = a_pod(readiness_gates=pod.spec.readiness_gates)
    newer.status.conditions = [
        PodCondition(type="lb", status="True"),
        PodCondition(type="dns", status="True"),
    ]
    node.do(node.life.update(newer, node.now))
    assert node.condition("Ready").status == "True"
    assert [each.type for each in node.status().conditions[:2]] == ["lb", "dns"]


# -- the worker


def worker(kind: str = "readiness", **fields: int) -> ProbeWorker:
    probe = Probe(period_seconds=10, success_threshold=1, failure_threshold=3)
    for field, value in fields.items():
        setattr(probe, field, value)
    return ProbeWorker(ProbePlan("c", kind, probe, "c-0", BEGIN), BEGIN)


def test_nothing_is_probed_before_its_initial_delay_and_then_on_the_beat() -> None:
    one = worker(initial_delay_seconds=5)
    assert not one.due(BEGIN + 5 * SECOND_NS - 1)
    assert one.due(BEGIN + 5 * SECOND_NS)
    one.began(BEGIN + 5 * SECOND_NS)
    assert one.next_ns == BEGIN + 15 * SECOND_NS
    one.began(BEGIN + 38 * SECOND_NS)
    assert one.next_ns == BEGIN + 45 * SECOND_NS


def test_a_row_of_failures_is_a_verdict_once() -> None:
    one = worker()
    given = [one.result(ok, BEGIN) for ok in (False, False, True, False, False, False, False)]
    no, yes = ProbeVerdict("c", "readiness", False), ProbeVerdict("c", "readiness", True)
    assert given == [None, None, yes, None, None, no, None]


def test_a_probe_that_did_not_work_counts_for_nothing() -> None:
    one = worker(failure_threshold=2)
    assert one.result(False, BEGIN) is None
    assert one.result(None, BEGIN) is None
    assert one.result(False, BEGIN) is not None


@pytest.mark.parametrize(
    ("kind", "ok", "is_on_hold"),
    [("startup", True, True), ("startup", False, True), ("liveness", False, True), ("liveness", True, False)],
)
def test_a_verdict_that_decides_an_instance_puts_the_worker_on_hold(
    kind: str, ok: bool, is_on_hold: bool
) -> None:
    one = worker(kind, failure_threshold=1)
    assert one.result(ok, BEGIN) is not None
    assert one.is_on_hold is is_on_hold
    assert one.due(BEGIN + 100 * SECOND_NS) is not is_on_hold
    if is_on_hold:
        assert one.result(ok, BEGIN + 100 * SECOND_NS) is None


def test_a_restarted_agent_can_spread_its_first_probes() -> None:
    plan = worker().plan
    assert (
        ProbeWorker(plan, BEGIN + 60 * SECOND_NS, spread_ns=3 * SECOND_NS).next_ns == BEGIN + 63 * SECOND_NS
    )


def test_a_probe_that_passed_oddly_has_its_own_event() -> None:
    assert probe_warning("c", "liveness", "redirected").message == "Liveness probe warning: redirected"

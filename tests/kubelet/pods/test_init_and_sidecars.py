"""Init containers in their order, sidecars beside the pod, debugging containers, and rules of single containers."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.container import (
    Container,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
    Probe,
)
from nodeward.api.core_v1.pod import Pod
from nodeward.features.gates import Gates
from nodeward.kubelet.pods.lifecycle_rules import LifecycleRules
from tests.kubelet.pods.driver import RULES, Node, a_pod, container, debugger, sidecar


def test_init_containers_run_one_after_the_other_before_the_rest() -> None:
    node = Node(a_pod(inits=[container("i1"), container("i2")])).start()
    assert node.flush() == ["sandbox", "start i1 0"]
    assert (node.waiting("i2"), node.waiting("c")) == ("PodInitializing", "PodInitializing")
    assert node.status().phase == "Pending"
    assert node.condition("Initialized").message == "containers with incomplete status: [i1 i2]"
    node.exit("i1", 0)
    assert node.flush() == ["start i2 0"]
    assert node.of("i1").ready
    assert node.condition("Initialized").message == "containers with incomplete status: [i2]"
    node.exit("i2", 0)
    assert node.flush() == ["start c 0"]
    assert node.condition("Initialized").status == "True"
    assert (node.status().phase, node.of("i1").restart_count) == ("Running", 0)


def test_a_failing_init_container_is_tried_again_with_growing_waits() -> None:
    node = Node(a_pod(inits=[container("i")], policy="OnFailure")).start()
    node.exit("i", 1)
    node.exit("i", 1)
    node.run_for(5)
    assert node.waiting("i") == "CrashLoopBackOff"
    assert node.status().phase == "Pending"
    node.run_for(6)
    node.exit("i", 0)
    assert "c" in node.running
    assert node.of("i").restart_count == 2


def test_a_failing_init_container_fails_a_pod_that_never_restarts() -> None:
    node = Node(a_pod(inits=[sidecar("s"), container("i")], policy="Never")).start()
    node.exit("i", 2)
    assert (node.status().phase, node.life.is_finished) == ("Failed", True)
    assert node.flush()[-1] == "stop s 30"
    assert node.waiting("c") == "PodInitializing"
    assert node.condition("Ready").reason == "PodFailed"


def test_a_crashing_main_container_does_not_run_init_containers_again() -> None:
    node = Node(a_pod(inits=[container("i")])).start()
    node.exit("i", 0)
    node.flush()
    node.exit("c", 1)
    assert node.flush() == ["start c 1"]


def test_a_sidecar_lets_the_next_go_only_after_its_startup_probe() -> None:
    node = Node(a_pod(inits=[sidecar("s", startup_probe=Probe()), container("i")])).start()
    assert node.flush() == ["sandbox", "start s 0"]
    assert [plan.kind for plan in node.life.probes()] == ["startup"]
    assert node.of("s").started is False
    node.do(node.life.probed("s", "startup", True, "", node.now))
    assert node.flush() == ["start i 0"]
    assert node.of("s").started is True
    node.exit("i", 0)
    assert node.status().phase == "Running"


def test_a_sidecar_that_crashes_during_initialization_is_restarted_beside_it() -> None:
    node = Node(a_pod(inits=[sidecar("s"), container("i")], policy="Never"))
    node.start()
    node.flush()
    node.exit("s", 1)
    assert node.flush() == ["start s 1"]
    assert set(node.running) == {"s", "i"}
    node.exit("i", 0)
    assert set(node.running) == {"s", "c"}
    node.exit("s", 1)
    assert node.condition("Initialized").status == "True"
    assert node.condition("ContainersReady").message == "containers with unready status: [s]"
    assert node.status().phase == "Running"


def test_sidecars_stop_after_the_main_containers_in_reverse_order_and_do_not_decide() -> None:
    node = Node(a_pod(inits=[sidecar("s1"), sidecar("s2")], policy="Never"))
    node.stubborn = {"s2"}
    node.start()
    node.flush()
    node.exit("c", 0)
    assert node.flush() == ["stop s2 30"]
    assert node.status().phase == "Running"
    node.run_for(30)
    assert node.flush() == ["stop s1 2"]
    assert (node.status().phase, node.life.is_finished) == ("Succeeded", True)


def test_on_deletion_main_containers_go_first_and_sidecars_wait_for_them() -> None:
    node = Node(a_pod(inits=[sidecar("s1"), sidecar("s2")]))
    node.stubborn = {"c"}
    node.start()
    node.flush()
    node.delete(20)
    assert node.flush() == ["stop c 20"]
    assert [each for each in node.events() if each.startswith("Killing")] == [
        "Killing: Stopping container c",
        "Killing: Stopping container s2",
        "Killing: Stopping container s1",
    ]
    node.exit("c", 0)
    assert node.flush() == ["stop s2 20", "stop s1 20", "remove pod", "delete"]


def test_sidecars_do_not_wait_longer_than_the_grace_period() -> None:
    node = Node(a_pod(inits=[sidecar("s")]))
    node.held = {"preStop"}
    node.stubborn = {"c"}
    node.start()
    node.flush()
    node.delete(5)
    node.run_for(4)
    assert node.flush() == ["stop c 5"]
    node.run_for(1)
    assert node.flush() == ["stop s 2", "remove pod", "delete"]


def test_a_debugging_container_starts_beside_the_others_and_never_again() -> None:
    pod = a_pod()
    node = Node(pod).start()
    node.flush()
    more = a_pod(ephemeral_containers=[debugger("d")])
    node.do(node.life.update(more, node.now))
    assert node.flush() == ["start d 0"]
    assert node.of("d").started is None
    node.exit("d", 1)
    node.run_for(1000)
    assert node.flush() == []
    assert node.status().phase == "Running"


def test_a_debugging_container_does_not_keep_a_finished_pod_alive() -> None:
    node = Node(a_pod(policy="Never", ephemeral_containers=[debugger("d")]))
    node.stubborn = {"d"}
    node.start()
    node.exit("c", 0)
    assert node.status().phase == "Running"
    node.run_for(31)
    assert (node.status().phase, node.life.is_finished) == ("Succeeded", True)


# -- policies and rules of single containers


def ruled(name: str, action: str, code: int, policy: str = "Never", operator: str = "In") -> Container:
    codes = ContainerRestartRuleOnExitCodes(operator=operator, values=[code])
    rules = [ContainerRestartRule(action=action, exit_codes=codes)]
    return container(name, restart_policy=policy, restart_policy_rules=rules)


@pytest.mark.parametrize(
    ("one", "code", "phase"),
    [
        (ruled("c", "Restart", 42), 42, "Running"),
        (ruled("c", "Restart", 42), 1, "Failed"),
        (ruled("c", "Restart", 42, operator="NotIn"), 1, "Running"),
        (ruled("c", "Restart", 42, "OnFailure"), 1, "Running"),
        (container("c", restart_policy="Always"), 0, "Running"),
        (container("c", restart_policy="OnFailure"), 0, "Succeeded"),
    ],
)
def test_a_container_may_have_its_own_policy_and_rules(one: Container, code: int, phase: str) -> None:
    node = Node(a_pod(one, policy="Never")).start()
    node.exit("c", code)
    assert node.status().phase == phase


def test_with_the_gate_off_only_the_policy_of_the_pod_counts() -> None:
    rules = LifecycleRules(
        Gates.of("1.37", "ContainerRestartRules=false,RestartAllContainersOnContainerExits=false")
    )
    node = Node(a_pod(ruled("c", "Restart", 42), policy="Never"), rules).start()
    node.exit("c", 42)
    assert node.status().phase == "Failed"


def over_and_over() -> Pod:
    return a_pod(
        ruled("c", "RestartAllContainers", 42),
        container("other"),
        inits=[container("i"), sidecar("s")],
        policy="Never",
    )


def test_a_rule_can_start_the_whole_pod_over_in_place() -> None:
    node = Node(over_and_over()).start()
    node.exit("i", 0)
    node.stubborn = {"other"}
    node.flush()
    assert node.condition("AllContainersRestarting").status == "False"
    node.exit("c", 42)
    assert node.flush() == ["stop s 2", "stop other 2"]
    assert node.condition("AllContainersRestarting").status == "True"
    node.run_for(2)
    assert node.flush() == [
        *["remove i-0", "remove s-0", "remove c-0", "remove other-0"],
        "start i 1",
    ]
    assert node.waiting("other") == "RestartingAllContainers"
    last = node.of("other").last_state.terminated
    assert last is not None
    assert (last.reason, last.exit_code) == ("RestartingAllContainers", 137)
    assert node.condition("Initialized").status == "True"
    node.exit("i", 0)
    assert node.flush() == ["start s 1", "start c 1", "start other 1"]
    assert {each.restart_count for each in node.status().container_statuses} == {1}
    assert node.condition("AllContainersRestarting").status == "False"
    assert node.status().phase == "Running"


def test_a_pod_that_starts_itself_over_again_and_again_waits_longer_each_time() -> None:
    node = Node(a_pod(ruled("c", "RestartAllContainers", 42), policy="Never")).start()
    node.exit("c", 42)
    assert "c" in node.running
    node.exit("c", 42)
    node.run_for(9)
    assert "c" not in node.running
    assert node.waiting() == "CrashLoopBackOff"
    node.run_for(2)
    assert node.of().restart_count == 2


def test_without_its_gate_the_rule_that_starts_over_does_not_exist() -> None:
    rules = LifecycleRules(Gates.of("1.37", "RestartAllContainersOnContainerExits=false"))
    node = Node(over_and_over(), rules).start()
    node.exit("i", 0)
    node.exit("c", 42)
    node.exit("other", 0)
    assert node.status().phase == "Failed"
    assert "AllContainersRestarting" not in [each.type for each in node.status().conditions]


def test_the_rules_of_a_node_come_from_its_gates() -> None:
    slow = LifecycleRules(Gates.of("1.37"), max_restart_seconds=5)
    fast = LifecycleRules(Gates.of("1.37", "ReduceDefaultCrashLoopBackOffDecay=true"))
    assert [each.crash_curve.wait(count) for each in (RULES, slow, fast) for count in (0, 20)] == [
        *[10, 300],
        *[5, 5],
        *[1, 60],
    ]

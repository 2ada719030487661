"""How pods end: deletion, grace, hooks, eviction, deadlines, refusal, and pods nobody knows any more."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.pod_status import ContainerStatus, PodStatus
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.pods.state import SOURCE_ANNOTATION
from nodeward.kubelet.runtime.interface import ContainerFailed, PodGone
from tests.kubelet.pods.driver import BEGIN, UID, Node, a_pod, container, hooked


@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (143, "Failed")])
def test_a_deleted_pod_stops_is_removed_and_then_deleted_with_a_terminal_phase(code: int, phase: str) -> None:
    node = Node(a_pod()).start()
    node.code_on_stop = code
    node.flush()
    node.delete(10)
    assert node.flush() == ["stop c 10", "remove pod", "delete"]
    assert node.events()[-1] == "Killing: Stopping container c"
    assert node.status().phase == phase
    assert node.life.can_be_deleted
    node.do(node.life.gone(node.now))
    assert node.life.is_gone
    assert node.flush() == []


def test_while_it_stops_a_pod_keeps_its_phase_and_its_readiness() -> None:
    node = Node(a_pod())
    node.stubborn = {"c"}
    node.start()
    node.delete()
    assert node.status().phase == "Running"
    assert node.condition("Ready").status == "True"
    node.run_for(30)
    assert node.status().phase == "Failed"
    assert node.condition("Ready").reason == "PodFailed"


def test_a_shorter_grace_period_counts_and_a_longer_one_does_not() -> None:
    node = Node(a_pod())
    node.stubborn = {"c"}
    node.start()
    node.flush()
    node.delete(30)
    node.run_for(5)
    node.delete(300)
    node.delete(3)
    assert node.flush() == ["stop c 30", "stop c 3"]
    node.run_for(3)
    assert node.flush() == ["remove pod", "delete"]


def test_pre_stop_runs_inside_the_grace_period() -> None:
    node = Node(a_pod(hooked(pre_stop=True)))
    node.held = {"preStop"}
    node.start()
    node.flush()
    node.delete(20)
    assert node.flush() == ["preStop c"]
    node.run_for(8)
    node.do(node.life.hook_done("c", "preStop", False, "secret stuff", node.now))
    assert node.flush()[0] == "stop c 12"
    assert node.events()[-1] == "FailedPreStopHook: PreStopHook failed"


def test_a_pre_stop_hook_that_hangs_is_cut_off_but_two_seconds_are_left_for_the_container() -> None:
    node = Node(a_pod(hooked(pre_stop=True)))
    node.held = {"preStop"}
    node.start()
    node.flush()
    node.delete(20)
    node.run_for(19)
    assert node.flush() == ["preStop c"]
    node.run_for(1)
    assert node.flush()[0] == "stop c 2"


def test_a_container_runs_only_when_its_post_start_hook_is_done_and_the_next_waits_for_it() -> None:
    node = Node(a_pod(hooked("a", post_start=True), container("b")))
    node.held = {"postStart"}
    node.start()
    assert node.flush() == ["sandbox", "start a 0", "postStart a"]
    assert node.waiting("a") == "ContainerCreating"
    node.do(node.life.hook_done("a", "postStart", True, "", node.now))
    assert node.flush() == ["start b 0"]
    assert node.of("a").state.running is not None


def test_a_failed_post_start_hook_kills_the_container_which_then_starts_again() -> None:
    node = Node(a_pod(hooked(post_start=True)))
    node.held = {"postStart"}
    node.start()
    node.flush()
    node.do(node.life.hook_done("c", "postStart", False, "exit 1", node.now))
    assert node.flush() == ["stop c 30", "start c 1", "postStart c"]
    assert node.events()[3:5] == ["FailedPostStartHook: PostStartHook failed", "Killing: FailedPostStartHook"]


def test_a_pod_deleted_before_it_ran_fails_with_an_unknown_container() -> None:
    node = Node(a_pod())
    node.held = {"sandbox"}
    node.start()
    node.flush()
    node.delete()
    assert node.flush() == ["remove pod", "delete"]
    terminated = node.of().state.terminated
    assert terminated is not None
    assert (terminated.reason, terminated.exit_code) == ("ContainerStatusUnknown", 137)
    assert node.status().phase == "Failed"


def test_a_start_in_flight_is_waited_for_and_stopped_at_once() -> None:
    node = Node(a_pod())
    node.held = {"c"}
    node.start()
    node.flush()
    node.delete()
    assert node.flush() == ["stop c 2"]
    node.has_started("c")
    assert node.flush() == ["stop c 30", "remove pod", "delete"]


def test_a_start_in_flight_is_given_up_when_the_grace_period_is_over() -> None:
    node = Node(a_pod())
    node.held = {"c"}
    node.start()
    node.flush()
    node.delete(10)
    node.run_for(10)
    assert node.flush() == ["stop c 2", "remove pod", "delete"]


def test_a_start_that_the_runtime_gives_up_ends_the_pod_at_once_and_silently() -> None:
    node = Node(a_pod())
    node.held = {"c"}
    node.start()
    node.do(node.life.stop("Evicted", "low", node.now, 5))
    node.flush()
    node.told.clear()
    node.tell(ContainerFailed(UID, "c", "RunContainerError", "stopped before it started"))
    assert (node.status().phase, node.life.is_finished) == ("Failed", True)
    assert node.events() == []


def test_nothing_is_restarted_once_the_end_began() -> None:
    node = Node(a_pod(container("a"), container("b")))
    node.stubborn = {"b"}
    node.start()
    node.delete()
    node.flush()
    node.run_for(100)
    assert [each for each in node.flush() if each.startswith("start")] == []


def test_a_pod_waiting_to_restart_shows_how_it_ended_when_deleted() -> None:
    node = Node(a_pod()).start()
    node.exit("c", 1)
    node.exit("c", 7)
    node.run_for(5)
    node.delete()
    terminated = node.of().state.terminated
    assert terminated is not None
    assert terminated.exit_code == 7


def test_an_evicted_pod_stops_and_then_says_why_it_failed() -> None:
    node = Node(a_pod())
    node.stubborn = {"c"}
    node.start()
    node.flush()
    node.do(node.life.stop("Evicted", "The node was low on resource: memory.", node.now, 5))
    assert node.flush() == ["stop c 5"]
    assert (node.status().phase, node.status().reason) == ("Running", "")
    assert node.condition("Ready").reason == "PodFailed"
    node.run_for(5)
    status = node.status()
    assert (status.phase, status.reason) == ("Failed", "Evicted")
    assert status.message == "The node was low on resource: memory."
    assert node.condition("DisruptionTarget").reason == "TerminationByKubelet"
    assert node.flush() == []
    assert node.life.is_finished
    node.delete()
    assert node.flush() == ["remove pod", "delete"]


def test_an_active_deadline_fails_the_pod() -> None:
    node = Node(a_pod(active_deadline_seconds=60)).start()
    node.run_for(59)
    assert node.status().phase == "Running"
    node.run_for(1)
    status = node.status()
    assert (status.phase, status.reason) == ("Failed", "DeadlineExceeded")
    assert status.message == "Pod was active on the node longer than the specified deadline"
    assert "DeadlineExceeded: Pod was active on the node longer than the specified deadline" in node.events()
    assert "DisruptionTarget" not in [each.type for each in status.conditions]


def test_a_deadline_can_be_shortened_later() -> None:
    node = Node(a_pod(active_deadline_seconds=600)).start()
    node.do(node.life.update(a_pod(active_deadline_seconds=10), node.now))
    assert node.life.next_deadline_ns() == BEGIN + 10 * SECOND_NS


def test_a_refused_pod_fails_shows_no_containers_and_starts_none() -> None:
    node = Node(a_pod())
    node.do(node.life.reject("PodFeatureUnsupported", "needs X", node.now))
    node.start()
    assert node.flush() == []
    status = node.status()
    assert (status.phase, status.reason) == ("Failed", "PodFeatureUnsupported")
    assert status.message == "Pod was rejected: needs X"
    assert status.container_statuses == []
    assert status.conditions == []
    assert node.events() == ["PodFeatureUnsupported: needs X"]
    assert node.life.is_finished
    node.delete()
    assert node.flush() == ["remove pod", "delete"]


def test_a_pod_the_api_lost_is_stopped_and_removed_and_not_deleted_again() -> None:
    node = Node(a_pod()).start()
    node.flush()
    node.do(node.life.gone(node.now))
    assert node.flush() == ["stop c 30", "remove pod"]
    assert node.life.is_gone


def test_a_pod_is_not_deleted_before_the_runtime_has_let_go() -> None:
    node = Node(a_pod()).start()
    node.is_gone_held = True
    node.delete()
    assert not node.life.can_be_deleted
    node.tell(PodGone(UID))
    node.tell(PodGone(UID))
    assert node.did.count("delete") == 1


def test_a_static_pod_is_never_deleted_from_the_api() -> None:
    pod = a_pod()
    pod.metadata.annotations = {SOURCE_ANNOTATION: "file"}
    node = Node(pod).start()
    node.flush()
    node.delete()
    assert node.flush() == ["stop c 30", "remove pod"]


def test_a_pod_that_was_over_stays_over_when_the_agent_comes_back() -> None:
    pod = a_pod(policy="Never")
    first = Node(pod).start()
    first.exit("c", 3)
    pod.status = first.status()
    node = Node(pod).start()
    assert node.flush() == []
    assert node.status().phase == "Failed"
    terminated = node.of().state.terminated
    assert terminated is not None
    assert (terminated.exit_code, terminated.container_id) == (3, "sim://c-0")
    assert node.status().conditions == first.status().conditions


def test_a_pod_refused_by_an_earlier_agent_still_shows_no_containers() -> None:
    pod = a_pod()
    pod.status = PodStatus(phase="Failed", reason="OutOfcpu", message="Pod was rejected: full")
    node = Node(pod).start()
    assert node.status().container_statuses == list[ContainerStatus]()
    assert (node.status().reason, node.status().message) == ("OutOfcpu", "Pod was rejected: full")

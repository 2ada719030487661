"""Pods of one container: start, ready, restarts, backoff, images that do not come, and what users read of it."""

from __future__ import annotations

import pytest

from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.features.gates import Gates
from nodeward.kubelet.pods.lifecycle_rules import LifecycleRules
from nodeward.kubelet.runtime.interface import ContainerExited, ImagePulled, ImagePulling, SandboxStarted
from tests.kubelet.pods.driver import BEGIN, UID, Node, a_pod, container


def test_a_pod_starts_its_sandbox_then_its_container_and_is_ready() -> None:
    node = Node(a_pod()).start()
    assert node.flush() == ["sandbox", "start c 0"]
    status = node.status()
    assert (status.phase, status.pod_ip, status.host_ip) == ("Running", "10.1.0.5", "10.0.0.1")
    assert [(each.type, each.status) for each in status.conditions] == [
        ("PodReadyToStartContainers", "True"),
        ("Initialized", "True"),
        ("Ready", "True"),
        ("ContainersReady", "True"),
        ("PodScheduled", "True"),
    ]
    one = status.container_statuses[0]
    assert one.state.running is not None
    assert (one.ready, one.started, one.restart_count) == (True, True, 0)
    assert (one.container_id, one.image, one.image_id) == ("sim://c-0", "c:1", "sha")
    assert status.start_time == rfc3339(BEGIN)
    assert status.qos_class == "BestEffort"
    assert status.observed_generation == 1
    assert node.life.next_deadline_ns() is None


def test_the_events_of_a_start_read_as_upstream_writes_them() -> None:
    node = Node(a_pod())
    node.held = {"c"}
    node.start()
    node.tell(ImagePulling(UID, "c", "c:1"))
    node.tell(ImagePulled(UID, "c", "c:1", was_present=False, seconds=1.2004, size=77))
    node.has_started("c")
    assert node.events() == [
        'Pulling: Pulling image "c:1"',
        'Pulled: Successfully pulled image "c:1" in 1.2s (1.2s including waiting). Image size: 77 bytes.',
        "Created: Container created",
        "Started: Container started",
    ]
    assert {each.container for each in node.told} == {"c"}


@pytest.mark.parametrize(("version", "end"), [("1.37", " and can be accessed by the pod"), ("1.34", "")])
def test_an_image_that_is_there_is_told_as_the_version_tells_it(version: str, end: str) -> None:
    node = Node(a_pod(), LifecycleRules(Gates.of(version))).start()
    assert node.events()[0] == f'Pulled: Container image "c:1" already present on machine{end}'


def test_before_the_start_a_container_is_being_created() -> None:
    node = Node(a_pod())
    node.held = {"c"}
    assert node.status().phase == "Pending"
    assert node.condition("PodReadyToStartContainers").message == "no pod sandbox exists"
    node.start()
    one = node.of()
    assert node.waiting() == "ContainerCreating"
    assert (one.ready, one.started, one.container_id, one.resources) == (False, False, "", None)
    assert node.condition("Ready").message == "containers with unready status: [c]"
    assert node.condition("PodReadyToStartContainers").status == "True"


def test_crashes_restart_at_once_then_after_10_20_40_seconds_up_to_5_minutes() -> None:
    node = Node(a_pod()).start()
    waits = []
    for count in range(1, 9):
        node.exit("c", 1)
        exited = node.now
        while "c" not in node.running:
            node.run_for(1)
        waits.append((node.started_at["c"] - exited) // SECOND_NS)
        assert node.of().restart_count == count
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]


def test_ten_good_minutes_forgive_all_crashes() -> None:
    node = Node(a_pod()).start()
    for _ in range(3):
        node.exit("c", 1)
        node.run_for(60)
    node.run_for(601)
    node.exit("c", 1)
    assert "c" in node.running
    node.exit("c", 1)
    assert "c" not in node.running
    node.run_for(10)
    assert "c" in node.running


def test_a_crash_shows_its_error_and_then_that_it_waits() -> None:
    node = Node(a_pod()).start()
    node.exit("c", 1)
    node.exit("c", 3, message="bad flag")
    terminated = node.of().state.terminated
    assert terminated is not None
    assert (terminated.reason, terminated.exit_code, terminated.message) == ("Error", 3, "bad flag")
    assert node.status().phase == "Running"
    node.run_for(3)
    waiting = node.of().state.waiting
    assert waiting is not None
    assert waiting.reason == "CrashLoopBackOff"
    assert waiting.message == "back-off 10s restarting failed container=c pod=web_shop(0a1b)"
    last = node.of().last_state.terminated
    assert last is not None
    assert last.exit_code == 3
    assert node.events()[-1] == "BackOff: Back-off restarting failed container c in pod web_shop(0a1b)"
    assert node.condition("Ready").status == "False"
    node.run_for(8)
    assert node.of().state.running is not None
    assert node.of().restart_count == 2


def test_only_one_dead_instance_is_kept() -> None:
    node = Node(a_pod()).start()
    for _ in range(3):
        node.exit("c", 1)
        node.run_for(60)
    assert [each for each in node.did if each.startswith("remove")] == ["remove c-0", "remove c-1"]


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [
        ("Never", 0, "Succeeded"),
        ("Never", 1, "Failed"),
        ("OnFailure", 0, "Succeeded"),
        ("OnFailure", 1, "Running"),
        ("Always", 0, "Running"),
    ],
)
def test_the_restart_policy_decides_what_an_exit_means(policy: str, code: int, phase: str) -> None:
    node = Node(a_pod(policy=policy)).start()
    node.exit("c", code)
    assert node.status().phase == phase
    assert node.life.is_finished is (phase != "Running")
    assert ("c" in node.running) is (phase == "Running")


def test_a_completed_pod_says_so_in_its_conditions() -> None:
    node = Node(a_pod(policy="Never")).start()
    node.exit("c", 0)
    reasons = {each.type: (each.status, each.reason) for each in node.status().conditions}
    assert reasons["Ready"] == reasons["ContainersReady"] == ("False", "PodCompleted")
    assert reasons["Initialized"] == ("True", "PodCompleted")
    assert reasons["PodReadyToStartContainers"] == ("False", "PodSandboxNotReady")
    assert node.status().pod_ip == "10.1.0.5"


def test_a_missing_image_is_shown_then_waited_for_longer_each_time() -> None:
    node = Node(a_pod())
    node.failing = {"c": ("ErrImagePull", "not found")}
    node.start()
    assert node.waiting() == "ErrImagePull"
    assert node.events() == ['Failed: Failed to pull image "c:1": not found', "Failed: Error: ErrImagePull"]
    node.run_for(3)
    waiting = node.of().state.waiting
    assert waiting is not None
    assert waiting.reason == "ImagePullBackOff"
    assert waiting.message == 'Back-off pulling image "c:1": ErrImagePull: not found'
    assert node.events()[2:] == ['BackOff: Back-off pulling image "c:1"', "Failed: Error: ImagePullBackOff"]
    node.flush()
    node.run_for(7)
    assert node.flush() == ["start c 0"]
    node.run_for(19.9)
    assert node.flush() == []
    node.failing = {}
    node.run_for(0.2)
    assert node.of().state.running is not None
    assert node.status().phase == "Running"


@pytest.mark.parametrize(
    ("reason", "events"),
    [
        ("CreateContainerError", ["Failed: Error: why"]),
        ("CreateContainerConfigError", ["Failed: Error: why"]),
        ("ErrImageNeverPull", ["ErrImageNeverPull: why", "Failed: Error: ErrImageNeverPull"]),
        ("InvalidImageName", ["InspectFailed: why", "Failed: Error: InvalidImageName"]),
    ],
)
def test_a_start_that_fails_is_told_and_tried_again_every_ten_seconds(reason: str, events: list[str]) -> None:
    node = Node(a_pod())
    node.failing = {"c": (reason, "why")}
    node.start()
    assert node.events() == events
    assert (node.waiting(), node.status().phase) == (reason, "Pending")
    node.flush()
    node.run_for(25)
    assert node.flush() == ["start c 0", "start c 0"]


def test_a_command_that_cannot_be_run_counts_as_a_crash() -> None:
    node = Node(a_pod())
    node.failing = {"c": ("RunContainerError", "no such file")}
    node.start()
    assert node.events()[:2] == ["Created: Container created", "Failed: Error: no such file"]
    assert node.waiting() == "RunContainerError"
    # As after any crash, the first restart comes at once, the second after ten seconds.
    node.run_for(5)
    assert (node.waiting(), node.of().restart_count, node.status().phase) == (
        "CrashLoopBackOff",
        1,
        "Running",
    )
    last = node.of().last_state.terminated
    assert last is not None
    assert (last.exit_code, last.reason, last.message) == (128, "StartError", "no such file")
    node.failing = {}
    node.run_for(10)
    assert node.of().state.running is not None
    assert node.of().restart_count == 2


def test_a_pod_that_never_restarts_fails_when_its_command_cannot_be_run() -> None:
    node = Node(a_pod(policy="Never"))
    node.failing = {"c": ("RunContainerError", "no such file")}
    node.start()
    node.run_for(1)
    terminated = node.of().state.terminated
    assert terminated is not None
    assert (terminated.exit_code, terminated.reason) == (128, "StartError")
    assert node.status().phase == "Failed"


def test_a_missing_secret_is_a_config_error_until_it_is_there() -> None:
    node = Node(a_pod())
    node.held = {"c"}
    node.start()
    node.do(node.life.config_failed("c", "CreateContainerConfigError", 'secret "x" not found', node.now))
    assert node.waiting() == "CreateContainerConfigError"
    assert node.events() == ['Failed: Error: secret "x" not found']
    node.held = set()
    node.run_for(10)
    assert node.of().state.running is not None


def test_a_sandbox_that_fails_is_told_and_tried_again() -> None:
    node = Node(a_pod())
    node.sandbox_fails = "no addresses left"
    node.start()
    assert node.events() == ["FailedCreatePodSandBox: Failed to create pod sandbox: no addresses left"]
    node.sandbox_fails = ""
    node.run_for(11)
    assert node.status().phase == "Running"


def test_volumes_that_fail_hold_the_sandbox_back_until_they_are_ready() -> None:
    node = Node(a_pod())
    node.held = {"sandbox"}
    node.start()
    node.do(node.life.volumes_failed("no such secret", node.now))
    assert node.flush() == ["sandbox"]
    node.run_for(5)
    assert node.flush() == []
    node.held = set()
    node.do(node.life.retry_start(node.now))
    assert node.flush() == ["sandbox", "start c 0"]


def test_containers_start_one_after_the_other_and_are_listed_by_name() -> None:
    node = Node(a_pod(container("z"), container("a")))
    node.held = {"z"}
    node.start()
    assert node.flush() == ["sandbox", "start z 0"]
    assert node.status().phase == "Pending"
    node.has_started("z")
    assert node.flush() == ["start a 0"]
    assert [each.name for each in node.status().container_statuses] == ["a", "z"]


def test_one_container_that_cannot_start_does_not_hold_back_the_next() -> None:
    node = Node(a_pod(container("a"), container("b")))
    node.failing = {"a": ("ErrImagePull", "no")}
    node.start()
    assert "b" in node.running
    assert node.status().phase == "Pending"


def test_events_of_an_instance_that_is_no_more_change_nothing() -> None:
    node = Node(a_pod()).start()
    node.exit("c", 1)
    node.tell(ContainerExited(UID, "c", "c-0", 9, "Error", node.now))
    node.tell(SandboxStarted(UID, "s9", ("10.9.9.9",)))
    assert node.of().restart_count == 1
    assert node.of().state.running is not None
    assert node.status().pod_ip == "10.1.0.5"


def test_a_termination_message_is_cut_to_its_share_of_the_status() -> None:
    node = Node(a_pod(container("a"), container("b"), policy="Never")).start()
    node.exit("a", 1, message="é" * 10_000)
    terminated = node.of("a").state.terminated
    assert terminated is not None
    assert len(terminated.message.encode()) == 6 * 1024


def test_a_status_asked_for_again_is_the_same_and_times_stay_with_their_status() -> None:
    node = Node(a_pod()).start()
    first = node.status()
    node.run_for(100)
    assert node.life.status(node.now).conditions == first.conditions
    node.do(node.life.tick(node.now))
    assert [each.last_transition_time for each in node.status().conditions] == [rfc3339(BEGIN)] * 5
    node.exit("c", 1)
    node.exit("c", 1)
    assert node.condition("Ready").last_transition_time == rfc3339(node.now)
    assert node.condition("PodScheduled").last_transition_time == rfc3339(BEGIN)

"""Commands and what is told of them: once, whatever is asked, as often as it is asked."""

from __future__ import annotations

import pytest

from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    ContainerFailed,
    ContainerStarted,
    ExecRequest,
    ImagePulled,
    PodGone,
)
from tests.contracts.runtimes.ground import BROKEN, DEAF, LOOK, SERVES, Act, Ground, Scene, ends
from tests.patience import PATIENCE_SECONDS


def test_a_runtime_says_what_it_is(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        name, _, version = scene.runtime.version.partition("://")
        assert name
        assert version

    ground.play(play)


def test_a_sandbox_is_told_once_with_its_addresses(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(SERVES)
        event = await scene.sandbox(pod)
        assert event.sandbox_id
        assert event.ips
        assert len(scene.heard.events) == 1

    ground.play(play)


def test_a_sandbox_that_is_there_is_told_again_when_asked_again(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(SERVES)
        assert await scene.sandbox(pod) == await scene.sandbox(pod)

    ground.play(play)


def test_a_container_starts_with_its_image_told_before(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        before_ns = scene.clock.now_ns()
        _, started = await scene.running()
        assert started.id
        assert started.image == ground.image
        assert started.image_id
        # Some runtimes keep whole milliseconds.
        assert before_ns - 10**6 <= started.at_ns <= scene.clock.now_ns()
        kinds = [type(event) for event in scene.heard.events]
        assert kinds.index(ImagePulled) < kinds.index(ContainerStarted)
        assert scene.runtime.has_image(ground.image)

    ground.play(play)


@pytest.mark.parametrize(("code", "reason"), [(0, "Completed"), (3, "Error"), (255, "Error")])
def test_a_container_that_ends_tells_its_exit_code(ground: Ground, code: int, reason: str) -> None:
    async def play(scene: Scene) -> None:
        pod, started = await scene.running(ends(code))
        exited = await scene.exited(pod)
        assert (exited.id, exited.exit_code, exited.reason) == (started.id, code, reason)
        assert exited.started_ns == started.at_ns
        assert exited.at_ns >= started.at_ns

    ground.play(play)


def test_containers_of_a_pod_end_each_for_itself(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(ends(4), SERVES, ends(5))
        await scene.sandbox(pod)
        for name in ("c0", "c1", "c2"):
            await scene.started(pod, name)
        assert (await scene.exited(pod, "c0")).exit_code == 4
        assert (await scene.exited(pod, "c2")).exit_code == 5
        assert not scene.heard.of(ContainerExited, container="c1")

    ground.play(play)


def test_the_next_attempt_is_another_container(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, first = await scene.running(ends(1))
        await scene.exited(pod)
        second = await scene.started(pod, attempt=1)
        exited = await scene.exited(pod, count=2)
        assert second.id != first.id
        assert (exited.id, exited.exit_code) == (second.id, 1)

    ground.play(play)


# -- what cannot start


def test_a_container_without_a_sandbox_is_not_created(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        failed = await scene.failed(scene.request(scene.pod(SERVES)))
        assert failed.reason == "CreateContainerError"
        assert failed.message

    ground.play(play)


@pytest.mark.parametrize(
    ("image", "policy", "reason"),
    [
        ("registry.invalid/no-such-app:1", "", "ErrImagePull"),
        ("registry.invalid/no-such-app:1", "Never", "ErrImageNeverPull"),
        ("Not A Name", "", "InvalidImageName"),
    ],
)
def test_an_image_that_cannot_be_had_is_told_as_users_know_it(
    ground: Ground, image: str, policy: str, reason: str
) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(SERVES, image=image, policy=policy)
        await scene.sandbox(pod)
        failed = await scene.failed(scene.request(pod))
        assert failed.reason == reason
        assert image in failed.message
        assert not scene.runtime.has_image(image)

    ground.play(play)


def test_a_command_that_cannot_be_run_is_told_and_can_be_tried_again(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(BROKEN)
        await scene.sandbox(pod)
        for count in (1, 2):
            scene.runtime.start_container(scene.request(pod, attempt=0))
            failed = await scene.heard.wait_for(ContainerFailed, count)
            assert failed.reason == "RunContainerError"
            assert failed.message
        assert not scene.heard.of(ContainerStarted)

    ground.play(play)


def test_starting_what_already_runs_is_refused_and_leaves_it_alone(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        failed = await scene.failed(scene.request(pod, attempt=1))
        assert failed.reason == "CreateContainerError"
        assert not scene.heard.of(ContainerExited)
        assert (await scene.runtime.exec_sync(_exec(pod.metadata.uid), 30)).exit_code == 0

    ground.play(play)


# -- stopping


def test_a_container_is_asked_to_stop_and_may_end_well(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, started = await scene.running()
        scene.runtime.stop_container(pod.metadata.uid, "c0", 600)
        exited = await scene.exited(pod)
        assert (exited.id, exited.exit_code, exited.reason) == (started.id, 0, "Completed")

    ground.play(play)


def test_a_container_that_does_not_listen_is_killed_after_its_grace_and_not_before(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running(DEAF)
        asked_ns = scene.clock.now_ns()
        scene.runtime.stop_container(pod.metadata.uid, "c0", 1)
        exited = await scene.exited(pod)
        assert (exited.exit_code, exited.reason) == (137, "Error")
        assert 0.99 * SECOND_NS <= exited.at_ns - asked_ns <= 10 * SECOND_NS

    ground.play(play)


def test_a_shorter_grace_counts(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running(DEAF)
        scene.runtime.stop_container(pod.metadata.uid, "c0", 3600)
        scene.runtime.stop_container(pod.metadata.uid, "c0", 1)
        assert (await scene.exited(pod)).exit_code == 137

    ground.play(play)


def test_a_longer_grace_does_not_count(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running(DEAF)
        scene.runtime.stop_container(pod.metadata.uid, "c0", 1)
        scene.runtime.stop_container(pod.metadata.uid, "c0", 3600)
        assert (await scene.exited(pod)).exit_code == 137

    ground.play(play)


def test_no_grace_kills_at_once(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running(DEAF)
        scene.runtime.stop_container(pod.metadata.uid, "c0", 0)
        assert (await scene.exited(pod)).exit_code == 137

    ground.play(play)


def test_stopping_what_is_not_there_or_stops_already_is_no_error(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        scene.runtime.stop_container("nobody", "c0", 1)
        pod, _ = await scene.running()
        scene.runtime.stop_container(pod.metadata.uid, "nothing", 1)
        for _ in range(3):
            scene.runtime.stop_container(pod.metadata.uid, "c0", 600)
        await scene.exited(pod)
        scene.runtime.stop_container(pod.metadata.uid, "c0", 1)

    ground.play(play)


def test_a_container_stopped_before_it_runs_ends_all_the_same(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(Act("start-delay=5s", SERVES.script))
        await scene.sandbox(pod)
        scene.runtime.start_container(scene.request(pod))
        scene.runtime.stop_container(pod.metadata.uid, "c0", 1)
        await _outcome(scene, pod.metadata.uid)

    ground.play(play)


# -- removing


def test_removing_a_pod_ends_what_runs_and_is_told_last(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(SERVES, DEAF, ends(0))
        await scene.sandbox(pod)
        for name in ("c0", "c1", "c2"):
            await scene.started(pod, name)
        await scene.exited(pod, "c2")
        scene.runtime.remove_pod(pod.metadata.uid)
        await scene.heard.wait_for(PodGone)
        assert len(scene.heard.of(ContainerExited)) == 3
        assert scene.heard.events[-1] == PodGone(pod.metadata.uid)
        assert not await scene.runtime.recover()

    ground.play(play)


def test_a_pod_never_heard_of_is_gone(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        scene.runtime.remove_pod("nobody")
        await scene.heard.wait_for(PodGone, uid="nobody")

    ground.play(play)


def test_removing_a_pod_twice_is_no_error(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        scene.runtime.remove_pod(pod.metadata.uid)
        scene.runtime.remove_pod(pod.metadata.uid)
        await scene.heard.wait_for(PodGone)

    ground.play(play)


def test_a_pod_removed_while_its_container_starts_leaves_nothing(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(Act("start-delay=5s", SERVES.script))
        await scene.sandbox(pod)
        scene.runtime.start_container(scene.request(pod))
        scene.runtime.remove_pod(pod.metadata.uid)
        await scene.heard.wait_for(PodGone)
        await _outcome(scene, pod.metadata.uid)
        assert not await scene.runtime.recover()

    ground.play(play)


def test_a_pod_that_is_gone_can_come_again(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, first = await scene.running()
        scene.runtime.remove_pod(pod.metadata.uid)
        await scene.heard.wait_for(PodGone)
        await scene.sandbox(pod)
        scene.runtime.start_container(scene.request(pod))
        second = await scene.heard.wait_for(ContainerStarted, 2)
        assert second.id != first.id

    ground.play(play)


def test_a_dead_container_is_forgotten_when_removed_and_a_living_one_is_not(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(ends(0), SERVES)
        await scene.sandbox(pod)
        dead, alive = await scene.started(pod, "c0"), await scene.started(pod, "c1")
        await scene.exited(pod, "c0")
        for id_ in (dead.id, alive.id, "nothing"):
            scene.runtime.remove_container(pod.metadata.uid, id_)
        scene.runtime.remove_container("nobody", dead.id)
        (found,) = await scene.another_agent()
        assert [each.id for each in found.containers] == [alive.id]

    ground.play(play)


async def _outcome(scene: Scene, uid: str) -> None:
    """One end of one start: it never ran, or ran and exited."""
    heard = scene.heard
    async with scene.clock.timeout(PATIENCE_SECONDS):
        while not (failed := heard.of(ContainerFailed, uid=uid)) and not heard.of(ContainerExited, uid=uid):
            await scene.clock.sleep(LOOK)
    assert len(heard.of(ContainerStarted, uid=uid)) == (0 if failed else 1)


def _exec(uid: str) -> ExecRequest:
    return ExecRequest(uid, "c0", ("echo", "hello"))

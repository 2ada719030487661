"""What is special to containers that are processes: what runs, as whom, on which CPUs, and what is left behind."""

from __future__ import annotations

import logging
import os
import signal
from pathlib import Path

import pytest

from nodeward.api.core_v1.container import Lifecycle, SecurityContext
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    ContainerFailed,
    ContainerStarted,
    Mount,
    PodGone,
)
from nodeward.kubelet.runtime.process import tree
from tests.kubelet.runtime.process.pods import WAITS, Stage, on_stage, pod_of, request_of

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can run a container as another user")


def test_a_container_that_does_nothing_waits_for_its_end(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        pod, started = await stage.run()
        # What it waits with is there once it listens.
        await stage.until(lambda: len(tree.marked(started.id)) == 2)
        stage.runtime.stop_container(pod.metadata.uid, "c", 600)
        assert (await stage.exited(pod)).exit_code == 0

    on_stage(tmp_path, play)


def test_arguments_without_a_command_are_the_command(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        pod, _ = await stage.run(args=("sh", "-c", "exit 12"))
        assert (await stage.exited(pod)).exit_code == 12

    on_stage(tmp_path, play)


def test_the_stop_signal_of_the_container_is_sent(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        pod = pod_of("u", lifecycle=Lifecycle(stop_signal="SIGUSR2"))
        script = "trap 'exit 4' USR2; trap '' TERM; echo ready; while :; do sleep 1 & wait $!; done"
        await stage.run(script, pod)
        stage.runtime.stop_container("u", "c", 600)
        assert (await stage.exited(pod)).exit_code == 4

    on_stage(tmp_path, play)


def test_a_signal_shows_in_the_exit_code(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        pod, _ = await stage.run("kill -SEGV $$")
        exited = await stage.exited(pod)
        assert (exited.exit_code, exited.reason) == (128 + signal.SIGSEGV, "Error")

    on_stage(tmp_path, play)


def test_what_a_container_started_ends_with_it_wherever_it_went(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        # Out of the session, out of the family, deaf, and with the log still open.
        pod, started = await stage.run(
            "setsid sh -c 'trap \"\" TERM HUP; sleep 1000 & sleep 1000' & sleep 0.1"
        )
        assert (await stage.exited(pod)).exit_code == 0
        assert tree.marked(started.id) == []

    on_stage(tmp_path, play)


def test_a_stopped_process_is_killed_too(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        pod, started = await stage.run("echo ready; kill -STOP $$")
        stage.runtime.stop_container(pod.metadata.uid, "c", 0)
        assert (await stage.exited(pod)).exit_code == 137
        assert tree.marked(started.id) == []

    on_stage(tmp_path, play)


@needs_root
def test_root_runs_a_container_as_the_user_it_asks_for(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        context = SecurityContext(run_as_user=65534, run_as_group=65533)
        pod = pod_of("u", security_context=context, termination_message_path="/dev/termination-log")
        message = tmp_path / "message"
        await stage.run(
            "id -u; id -g; id -G; echo bye > /dev/termination-log", pod, termination_log=str(message)
        )
        assert (await stage.exited(pod)).message == "bye\n"
        assert [line.rsplit(" ", 1)[1] for line in stage.log(pod).splitlines()] == ["65534", "65533", "65533"]

    on_stage(tmp_path, play)


def test_without_mount_namespaces_a_container_is_told_where_its_volumes_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "file").write_text("found\n")

    async def play(stage: Stage) -> None:
        script = 'echo "$NODEWARD_MOUNTS"; cat "$(echo "$NODEWARD_MOUNTS" | sed -n s,^/v=,,p)/file"; ls /v || echo none'
        pod, _ = await stage.run(script, mounts=(Mount(str(volume), "/v"), Mount("/dev/null", "/w")))
        await stage.exited(pod)
        said = [line.split(" ", 3)[3] for line in stage.log(pod).splitlines() if " stdout " in line]
        assert said == [f"/v={volume}", "/w=/dev/null", "found", "none"]
        assert await stage.runtime.recover()

    with caplog.at_level(logging.WARNING):
        on_stage(tmp_path, play, may_mount=False)
    assert caplog.text.count("NODEWARD_MOUNTS") == 1


def test_a_volume_is_mounted_with_its_options_and_the_runtime_says_that_it_can(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    script = volume / "run"
    script.write_text("#!/bin/sh\necho ran\n")
    script.chmod(0o755)

    async def play(stage: Stage) -> None:
        assert stage.runtime.abilities == {"runtime.mountOptions": "true"}
        options = ("nodev", "noexec", "nosuid")
        mounts = (Mount(str(volume), "/free"), Mount(str(volume), "/bound", options=options))
        tells = "/free/run; /bound/run || echo refused; touch /bound/new && echo written; grep ' /bound ' /proc/mounts"
        pod, _ = await stage.run(tells, mounts=mounts)
        await stage.exited(pod)
        said = [line.split(" ", 3)[3] for line in stage.log(pod).splitlines() if " stdout " in line]
        assert said[:3] == ["ran", "refused", "written"]
        assert {*options} <= {*said[3].split()[3].split(",")}

    on_stage(tmp_path, play)


def test_a_runtime_whose_containers_have_no_mounts_of_their_own_is_not_able_to_give_them_options(
    tmp_path: Path,
) -> None:
    async def play(stage: Stage) -> None:
        assert stage.runtime.abilities == {}

    on_stage(tmp_path, play, may_mount=False)


def test_without_pidfd_the_end_is_heard_of_all_the_same(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        pod, _ = await stage.run(WAITS)
        assert await stage.shell(pod, "echo hello") == "hello\n"
        stage.runtime.stop_container(pod.metadata.uid, "c", 600)
        assert (await stage.exited(pod)).exit_code == 0

    on_stage(tmp_path, play, has_pidfd=False)


def test_a_log_that_is_renamed_goes_on_in_a_new_file(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        script = f"echo ready; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo after"
        pod, _ = await stage.run(script)
        log = tmp_path / f"log-{pod.metadata.uid}"
        log.rename(tmp_path / "old")
        (tmp_path / "go").touch()
        await stage.exited(pod)
        assert "ready" in (tmp_path / "old").read_text()
        assert [line.rsplit(" ", 1)[1] for line in stage.log(pod).splitlines()] == ["after"]

    on_stage(tmp_path, play)


def test_a_working_directory_that_is_not_there_is_told(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        pod = pod_of("u", working_dir="/no/such/directory")
        stage.runtime.start_sandbox(pod)
        stage.runtime.start_container(request_of(pod, WAITS))
        failed = await stage.heard.wait_for(ContainerFailed)
        assert failed.reason == "RunContainerError"
        assert "/no/such/directory" in failed.message

    on_stage(tmp_path, play)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("no-such-command",), 'exec: "no-such-command": executable file not found in $PATH'),
        (("/no/such/command",), 'exec: "/no/such/command": stat /no/such/command: no such file or directory'),
        (("/etc",), 'exec: "/etc": permission denied'),
        (("/etc/passwd",), 'exec: "/etc/passwd": permission denied'),
        (("sh", "a\0b"), "the command and the environment cannot hold a NUL character"),
    ],
)
def test_a_command_that_cannot_run_says_why(tmp_path: Path, command: tuple[str, ...], said: str) -> None:
    async def play(stage: Stage) -> None:
        pod = pod_of("u")
        stage.runtime.start_sandbox(pod)
        stage.runtime.start_container(request_of(pod, command=command))
        assert (await stage.heard.wait_for(ContainerFailed)).message == said

    on_stage(tmp_path, play)
    assert not any((tmp_path / "runtime" / "pods").iterdir())


def test_fifty_containers_start_and_end_at_once_and_leave_nothing(tmp_path: Path) -> None:
    files_before = len(os.listdir("/proc/self/fd"))
    children_before = tree.descendants(os.getpid())

    async def play(stage: Stage) -> None:
        pods = [pod_of(f"u{number}") for number in range(50)]
        for pod in pods:
            stage.runtime.start_sandbox(pod)
            stage.runtime.start_container(
                request_of(pod, WAITS, log_path=str(tmp_path / f"log-{pod.metadata.uid}"))
            )
        await stage.heard.wait_for(ContainerStarted, 50)
        for pod in pods:
            stage.runtime.remove_pod(pod.metadata.uid)
        await stage.heard.wait_for(PodGone, 50)
        ids = [event.id for event in stage.heard.of(ContainerStarted)]
        assert len({event.id for event in stage.heard.of(ContainerExited)}) == 50
        assert not any(tree.marked(each) for each in ids)

    on_stage(tmp_path, play)
    assert not any((tmp_path / "runtime" / "pods").iterdir())
    assert len(os.listdir("/proc/self/fd")) == files_before
    assert tree.descendants(os.getpid()) == children_before


def test_sessions_leave_no_files_and_no_processes(tmp_path: Path) -> None:
    files: list[int] = []

    async def play(stage: Stage) -> None:
        pod, started = await stage.run(WAITS)
        for _ in range(3):
            assert await stage.shell(pod, "echo hello; sleep 1000 &") == "hello\n"
            files.append(len(os.listdir("/proc/self/fd")))
        assert files[0] == files[-1]
        stage.runtime.remove_pod(pod.metadata.uid)
        await stage.heard.wait_for(PodGone)
        assert tree.marked(started.id) == []

    on_stage(tmp_path, play)

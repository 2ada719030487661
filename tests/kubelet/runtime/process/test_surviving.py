"""Nobody stops a container by ending the agent, and nobody takes another process for it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.interface import ContainerExited, ContainerStarted, PodGone
from nodeward.kubelet.runtime.process import notes, tree
from nodeward.kubelet.runtime.process.notes import EXITED, PLAN, STARTED
from nodeward.kubelet.runtime.process.waiting import ProcessWatch
from nodeward.machinery.clock import RealClock
from tests.kubelet.runtime.process.pods import WAITS, Stage, on_stage, pod_of, request_of

REPOSITORY = Path(__file__).parents[4]


def agent(root: Path, count: int, script: str) -> subprocess.Popen[str]:
    """An agent that starts containers and says what it hears."""
    command = [
        sys.executable,
        "-m",
        "tests.kubelet.runtime.process.agent_process",
        str(root),
        str(count),
        script,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)


def kill_after(process: subprocess.Popen[str], lines: int, word: str) -> list[str]:
    """Kill it when it has said a word so many times; what it had said."""
    assert process.stdout is not None
    heard: list[str] = []
    with process:
        while sum(line.startswith(word) for line in heard) < lines:
            line = process.stdout.readline()
            assert line, heard
            heard.append(line)
        process.kill()
        # The pipe ends only when nobody has it open: containers have not.
        heard.extend(process.stdout)
    return heard


def test_containers_survive_kill_9_of_their_agent(tmp_path: Path) -> None:
    heard = kill_after(agent(tmp_path, 3, WAITS), 3, "ContainerStarted")

    async def play(stage: Stage) -> None:
        found = await stage.runtime.recover()
        assert [pod.uid for pod in found] == ["uid-0", "uid-1", "uid-2"]
        for pod in found:
            (container,) = pod.containers
            assert container.exited is None
            said = f"id='{container.id}'", f"at_ns={container.started_ns}"
            assert any(all(word in line for word in said) for line in heard)
            await stage.until(lambda pod=pod: "ready" in (tmp_path / f"log-{pod.uid[-1]}").read_text())  # type: ignore[misc]
            stage.runtime.stop_container(pod.uid, "c", 600)
            assert (await stage.heard.wait_for(ContainerExited, uid=pod.uid)).exit_code == 0

    on_stage(tmp_path, play)


def test_exit_codes_are_known_of_containers_that_ended_without_an_agent(tmp_path: Path) -> None:
    script = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo alone; exit 23"
    kill_after(agent(tmp_path, 2, script), 2, "ContainerStarted")
    (tmp_path / "go").touch()

    async def play(stage: Stage) -> None:
        for pod in await stage.runtime.recover():
            (container,) = pod.containers
            exited = container.exited
            if exited is None:
                exited = await stage.heard.wait_for(ContainerExited, uid=pod.uid)
            assert (exited.exit_code, exited.id) == (23, container.id)
            assert "alone" in (tmp_path / f"log-{pod.uid[-1]}").read_text()

    on_stage(tmp_path, play)


def test_an_agent_killed_while_containers_start_leaves_them_running_or_not_there(tmp_path: Path) -> None:
    # As soon as the first is told, most of the others are on their way.
    kill_after(agent(tmp_path, 8, WAITS), 1, "ContainerStarted")

    async def play(stage: Stage) -> None:
        found = await stage.runtime.recover()
        assert len(found) == 8
        running = [each for pod in found for each in pod.containers]
        assert running
        assert all(each.exited is None for each in running)
        for pod in found:
            stage.runtime.remove_pod(pod.uid)
            await stage.heard.wait_for(PodGone, uid=pod.uid)
        await stage.gone(*(each.id for each in running))

    on_stage(tmp_path, play)
    assert not any((tmp_path / "runtime" / "pods").iterdir())


def test_a_container_whose_supervisor_is_killed_has_ended_and_leaves_nothing(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        # A child that left its session and its parent.
        pod, started = await stage.run(f"setsid sh -c 'sleep 1000 & sleep 1000' & {WAITS}")
        directory = tmp_path / "runtime" / "pods" / pod.metadata.uid / started.id
        os.kill(notes.read(str(directory), STARTED)["shim"], signal.SIGKILL)
        exited = await stage.exited(pod)
        assert (exited.exit_code, exited.reason) == (137, "ContainerStatusUnknown")
        await stage.gone(started.id)

    on_stage(tmp_path, play)


def test_a_supervisor_that_died_while_nobody_looked_is_noticed_by_the_next_agent(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        pod, started = await stage.run(WAITS)
        directory = str(tmp_path / "runtime" / "pods" / pod.metadata.uid / started.id)
        await stage.runtime.stop()
        shim = notes.read(directory, STARTED)["shim"]
        os.kill(shim, signal.SIGKILL)
        await stage.until(lambda: not tree.start_ticks(shim))
        await stage.runtime.start(stage.heard)
        (found,) = await stage.runtime.recover()
        (container,) = found.containers
        assert container.exited is not None
        assert container.exited.reason == "ContainerStatusUnknown"
        assert not stage.heard.of(ContainerExited)

    on_stage(tmp_path, play)


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_a_process_with_the_number_of_a_dead_one_is_left_alone(has_pidfd: bool) -> None:
    async def signal_to(pid: int, ticks: int, number: int) -> bool:
        """Whether the process is said to have ended."""
        ended = asyncio.Event()
        watch = ProcessWatch(RealClock(), pid, ticks, ended.set, has_pidfd)
        watch.send(number)
        await RealClock().yield_now()
        await RealClock().yield_now()
        watch.close()
        return ended.is_set()

    with subprocess.Popen(["sleep", "1000"]) as other:
        ticks = tree.start_ticks(other.pid)
        assert asyncio.run(signal_to(other.pid, ticks - 1, signal.SIGKILL))
        assert other.poll() is None
        asyncio.run(signal_to(other.pid, ticks, signal.SIGTERM))
        assert other.wait() == -signal.SIGTERM


def test_after_a_reboot_what_ran_has_ended_whoever_has_its_numbers_now(tmp_path: Path) -> None:
    """The notes name a living process, this one, from before a reboot."""
    directory = tmp_path / "runtime" / "pods" / "u1" / "abc"

    async def before(stage: Stage) -> None:
        pod, started = await stage.run(WAITS)
        plan = notes.read(str(tmp_path / "runtime" / "pods" / pod.metadata.uid / started.id), PLAN)
        notes.write(str(tmp_path), PLAN, {**plan, "id": "abc"})

    on_stage(tmp_path, before)
    directory.mkdir(parents=True)
    (tmp_path / PLAN).rename(directory / PLAN)
    notes.write(str(directory.parent), "pod", {"namespace": "default", "name": "p"})
    me = os.getpid()
    started = {"pid": me, "shim": me, "shim_ticks": tree.start_ticks(me), "boot": "another", "at_ns": 1}
    notes.write(str(directory), STARTED, started)

    async def after(stage: Stage) -> None:
        (found,) = await stage.runtime.recover()
        (container,) = found.containers
        assert container.exited is not None
        assert container.exited.reason == "ContainerStatusUnknown"

    on_stage(tmp_path, after)


@pytest.mark.parametrize("name", [PLAN, STARTED])
def test_notes_that_cannot_be_read_end_the_container(tmp_path: Path, name: str) -> None:
    async def play(stage: Stage) -> None:
        pod, started = await stage.run(WAITS)
        directory = tmp_path / "runtime" / "pods" / pod.metadata.uid / started.id
        await stage.runtime.stop()
        if name == STARTED:
            os.kill(notes.read(str(directory), STARTED)["shim"], signal.SIGKILL)
            await stage.gone(started.id)
        (directory / name).write_text("{")
        await stage.runtime.start(stage.heard)
        (found,) = await stage.runtime.recover()
        assert found.containers == ()
        await stage.gone(started.id)

    on_stage(tmp_path, play)


def test_an_exit_note_that_cannot_be_read_is_an_unknown_end(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        pod, started = await stage.run("exit 3")
        await stage.exited(pod)
        await stage.runtime.stop()
        (tmp_path / "runtime" / "pods" / pod.metadata.uid / started.id / EXITED).write_text("")
        await stage.runtime.start(stage.heard)
        (found,) = await stage.runtime.recover()
        assert [each.exited.reason for each in found.containers if each.exited] == ["ContainerStatusUnknown"]

    on_stage(tmp_path, play)


@pytest.mark.slow
def test_a_container_whose_directory_is_removed_ends(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        _, started = await stage.run(WAITS)
        await stage.runtime.stop()
        shutil.rmtree(tmp_path / "runtime")
        await stage.gone(started.id)
        await stage.runtime.start(stage.heard)
        assert not await stage.runtime.recover()

    on_stage(tmp_path, play)


def test_supervisors_are_made_again_after_the_nursery_was_killed(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        before = tree.descendants(os.getpid())
        pod, _ = await stage.run(WAITS)
        (nursery,) = [pid for pid in tree.descendants(os.getpid()) if pid not in before]
        os.kill(nursery, signal.SIGKILL)
        await stage.until(lambda: not tree.start_ticks(nursery))
        other, _ = await stage.run(WAITS)
        assert not stage.heard.of(ContainerExited)
        for each in (pod, other):
            assert await stage.shell(each, "echo hello") == "hello\n"
        assert nursery not in tree.descendants(os.getpid())

    on_stage(tmp_path, play)


def test_two_agents_cannot_have_one_directory(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        other = Stage(tmp_path)
        with pytest.raises(WorldError, match="another agent"):
            await other.runtime.start(other.heard)

    on_stage(tmp_path, play)


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "runtime").write_text("a file")

    async def play() -> None:
        stage = Stage(tmp_path)
        with pytest.raises(WorldError, match=str(tmp_path)):
            await stage.runtime.start(stage.heard)

    asyncio.run(play())


def test_a_start_that_is_under_way_when_the_agent_goes_is_found(tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.run(WAITS)
        pod = pod_of("late")
        stage.runtime.start_sandbox(pod)
        stage.runtime.start_container(request_of(pod, WAITS))
        await stage.runtime.stop()
        assert not stage.heard.of(ContainerStarted, uid="late")
        await stage.runtime.start(stage.heard)
        found = {pod.uid: pod for pod in await stage.runtime.recover()}
        assert [each.exited for each in found["late"].containers] == [None]

    on_stage(tmp_path, play)

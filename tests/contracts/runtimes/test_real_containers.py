"""What a container that really runs sees and leaves: environment, files, logs, last words."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from nodeward.kubelet.runtime.interface import ContainerStarted, ExecRequest, Mount, ResourcesApplied
from nodeward.kubelet.runtime.resources import ContainerResources
from tests.contracts.runtimes.ground import LOOK, Act, Ground, Scene
from tests.patience import PATIENCE_SECONDS

_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+(?:Z|[+-]\d\d:\d\d) (stdout|stderr) ([FP]) (.*)")


def said(path: str) -> list[tuple[str, str, str]]:
    """The lines of a log: stream, tag, text."""
    lines = []
    for line in Path(path).read_text().splitlines():
        match = _LINE.fullmatch(line)
        assert match is not None, f"no line of a container log: {line!r}"
        lines.append((match[1], match[2], match[3]))
    return lines


async def output(scene: Scene, script: str, **more: Any) -> list[str]:
    """What a container says that runs a script to its end."""
    pod = scene.pod(Act(script=script))
    await scene.sandbox(pod)
    await scene.started(pod, **more)
    await scene.exited(pod)
    return [text for _, _, text in said(scene.request(pod).log_path)]


def test_the_log_has_kubernetes_form_with_both_streams(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(Act(script="echo one; echo; echo two three >&2; printf unfinished"))
        await scene.sandbox(pod)
        await scene.started(pod)
        await scene.exited(pod)
        lines = said(scene.request(pod).log_path)
        assert [line for line in lines if line[0] == "stdout"] == [
            ("stdout", "F", "one"),
            ("stdout", "F", ""),
            ("stdout", "P", "unfinished"),
        ]
        assert [line for line in lines if line[0] == "stderr"] == [("stderr", "F", "two three")]

    real.play(play)


def test_a_line_too_long_is_logged_in_parts(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(Act(script="head -c 40000 /dev/zero | tr '\\0' x; echo"))
        await scene.sandbox(pod)
        await scene.started(pod)
        await scene.exited(pod)
        lines = said(scene.request(pod).log_path)
        assert [tag for _, tag, _ in lines] == ["P", "P", "F"]
        assert "".join(text for _, _, text in lines) == "x" * 40000

    real.play(play)


def test_the_log_goes_on_while_the_agent_is_away(real: Ground, tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        flag = tmp_path / "flag"
        flag.mkdir()
        script = (
            "echo ready; while [ ! -e /flag/up ]; do sleep 0.02; done; echo alone; while :; do sleep 1; done"
        )
        pod = scene.pod(Act(script=script))
        await scene.sandbox(pod)
        await scene.started(pod, mounts=(Mount(str(flag), "/flag"),))

        async def meanwhile() -> None:
            (flag / "up").touch()
            await scene.log_holds(scene.request(pod), "alone")

        await scene.another_agent(meanwhile)

    real.play(play)


def test_the_log_stays_when_the_pod_is_removed(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(Act(script="echo kept"))
        await scene.sandbox(pod)
        await scene.started(pod)
        await scene.exited(pod)
        await scene.close()
        assert said(scene.request(pod).log_path) == [("stdout", "F", "kept")]
        await scene.open()

    real.play(play)


def test_environment_command_and_arguments_are_as_asked(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        env = {"GREETING": "hello  world", "EMPTY": "", "QUOTED": "a'b\"c$d"}
        lines = await output(
            scene,
            'echo "$GREETING|$EMPTY|$QUOTED"; for each in "$@"; do echo "[$each]"; done',
            env=env,
            args=("zero", "one two", "", "$HOME"),
        )
        assert lines == ["hello  world||a'b\"c$d", "[one two]", "[]", "[$HOME]"]

    real.play(play)


def test_nothing_of_the_agents_environment_is_seen(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        names = {line.partition("=")[0] for line in await output(scene, "env")}
        assert "PATH" in names
        assert not names & {"PYTEST_CURRENT_TEST", "VIRTUAL_ENV", "USER", "LANG"}

    real.play(play)


def test_a_container_begins_in_its_working_directory(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(Act(script="pwd"), working_dir="/tmp")
        await scene.sandbox(pod)
        await scene.started(pod)
        await scene.exited(pod)
        assert said(scene.request(pod).log_path) == [("stdout", "F", "/tmp")]

    real.play(play)


def test_mounts_are_seen_where_they_should_be_and_nowhere_else(real: Ground, tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        volume, single = tmp_path / "volume", tmp_path / "single"
        (volume / "deep").mkdir(parents=True)
        (volume / "deep" / "file").write_text("from the volume\n")
        single.write_text("one file\n")
        lines = await output(
            scene,
            "cat /nodeward-volume/deep/file /etc/nodeward/single /var/run/secrets/nodeward/deep/file;"
            "echo written > /nodeward-volume/back;"
            "echo no > /var/run/secrets/nodeward/back || echo refused",
            mounts=(
                Mount(str(volume), "/nodeward-volume"),
                Mount(str(single), "/etc/nodeward/single"),
                Mount(str(volume), "/var/run/secrets/nodeward", is_read_only=True),
            ),
        )
        assert [line for line in lines if "ead-only" not in line] == [
            "from the volume",
            "one file",
            "from the volume",
            "refused",
        ]
        assert (volume / "back").read_text() == "written\n"

    real.play(play)
    assert not Path("/nodeward-volume").exists()
    assert not Path("/etc/nodeward").exists()


def test_a_volume_that_changes_under_a_link_is_seen_at_once(real: Ground, tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        volume = tmp_path / "volume"
        for name in ("..1", "..2"):
            (volume / name).mkdir(parents=True)
            (volume / name / "key").write_text(f"in {name}\n")
        (volume / "..data").symlink_to("..1")
        (volume / "key").symlink_to("..data/key")
        script = "cat /v/key; echo ready; while [ ! -e /v/go ]; do sleep 0.02; done; cat /v/key"
        pod = scene.pod(Act(script=script))
        await scene.sandbox(pod)
        await scene.started(pod, mounts=(Mount(str(volume), "/v"),))
        (volume / "..new").symlink_to("..2")
        (volume / "..new").replace(volume / "..data")
        (volume / "go").touch()
        await scene.exited(pod)
        texts = [text for _, _, text in said(scene.request(pod).log_path)]
        assert texts == ["in ..1", "ready", "in ..2"]

    real.play(play)


def test_a_mount_of_nothing_is_told(real: Ground, tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(Act(script="exit 0"))
        await scene.sandbox(pod)
        mounts = (Mount(str(tmp_path / "not" / "there"), "/v"),)
        failed = await scene.failed(scene.request(pod, mounts=mounts))
        assert failed.reason in ("CreateContainerError", "RunContainerError")
        assert "not/there" in failed.message
        assert not scene.heard.of(ContainerStarted)

    real.play(play)


def test_last_words_are_taken_from_the_file(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(Act(script="printf 'out of luck' > /dev/termination-log; exit 1"))
        await scene.sandbox(pod)
        await scene.started(pod)
        assert (await scene.exited(pod)).message == "out of luck"

    real.play(play)


def test_last_words_are_found_by_the_next_agent(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(Act(script="printf 'out of luck' > /dev/termination-log; exit 1"))
        await scene.sandbox(pod)
        await scene.started(pod)
        await scene.exited(pod)
        (found,) = await scene.another_agent()
        assert [each.exited.message for each in found.containers if each.exited] == ["out of luck"]

    real.play(play)


def test_last_words_are_taken_from_the_log_where_the_policy_says_so(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(
            Act(script="echo trying; echo failed >&2; exit 1"),
            termination_message_policy="FallbackToLogsOnError",
        )
        await scene.sandbox(pod)
        await scene.started(pod)
        message = (await scene.exited(pod)).message
        assert sorted(message.splitlines()) == ["failed", "trying"]

    real.play(play)


def test_a_container_that_ends_well_needs_no_last_words(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(Act(script="echo fine"), termination_message_policy="FallbackToLogsOnError")
        await scene.sandbox(pod)
        await scene.started(pod)
        assert (await scene.exited(pod)).message == ""

    real.play(play)


def test_a_container_runs_on_the_cpus_it_was_given_and_so_do_commands_in_it(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        lines = await output(scene, "grep Cpus_allowed_list /proc/self/status", cpuset="0")
        assert [line.split()[-1] for line in lines] == ["0"]

    real.play(play)


def test_ports_of_a_real_pod_can_be_reached_from_its_machine(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        assert scene.runtime.forward_address(pod) == "127.0.0.1"

    real.play(play)


#: Says again and again which CPUs it may use itself, and which a new child.
_CPUS = "sed -n 's/^Cpus_allowed_list:[^0-9]*/cpus /p'"
_TELLS_CPUS = Act(
    script=f"echo ready; while :; do {_CPUS} /proc/$$/status /proc/self/status; sleep 0.05; done"
)
_MANY = 10


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs to move between")
def test_a_running_container_and_what_it_starts_use_the_cpus_that_were_applied(real: Ground) -> None:
    first, second = (str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2])

    async def play(scene: Scene) -> None:
        pod = scene.pod(_TELLS_CPUS)
        await scene.sandbox(pod)
        await scene.started(pod, cpuset=first)
        log = scene.request(pod).log_path

        async def lines(count: int) -> list[str]:
            """What the container said, once that is so many lines."""
            async with scene.clock.timeout(PATIENCE_SECONDS):
                while len(found := [text for _, _, text in said(log)][1:]) < count:
                    await scene.clock.sleep(LOOK)
            return found

        assert set(await lines(_MANY)) == {f"cpus {first}"}
        scene.runtime.update_resources(pod.metadata.uid, "c0", ContainerResources(cpuset=second))
        await scene.heard.wait_for(ResourcesApplied)
        inside = ExecRequest(pod.metadata.uid, "c0", ("sh", "-c", f"{_CPUS} /proc/self/status"))
        assert (await scene.runtime.exec_sync(inside, PATIENCE_SECONDS)).output.decode() == f"cpus {second}\n"
        # What it said until now may be from before.
        before = len(await lines(0)) + 2
        assert set((await lines(before + _MANY))[before:]) == {f"cpus {second}"}

    real.play(play)

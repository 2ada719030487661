"""Commands inside a container that runs: `kubectl exec`, exec probes and hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.interface import ExecRequest, ExecSession, Mount
from tests.contracts.runtimes.ground import SERVES, Ground, Scene, ends


def test_a_command_runs_and_gives_its_output(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        result = await scene.runtime.exec_sync(ExecRequest(pod.metadata.uid, "c0", ("echo", "hello")), 30)
        assert result.exit_code == 0
        assert b"hello" in result.output

    ground.play(play)


def test_nothing_can_be_run_in_what_does_not_run(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running(ends(0))
        await scene.exited(pod)
        for request in (
            ExecRequest(pod.metadata.uid, "c0", ("echo",)),
            ExecRequest(pod.metadata.uid, "nothing", ("echo",)),
            ExecRequest("nobody", "c0", ("echo",)),
        ):
            with pytest.raises(WorldError):
                await scene.runtime.exec(request)
            with pytest.raises(WorldError):
                await scene.runtime.exec_sync(request, 30)

    ground.play(play)


def test_a_session_with_input_ends_when_its_input_does(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        session = await scene.runtime.exec(ExecRequest(pod.metadata.uid, "c0", ("cat",), has_stdin=True))
        await session.write(b"first\n")
        await session.close_stdin()
        await _output(session)
        assert await session.wait() == 0

    ground.play(play)


def test_a_session_whose_caller_is_gone_ends(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        request = ExecRequest(pod.metadata.uid, "c0", ("sleep", "1000"), has_stdin=True)
        session = await scene.runtime.exec(request)
        await session.kill()
        await session.kill()

    ground.play(play)


# -- with real commands


def test_exit_code_and_both_streams_are_kept_apart(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        session = await scene.runtime.exec(_shell(pod.metadata.uid, "echo out; echo err >&2; exit 42"))
        assert await _output(session) == {1: b"out\n", 2: b"err\n"}
        assert await session.wait() == 42
        result = await scene.runtime.exec_sync(
            _shell(pod.metadata.uid, "echo out; echo err >&2; exit 42"), 30
        )
        assert result.exit_code == 42
        assert sorted(result.output.splitlines()) == [b"err", b"out"]

    real.play(play)


def test_what_is_written_arrives_however_much(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        request = ExecRequest(pod.metadata.uid, "c0", ("wc", "-c"), has_stdin=True)
        session = await scene.runtime.exec(request)
        for _ in range(16):
            await session.write(b"x" * 65536)
        await session.close_stdin()
        assert (await _output(session))[1].split() == [b"1048576"]
        assert await session.wait() == 0

    real.play(play)


def test_a_command_that_takes_too_long_is_ended(real: Ground, tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        place = tmp_path / "place"
        place.mkdir()
        pod, _ = await scene.running(mounts=(Mount(str(place), "/place"),))
        with pytest.raises(TimeoutError):
            await scene.runtime.exec_sync(
                _shell(pod.metadata.uid, "echo $$ > /place/pid; exec sleep 1000"), 1
            )
        look = "test -s /place/pid && { kill -0 $(cat /place/pid) 2>/dev/null && echo alive || echo dead; }"
        found = await scene.runtime.exec_sync(_shell(pod.metadata.uid, look), 30)
        assert found.output == b"dead\n"

    real.play(play)


def test_a_long_output_is_cut(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        result = await scene.runtime.exec_sync(
            _shell(pod.metadata.uid, "head -c 100000 /dev/zero | tr '\\0' x"), 30
        )
        assert result.exit_code == 0
        assert result.output == b"x" * 16384

    real.play(play)


def test_a_command_that_is_not_there_is_the_worlds_error(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        with pytest.raises(WorldError, match="no-such-command"):
            await scene.runtime.exec_sync(ExecRequest(pod.metadata.uid, "c0", ("no-such-command",)), 30)

    real.play(play)


def test_a_command_has_the_containers_environment(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running(env={"COLOUR": "a shade of blue"})
        result = await scene.runtime.exec_sync(_shell(pod.metadata.uid, 'echo "$COLOUR"'), 30)
        assert result.output == b"a shade of blue\n"

    real.play(play)


def test_a_terminal_is_one_and_has_the_size_it_was_given(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        # The size goes its own way and may come after the line: it is waited for.
        look = "for i in $(seq 100); do stty size 2>/dev/null | grep -q '43 132' && break; sleep 0.1; done"
        script = f"read line; test -t 0 && test -t 1 && {{ {look}; stty size; }}; exit 5"
        request = ExecRequest(pod.metadata.uid, "c0", ("sh", "-c", script), has_stdin=True, is_tty=True)
        session = await scene.runtime.exec(request)
        await session.resize(132, 43)
        await session.write(b"go\n")
        output = await _output(session)
        assert b"43 132" in output[1]
        assert list(output) == [1]
        assert await session.wait() == 5

    real.play(play)


def test_commands_end_with_their_container(real: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running(SERVES)
        session = await scene.runtime.exec(ExecRequest(pod.metadata.uid, "c0", ("sleep", "1000")))
        scene.runtime.stop_container(pod.metadata.uid, "c0", 30)
        await scene.exited(pod)
        await _output(session)
        assert await session.wait() != 0

    real.play(play)


def _shell(uid: str, script: str) -> ExecRequest:
    return ExecRequest(uid, "c0", ("sh", "-c", script))


async def _output(session: ExecSession) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    async for stream, data in session.output():
        found[stream] = found.get(stream, b"") + data
    return found

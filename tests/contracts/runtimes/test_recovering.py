"""Agents come and go, containers stay."""

from __future__ import annotations

from pathlib import Path

from nodeward.kubelet.runtime.interface import ContainerExited, ExecRequest, Mount
from tests.contracts.runtimes.ground import DEAF, SERVES, Act, Ground, Scene, ends


def test_another_agent_finds_what_runs_with_its_id_and_start(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, started = await scene.running()
        (found,) = await scene.another_agent()
        assert (found.uid, found.namespace, found.name) == (pod.metadata.uid, "default", pod.metadata.name)
        assert found.sandbox_id
        assert found.ips
        (container,) = found.containers
        assert (container.name, container.id, container.attempt) == ("c0", started.id, 0)
        assert (container.image, container.image_id) == (started.image, started.image_id)
        assert container.started_ns == started.at_ns
        assert container.exited is None

    ground.play(play)


def test_a_second_look_finds_the_same(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        await scene.running()
        first = await scene.another_agent()
        assert list(await scene.runtime.recover()) == list(first)

    ground.play(play)


def test_an_exit_that_was_missed_is_found_and_not_told(ground: Ground, tmp_path: Path) -> None:
    async def play(scene: Scene) -> None:
        # Ends when a file appears: only after the agent has gone.
        flag = tmp_path / "flag"
        flag.mkdir()
        script = "echo ready; while [ ! -e /flag/up ]; do sleep 0.02; done; echo last; exit 9"
        pod = scene.pod(Act("run-time=60s,exit-code=9", script))
        await scene.sandbox(pod)
        started = await scene.started(pod, mounts=(Mount(str(flag), "/flag"),))

        async def meanwhile() -> None:
            (flag / "up").touch()
            await scene.log_holds(scene.request(pod), "last")
            await scene.clock.sleep(0 if ground.is_real else 100)

        found = await scene.another_agent(meanwhile)
        if not any(each.exited for each in found[0].containers):
            # It had said its last word and was still on its way out.
            exited = await scene.exited(pod)
        else:
            (container,) = found[0].containers
            assert container.exited is not None
            exited = container.exited
            assert not scene.heard.of(ContainerExited)
        assert (exited.id, exited.exit_code, exited.reason) == (started.id, 9, "Error")
        assert exited.started_ns == started.at_ns

    ground.play(play)


def test_an_exit_that_was_heard_of_is_found_by_the_next_agent(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running(ends(6))
        exited = await scene.exited(pod)
        (found,) = await scene.another_agent()
        assert [each.exited for each in found.containers] == [exited]

    ground.play(play)


def test_another_agent_hears_of_exits_stops_and_removes(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, started = await scene.running(DEAF)
        await scene.another_agent()
        scene.runtime.stop_container(pod.metadata.uid, "c0", 1)
        exited = await scene.exited(pod)
        assert (exited.id, exited.exit_code) == (started.id, 137)
        await scene.started(pod, attempt=1)

    ground.play(play)


def test_another_agent_runs_commands_in_what_it_found(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        await scene.another_agent()
        result = await scene.runtime.exec_sync(ExecRequest(pod.metadata.uid, "c0", ("echo", "hello")), 30)
        assert result.exit_code == 0
        assert b"hello" in result.output

    ground.play(play)


def test_a_pod_without_containers_is_found_too(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(SERVES)
        sandbox = await scene.sandbox(pod)
        (found,) = await scene.another_agent()
        assert (found.sandbox_id, found.ips, found.containers) == (sandbox.sandbox_id, sandbox.ips, ())

    ground.play(play)


def test_a_new_runtime_has_nothing(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        assert not await scene.runtime.recover()
        assert scene.runtime.adopt(scene.pod(SERVES)) is None

    ground.play(play)

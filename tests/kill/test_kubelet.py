"""SIGKILL of a kubelet alone: its containers go on, and the next one knows all about them."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.runtime.process import tree
from tests.e2e.cluster import Cluster, running_cluster
from tests.kill.node_stage import BEATS, CLOCK, Stage, is_ready, status
from tests.patience import until
from tests.rounds import rounds, seed_of, soak

pytestmark = pytest.mark.slow

BOOK = Path("checkpoints/admitted_pods.json")
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    flags = ("--nodes", "0", "--disable-admission-plugins", "ServiceAccount")
    with running_cluster(tmp_path_factory.mktemp("cluster") / "home", *flags) as running:
        yield running


def on_stage(cluster: Cluster, directory: Path, play: Callable[[Stage], Awaitable[None]]) -> None:
    async def main() -> None:
        stage = Stage(cluster, directory, f"worker-{next(_NUMBERS)}")
        try:
            await play(stage)
        finally:
            await stage.end()

    asyncio.run(main())


@soak
def test_containers_go_on_while_their_kubelet_is_killed_again_and_again(
    cluster: Cluster, tmp_path: Path
) -> None:
    chance = random.Random(seed_of("kubelet-kill"))

    async def play(stage: Stage) -> None:
        names = ["beats-0", "beats-1"]
        await stage.start()
        for name in names:
            await stage.run_pod(name, BEATS)
        pods = [await stage.pod(name, is_ready) for name in names]
        lives = {
            pod.metadata.name: (status(pod).container_id, 0, stage.process_of(pod), stage.beats(pod))
            for pod in pods
        }
        for number in range(rounds(2, 12)):
            await CLOCK.sleep(chance.uniform(0.0, 0.5))
            await stage.kill()
            if number % 2:
                # While it starts.
                await stage.launch()
                await CLOCK.sleep(chance.uniform(0.2, 2.0))
                await stage.kill()
            # What is asked for while nobody is there is done by the next one.
            late = f"late-{number}"
            await stage.run_pod(late, BEATS)
            await stage.start()
            await stage.pod(late, is_ready)
            await stage.client.delete(Pod, late, "default")
            await stage.gone(late)
            for name, (container_id, restarts, process, beats) in lives.items():
                pod = await stage.pod(name, is_ready)
                assert status(pod).container_id == container_id
                assert status(pod).restart_count == restarts
                assert stage.process_of(pod) == process
                lives[name] = (container_id, restarts, process, await stage.beats_beyond(pod, beats))
        for name in names:
            await stage.client.delete(Pod, name, "default")
        await stage.gone(*names)
        await stage.no_process_left()

    on_stage(cluster, tmp_path, play)


def test_an_end_that_nobody_saw_is_told_with_its_code(cluster: Cluster, tmp_path: Path) -> None:
    go = tmp_path / "go"
    ends = f"while [ ! -e {go} ]; do sleep 0.05; done; exit 23"
    # The second time it stays.
    ends_once = f"[ -e {go} ] && exec sleep 1000; {ends}"

    async def play(stage: Stage) -> None:
        await stage.start()
        await stage.run_pod("never", ends, restartPolicy="Never")
        await stage.run_pod("again", ends_once)
        pods = [await stage.pod(name, is_ready) for name in ("never", "again")]
        pids = [stage.process_of(pod)[0] for pod in pods]
        await stage.kill()
        go.touch()

        async def living() -> list[int]:
            return [pid for pid in pids if tree.start_ticks(pid)]

        await until(CLOCK, living, lambda found: not found, "both have ended")
        await stage.start()
        ended = await stage.pod("never", lambda pod: pod.status.phase == "Failed")
        terminated = status(ended).state.terminated
        assert terminated is not None
        assert (terminated.exit_code, terminated.reason) == (23, "Error")
        assert terminated.container_id == status(pods[0]).container_id
        again = await stage.pod("again", lambda pod: is_ready(pod) and status(pod).restart_count > 0)
        last = status(again).last_state.terminated
        assert last is not None
        assert (last.exit_code, last.container_id) == (23, status(pods[1]).container_id)
        assert status(again).restart_count == 1
        # A second death teaches it nothing new.
        await stage.kill()
        await stage.start()
        await stage.client.delete(Pod, "never", "default")
        await stage.gone("never")
        now = await stage.pod("again", is_ready)
        assert (status(now).restart_count, status(now).container_id) == (1, status(again).container_id)
        await stage.client.delete(Pod, "again", "default")
        await stage.gone("again")
        await stage.no_process_left()

    on_stage(cluster, tmp_path, play)


def test_what_is_deleted_while_no_kubelet_is_there_is_ended_by_the_next(
    cluster: Cluster, tmp_path: Path
) -> None:
    async def play(stage: Stage) -> None:
        await stage.start()
        names = ["gently", "at-once"]
        for name in names:
            await stage.run_pod(name, BEATS)
        for name in names:
            await stage.pod(name, is_ready)
        await stage.kill()
        await stage.client.delete(Pod, "gently", "default")
        await stage.client.delete(Pod, "at-once", "default", grace_period=0)
        await stage.gone("at-once")
        await stage.start()
        await stage.gone(*names)
        await stage.no_process_left()

    on_stage(cluster, tmp_path, play)


def test_a_corrupt_checkpoint_stops_the_start_and_nothing_else(cluster: Cluster, tmp_path: Path) -> None:
    async def play(stage: Stage) -> None:
        await stage.start()
        await stage.run_pod("beats", BEATS)
        before = await stage.pod("beats", is_ready)
        process = stage.process_of(before)
        await stage.kill()
        book = stage.root / BOOK
        good = book.read_bytes()
        # One bit of one letter of a uid.
        place = good.index(before.metadata.uid.encode())
        bad = good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :]
        book.write_bytes(bad)
        node = await stage.client.get(Node, stage.name)
        said = await stage.refused()
        aside = book.with_name(f"{book.name}.corrupt")
        assert said.startswith("nodeward: ")
        assert str(book) in said
        assert str(aside) in said
        assert "Traceback" not in said
        assert aside.read_bytes() == bad
        assert not book.exists()
        assert stage.process_of(before) == process
        await stage.beats_beyond(before, stage.beats(before))
        assert await stage.client.get(Pod, "beats", "default") == before
        assert await stage.client.get(Node, stage.name) == node, (
            "it told the cluster of a node it does not run"
        )
        # As the message says.
        book.write_bytes(good)
        await stage.start()
        after = await stage.pod("beats", is_ready)
        assert (status(after).container_id, status(after).restart_count) == (status(before).container_id, 0)
        assert stage.process_of(after) == process
        await stage.client.delete(Pod, "beats", "default")
        await stage.gone("beats")
        await stage.no_process_left()

    on_stage(cluster, tmp_path, play)

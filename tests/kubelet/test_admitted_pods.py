"""The book of pods a node has taken: it outlives the kubelet, and one that was changed stops the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.base.quantity import Quantity
from nodeward.kubelet.admitted_pods import AdmittedPods
from nodeward.kubelet.checkpoint import CheckpointCorrupt
from nodeward.kubelet.disk import RealDisk
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.hosting import Hosted, hosted, specification


def pod(name: str, node: str = "", cpu: str = "3") -> Pod:
    resources = ResourceRequirements(requests={"cpu": Quantity.parse(cpu)})
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"),
        spec=PodSpec(node_name=node, containers=[Container(name="c", image="image", resources=resources)]),
    )


def test_what_was_admitted_is_known_to_the_next_kubelet(tmp_path: Path) -> None:
    book = AdmittedPods(RealDisk(tmp_path))
    book.add(pod("a"))
    book.add(pod("b"))
    book.remove("uid-a")
    again = AdmittedPods(RealDisk(tmp_path))
    assert "uid-b" in again
    assert "uid-a" not in again


def test_pods_that_are_no_longer_there_leave_the_book(tmp_path: Path) -> None:
    book = AdmittedPods(RealDisk(tmp_path))
    book.add(pod("a"))
    book.add(pod("b"))
    book.keep_only({"uid-b", "uid-c"})
    assert len(AdmittedPods(RealDisk(tmp_path))) == 1


def test_a_book_that_was_changed_stops_the_start_and_is_kept(tmp_path: Path) -> None:
    AdmittedPods(RealDisk(tmp_path)).add(pod("a"))
    (file,) = (tmp_path / "checkpoints").iterdir()
    damaged = file.read_bytes().replace(b"uid-a", b"uid-z")
    file.write_bytes(damaged)
    with pytest.raises(CheckpointCorrupt) as caught:
        AdmittedPods(RealDisk(tmp_path))
    assert f"{file} is corrupt" in str(caught.value)
    assert Path(caught.value.aside).read_bytes() == damaged


def test_a_restarted_kubelet_keeps_what_runs_and_refuses_what_came_meanwhile() -> None:
    """The newcomer was created first, but the other one has been running here all the time."""

    async def main(clock: VirtualClock) -> None:
        async with hosted(clock) as each:
            each.host.add_node(specification("n1"))
            await clock.sleep(1)
            older = pod("older")
            older.metadata.uid = ""
            waiting = await each.client.create(older)
            await clock.sleep(2)
            runs = pod("runs", "n1")
            runs.metadata.uid = ""
            await each.client.create(runs)
            await clock.sleep(2)
            assert (await each.pod("runs")).status.phase == "Running"
            each.host.stop_node("n1")
            await each.client.bind("older", "default", "n1", uid=waiting.metadata.uid)
            await clock.sleep(1)
            await each.host.restart_node(specification("n1"))
            await clock.sleep(3)
            assert (await each.pod("runs")).status.phase == "Running"
            refused = await each.pod("older")
            assert (refused.status.phase, refused.status.reason) == ("Failed", "OutOfcpu")
            await _ended(each, clock, "runs")
            assert len(each.machines.services(specification("n1")).admitted) == 0

    run_virtual(main)


async def _ended(each: Hosted, clock: VirtualClock, name: str) -> None:
    await each.client.delete(Pod, name, "default")
    await clock.sleep(40)

"""The CPUs of containers that are processes: every thread is moved, and what is refused changes nothing."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.runtime.interface import ContainerFailed, PodGone, ResourcesApplied, ResourcesRefused
from nodeward.kubelet.runtime.process import cpuset_cgroups, keeping, notes, tree
from nodeward.kubelet.runtime.resources import ContainerResources
from tests.kubelet.runtime.process.pods import WAITS, Stage, on_stage, pod_of, request_of


def _makes_cgroups() -> bool:
    base = cpuset_cgroups.find_base(__file__, str(CPUSet(os.sched_getaffinity(0))))
    cpuset_cgroups.remove(base)
    return bool(base)


#: How CPUs are set: by cgroups where this machine allows it, or thread by thread.
both_ways = pytest.mark.parametrize("may_use_cgroups", [True, False], ids=["cgroups", "affinity"])
needs_cgroups = pytest.mark.skipif(
    not _makes_cgroups(), reason="needs a machine on which cgroups with the cpuset controller can be made"
)
needs_two_cpus = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs to move between")


@needs_two_cpus
@both_ways
def test_the_cpus_of_a_running_container_change_in_all_its_processes(
    tmp_path: Path, may_use_cgroups: bool
) -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]

    async def play(stage: Stage) -> None:
        pod, started = await stage.run(f"sleep 1000 & {WAITS}", cpuset=str(first))
        assert all(os.sched_getaffinity(pid) == {first} for pid in tree.marked(started.id))
        stage.runtime.update_resources(pod.metadata.uid, "c", ContainerResources(cpuset=str(second)))
        await stage.until(lambda: all(_cpus(pid) in ({second}, set()) for pid in tree.marked(started.id)))
        assert await stage.shell(pod, "grep Cpus_allowed_list /proc/self/status | cut -f 2") == f"{second}\n"
        stage.runtime.update_resources(pod.metadata.uid, "c", ContainerResources(cpuset=""))
        everything = os.sched_getaffinity(0)
        await stage.until(lambda: all(_cpus(pid) in (everything, set()) for pid in tree.marked(started.id)))

    on_stage(tmp_path, play, may_use_cgroups=may_use_cgroups)


#: Starts threads and children all the time; each lives long enough to be moved.
_TEEMING = """
import subprocess, threading, time
def breed():
    for _ in range(400):
        threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
        time.sleep(0.001)
threading.Thread(target=breed).start()
print("ready", flush=True)
for _ in range(40):
    subprocess.Popen(["sleep", "1000"])
time.sleep(1000)
"""


@needs_two_cpus
@both_ways
def test_threads_and_children_born_during_a_move_are_moved_too(tmp_path: Path, may_use_cgroups: bool) -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]

    async def play(stage: Stage) -> None:
        pod, started = await stage.run(f"exec {sys.executable} -c '{_TEEMING}'", cpuset=f"{first},{second}")
        await stage.until(lambda: "ready" in stage.log(pod))
        for number, cpu in enumerate((first, second, first), 1):
            stage.runtime.update_resources(pod.metadata.uid, "c", ContainerResources(cpuset=str(cpu)))
            await stage.heard.wait_for(ResourcesApplied, number)
            threads = _threads(started.id)
            assert len(threads) > 1
            assert {frozenset(_cpus(each)) for each in threads} - {frozenset()} == {frozenset({cpu})}

    on_stage(tmp_path, play, may_use_cgroups=may_use_cgroups)


@needs_two_cpus
def test_a_thread_that_chose_a_cpu_for_itself_keeps_it_as_long_as_it_may(tmp_path: Path) -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]
    both = {first, second}

    async def play(stage: Stage) -> None:
        script = f"taskset -c {second} sleep 1000 & {WAITS}"
        pod, started = await stage.run(script, cpuset=f"{first},{second}")
        await stage.until(lambda: any(_cpus(each) == {second} for each in tree.marked(started.id)))
        choosy = next(each for each in tree.marked(started.id) if _cpus(each) == {second})
        main = min(tree.marked(started.id))
        for number, (cpus, mains, chosen) in enumerate(
            (
                (both, both, {second}),
                ({second}, {second}, {second}),
                (both, both, both),
                ({first}, {first}, {first}),
            ),
            1,
        ):
            text = str(CPUSet(cpus))
            stage.runtime.update_resources(pod.metadata.uid, "c", ContainerResources(cpuset=text))
            await stage.heard.wait_for(ResourcesApplied, number)
            assert (_cpus(main), _cpus(choosy)) == (mains, chosen)

    on_stage(tmp_path, play, may_use_cgroups=False)


@needs_two_cpus
def test_a_move_that_was_cut_short_by_the_end_of_the_agent_is_made_good_by_the_next(tmp_path: Path) -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]

    async def play(stage: Stage) -> None:
        pod, started = await stage.run(WAITS, cpuset=str(first))
        directory = f"{keeping.pod_directory(str(stage.root / 'runtime'), pod.metadata.uid)}/{started.id}"
        # The agent had written what it was about to do, and had moved the processes.
        notes.write(directory, notes.CPUSET, [str(first), str(second)])
        for pid in tree.marked(started.id):
            os.sched_setaffinity(pid, {second})
        await stage.another_agent()
        both = f"{first},{second}" if second > first + 1 else f"{first}-{second}"
        stage.runtime.update_resources(pod.metadata.uid, "c", ContainerResources(cpuset=both))
        assert (await stage.heard.wait_for(ResourcesApplied)).resources.cpuset == both
        assert {frozenset(_cpus(each)) for each in _threads(started.id)} == {frozenset({first, second})}

    on_stage(tmp_path, play, may_use_cgroups=False)


@needs_two_cpus
@needs_cgroups
def test_no_program_leaves_the_cpus_of_its_cgroup(tmp_path: Path) -> None:
    first, second = sorted(os.sched_getaffinity(0))[:2]

    async def play(stage: Stage) -> None:
        pod, started = await stage.run(f"echo ready; taskset -cp {second} $$; {WAITS}", cpuset=str(first))
        assert {frozenset(_cpus(each)) for each in _threads(started.id)} == {frozenset({first})}
        with pytest.raises(OSError, match="Invalid argument"):
            os.sched_setaffinity(min(tree.marked(started.id)), {second})
        stage.runtime.update_resources(pod.metadata.uid, "c", ContainerResources(cpuset=str(second)))
        await stage.heard.wait_for(ResourcesApplied)
        assert {frozenset(_cpus(each)) for each in _threads(started.id)} == {frozenset({second})}

    on_stage(tmp_path, play)


@needs_cgroups
def test_no_cgroup_is_left_when_its_containers_are_gone(tmp_path: Path) -> None:
    bases: list[str] = []

    async def play(stage: Stage) -> None:
        pod, started = await stage.run(WAITS)
        bases.extend(_cgroups_above(started.id))
        ended, _ = await stage.run("exit 0")
        await stage.exited(ended)
        stage.runtime.remove_pod(pod.metadata.uid)
        await stage.heard.wait_for(PodGone, uid=pod.metadata.uid)

    on_stage(tmp_path, play)
    assert len(bases) == 1
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{bases[0]}"))


@both_ways
def test_cpus_that_are_not_there_are_refused(tmp_path: Path, may_use_cgroups: bool) -> None:
    async def play(stage: Stage) -> None:
        pod, started = await stage.run(WAITS)
        before = [os.sched_getaffinity(pid) for pid in tree.marked(started.id)]
        for number, cpus in enumerate(("9000", "nonsense"), 1):
            stage.runtime.update_resources(pod.metadata.uid, "c", ContainerResources(cpuset=cpus))
            refused = await stage.heard.wait_for(ResourcesRefused, number)
            assert cpus in refused.reason
        assert [os.sched_getaffinity(pid) for pid in tree.marked(started.id)] == before
        failing = pod_of("f")
        stage.runtime.start_sandbox(failing)
        stage.runtime.start_container(request_of(failing, WAITS, cpuset="9000"))
        assert (await stage.heard.wait_for(ContainerFailed, uid="f")).reason == "CreateContainerError"

    on_stage(tmp_path, play, may_use_cgroups=may_use_cgroups)


def _cgroups_above(container_id: str) -> list[str]:
    """The names of the cgroups in which the first process of a container finds that of its container."""
    text = Path(f"/proc/{min(tree.marked(container_id))}/cgroup").read_text()
    return [line.split("/")[-2] for line in text.splitlines() if line.endswith(f"/{container_id}")]


def _threads(container_id: str) -> list[int]:
    """The numbers of all threads of a container."""
    found = []
    for pid in tree.marked(container_id):
        with suppress(OSError):
            found += [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    return found


def _cpus(pid: int) -> set[int]:
    try:
        return os.sched_getaffinity(pid)
    except ProcessLookupError:
        return set()

"""Resources of running containers: a command is answered once, with what is in force or why it is refused."""

from __future__ import annotations

import os

import pytest
from msgspec.structs import replace

from nodeward.api.core_v1.container import ResourceRequirements
from nodeward.base.cpuset import CPUSet
from nodeward.base.quantity import Quantity
from nodeward.kubelet.runtime.interface import ResourcesApplied, ResourcesRefused
from nodeward.kubelet.runtime.resources import ContainerResources
from tests.contracts.runtimes.ground import SERVES, Ground, Scene, ends

_MIB = 1 << 20


def agrees(found: ContainerResources | None, wanted: ContainerResources) -> bool:
    """Whether everything the runtime controls is as it should be; every runtime controls CPU sets."""
    assert found is not None
    assert found.cpuset is not None
    pairs = (
        (found.cpu_shares, wanted.cpu_shares),
        (found.cpu_quota_us, wanted.cpu_quota_us),
        (found.memory_bytes, wanted.memory_bytes),
        (found.cpuset, wanted.cpuset),
    )
    return all(has is None or has == should for has, should in pairs)


def test_what_was_applied_is_told_with_all_that_is_in_force(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        limits = {"cpu": Quantity.parse("500m"), "memory": Quantity.parse("64Mi")}
        pod = scene.pod(SERVES, resources=ResourceRequirements(limits=limits, requests=limits))
        await scene.sandbox(pod)
        started = await scene.started(pod)
        uid = pod.metadata.uid
        scene.runtime.update_resources(uid, "c0", ContainerResources(cpuset="0"))
        first = await scene.heard.wait_for(ResourcesApplied)
        assert (first.uid, first.container, first.id) == (uid, "c0", started.id)
        assert agrees(first.resources, ContainerResources(512, 50_000, 64 * _MIB, "0"))
        scene.runtime.update_resources(uid, "c0", ContainerResources(256, 25_000, 96 * _MIB))
        second = await scene.heard.wait_for(ResourcesApplied, 2)
        assert agrees(second.resources, ContainerResources(256, 25_000, 96 * _MIB, "0"))
        scene.runtime.update_resources(uid, "c0", ContainerResources(cpu_quota_us=0))
        third = await scene.heard.wait_for(ResourcesApplied, 3)
        assert agrees(third.resources, ContainerResources(256, 0, 96 * _MIB, "0"))
        assert not scene.heard.of(ResourcesRefused)

    ground.play(play)


def test_a_container_is_found_with_what_is_in_force(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        limits = {"memory": Quantity.parse("64Mi")}
        pod = scene.pod(SERVES, SERVES, resources=ResourceRequirements(limits=limits))
        await scene.sandbox(pod)
        await scene.started(pod, "c0", cpuset="0")
        await scene.started(pod, "c1")
        changes = ContainerResources(cpu_shares=512, memory_bytes=96 * _MIB, cpuset="0")
        scene.runtime.update_resources(pod.metadata.uid, "c1", changes)
        await scene.heard.wait_for(ResourcesApplied)
        (found,) = await scene.another_agent()
        first, second = sorted(found.containers, key=lambda each: each.name)
        assert agrees(first.resources, ContainerResources(2, 0, 64 * _MIB, "0"))
        assert agrees(second.resources, ContainerResources(512, 0, 96 * _MIB, "0"))

    ground.play(play)


def test_a_cpu_set_that_is_none_is_refused_and_changes_nothing(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running(cpuset="0")
        wanted = ContainerResources(cpu_shares=512, cpuset="nonsense")
        scene.runtime.update_resources(pod.metadata.uid, "c0", wanted)
        refused = await scene.heard.wait_for(ResourcesRefused, uid=pod.metadata.uid, container="c0")
        assert "nonsense" in refused.reason
        assert not scene.heard.of(ResourcesApplied)
        (found,) = await scene.another_agent()
        assert agrees(found.containers[0].resources, ContainerResources(2, 0, 0, "0"))

    ground.play(play)


@pytest.mark.parametrize("cpuset", ["4000", "0,4000"])
def test_cpus_the_machine_lacks_are_refused_and_the_old_ones_stay(ground: Ground, cpuset: str) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running(cpuset="0")
        scene.runtime.update_resources(pod.metadata.uid, "c0", ContainerResources(cpuset=cpuset))
        refused = await scene.heard.wait_for(ResourcesRefused, uid=pod.metadata.uid, container="c0")
        assert refused.reason
        assert not scene.heard.of(ResourcesApplied)
        (found,) = await scene.another_agent()
        assert found.containers[0].resources is not None
        assert found.containers[0].resources.cpuset == "0"
        # Nothing is left of the attempt: the next command counts.
        scene.runtime.update_resources(pod.metadata.uid, "c0", ContainerResources(cpuset=""))
        assert (await scene.heard.wait_for(ResourcesApplied)).resources.cpuset == ""

    ground.play(play)


def test_a_list_that_names_every_cpu_is_told_as_it_was_given(ground: Ground) -> None:
    every = str(CPUSet(os.sched_getaffinity(0)))

    async def play(scene: Scene) -> None:
        pod, _ = await scene.running(cpuset="0")
        scene.runtime.update_resources(pod.metadata.uid, "c0", ContainerResources(cpuset=every))
        assert (await scene.heard.wait_for(ResourcesApplied)).resources.cpuset == every
        (found,) = await scene.another_agent()
        assert found.containers[0].resources is not None
        assert found.containers[0].resources.cpuset == every

    ground.play(play)


@pytest.mark.parametrize("cpuset", ["4000", "0,4000"])
def test_a_container_does_not_start_on_cpus_the_machine_lacks(ground: Ground, cpuset: str) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(SERVES)
        await scene.sandbox(pod)
        failed = await scene.failed(scene.request(pod, cpuset=cpuset))
        assert failed.reason in ("CreateContainerError", "RunContainerError")
        assert failed.message

    ground.play(play)


def test_a_container_that_does_not_run_is_refused_once(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        scene.runtime.update_resources("nobody", "c0", ContainerResources(cpuset="0"))
        assert (await scene.heard.wait_for(ResourcesRefused, uid="nobody")).reason
        pod = scene.pod(ends(0))
        await scene.sandbox(pod)
        await scene.started(pod)
        await scene.exited(pod)
        for name in ("c0", "nothing"):
            scene.runtime.update_resources(pod.metadata.uid, name, ContainerResources(cpuset="0"))
            assert (await scene.heard.wait_for(ResourcesRefused, container=name, uid=pod.metadata.uid)).reason
        assert len(scene.heard.of(ResourcesRefused)) == 3

    ground.play(play)


def test_commands_are_answered_in_their_order(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        pod, _ = await scene.running()
        for cpuset in ("0", "", "0"):
            scene.runtime.update_resources(pod.metadata.uid, "c0", ContainerResources(cpuset=cpuset))
        await scene.heard.wait_for(ResourcesApplied, 3)
        assert [each.resources.cpuset for each in scene.heard.of(ResourcesApplied)] == ["0", "", "0"]

    ground.play(play)


def test_memory_is_not_limited_below_what_is_in_use(ground: Ground) -> None:
    async def play(scene: Scene) -> None:
        limits = {"memory": Quantity.parse("64Mi")}
        pod = scene.pod(SERVES, resources=ResourceRequirements(limits=limits))
        annotations = {"simulation.nodeward.dev/c0": "memory-use=1Mi"}
        pod = replace(pod, metadata=replace(pod.metadata, annotations=annotations))
        await scene.sandbox(pod)
        await scene.started(pod)
        scene.runtime.update_resources(pod.metadata.uid, "c0", ContainerResources(memory_bytes=4096))
        refused = await scene.heard.wait_for(ResourcesRefused, uid=pod.metadata.uid, container="c0")
        assert refused.reason.startswith(
            'cannot decrease memory limits: attempting to set container "c0" memory limit (4096) below current usage ('
        )
        scene.runtime.update_resources(pod.metadata.uid, "c0", ContainerResources(memory_bytes=96 * _MIB))
        applied = await scene.heard.wait_for(ResourcesApplied)
        assert agrees(applied.resources, ContainerResources(2, 0, 96 * _MIB, applied.resources.cpuset))

    ground.play(play)

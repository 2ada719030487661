"""Resizes of running pods, from the subresource to the runtime and back into the status."""

from __future__ import annotations

import json
from typing import Any

from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.container import Container, ContainerResizePolicy, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.pod_status import PodCondition
from nodeward.api.meta import ObjectMeta
from nodeward.base.quantity import Quantity
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.hosting import Hosted, hosted, specification


def resources(requests: str = "", limits: str = "") -> ResourceRequirements:
    """`cpu=1,memory=1Gi`"""

    def amounts(text: str) -> dict[str, Quantity]:
        pairs = (each.split("=") for each in text.split(",") if each)
        return {name: Quantity.parse(value) for name, value in pairs}

    return ResourceRequirements(requests=amounts(requests), limits=amounts(limits))


async def run(each: Hosted, name: str, *containers: Container, **fields: Any) -> None:
    spec = PodSpec(node_name="n1", containers=list(containers), **fields)
    await each.client.create(Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))
    await each.clock.sleep(1)


def container(name: str, requests: str = "", limits: str = "", **policies: str) -> Container:
    made = Container(name=name, image="i", resources=resources(requests, limits))
    made.resize_policy = [
        ContainerResizePolicy(resource_name=key, restart_policy=value) for key, value in policies.items()
    ]
    return made


async def resize(each: Hosted, name: str, **wanted: dict[str, Any]) -> None:
    containers = [{"name": key, "resources": value} for key, value in wanted.items()]
    patch = {"spec": {"containers": containers}}
    await each.client.patch(Pod, name, patch, namespace="default", subresource="resize")


def cpu(amount: str) -> dict[str, Any]:
    return {"requests": {"cpu": amount}}


async def condition(each: Hosted, name: str, type_: str) -> PodCondition | None:
    pod = await each.pod(name)
    return next((one for one in pod.status.conditions if one.type == type_), None)


async def events(each: Hosted, name: str) -> list[tuple[str, str]]:
    found = await each.client.list(Event, namespace="default")
    return [
        (one.reason, one.message)
        for one in sorted(found.items, key=lambda one: int(one.metadata.resource_version))
        if one.involved_object.name == name and one.reason.startswith("Resize")
    ]


def test_a_running_container_gets_what_its_pod_asks_for_and_the_status_says_so() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await run(each, "web", container("c", "cpu=1,memory=1Gi", "memory=2Gi"))
            wanted = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"memory": "3Gi"}}
            await resize(each, "web", c=wanted)
            await clock.sleep(1)
            pod = await each.pod("web")
            (status,) = pod.status.container_statuses
            assert str(status.allocated_resources["cpu"]) == "2"
            assert status.resources == resources("cpu=2,memory=1Gi", "memory=3Gi")
            assert status.restart_count == 0
            assert (pod.metadata.generation, pod.status.observed_generation) == (2, 2)
            assert str(pod.status.allocated_resources["cpu"]) == "2"
            kept = each.runtime._pods[pod.metadata.uid].containers["c"].resources
            assert (kept.cpu_shares, kept.memory_bytes) == (2048, 3 << 30)
            assert not [one for one in pod.status.conditions if one.type.startswith("PodResize")]
            (started, first), (completed, second) = await events(each, "web")
            assert (started, completed) == ("ResizeStarted", "ResizeCompleted")
            summary = (
                '{"containers":[{"name":"c","resources":{"limits":{"memory":"3Gi"},"requests":{"cpu":"2","memory":"1Gi"}}}],'
                '"generation":2}'
            )
            assert first == f"Pod resize started: {summary}"
            assert second == f"Pod resize completed: {summary}"

    run_virtual(main)


def test_what_does_not_fit_is_deferred_and_done_when_another_pod_ends() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            agent = each.host.agent("n1")
            assert agent is not None
            assert agent.node is not None
            whole = agent.node.status.allocatable["cpu"].milli_value
            await run(each, "big", container("c", f"cpu={whole - 1500}m"))
            await run(each, "web", container("c", "cpu=1"))
            await resize(each, "web", c=cpu("1600m"))
            await clock.sleep(1)
            found = await condition(each, "web", "PodResizePending")
            assert found is not None
            assert (found.status, found.reason, found.observed_generation) == ("True", "Deferred", 2)
            assert found.message == (
                f"Node didn't have enough resource: cpu, requested: 1600, used: {whole - 1500}, capacity: {whole}"
            )
            pod = await each.pod("web")
            assert str(pod.status.container_statuses[0].allocated_resources["cpu"]) == "1"
            ((reason, text),) = await events(each, "web")
            assert reason == "ResizeDeferred"
            assert text.startswith('Pod resize OutOfcpu: {"containers":[{"name":"c"')
            assert json.loads(text.partition(": ")[2])["error"] == found.message
            await each.client.delete(each.client.kind_of(Pod), "big", "default", grace_period=1)
            await clock.sleep(5)
            assert await condition(each, "web", "PodResizePending") is None
            pod = await each.pod("web")
            assert str(pod.status.container_statuses[0].allocated_resources["cpu"]) == "1600m"
            metrics = each.host.metrics.resizes
            assert metrics.accepted_later.value("pod_terminated") == 1

    run_virtual(main)


def test_a_resize_is_all_or_nothing_for_the_containers_of_a_pod() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            agent = each.host.agent("n1")
            assert agent is not None
            assert agent.node is not None
            whole = agent.node.status.allocatable["cpu"].milli_value
            await run(each, "web", container("a", "cpu=1"), container("b", "cpu=1"))
            await run(each, "other", container("c", f"cpu={whole - 2500}m"))
            await resize(each, "web", a=cpu("1200m"), b=cpu("1400m"))
            await clock.sleep(1)
            pod = await each.pod("web")
            assert [str(one.allocated_resources["cpu"]) for one in pod.status.container_statuses] == [
                "1",
                "1",
            ]
            assert agent.allocation.capacity.used("cpu") == whole - 500

    run_virtual(main)


def test_a_container_whose_policy_says_so_is_restarted_with_its_new_size() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await run(
                each, "web", container("c", "cpu=1,memory=1Gi", cpu="NotRequired", memory="RestartContainer")
            )
            await resize(each, "web", c=cpu("2"))
            await clock.sleep(1)
            assert (await each.pod("web")).status.container_statuses[0].restart_count == 0
            await resize(each, "web", c={"requests": {"memory": "2Gi"}})
            await clock.sleep(20)
            (status,) = (await each.pod("web")).status.container_statuses
            assert status.restart_count == 1
            assert status.resources == resources("cpu=2,memory=2Gi")
            assert await condition(each, "web", "PodResizeInProgress") is None
            found = await each.client.list(Event, namespace="default")
            assert "Container c resize requires restart" in [one.message for one in found.items]
            assert [reason for reason, _ in await events(each, "web")].count("ResizeCompleted") == 2

    run_virtual(main)


def test_a_pending_resize_that_is_taken_back_is_not_pending() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            agent = each.host.agent("n1")
            assert agent is not None
            assert agent.node is not None
            whole = agent.node.status.allocatable["cpu"].milli_value
            await run(each, "big", container("c", f"cpu={whole - 1500}m"))
            await run(each, "web", container("c", "cpu=1"))
            await resize(each, "web", c=cpu("1600m"))
            await clock.sleep(1)
            assert agent.pending_resizes
            await resize(each, "web", c=cpu("1"))
            await clock.sleep(1)
            assert await condition(each, "web", "PodResizePending") is None
            assert agent.pending_resizes == ()
            assert each.host.metrics.resizes.deferred.of("reverted", "normal").count == 1

    run_virtual(main)

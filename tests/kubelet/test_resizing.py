"""Resizes of running pods, from the subresource to the runtime and back into the status."""

from __future__ import annotations

import json
from typing import Any

from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.container import Container, ContainerResizePolicy, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.pod_status import PodCondition
from nodeward.api.meta import ObjectMeta
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.base.quantity import Quantity
from nodeward.kubelet.agent import Agent
from nodeward.kubelet.runtime.behaviour import USUAL
from nodeward.kubelet.runtime.resources import ContainerResources
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


async def allocatable(each: Hosted) -> int:
    """The CPUs of the node, in thousandths."""
    agent = each.host.agent("n1")
    assert agent is not None
    assert agent.node is not None
    return agent.node.status.allocatable["cpu"].milli_value


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


# -- restarts of the kubelet


async def restarted(each: Hosted, name: str = "n1") -> Agent:
    agent = await each.host.restart_node(specification(name))
    await each.clock.sleep(2)
    return agent


def test_a_kubelet_that_starts_again_goes_on_with_a_resize_in_progress() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await run(each, "web", container("c", "cpu=1"))
            update, each.runtime.update_resources = each.runtime.update_resources, nothing  # type: ignore[method-assign]
            await resize(each, "web", c=cpu("2"))
            await clock.sleep(1)
            found = await condition(each, "web", "PodResizeInProgress")
            assert found is not None
            assert (found.reason, found.observed_generation) == ("", 2)
            (status,) = (await each.pod("web")).status.container_statuses
            assert (str(status.allocated_resources["cpu"]), status.resources) == ("2", resources("cpu=1"))
            each.runtime.update_resources = update  # type: ignore[method-assign]
            agent = await restarted(each)
            (status,) = (await each.pod("web")).status.container_statuses
            assert (status.restart_count, status.resources) == (0, resources("cpu=2"))
            assert await condition(each, "web", "PodResizeInProgress") is None
            assert [reason for reason, _ in await events(each, "web")] == ["ResizeStarted", "ResizeCompleted"]
            assert agent.allocation.capacity.used("cpu") == 2000

    run_virtual(main)


def nothing(uid: str, container: str, resources: ContainerResources) -> None:
    """A runtime that does not answer."""


def test_a_pending_resize_is_pending_after_a_restart_and_its_pod_keeps_what_it_has() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            whole = await allocatable(each)
            await run(each, "big", container("c", f"cpu={whole - 1500}m"))
            await run(each, "web", container("c", "cpu=1"))
            await resize(each, "web", c=cpu("1600m"))
            await clock.sleep(1)
            before = await condition(each, "web", "PodResizePending")
            agent = await restarted(each)
            assert len(agent.pending_resizes) == 1
            assert agent.allocation.capacity.used("cpu") == whole - 500
            after = await condition(each, "web", "PodResizePending")
            assert before is not None
            assert after == before
            assert [reason for reason, _ in await events(each, "web")] == ["ResizeDeferred"]
            await each.client.delete(each.client.kind_of(Pod), "big", "default", grace_period=1)
            await clock.sleep(5)
            (status,) = (await each.pod("web")).status.container_statuses
            assert str(status.allocated_resources["cpu"]) == "1600m"

    run_virtual(main)


def test_what_is_asked_for_while_no_kubelet_runs_waits_until_all_pods_have_their_place() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            whole = await allocatable(each)
            await run(each, "web", container("c", "cpu=1"))
            await run(each, "big", container("c", f"cpu={whole - 1500}m"))
            await run(each, "late", container("c", "cpu=200m"))
            each.host.stop_node("n1")
            await resize(each, "web", c=cpu("1400m"))
            await resize(each, "late", c=cpu("100m"))
            await clock.sleep(1)
            agent = await restarted(each)
            # The smaller one gives back first; both are looked at when every pod has its place.
            phases = [(await each.pod(name)).status.phase for name in ("web", "big", "late")]
            assert phases == ["Running"] * 3
            (status,) = (await each.pod("web")).status.container_statuses
            assert str(status.allocated_resources["cpu"]) == "1400m"
            assert agent.allocation.capacity.used("cpu") == whole

    run_virtual(main)


def test_a_crash_between_the_two_records_leaves_a_resize_that_is_tried_again() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await run(each, "web", container("c", "cpu=1"))
            disk = each.machines.disk("n1")
            write = disk.write

            def full(path: str, data: bytes) -> None:
                if path == "allocated_pods_state":
                    raise OSError("no space left on device")
                write(path, data)

            disk.write = full  # type: ignore[method-assign]
            await resize(each, "web", c=cpu("2"))
            await clock.sleep(1)
            pending = await condition(each, "web", "PodResizePending")
            assert pending is not None
            assert pending.message == "allocation is not recorded: no space left on device"
            assert disk.read("actuated_pods_state") is not None
            assert disk.read("allocated_pods_state") is None
            disk.write = write  # type: ignore[method-assign]
            await restarted(each)
            assert disk.read("allocated_pods_state") is not None
            (status,) = (await each.pod("web")).status.container_statuses
            assert status.resources == resources("cpu=2")
            assert await condition(each, "web", "PodResizePending") is None

    run_virtual(main)


def test_a_node_without_resizes_keeps_no_record_of_them_and_a_pod_that_ends_takes_its_own_along() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await run(each, "web", container("c", "cpu=1"))
            await run(each, "other", container("c", "cpu=1"))
            disk = each.machines.disk("n1")
            files = ("allocated_pods_state", "actuated_pods_state")
            assert [disk.read(name) for name in files] == [None, None]
            await resize(each, "web", c=cpu("2"))
            await clock.sleep(1)
            uid = (await each.pod("web")).metadata.uid
            for name in files:
                entries = json.loads(json.loads(disk.read(name) or b"")["data"])["entries"]
                assert [*entries] == [uid]
                assert entries[uid]["ContainerResources"] == {"c": {"requests": {"cpu": "2"}}}
            await each.client.delete(each.client.kind_of(Pod), "web", "default", grace_period=1)
            await clock.sleep(5)
            assert [disk.read(name) for name in files] == [None, None]

    run_virtual(main)


# -- the queue


def test_pending_resizes_are_tried_by_priority_then_guaranteed_pods_first_then_by_age() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            whole = await allocatable(each)
            sizes = {"old": "cpu=100m", "young": "cpu=100m", "high": "cpu=100m"}
            await each.client.create(PriorityClass(metadata=ObjectMeta(name="high"), value=5))
            for name, size in sizes.items():
                await run(
                    each, name, container("c", size), priority_class_name="high" if name == "high" else ""
                )
            small = "cpu=100m,memory=64Mi"
            await run(each, "sure", container("c", small, small))
            await run(each, "shrinks", container("c", "cpu=200m"))
            await run(each, "big", container("c", f"cpu={whole - 1000}m"))
            agent = each.host.agent("n1")
            assert agent is not None
            for name in ("old", "young", "high"):
                await resize(each, name, c=cpu("700m"))
                await clock.sleep(5)
            more = {"cpu": "700m", "memory": "64Mi"}
            await resize(each, "sure", c={"requests": more, "limits": more})
            await clock.sleep(5)
            names = {managed.uid: managed.life.pod.metadata.name for managed in agent.pods.values()}
            assert [names[uid] for uid in agent.pending_resizes] == ["high", "sure", "old", "young"]
            # What gives something back is tried before all others, and what it gave back does not suffice.
            await resize(each, "shrinks", c=cpu("100m"))
            await clock.sleep(5)
            (status,) = (await each.pod("shrinks")).status.container_statuses
            assert str(status.allocated_resources["cpu"]) == "100m"
            assert [names[uid] for uid in agent.pending_resizes] == ["high", "sure", "old", "young"]
            await each.client.delete(each.client.kind_of(Pod), "big", "default", grace_period=1)
            await clock.sleep(5)
            assert agent.pending_resizes == ()

    run_virtual(main)


def test_what_nobody_gives_back_is_tried_again_every_three_minutes() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            whole = await allocatable(each)
            await run(each, "big", container("c", f"cpu={whole - 1500}m"))
            await run(each, "web", container("c", "cpu=1"))
            await resize(each, "web", c=cpu("1600m"))
            await clock.sleep(1)
            agent = each.host.agent("n1")
            assert agent is not None
            assert agent.pending_resizes
            agent.allocation.capacity.remove((await each.pod("big")).metadata.uid)
            await clock.sleep(170)
            assert agent.pending_resizes
            await clock.sleep(20)
            assert agent.pending_resizes == ()
            metrics = each.host.metrics.resizes
            assert metrics.accepted_later.value("periodic_retry") == 1
            waited = metrics.deferred.of("accepted", "normal")
            assert (waited.count, 170 < waited.total < 200) == (1, True)

    run_virtual(main)


def test_a_shrunk_pod_makes_another_resize_possible() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            whole = await allocatable(each)
            await run(each, "big", container("c", f"cpu={whole - 1500}m"))
            await run(each, "web", container("c", "cpu=1"))
            await resize(each, "web", c=cpu("1600m"))
            await clock.sleep(1)
            update, each.runtime.update_resources = each.runtime.update_resources, nothing  # type: ignore[method-assign]
            await resize(each, "big", c=cpu(f"{whole - 2000}m"))
            await clock.sleep(1)
            each.runtime.update_resources = update  # type: ignore[method-assign]
            assert await condition(each, "web", "PodResizePending") is None, "allocated is what counts"
            requested = each.host.metrics.resizes.requested
            assert requested.value("cpu", "requests", "increase") == 1
            assert requested.value("cpu", "requests", "decrease") == 1

    run_virtual(main)


# -- pods as a whole


def test_a_pod_as_a_whole_is_resized() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await run(
                each, "web", container("c"), resources=resources("cpu=1,memory=1Gi", "cpu=2,memory=1Gi")
            )
            wanted = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"cpu": "3", "memory": "1Gi"}}
            patch = {"spec": {"resources": wanted}}
            await each.client.patch(Pod, "web", patch, namespace="default", subresource="resize")
            await clock.sleep(1)
            status = (await each.pod("web")).status
            assert str(status.allocated_resources["cpu"]) == "2"
            assert status.resources is not None
            assert str(status.resources.limits["cpu"]) == "3"
            agent = each.host.agent("n1")
            assert agent is not None
            assert agent.allocation.capacity.used("cpu") == 2000
            assert [reason for reason, _ in await events(each, "web")] == ["ResizeStarted", "ResizeCompleted"]
            agent = await restarted(each)
            assert agent.allocation.capacity.used("cpu") == 2000

    run_virtual(main)


def test_memory_in_use_is_not_taken_away_and_given_back_once_it_is_free() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            said = {"simulation.nodeward.dev/c": "memory-use=200Mi"}
            spec = PodSpec(node_name="n1", containers=[container("c", "memory=300Mi", "memory=300Mi")])
            metadata = ObjectMeta(name="web", namespace="default", annotations=said)
            made = await each.client.create(Pod(metadata=metadata, spec=spec))
            await clock.sleep(1)
            await resize(each, "web", c={"requests": {"memory": "100Mi"}, "limits": {"memory": "100Mi"}})
            await clock.sleep(25)
            found = await condition(each, "web", "PodResizeInProgress")
            assert found is not None
            assert (found.reason, found.message) == (
                "Error",
                'cannot decrease memory limits: attempting to set container "c" memory limit (104857600) '
                "below current usage (209715200)",
            )
            assert [reason for reason, _ in await events(each, "web")] == ["ResizeStarted", "ResizeError"]
            (status,) = (await each.pod("web")).status.container_statuses
            assert status.resources == resources("memory=300Mi", "memory=300Mi")
            took = each.host.metrics.resizes.took
            assert (took.of("false").count, took.of("true").count) == (3, 0)
            sim = each.runtime._pods[made.metadata.uid].containers["c"]
            sim.behaviour = USUAL
            await clock.sleep(10)
            (status,) = (await each.pod("web")).status.container_statuses
            assert status.resources == resources("memory=100Mi", "memory=100Mi")
            assert await condition(each, "web", "PodResizeInProgress") is None

    run_virtual(main)


def test_an_end_that_cannot_be_recorded_is_an_end() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            await run(each, "web", container("c", "cpu=1"))
            disk = each.machines.disk("n1")
            write = disk.write
            written: list[str] = []

            def once(path: str, data: bytes) -> None:
                if path in written and path == "actuated_pods_state":
                    raise OSError("no space left on device")
                written.append(path)
                write(path, data)

            disk.write = once  # type: ignore[method-assign]
            await resize(each, "web", c=cpu("2"))
            await clock.sleep(1)
            assert await condition(each, "web", "PodResizeInProgress") is None
            (status,) = (await each.pod("web")).status.container_statuses
            assert status.resources == resources("cpu=2")
            disk.write = write  # type: ignore[method-assign]
            await restarted(each)
            (status,) = (await each.pod("web")).status.container_statuses
            assert (status.resources, status.restart_count) == (resources("cpu=2"), 0)

    run_virtual(main)

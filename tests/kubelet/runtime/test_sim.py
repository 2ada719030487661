"""Simulated containers keep to their description, whatever they are told meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStatus,
    PodStatus,
)
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import rfc3339
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    ContainerFailed,
    ContainerRequest,
    ImagePulled,
    RuntimeEvent,
)
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.contracts.runtimes.ground import Heard


def pod_of(behaviour: str, status: PodStatus | None = None) -> Pod:
    meta = ObjectMeta(name="p", namespace="d", uid="u", annotations={"simulation.nodeward.dev/c": behaviour})
    spec = PodSpec(containers=[Container(name="c", image="image")])
    return Pod(metadata=meta, spec=spec, status=status or PodStatus())


def play(
    behaviour: str, act: Callable[[SimRuntime, VirtualClock], Awaitable[None]]
) -> list[tuple[float, int]]:
    """Start a container, do something, and tell when it ended, in seconds, and with which code."""

    async def main(clock: VirtualClock) -> list[tuple[float, int]]:
        begin_ns = clock.now_ns()
        runtime, heard = SimRuntime(clock), Heard(clock)
        await runtime.start(heard)
        pod = pod_of(behaviour)
        runtime.start_sandbox(pod)
        runtime.start_container(ContainerRequest(pod, pod.spec.containers[0], 0, {}))
        await act(runtime, clock)
        await clock.sleep(1000)
        return [
            ((event.at_ns - begin_ns) / SECOND_NS, event.exit_code) for event in heard.of(ContainerExited)
        ]

    return run_virtual(main)


def test_a_container_told_to_stop_does_not_outlive_its_own_end() -> None:
    async def act(runtime: SimRuntime, clock: VirtualClock) -> None:
        await clock.sleep(1)
        runtime.stop_container("u", "c", 30)

    assert play("run-time=3s,exit-code=5,stop-delay=10s", act) == [(3.0, 5)]


def test_the_stop_delay_counts_from_the_first_signal() -> None:
    async def act(runtime: SimRuntime, clock: VirtualClock) -> None:
        runtime.stop_container("u", "c", 30)
        await clock.sleep(4)
        runtime.stop_container("u", "c", 10)

    assert play("stop-delay=5s,stop-code=2", act) == [(5.0, 2)]


def test_a_shorter_grace_kills_before_the_stop_delay_is_over() -> None:
    async def act(runtime: SimRuntime, clock: VirtualClock) -> None:
        runtime.stop_container("u", "c", 30)
        await clock.sleep(1)
        runtime.stop_container("u", "c", 1)

    assert play("stop-delay=20s", act) == [(2.0, 137)]


def test_an_end_that_passed_before_the_pod_was_adopted_is_told_with_its_time() -> None:
    async def main(clock: VirtualClock) -> None:
        began_ns = clock.now_ns()
        await clock.sleep(100)
        state = ContainerState(running=ContainerStateRunning(started_at=rfc3339(began_ns)))
        status = ContainerStatus(name="c", image="image", container_id="sim://abc", state=state)
        found = SimRuntime(clock).adopt(pod_of("run-time=7s", status=PodStatus(container_statuses=[status])))
        assert found is not None
        (container,) = found.containers
        assert container.exited is not None
        assert container.exited.at_ns == began_ns + 7 * SECOND_NS

    run_virtual(main)


def test_only_a_missing_image_is_not_pulled() -> None:
    async def main(clock: VirtualClock) -> list[list[type[RuntimeEvent]]]:
        told = []
        for reason in ("CreateContainerError", "ErrImagePull"):
            runtime, heard = SimRuntime(clock), Heard(clock)
            await runtime.start(heard)
            pod = pod_of(f"fails={reason}")
            runtime.start_sandbox(pod)
            runtime.start_container(ContainerRequest(pod, pod.spec.containers[0], 0, {}))
            told.append([type(event) for event in heard.events[1:]])
        return told

    assert run_virtual(main) == [[ImagePulled, ContainerFailed], [ContainerFailed]]


def test_each_simulated_node_pulls_an_image_for_itself_and_once() -> None:
    async def main(clock: VirtualClock) -> list[tuple[str, bool]]:
        runtime, heard = SimRuntime(clock), Heard(clock)
        await runtime.start(heard)

        async def run(uid: str, node: str) -> None:
            pod = pod_of("pull-time=5s")
            pod.metadata.uid, pod.spec.node_name = uid, node
            runtime.start_sandbox(pod)
            runtime.start_container(ContainerRequest(pod, pod.spec.containers[0], 0, {}))
            await clock.sleep(10)

        for uid, node in (("1", "a"), ("2", "a"), ("3", "b")):
            await run(uid, node)
        runtime.forget_node("a")
        await run("4", "a")
        return [(each.uid, each.was_present) for each in heard.of(ImagePulled)]

    assert run_virtual(main) == [
        ("1", False),
        ("2", True),
        ("3", False),
        ("4", False),
    ]

"""KEP-6122 in a kubelet: what the status, the events and the runtime say of a resize while CPUs are held."""

from __future__ import annotations

from nodeward.api import codec
from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.runtime.resources import ContainerResources
from tests.keps.kep6122 import CPUScene, play
from tests.keps.ledger import statement


async def resize_events(scene: CPUScene, name: str = "p") -> list[str]:
    return [reason for reason, _ in await scene.world.events(name) if reason.startswith("Resize")]


async def shown_cpu(scene: CPUScene, name: str = "p", container: str = "c") -> tuple[str, str, str]:
    """The CPUs a container's status says it has, is limited to, and was allocated."""
    pod = await scene.world.pod(name)
    status = next(each for each in pod.status.container_statuses if each.name == container)
    assert status.resources is not None
    return (
        str(status.resources.requests["cpu"]),
        str(status.resources.limits["cpu"]),
        str(status.allocated_resources["cpu"]),
    )


def requirements(cpu: str) -> dict[str, dict[str, str]]:
    return {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}


async def in_force(scene: CPUScene, pod: Pod, container: str = "c") -> ContainerResources:
    for each in await scene.kubelet.runtime.recover():
        for found in each.containers if each.uid == pod.metadata.uid else ():
            if found.name == container and found.resources is not None:
                return found.resources
    raise AssertionError(f"{container} does not run")


@statement("6122-34", "6122-35")
def test_a_resize_is_complete_when_no_container_waits_and_every_set_is_applied() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run("p", "2", "2", grow=("4", "4"))
        before = await resize_events(scene)
        await scene.resize("p", "3", "4")
        # The second container begins to wait while the first one does; the first is done one pass earlier.
        await scene.after_pass(-2)
        await scene.resize("p", "3", "3")
        assert await scene.conditions() == {"PodResizeInProgress": ""}
        assert (scene.left(pod), scene.left(pod, "c1")) != (None, None)
        waiting = 0
        while scene.left(pod) is not None or scene.left(pod, "c1") is not None:
            assert await scene.conditions() == {"PodResizeInProgress": ""}
            assert (await resize_events(scene)).count("ResizeCompleted") == before.count("ResizeCompleted")
            waiting += 1
            await scene.clock.sleep(1)
        assert waiting > 3
        await scene.after_pass()
        assert await scene.conditions() == {}
        events = (await resize_events(scene))[len(before) :]
        assert events == ["ResizeStarted", "ResizeStarted", "ResizeCompleted"]

    play(act, delay="8s")


@statement("6122-34", "6122-35")
def test_a_set_the_runtime_refuses_keeps_the_resize_in_progress_after_its_delay() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        completed = (await resize_events(scene)).count("ResizeCompleted")
        runtime = scene.kubelet.runtime
        real = runtime.update_resources

        def lost(uid: str, container: str, resources: ContainerResources) -> None:
            if resources.cpuset is None:
                real(uid, container, resources)

        runtime.update_resources = lost  # type: ignore[method-assign]
        await scene.resize("p", "3")
        await scene.after_pass(20)
        assert scene.left(pod) is None, "the delay is over"
        assert await scene.conditions() == {"PodResizeInProgress": ""}
        assert (await resize_events(scene)).count("ResizeCompleted") == completed
        runtime.update_resources = real  # type: ignore[method-assign]
        await scene.restart()
        await scene.after_pass(10)
        assert await scene.conditions() == {}
        assert (await resize_events(scene)).count("ResizeCompleted") == completed + 1

    play(act, delay="1s")


@statement("6122-37")
def test_the_weight_of_the_cpus_changes_at_once_and_the_set_later() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        before = await in_force(scene, pod)
        assert before.cpu_shares == 4 * 1024
        await scene.resize("p", "3")
        after = await in_force(scene, pod)
        assert (after.cpu_shares, after.cpuset) == (3 * 1024, before.cpuset)
        assert scene.moves == []
        assert not after.cpu_quota_us, "CPUs of its own are not throttled"
        await scene.after_pass(10)
        assert (await in_force(scene, pod)).cpuset == scene.assigned(pod) != before.cpuset

    play(act)


@statement("6122-38")
def test_the_status_shows_the_old_cpus_until_the_new_set_is_applied() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        assert await shown_cpu(scene) == ("4", "4", "4")
        await scene.resize("p", "3", seconds=1)
        assert await shown_cpu(scene) == ("4", "4", "3")
        whole = (await scene.world.pod("p")).status.resources
        assert whole is not None
        assert str(whole.requests["cpu"]) == "4"
        # A restart of the kubelet inside the delay changes nothing of that, nor does a second resize.
        await scene.restart()
        assert scene.left(pod) is not None
        assert await shown_cpu(scene) == ("4", "4", "3")
        await scene.resize("p", "2", seconds=1)
        assert await shown_cpu(scene) == ("4", "4", "2")
        await scene.after_pass(10)
        assert scene.moves[-1].cpuset == "1,11"
        assert await shown_cpu(scene) == ("2", "2", "2")

    play(act)


@statement("6122-38")
def test_a_scale_up_is_shown_when_it_is_in_force() -> None:
    async def act(scene: CPUScene) -> None:
        await scene.run()
        await scene.resize("p", "4", seconds=1)
        assert await scene.conditions() == {"PodResizeInProgress": ""}
        requested, _, allocated = await shown_cpu(scene)
        assert allocated == "4"
        assert requested == "2", "it does not have the new CPUs yet"
        await scene.after_pass()
        assert await scene.conditions() == {}
        assert (await shown_cpu(scene))[0] == "4"

    play(act)


@statement("6122-40")
def test_accepting_and_allocating_happen_at_once_and_the_rest_later() -> None:
    async def act(scene: CPUScene) -> None:
        pod = await scene.run(grow=("4",))
        agent = scene.kubelet.host.agent("n1")
        assert agent is not None
        managed = agent.pods[pod.metadata.uid]
        used, now = agent.allocation.capacity.used("cpu"), scene.now
        await scene.world.resize("p", {"containers": [{"name": "c", "resources": requirements("3")}]})
        while managed.life.pod.metadata.generation == pod.metadata.generation + 1:
            await scene.clock.sleep(0)
        # The moment in which the kubelet sees the pod: it is accepted, and its CPUs are worked out.
        assert scene.now == now
        assert used - agent.allocation.capacity.used("cpu") == 1000
        assert scene.left(pod) == 5
        assert managed.life.resize is not None
        assert managed.life.resize.in_progress is not None
        # What follows is the reconcile pass's and the pod sync's.
        assert scene.assigned(pod) == "1-2,11-12"
        await scene.after_pass(10)
        assert scene.assigned(pod) != "1-2,11-12"
        assert managed.life.resize.in_progress is None

    play(act)


@statement("6122-39", part="scheduler")
@statement("6122-39", part="kubelet")
def test_a_pod_that_needs_held_cpus_waits_and_is_not_refused_by_the_node() -> None:
    async def act(scene: CPUScene) -> None:
        await scene.run(grow=("16",))
        await scene.resize("p", "14")
        # 18 CPUs can be given away: 14 are allocated and 16 in use, so that 4 are free only after the delay.
        amounts = {"cpu": "4", "memory": "64Mi"}
        container = {"name": "c", "image": "image", "resources": {"requests": amounts, "limits": amounts}}
        tree = {"metadata": {"name": "next", "namespace": "default"}, "spec": {"containers": [container]}}
        await scene.world.client.create(codec.from_tree(tree, Pod))
        await scene.clock.sleep(1)
        assert (await scene.world.pod("next")).spec.node_name == ""
        await scene.after_pass(15)
        found = await scene.world.pod("next")
        assert (found.spec.node_name, found.status.phase) == ("n1", "Running")
        assert "UnexpectedAdmissionError" not in [reason for reason, _ in await scene.world.events("next")]

    play(act, server_has_scheduler=True, server_has_controllers=True, seconds=15)

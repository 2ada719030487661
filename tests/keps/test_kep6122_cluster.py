"""KEP-6122 from end to end: the proposal's e2e rows and its local plans on a whole cluster in virtual time.

API server, scheduler and controllers are at work; the kubelet is the real `Host` with its node's own rights, the static
CPU manager policy and volumes on a disk. Only the containers are simulated. Pods start with two CPUs, the ones they
may never lose, and are grown before they are made smaller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nodeward.api import codec
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.keps.ledger import statement
from tests.keps.node_identity import Kubelet, NodeWorld, node_world

SHOWN = "DownwardAPIAssignedResources"
NEEDED = "CPUManagerPolicyAlphaOptions=true,InPlacePodVerticalScalingExclusiveCPUs=true"
#: One socket of eight cores with two threads each: 0 and 8 are one core.
MACHINE = CPUDescription(cores_per_numa=8, threads=2)
DELAY_SECONDS = 5
#: The longest a set takes beyond its delay: one period of the reconcile loop, and its grid.
SLACK_SECONDS = 1.3
WITHOUT_DELAY: dict[str, Any] = {
    "cpuManagerPolicy": "static",
    "cpuManagerReconcilePeriod": "1s",
    "reservedSystemCPUs": "0,8",
}
CONFIG = {**WITHOUT_DELAY, "cpuManagerPolicyOptions": {"scale-delay-time": f"{DELAY_SECONDS}s"}}


def a_pod(name: str, cpus: int = 2, *, shows_cpus: bool = True) -> Pod:
    """A Guaranteed pod; its container finds its CPUs in /etc/podinfo/cpuset."""
    amounts = {"cpu": str(cpus), "memory": "64Mi"}
    ref = {"containerName": "c", "resource": "assigned.cpuset"}
    item = {"path": "cpuset", "resourceFieldRef": ref} if shows_cpus else {"path": "name", "fieldRef": _NAME}
    spec = {
        "containers": [
            {
                "name": "c",
                "image": "image",
                "resources": {"requests": amounts, "limits": amounts},
                "volumeMounts": [{"name": "info", "mountPath": "/etc/podinfo"}],
            }
        ],
        "volumes": [{"name": "info", "downwardAPI": {"items": [item]}}],
    }
    return codec.from_tree({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Pod)


_NAME = {"apiVersion": "v1", "fieldPath": "metadata.name"}


class Scene:
    """One kubelet, `n1`, in a whole cluster; what its containers see and have."""

    def __init__(self, world: NodeWorld, kubelet: Kubelet) -> None:
        self.world, self.kubelet = world, kubelet

    @property
    def seconds(self) -> float:
        return self.world.clock.monotonic_ns() / SECOND_NS

    async def start(self, name: str = "p", *, grown_to: int = 0, **pod: Any) -> None:
        """Start a pod, and let it have more CPUs at once."""
        await self.world.add(a_pod(name, **pod))
        assert (await self.world.pod(name)).status.phase == "Running"
        if grown_to:
            await self.resize(grown_to, name)
            await self.world.pass_time(3)
            assert await self.size(name) == grown_to

    async def resize(self, cpus: int, name: str = "p") -> None:
        amounts = {"cpu": str(cpus)}
        resources = {"requests": amounts, "limits": amounts}
        await self.world.resize(name, {"containers": [{"name": "c", "resources": resources}]})
        await self.world.pass_time(0.3)

    async def file(self, name: str = "p") -> str:
        """What the container reads in its volume."""
        uid = (await self.world.pod(name)).metadata.uid
        at = self.world.root / "n1" / "pods" / uid / "volumes" / "kubernetes.io~downward-api" / "info"
        return (at / "cpuset").read_text()

    async def cpus(self, name: str = "p") -> str:
        """The CPUs the container really has."""
        uid = (await self.world.pod(name)).metadata.uid
        (pod,) = [each for each in await self.kubelet.runtime.recover() if each.uid == uid]
        (container,) = pod.containers
        assert container.resources is not None
        return container.resources.cpuset or ""

    async def size(self, name: str = "p") -> int:
        """The CPUs the status says that the container has."""
        (status,) = (await self.world.pod(name)).status.container_statuses
        assert status.resources is not None
        return status.resources.requests["cpu"].value

    async def resizing(self, name: str = "p") -> dict[str, str]:
        """The reasons of the conditions about a resize."""
        conditions = (await self.world.pod(name)).status.conditions
        return {each.type: each.reason for each in conditions if each.type.startswith("PodResize")}

    async def applied_after(self, cpus: str, name: str = "p") -> float:
        """The seconds until the container has these CPUs and no others."""
        began = self.seconds
        while await self.cpus(name) != cpus:
            assert self.seconds - began < 30, f"{name} still has {await self.cpus(name)}"
            await self.world.pass_time(0.1)
        return self.seconds - began

    async def waits_and_shrinks(self, cpus: str, name: str = "p") -> None:
        """A scale-down was asked for just now: the delay is kept, then everything about it is over."""
        assert await self.resizing(name) == {"PodResizeInProgress": ""}
        waited = await self.applied_after(cpus, name)
        assert DELAY_SECONDS - 0.4 <= waited <= DELAY_SECONDS + SLACK_SECONDS
        await self.world.pass_time(1)
        assert await self.resizing(name) == {}

    async def restart_all(self, gates: str, **kubelet: Any) -> None:
        """Restart API server and kubelet with other gates, as a rollout or rollback does."""
        await self.world.cluster.api_server.restart(gates=gates)
        await self.kubelet.restart(**kubelet)


def play(
    act: Callable[[Scene], Awaitable[None]],
    *,
    gates: str = f"{SHOWN}=true",
    version: str = "1.37",
    **kubelet: Any,
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, gates=gates, has_scheduler=True, has_controllers=True) as world:
            setup: dict[str, Any] = {"config": CONFIG, "feature_gates": NEEDED, "version": version}
            started = await world.start_kubelet(seconds=5, cpus=MACHINE.topology(), **setup | kubelet)
            await act(Scene(world, started))

    run_virtual(main)


# -- the rows of the proposal


@statement("6122-E1")
@statement("6122-72")
def test_a_scale_down_is_announced_and_applied_after_the_delay() -> None:
    async def act(scene: Scene) -> None:
        await scene.start(grown_to=4)
        before = await scene.cpus()
        assert before == await scene.file() == "1-2,9-10"
        await scene.resize(3)
        assert (await scene.file(), await scene.cpus(), await scene.size()) == ("1-2,9", before, 4)
        await scene.waits_and_shrinks("1-2,9")
        assert (await scene.file(), await scene.size()) == ("1-2,9", 3)
        reasons = [reason for reason, _ in await scene.world.events("p")]
        order = ["ScaleDownDelayStarted", "CPUSetApplied", "ResizeCompleted"]
        last = [len(reasons) - 1 - reasons[::-1].index(each) for each in order]
        assert last == sorted(last), reasons

    play(act)


@statement("6122-E2")
@statement("6122-39", part="kubelet")
@statement("6122-39", part="scheduler")
def test_held_cpus_block_another_pod_until_they_are_free() -> None:
    async def act(scene: Scene) -> None:
        await scene.start("one", grown_to=12)
        await scene.start("two")
        await scene.resize(10, "one")
        held = await scene.cpus("one")
        await scene.resize(4, "two")
        assert (await scene.resizing("two"))["PodResizePending"] == "Deferred"
        await scene.world.client.create(a_pod("three"))
        await scene.world.pass_time(1)
        three = await scene.world.pod("three")
        assert (three.spec.node_name, three.status.phase) == ("", "Pending"), "nobody is sent to held CPUs"
        assert await scene.cpus("one") == held
        await scene.applied_after(await scene.file("one"), "one")
        await scene.world.pass_time(3)
        assert await scene.resizing("two") == {}
        assert await scene.size("two") == 4
        assert await scene.cpus("two") == await scene.file("two")
        assert (await scene.world.pod("three")).status.phase == "Pending", "the resize came first"

    play(act)


@statement("6122-E3")
def test_a_scale_up_before_expiry_wins() -> None:
    async def act(scene: Scene) -> None:
        await scene.start(grown_to=4)
        await scene.resize(3)
        await scene.world.pass_time(2)
        await scene.resize(6)
        grown = await scene.file()
        assert grown == "1-3,9-11"
        assert await scene.applied_after(grown) <= SLACK_SECONDS
        await scene.world.pass_time(2 * DELAY_SECONDS)
        assert (await scene.cpus(), await scene.file(), await scene.size()) == (grown, grown, 6)
        assert await scene.resizing() == {}

    play(act)


@statement("6122-E4")
def test_the_last_of_several_scale_downs_wins() -> None:
    async def act(scene: Scene) -> None:
        await scene.start(grown_to=6)
        await scene.resize(5)
        first = await scene.file()
        await scene.world.pass_time(3)
        await scene.resize(3)
        assert await scene.file() != first
        assert await scene.cpus() == "1-3,9-11"
        await scene.waits_and_shrinks(await scene.file())
        assert await scene.size() == 3

    play(act)


@statement("6122-E5")
@statement("6122-26")
def test_a_kubelet_restart_inside_the_delay_begins_it_anew() -> None:
    async def act(scene: Scene) -> None:
        await scene.start(grown_to=4)
        await scene.resize(3)
        await scene.world.pass_time(DELAY_SECONDS - 1)
        await scene.kubelet.stop()
        await scene.kubelet.start()
        await scene.world.pass_time(0.3)
        assert (await scene.file(), await scene.cpus(), await scene.size()) == ("1-2,9", "1-2,9-10", 4)
        await scene.waits_and_shrinks("1-2,9")
        assert await scene.size() == 3

    play(act)


@statement("6122-E6")
@statement("6122-55", part="kubelet")
def test_the_gate_goes_off_with_pods_running() -> None:
    async def act(scene: Scene) -> None:
        await scene.start(grown_to=6)
        await scene.resize(5)
        await scene.waits_and_shrinks(await scene.file())
        await scene.restart_all(f"{SHOWN}=false")
        before = await scene.cpus()
        assert (await scene.world.pod("p")).status.container_statuses[0].restart_count == 0
        await scene.resize(3)
        # Decided: the kubelet serves the field whatever the gate says; the row itself contradicts the proposal's text.
        assert await scene.file() != before == await scene.cpus()
        await scene.waits_and_shrinks(await scene.file())

    play(act)


@statement("6122-E7")
@statement("6122-68", part="kubelet")
def test_the_gate_goes_on_with_pods_running() -> None:
    async def act(scene: Scene) -> None:
        await scene.start("plain", shows_cpus=False, grown_to=4)
        await scene.start("early", grown_to=4)
        await scene.resize(3, "plain")
        await scene.waits_and_shrinks("1-2,9", "plain")
        await scene.restart_all(f"{SHOWN}=true")
        # Volumes of a pod cannot be changed: the pod is made anew, as users have to.
        await scene.world.client.delete(Pod, "plain", "default")
        await scene.world.pass_time(40)
        await scene.start("plain", grown_to=4)
        for name in ("plain", "early"):
            await scene.resize(3, name)
            assert await scene.file(name) != await scene.cpus(name)
            await scene.waits_and_shrinks(await scene.file(name), name)

    play(act, gates=f"{SHOWN}=false")


@statement("6122-E8")
def test_back_to_the_version_before_inside_the_delay() -> None:
    async def act(scene: Scene) -> None:
        await scene.start(grown_to=4)
        await scene.resize(3)
        assert await scene.file() == "1-2,9"
        await scene.kubelet.restart(version="1.36", config=WITHOUT_DELAY, feature_gates="")
        await scene.world.pass_time(60)
        pod = await scene.world.pod("p")
        assert (pod.status.phase, pod.status.container_statuses[0].restart_count) == ("Running", 0)
        assert await scene.cpus() == "1-2,9-10", "a kubelet that cannot resize exclusive CPUs takes none away"
        await scene.resize(2)
        assert (await scene.resizing())["PodResizePending"] == "Infeasible"
        assert await scene.cpus() == "1-2,9-10"

    play(act)


@statement("6122-E9")
def test_on_to_the_version_that_knows_it() -> None:
    async def act(scene: Scene) -> None:
        await scene.start("old", shows_cpus=False)
        await scene.restart_all(f"{SHOWN}=true", version="1.37", config=CONFIG, feature_gates=NEEDED)
        pod = await scene.world.pod("old")
        assert (pod.status.phase, pod.status.container_statuses[0].restart_count) == ("Running", 0)
        await scene.resize(4, "old")
        await scene.world.pass_time(2)
        await scene.resize(3, "old")
        await scene.waits_and_shrinks("1-2,9", "old")
        await scene.start("new", grown_to=4)
        await scene.resize(3, "new")
        await scene.waits_and_shrinks(await scene.file("new"), "new")

    play(act, gates=f"{SHOWN}=false", version="1.36", config=WITHOUT_DELAY, feature_gates="")


# -- the local plans


@statement("6122-L1", part="kubelet")
@statement("6122-53")
def test_the_file_follows_the_cpus_while_the_gate_goes_off_and_on() -> None:
    async def act(scene: Scene) -> None:
        await scene.start()
        assert await scene.file() == "1,9", "admitted while the gate is off, and served"
        size = 2
        for gate in ("true", "false", "true"):
            size += 2
            await scene.restart_all(f"{SHOWN}={gate}")
            await scene.resize(size)
            await scene.world.pass_time(2)
            assert await scene.file() == await scene.cpus()
            assert len(await scene.file()) > len("1,9")

    play(act, gates=f"{SHOWN}=false")


@statement("6122-L2")
@statement("6122-54")
def test_the_delay_goes_with_the_old_version_and_comes_back_with_the_new_one() -> None:
    async def act(scene: Scene) -> None:
        await scene.start(shows_cpus=False)
        old: dict[str, Any] = {"version": "1.36", "config": WITHOUT_DELAY, "feature_gates": ""}
        new: dict[str, Any] = {"version": "1.37", "config": CONFIG, "feature_gates": NEEDED}
        for setup, waits in ((new, True), ({**new, "config": WITHOUT_DELAY}, False), (new, True)):
            await scene.kubelet.restart(**old)
            await scene.kubelet.restart(**setup)
            await scene.resize(4)
            await scene.world.pass_time(2)
            assert await scene.cpus() == "1-2,9-10"
            await scene.resize(3)
            waited = await scene.applied_after("1-2,9")
            assert (waited >= DELAY_SECONDS - 0.4) is waits
            await scene.world.pass_time(1)
            assert await scene.size() == 3

    play(act, version="1.36", config=WITHOUT_DELAY, feature_gates="")


# -- what it costs, and who is concerned


@statement("6122-62")
def test_a_delayed_resize_sends_no_other_requests_than_one_without_a_delay() -> None:
    def kinds(config: dict[str, Any]) -> dict[tuple[str, str], int]:
        found: dict[tuple[str, str], int] = {}

        async def act(scene: Scene) -> None:
            await scene.start(grown_to=4)
            scene.kubelet.wire.calls.clear()
            await scene.resize(3)
            await scene.world.pass_time(2 * DELAY_SECONDS)
            for call in scene.kubelet.wire.calls:
                if call.path.endswith(("/events", "/p/status")) or "/pods" in call.path:
                    key = (call.method, call.path)
                    found[key] = found.get(key, 0) + 1

        play(act, config=config)
        return found

    delayed, at_once = kinds(CONFIG), kinds(WITHOUT_DELAY)
    assert delayed.keys() == at_once.keys()
    assert all("/api/v1/" in path for _, path in delayed), "no kind of its own"


@statement("6122-70")
@pytest.mark.parametrize("version", ["1.36", "1.37", "1.38"])
def test_the_version_of_the_control_plane_does_not_matter_for_the_delay(version: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, version=version, has_scheduler=True, has_controllers=True) as world:
            kubelet = await world.start_kubelet(
                seconds=5, config=CONFIG, feature_gates=NEEDED, cpus=MACHINE.topology()
            )
            scene = Scene(world, kubelet)
            await scene.start(shows_cpus=False, grown_to=4)
            await scene.resize(3)
            await scene.waits_and_shrinks("1-2,9")

    run_virtual(main)


@statement("6122-57")
@pytest.mark.parametrize("value", ["-1s", "11s", "soon", "5"])
def test_a_kubelet_with_a_bad_value_does_not_start_and_running_containers_keep_their_cpus(value: str) -> None:
    async def act(scene: Scene) -> None:
        await scene.start(grown_to=4)
        with pytest.raises(Exception, match="scale-delay-time"):
            await scene.kubelet.restart(
                config={**CONFIG, "cpuManagerPolicyOptions": {"scale-delay-time": value}}
            )
        await scene.world.pass_time(30)
        assert await scene.cpus() == "1-2,9-10"
        await scene.kubelet.restart(config=CONFIG)
        assert (await scene.world.pod("p")).status.container_statuses[0].restart_count == 0

    play(act)


@statement("6122-14", part="kubelet")
def test_nobody_can_choose_cpus_through_the_api() -> None:
    async def act(scene: Scene) -> None:
        await scene.start()
        with pytest.raises(ApiError):
            await scene.world.resize(
                "p", {"containers": [{"name": "c", "resources": {"requests": {"cpuset": "3"}}}]}
            )
        assert await scene.cpus() == "1,9"
        with pytest.raises(Exception, match="cpuManagerPolicy"):
            await scene.kubelet.restart(config={**CONFIG, "cpuManagerPolicy": "delayed"})

    play(act)

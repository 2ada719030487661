"""A node whose exclusive CPUs are resized, for the statements of KEP-6122 about the kubelet.

`CPUScene` is one real kubelet (`n1`, under its own identity, volumes on a disk, simulated containers) with the static
policy on ten cores of two threads: CPUs 0 and 10 are one core, and reserved. It notes every CPU set that the runtime
is told, with the time and what the container's file showed at that moment.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.cpu.static_cpus import StaticCPUs
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.kubelet.runtime.resources import ContainerResources
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.keps.node_identity import Kubelet, NodeWorld, node_world
from tests.keps.test_kep6122_downward import Scene, a_pod, item

ALPHA, EXCLUSIVE = "CPUManagerPolicyAlphaOptions", "InPlacePodVerticalScalingExclusiveCPUs"
ASSIGNED = "DownwardAPIAssignedResources"
BOTH = f"{ALPHA}=true,{EXCLUSIVE}=true"
TEN_CORES = CPUDescription(cores_per_numa=10, threads=2)
PERIOD = 10


def static_config(delay: str = "", **config: Any) -> dict[str, Any]:
    """The configuration of a kubelet with the static policy and this delay."""
    options = {"scale-delay-time": delay} if delay else {}
    return {
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0,10",
        "cpuManagerPolicyOptions": options,
        **config,
    }


class Move(NamedTuple):
    """One CPU set that the runtime was told, and what the container's file showed then."""

    at: float
    uid: str
    container: str
    cpuset: str
    shown: str


class CPUScene(Scene):
    """The kubelet, its pods, and what happens to their CPUs."""

    def __init__(self, world: NodeWorld, started: float) -> None:
        super().__init__(world)
        self.started_at = started
        self.moves: list[Move] = []
        self._files: dict[str, Pod] = {}
        runtime = self.kubelet.runtime
        real = runtime.update_resources

        def update(uid: str, container: str, resources: ContainerResources) -> None:
            if resources.cpuset is not None:
                shown = self.shown(self._files[uid], container) if uid in self._files else ""
                self.moves.append(Move(self.now, uid, container, resources.cpuset, shown))
            real(uid, container, resources)

        runtime.update_resources = update  # type: ignore[method-assign]

    @property
    def kubelet(self) -> Kubelet:
        return self.world.kubelets["n1"]

    @property
    def clock(self) -> VirtualClock:
        return self.world.clock

    @property
    def now(self) -> float:
        """Seconds of the monotonic clock."""
        return round(self.clock.monotonic_ns() / SECOND_NS, 3)

    @property
    def manager(self) -> StaticCPUs:
        agent = self.kubelet.host.agent("n1")
        assert agent is not None
        found = agent.container_manager
        assert isinstance(found, StaticCPUs)
        return found

    async def run(self, name: str = "p", *cpus: str, grow: tuple[str, ...] = ()) -> Pod:
        """A pod with files that show its CPUs, which runs; `grow`: and was resized to this, which is applied."""
        asked = cpus or ("2",)
        items = [item(container=f"c{number}" if number else "c") for number in range(len(asked))]
        pod = await self.started(a_pod(name, *items, cpus=asked))
        self._files[pod.metadata.uid] = pod
        if grow:
            await self.resize(name, *grow)
            await self.after_pass()
            assert self.manager.is_applied(pod.metadata.uid)
            self.moves.clear()
        return pod

    async def resize(self, name: str, *cpus: str, seconds: float = 0.1) -> None:
        """Ask for other CPUs, and let the kubelet see it."""
        containers = [
            {
                "name": f"c{number}" if number else "c",
                "resources": {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}},
            }
            for number, cpu in enumerate(cpus)
        ]
        await self.world.resize(name, {"containers": containers})
        await self.clock.sleep(seconds)

    async def after_pass(self, seconds: float = 0.0) -> None:
        """Wait until the next reconcile pass is over, and so many seconds more."""
        since = (self.now - self.started_at) % PERIOD
        await self.clock.sleep(PERIOD - since + 0.2 + seconds)

    async def restart(self, **changes: Any) -> None:
        """Restart the kubelet; its passes are counted from then."""
        self.started_at = self.now
        await self.kubelet.restart(seconds=0.3, **changes)

    def shown(self, pod: Pod, container: str = "c") -> str:
        """What a container's file shows."""
        name = "assigned-cpuset" if container == "c" else f"assigned-cpuset-{container}"
        return self.files(pod)[name]

    def assigned(self, pod: Pod, container: str = "c") -> str:
        """The CPUs of a container in the state file."""
        found: str = self.state()["entries"][pod.metadata.uid][container]
        return found

    def shared(self) -> str:
        found: str = self.state()["defaultCpuSet"]
        return found

    async def in_force(self, pod: Pod, container: str = "c") -> str:
        """The CPUs a container really has."""
        for each in await self.kubelet.runtime.recover():
            for found in each.containers if each.uid == pod.metadata.uid else ():
                if found.name == container and found.resources is not None:
                    return found.resources.cpuset or ""
        raise AssertionError(f"{container} does not run")

    def left(self, pod: Pod, container: str = "c") -> float | None:
        """The seconds that are left of a container's delay; None if it waits for none."""
        for each in self.manager.cpu_map(self.clock.monotonic_ns()).containers:
            if (each.uid, each.container) == (pod.metadata.uid, container) and each.pending is not None:
                return each.pending.left_ns / SECOND_NS
        return None

    async def conditions(self, name: str = "p") -> dict[str, str]:
        """The reasons of the pod's resize conditions."""
        found = (await self.world.pod(name)).status.conditions
        return {each.type: each.reason for each in found if each.type.startswith("PodResize")}


def play(act: Callable[[CPUScene], Awaitable[None]], delay: str = "5s", **setup: Any) -> None:
    """Run a scene in virtual time; `setup` is of the kubelet, and of the control plane what begins with `server_`."""

    async def main(clock: VirtualClock) -> None:
        server = {name.removeprefix("server_"): setup[name] for name in setup if name.startswith("server_")}
        own = {name: value for name, value in setup.items() if not name.startswith("server_")}
        async with node_world(clock, **{"gates": f"{ASSIGNED}=true", **server}) as world:
            started = round(clock.monotonic_ns() / SECOND_NS, 3)
            config = own.pop("config", None) or static_config(delay)
            await world.start_kubelet(
                **{"feature_gates": BOTH, "cpus": TEN_CORES.topology(), "config": config, **own}
            )
            await act(CPUScene(world, started))

    run_virtual(main)

"""The services of simulated nodes: everything a machine has, in memory, and built when it is first needed.

The `Host` of a fleet asks for a node's services when its kubelet starts. Thousands of nodes share one store of objects,
one prober, one runner of hooks; a node that has admitted no pod has no disk yet. A node's disk outlives its kubelet and
goes with the node (`discard`).

What must stay true: an idle node costs a few hundred bytes here; commands in containers see the newest version of
their pod.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from typing import Final

from nodeward.api.core_v1.container import Container, EphemeralContainer
from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.admitted_pods import AdmittedPods
from nodeward.kubelet.config.settings import GateProbe
from nodeward.kubelet.container_request import container_of
from nodeward.kubelet.disk import MemoryDisk
from nodeward.kubelet.downward import AssignedCPUs, assigned_cpus_of, no_cpus
from nodeward.kubelet.dra.described_drivers import NO_DRIVERS, DescribedDrivers, DriverDescription
from nodeward.kubelet.environment import EnvironmentResolver, EnvironmentSources
from nodeward.kubelet.hook_runner import HookRunner
from nodeward.kubelet.node.gate_probes import ProbeOutcome
from nodeward.kubelet.node.specification import NodeSpecification
from nodeward.kubelet.pods.probing import ProbePlan
from nodeward.kubelet.probing.answer import ProbeAnswer
from nodeward.kubelet.runtime.interface import LogOptions
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.kubelet.simulated.container_view import ContainerView
from nodeward.kubelet.volumes.memory_volumes import MemoryVolumeManager
from nodeward.kubelet.volumes.object_cache import ObjectCache
from nodeward.kubelet.volumes.payloads import Sources
from nodeward.kubelet.volumes.tokens import Tokens
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock

#: The whole output of a container that is only a description.
SIMULATED: Final = b"this container is simulated: it runs nothing and writes nothing\n"
_SAID: Final = "simulated"
#: Pods that start in the same second read the same answer of the API.
_FRESH_NS: Final = SECOND_NS


class SimulatedMachines:
    """Gives simulated nodes their services."""

    def __init__(self, client: Client, clock: Clock, chance: Chance, runtime: SimRuntime) -> None:
        self.objects: Final = ObjectCache(client, clock, _FRESH_NS)
        self.tokens: Final = Tokens(client, clock, chance)
        self.hooks: Final = DescribedHooks(runtime, clock)
        self.prober: Final = DescribedProber(runtime, clock)
        self.logs: Final = NoLogs(clock)
        self._services: dict[str, SimulatedServices] = {}
        self._disks: dict[str, MemoryDisk] = {}
        #: of nodes that have drivers; they outlive the kubelet, as on a real node
        self._drivers: dict[str, tuple[tuple[DriverDescription, ...], DescribedDrivers]] = {}
        self._current: Callable[[str], Pod | None] = lambda _: None
        self.assigned_cpus: AssignedCPUs = no_cpus
        self._runtime = runtime
        self._clock = clock
        runtime.look_inside(self._view)

    def connect(self, current: Callable[[str], Pod | None], assigned_cpus: AssignedCPUs) -> None:
        self._current, self.assigned_cpus = current, assigned_cpus

    def services(self, specification: NodeSpecification) -> SimulatedServices:
        if (cpus := specification.model.cpus) is not None:
            self._runtime.describe_cpus(specification.name, cpus.all_cpus)
        made = self._services[specification.name] = SimulatedServices(self, specification)
        return made

    def has_disk(self, name: str) -> bool:
        return name in self._disks

    def disk(self, name: str) -> MemoryDisk:
        """The disk of a node, which is made when it is first needed."""
        found = self._disks.get(name)
        if found is None:
            found = self._disks[name] = MemoryDisk()
        return found

    def drivers(self, specification: NodeSpecification) -> DescribedDrivers:
        """The DRA drivers of a node, which remember what they have prepared until they are described otherwise."""
        described = specification.model.drivers
        known = self._drivers.get(specification.name)
        if known is None or known[0] != described:
            known = self._drivers[specification.name] = (
                described,
                DescribedDrivers.of(described, self._clock),
            )
        return known[1]

    def discard(self, name: str) -> None:
        self._disks.pop(name, None)
        self._drivers.pop(name, None)
        self._services.pop(name, None)

    async def aclose(self) -> None:
        await self.objects.aclose()

    async def _view(
        self, uid: str, name: str, env: Mapping[str, str] | None, cpuset: str
    ) -> ContainerView | None:
        """The inside of a container; `env` is None when its variables were left for now."""
        pod = self._current(uid)
        services = self._services.get(pod.spec.node_name) if pod is not None else None
        if pod is None or services is None:
            return None
        container = container_of(pod, name)
        if env is None:
            env = await services.environment.read(pod, container)
        mounts = await services.volumes.mounts(pod, container, env)
        return ContainerView(pod, env, mounts, services.volumes, services.cpus_of(cpuset))


class SimulatedServices:
    """The services of one simulated node."""

    __slots__ = ("_admitted", "_environment", "_machines", "_specification", "_volumes")

    def __init__(self, machines: SimulatedMachines, specification: NodeSpecification) -> None:
        self._machines = machines
        self._specification = specification
        self._admitted: AdmittedPods | None = None
        self._volumes: MemoryVolumeManager | None = None
        self._environment: EnvironmentResolver | None = None

    @property
    def has_disk(self) -> bool:
        return self._machines.has_disk(self._specification.name)

    @property
    def disk(self) -> MemoryDisk:
        return self._machines.disk(self._specification.name)

    @property
    def admitted(self) -> AdmittedPods:
        if self._admitted is None:
            self._admitted = AdmittedPods(self.disk)
        return self._admitted

    @property
    def volumes(self) -> MemoryVolumeManager:
        if self._volumes is None:
            shared, model = self._machines, self._specification.model
            cpus = assigned_cpus_of(model.gates, shared.assigned_cpus)
            sources = Sources(shared.objects, shared.tokens, model.allocatable(), cpus)
            self._volumes = MemoryVolumeManager(sources, lambda: self.disk)
        return self._volumes

    @property
    def environment(self) -> EnvironmentResolver:
        if self._environment is None:
            node = self._specification
            around = EnvironmentSources(
                self._machines.objects, node.model.allocatable(), node.addresses, self.volumes.read_file
            )
            self._environment = EnvironmentResolver(around, when_read=True)
        return self._environment

    @property
    def hooks(self) -> DescribedHooks:
        return self._machines.hooks

    @property
    def prober(self) -> DescribedProber:
        return self._machines.prober

    @property
    def logs(self) -> NoLogs:
        return self._machines.logs

    @property
    def drivers(self) -> DescribedDrivers:
        return (
            self._machines.drivers(self._specification) if self._specification.model.drivers else NO_DRIVERS
        )

    def cpus_of(self, cpuset: str) -> CPUSet:
        """The CPUs a container runs on: its own, or all of the node."""
        model = self._specification.model
        if cpuset:
            return CPUSet.parse(cpuset)
        if model.cpus is not None:
            return model.cpus.all_cpus
        return CPUSet(range(model.capacity["cpu"].value if "cpu" in model.capacity else 1))

    async def keep_only(self, uids: Collection[str]) -> None:
        if self.has_disk:
            self.admitted.keep_only(uids)
            await self.volumes.keep_only(uids)


class DescribedProber:
    """Probes that the described behaviour of a simulated container answers."""

    def __init__(self, runtime: SimRuntime, clock: Clock) -> None:
        self._runtime = runtime
        self._clock = clock

    async def probe(self, pod: Pod, current: Callable[[], Pod], plan: ProbePlan) -> ProbeAnswer:
        now_ns = self._clock.now_ns()
        is_well = self._runtime.is_well(pod.metadata.uid, plan.container, plan.kind, now_ns)
        return ProbeAnswer(is_well, _SAID)

    async def gate_probe(self, gate: GateProbe) -> ProbeOutcome:
        # There is no machine to ask: the agents of simulated nodes find what they look for.
        return ProbeOutcome(True, _SAID)


class DescribedHooks(HookRunner):
    """Runs hooks of simulated containers: they end as described, or their commands are run as far as they can be."""

    def __init__(self, runtime: SimRuntime, clock: Clock) -> None:
        super().__init__(runtime, clock, ask=_answered)
        self._described = runtime

    async def run(
        self, pod: Pod, container: Container | EphemeralContainer, kind: str, seconds: float
    ) -> tuple[bool, str]:
        code = self._described.hook_code(pod.metadata.uid, container.name, kind)
        if code:
            return False, f"the {kind} hook of a simulated container exited with {code}"
        return await super().run(pod, container, kind, seconds)


async def _answered(*_: object) -> ProbeAnswer:
    return ProbeAnswer(True, _SAID)


class NoLogs:
    """The output of simulated containers: one line that says so, and nothing more while they run."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    async def read(
        self,
        pod: Pod,
        container: str,
        attempt: int,
        options: LogOptions,
        is_running: Callable[[], bool],
        *,
        from_end: bool = False,
    ) -> AsyncGenerator[tuple[int, bytes], None]:
        if options.tail_lines != 0:
            yield 1, SIMULATED[: options.limit_bytes]
        while options.follow and is_running():
            await self._clock.sleep(1)

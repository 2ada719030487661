"""A node whose volumes and environments take time: what is over before they are ready is not started any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from nodeward.api.core_v1.container import Container, EphemeralContainer
from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import WorldError
from nodeward.kubelet.environment import EnvironmentResolver, EnvironmentSources
from nodeward.kubelet.simulated.machines import SimulatedServices
from nodeward.kubelet.volumes.memory_volumes import MemoryVolumeManager
from nodeward.kubelet.volumes.payloads import Sources
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.hosting import Hosted, hosted, specification


class SlowVolumes(MemoryVolumeManager):
    """Volumes that take as long as said to be mounted."""

    __slots__ = ("clock", "seconds")

    clock: VirtualClock
    seconds: float

    async def mount(self, pod: Pod) -> str:
        await self.clock.sleep(self.seconds)
        return await super().mount(pod)


class SlowEnvironment(EnvironmentResolver):
    """Environments that take as long as said, or cannot be worked out."""

    __slots__ = ("clock", "fault", "seconds")

    clock: VirtualClock
    seconds: float
    fault: str

    async def resolve(
        self, current: Callable[[], Pod], container: Container | EphemeralContainer
    ) -> dict[str, str]:
        await self.clock.sleep(self.seconds)
        if self.fault:
            raise WorldError(self.fault)
        return await super().resolve(current, container)


class SlowServices(SimulatedServices):
    """The services of a simulated node, of which some take time."""

    def __init__(self, each: Hosted, volumes: float, environment: float) -> None:
        here = specification("n1")
        super().__init__(each.machines, here)
        sources = Sources(each.machines.objects, each.machines.tokens, here.model.allocatable())
        slow = self._volumes = SlowVolumes(sources, lambda: each.machines.disk("n1"))
        slow.clock, slow.seconds = each.clock, volumes
        around = EnvironmentSources(sources.objects, sources.allocatable, here.addresses, slow.read_file)
        self.slow_environment = SlowEnvironment(around, when_read=True)
        self.slow_environment.clock, self.slow_environment.seconds = each.clock, environment
        self.slow_environment.fault = ""
        self._environment = self.slow_environment


def play(
    act: Callable[[Hosted, SlowServices], Awaitable[None]], volumes: float = 0.0, environment: float = 0.0
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock) as each:
            services = SlowServices(each, volumes, environment)
            each.host.add_node(specification("n1"), services)
            await clock.sleep(1)
            await act(each, services)

    run_virtual(main)


def test_a_pod_that_goes_while_its_volumes_are_made_gets_no_sandbox() -> None:
    async def act(each: Hosted, services: SlowServices) -> None:
        await each.run_pod("p", "n1")
        await each.clock.sleep(2)
        await each.client.delete(Pod, "p", "default", grace_period=0)
        await each.clock.sleep(60)
        assert len(each.runtime) == 0
        assert len(each.host.pods) == 0

    play(act, volumes=5)


def test_a_pod_deleted_while_its_environment_is_worked_out_need_not_wait_for_its_grace_period() -> None:
    async def act(each: Hosted, services: SlowServices) -> None:
        await each.run_pod("p", "n1")
        await each.clock.sleep(2)
        await each.client.delete(Pod, "p", "default")
        await each.clock.sleep(6)
        assert not (await each.client.list(Pod)).items
        assert len(each.runtime) == 0

    play(act, environment=5)


def test_an_environment_that_cannot_be_worked_out_is_shown_and_tried_again() -> None:
    async def act(each: Hosted, services: SlowServices) -> None:
        services.slow_environment.fault = "the disk is gone"
        await each.run_pod("p", "n1")
        await each.clock.sleep(2)
        waiting = (await each.pod("p")).status.container_statuses[0].state.waiting
        assert waiting is not None
        assert (waiting.reason, waiting.message) == ("CreateContainerConfigError", "the disk is gone")
        services.slow_environment.fault = ""
        await each.clock.sleep(15)
        assert (await each.pod("p")).status.phase == "Running"

    play(act)


def test_a_host_that_stops_while_volumes_are_made_starts_nothing() -> None:
    async def act(each: Hosted, services: SlowServices) -> None:
        await each.run_pod("p", "n1")
        await each.clock.sleep(2)
        await each.host.stop()
        await each.clock.sleep(60)
        assert len(each.runtime) == 0

    play(act, volumes=5)

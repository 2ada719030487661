"""A node whose volumes and environments take time: what is over before they are ready is not started any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import WorldError
from nodeward.kubelet.config.settings import GateProbe
from nodeward.kubelet.node.gate_probes import ProbeOutcome
from nodeward.kubelet.pods.probing import ProbePlan
from nodeward.kubelet.runtime.interface import ContainerRequest
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.hosting import Hosted, hosted, specification


class SlowHands:
    """Volumes and environments take as long as said; everything else is done at once."""

    def __init__(self, clock: VirtualClock, volumes: float, environment: float) -> None:
        self._clock = clock
        self._volumes = volumes
        self._environment = environment
        #: why an environment cannot be worked out, while it cannot
        self.fault = ""

    async def prepare(self, pod: Pod) -> str:
        await self._clock.sleep(self._volumes)
        return ""

    async def refresh(self, pod: Pod) -> None: ...

    async def request(self, pod: Pod, container: str, attempt: int) -> ContainerRequest:
        await self._clock.sleep(self._environment)
        if self.fault:
            raise WorldError(self.fault)
        return ContainerRequest(pod, pod.spec.containers[0], attempt, {})

    async def release(self, pod: Pod) -> None: ...

    async def forget(self, uid: str) -> None: ...

    async def keep_only(self, uids: Collection[str]) -> None: ...

    async def probe(self, pod: Pod, plan: ProbePlan) -> tuple[bool | None, str]:
        return True, ""

    async def hook(self, pod: Pod, container: str, kind: str, seconds: float) -> tuple[bool, str]:
        return True, ""

    async def gate_probe(self, probe: GateProbe) -> ProbeOutcome:
        return ProbeOutcome(True)


def play(
    act: Callable[[Hosted, SlowHands], Awaitable[None]], volumes: float = 0.0, environment: float = 0.0
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock) as each:
            hands = SlowHands(clock, volumes, environment)
            each.host.add_node(specification("n1"), hands)
            await clock.sleep(1)
            await act(each, hands)

    run_virtual(main)


def test_a_pod_that_goes_while_its_volumes_are_made_gets_no_sandbox() -> None:
    async def act(each: Hosted, hands: SlowHands) -> None:
        await each.run_pod("p", "n1")
        await each.clock.sleep(2)
        await each.client.delete(Pod, "p", "default", grace_period=0)
        await each.clock.sleep(60)
        assert len(each.runtime) == 0
        assert len(each.host.pods) == 0

    play(act, volumes=5)


def test_a_pod_deleted_while_its_environment_is_worked_out_need_not_wait_for_its_grace_period() -> None:
    async def act(each: Hosted, hands: SlowHands) -> None:
        await each.run_pod("p", "n1")
        await each.clock.sleep(2)
        await each.client.delete(Pod, "p", "default")
        await each.clock.sleep(6)
        assert not (await each.client.list(Pod)).items
        assert len(each.runtime) == 0

    play(act, environment=5)


def test_an_environment_that_cannot_be_worked_out_is_shown_and_tried_again() -> None:
    async def act(each: Hosted, hands: SlowHands) -> None:
        hands.fault = "the disk is gone"
        await each.run_pod("p", "n1")
        await each.clock.sleep(2)
        waiting = (await each.pod("p")).status.container_statuses[0].state.waiting
        assert waiting is not None
        assert (waiting.reason, waiting.message) == ("CreateContainerConfigError", "the disk is gone")
        hands.fault = ""
        await each.clock.sleep(15)
        assert (await each.pod("p")).status.phase == "Running"

    play(act)


def test_a_host_that_stops_while_volumes_are_made_starts_nothing() -> None:
    async def act(each: Hosted, hands: SlowHands) -> None:
        await each.run_pod("p", "n1")
        await each.clock.sleep(2)
        await each.host.stop()
        await each.clock.sleep(60)
        assert len(each.runtime) == 0

    play(act, volumes=5)

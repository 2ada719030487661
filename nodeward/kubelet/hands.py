"""What a node with real containers does beside its runtime: volumes, environment, hooks, probes over the network.

The host works out what is to be done and hands it here; a simulated node has no hands. Everything is asynchronous and
may fail, in the way users know.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import WorldError
from nodeward.kubelet.config.settings import GateProbe
from nodeward.kubelet.node.gate_probes import ProbeOutcome
from nodeward.kubelet.pods.probing import ProbePlan
from nodeward.kubelet.runtime.interface import ContainerRequest


class NotConfigured(WorldError):
    """What a container needs to start is missing. `reason` is what its waiting state says."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Hands(Protocol):
    """One node's dealings with the machine."""

    async def prepare(self, pod: Pod) -> str:
        """Make directories and volumes; gives the directory for logs. Raises WorldError: FailedMount, tried again."""
        ...

    async def refresh(self, pod: Pod) -> None:
        """Bring volumes that follow the API (config maps, secrets, the pod's own fields) up to date."""
        ...

    async def request(self, pod: Pod, container: str, attempt: int) -> ContainerRequest:
        """Everything one container needs, from the API as it is now. Raises `NotConfigured`.

        The pod carries the status as the node knows it: addresses are in it.
        """
        ...

    async def release(self, pod: Pod) -> None:
        """Nothing of the pod runs any more: volumes and directories go, logs stay until `forget`."""
        ...

    async def forget(self, uid: str) -> None:
        """The API knows the pod no more: all of it goes."""
        ...

    async def keep_only(self, uids: Collection[str]) -> None:
        """All pods there are, after a restart: what is left of any other goes."""
        ...

    async def probe(self, pod: Pod, plan: ProbePlan) -> tuple[bool | None, str]:
        """Whether the probe holds (None: it could not be made), and what it said. Keeps the probe's timeout."""
        ...

    async def hook(self, pod: Pod, container: str, kind: str, seconds: float) -> tuple[bool, str]:
        """Run postStart or preStop; whether it went well, and what it said."""
        ...

    async def gate_probe(self, probe: GateProbe) -> ProbeOutcome:
        """One look at whether a readiness gate of the node holds (KEP-5233)."""
        ...

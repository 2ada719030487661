"""What a node has beside its container runtime: a disk, volumes, environments, hooks, probes, logs and DRA drivers.

Every node has all of them; pod workers and the node manager use them without asking what kind of node it is. A
`Machines` gives each node its services: `local_services.LocalMachine` those of this machine,
`simulated.machines.SimulatedMachines` those of simulated nodes, in memory. The `Host` asks it when a node is added.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection
from typing import Protocol

from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.admitted_pods import AdmittedPods
from nodeward.kubelet.config.settings import GateProbe
from nodeward.kubelet.disk import Disk
from nodeward.kubelet.downward import AssignedCPUs
from nodeward.kubelet.dra.driver_plugin import NodeDrivers
from nodeward.kubelet.environment import EnvironmentResolver
from nodeward.kubelet.hook_runner import HookRunner
from nodeward.kubelet.node.gate_probes import ProbeOutcome
from nodeward.kubelet.node.specification import NodeSpecification
from nodeward.kubelet.pods.probing import ProbePlan
from nodeward.kubelet.probing.answer import ProbeAnswer
from nodeward.kubelet.runtime.interface import LogOptions
from nodeward.kubelet.volumes.volume_manager import VolumeManager


class Prober(Protocol):
    """Asks containers whether they are started, alive and ready, and the node whether a readiness gate holds."""

    async def probe(self, pod: Pod, current: Callable[[], Pod], plan: ProbePlan) -> ProbeAnswer:
        """Make one probe. Keeps the probe's timeout; `current` gives the pod with the status its node knows."""
        ...

    async def gate_probe(self, gate: GateProbe) -> ProbeOutcome:
        """Make one probe of a readiness gate of the node (KEP-5233)."""
        ...


class ContainerLogs(Protocol):
    """The output of containers."""

    def read(
        self,
        pod: Pod,
        container: str,
        attempt: int,
        options: LogOptions,
        is_running: Callable[[], bool],
        *,
        from_end: bool = False,
    ) -> AsyncGenerator[tuple[int, bytes], None]:
        """The output of one instance as (stream, bytes); more comes while `is_running`. Raises WorldError."""
        ...


class NodeServices(Protocol):
    """The services of one node."""

    @property
    def has_disk(self) -> bool:
        """Whether anything was ever written for the node; asking makes no disk."""
        ...

    @property
    def disk(self) -> Disk:
        """The node's own files."""
        ...

    @property
    def admitted(self) -> AdmittedPods:
        """The pods the node has admitted, on its disk."""
        ...

    @property
    def volumes(self) -> VolumeManager: ...

    @property
    def environment(self) -> EnvironmentResolver: ...

    @property
    def hooks(self) -> HookRunner: ...

    @property
    def prober(self) -> Prober: ...

    @property
    def logs(self) -> ContainerLogs: ...

    @property
    def drivers(self) -> NodeDrivers: ...

    async def keep_only(self, uids: Collection[str]) -> None:
        """Remove what is on the node's disk of pods that are not in `uids`, after a restart."""
        ...


class Machines(Protocol):
    """Gives nodes their services."""

    def connect(self, current: Callable[[str], Pod | None], assigned_cpus: AssignedCPUs) -> None:
        """Learn how to find a pod the host takes care of, and the exclusive CPUs of its containers.

        `current` gives a pod by uid, with the status its node knows.
        """
        ...

    def services(self, specification: NodeSpecification) -> NodeServices:
        """The services of a node whose kubelet starts. Raises `CheckpointCorrupt`."""
        ...

    def discard(self, name: str) -> None:
        """Drop the disk of a node that is gone for ever."""
        ...

    async def aclose(self) -> None:
        """Cancel what is under way; files stay."""
        ...

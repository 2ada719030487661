"""The services of a node that is this machine: files below one directory, real commands, real network.

`cluster.real_node` makes one for the `Host` of a node with real containers.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection
from pathlib import Path
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.admitted_pods import AdmittedPods
from nodeward.kubelet.disk import RealDisk
from nodeward.kubelet.downward import AssignedCPUs, assigned_cpus_of, no_cpus
from nodeward.kubelet.dra.driver_plugin import NodeDrivers
from nodeward.kubelet.dra.registered_drivers import RegisteredDrivers
from nodeward.kubelet.environment import EnvironmentResolver, EnvironmentSources
from nodeward.kubelet.hook_runner import HookRunner
from nodeward.kubelet.log_files import container_log_path, pod_log_directory
from nodeward.kubelet.logs import read_log
from nodeward.kubelet.node.specification import NodeSpecification
from nodeward.kubelet.probing.prober import NetworkProber
from nodeward.kubelet.runtime.interface import LogOptions, Runtime
from nodeward.kubelet.volumes.object_cache import ObjectCache
from nodeward.kubelet.volumes.payloads import Sources
from nodeward.kubelet.volumes.tokens import Tokens
from nodeward.kubelet.volumes.volume_manager import DiskVolumeManager
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock


class LocalMachine:
    """Gives a node its services on this machine. `root` is the node's directory; `logs` lies below it by default.

    `drivers`: other DRA drivers than those that register below `root`.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        chance: Chance,
        runtime: Runtime,
        root: Path,
        logs: Path | None = None,
        drivers: NodeDrivers | None = None,
    ) -> None:
        self._client, self._clock, self._chance = client, clock, chance
        self._runtime = runtime
        self._root = root
        self._logs = logs or root / "logs" / "pods"
        self._assigned_cpus: AssignedCPUs = no_cpus
        self._drivers: NodeDrivers = drivers or RegisteredDrivers(root, clock)

    def connect(self, current: Callable[[str], Pod | None], assigned_cpus: AssignedCPUs) -> None:
        """Nothing here looks for pods."""
        self._assigned_cpus = assigned_cpus

    def services(self, specification: NodeSpecification) -> LocalServices:
        return LocalServices(
            specification,
            self._client,
            self._clock,
            self._chance,
            self._runtime,
            self._root,
            self._logs,
            assigned_cpus_of(specification.settings.gates, self._assigned_cpus),
            self._drivers,
        )

    def discard(self, name: str) -> None:
        """Keep the files: they are the operator's."""

    async def aclose(self) -> None:
        """Close the connections to drivers."""
        await self._drivers.aclose()


class LocalServices:
    """The services of one node with real containers."""

    def __init__(
        self,
        specification: NodeSpecification,
        client: Client,
        clock: Clock,
        chance: Chance,
        runtime: Runtime,
        root: Path,
        logs: Path,
        assigned_cpus: AssignedCPUs | None,
        drivers: NodeDrivers,
    ) -> None:
        model = specification.model
        objects, allocatable = ObjectCache(client, clock), model.allocatable()
        version = ".".join(model.kubelet_version.removeprefix("v").split(".")[:2])
        self.has_disk: Final = True
        self.disk: Final = RealDisk(root)
        self.admitted: Final = AdmittedPods(self.disk)
        sources = Sources(objects, Tokens(client, clock, chance), allocatable, assigned_cpus)
        self.volumes: Final = DiskVolumeManager(root, logs, clock, sources)
        around = EnvironmentSources(objects, allocatable, specification.addresses, self.volumes.read_file)
        self.environment: Final = EnvironmentResolver(around)
        self.hooks: Final = HookRunner(runtime, clock, version)
        self.prober: Final = NetworkProber(runtime, clock, version)
        self.logs: Final = LogFiles(str(logs), clock)
        self.drivers: Final = drivers

    async def keep_only(self, uids: Collection[str]) -> None:
        self.admitted.keep_only(uids)
        await self.volumes.keep_only(uids)


class LogFiles:
    """The output of containers, in files below `root`."""

    def __init__(self, root: str, clock: Clock) -> None:
        self._root = root
        self._clock = clock

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
        path = container_log_path(pod_log_directory(self._root, pod), container, attempt)
        return read_log(path, options, self._clock, is_running, from_end=from_end)

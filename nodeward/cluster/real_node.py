"""One node with real containers: its kubelet, its runtime, its volumes and its disk, all below one directory.

Used by `nodeward up` for its process node and by `nodeward kubelet` for any. `start` returns when the kubelet has
heard of its pods; `stop` leaves containers running. A book of admitted pods that cannot be read stops the start before
anything is touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from nodeward.base.errors import ConfigError
from nodeward.base.quantity import Quantity
from nodeward.cluster.description import RuntimeName
from nodeward.features.declared import FRAMEWORK, Framework
from nodeward.kubelet.admitted_pods import AdmittedPods
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.disk import RealDisk
from nodeward.kubelet.dra.driver_plugin import NodeDrivers
from nodeward.kubelet.host import Host
from nodeward.kubelet.local_services import LocalMachine
from nodeward.kubelet.log_rotation import LogRotation
from nodeward.kubelet.node.machine import Machine, this_machine
from nodeward.kubelet.node.specification import NodeModel, NodeSpecification
from nodeward.kubelet.runtime.interface import Runtime
from nodeward.kubelet.static_pods import StaticPods
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.metrics import Metrics


def runtime_named(
    name: RuntimeName,
    root: Path,
    clock: Clock,
    chance: Chance,
    *,
    cri_socket: str = "",
    address: str = "",
    cdi_directories: Sequence[str] = (),
) -> Runtime:
    """The runtime of a real node; `root` is the node's directory, `cdi_directories` those of local processes."""
    if name == "process":
        from nodeward.kubelet.runtime.cdi import CDI_DIRECTORIES
        from nodeward.kubelet.runtime.process.runtime import ProcessRuntime

        return ProcessRuntime(
            root / "containers", clock, chance, cdi_directories=cdi_directories or CDI_DIRECTORIES
        )
    if name == "cri":
        if not cri_socket:
            example = "/run/containerd/containerd.sock"
            raise ConfigError(f"--cri-socket: say where the container runtime listens, for example {example}")
        from nodeward.kubelet.runtime.cri.runtime import CriRuntime

        return CriRuntime(cri_socket, clock, host_ips=(address,) if address else ())
    raise ConfigError(f"runtime {name!r} has no real containers")


class RealNode:
    """A kubelet that runs something."""

    def __init__(
        self,
        name: str,
        client: Client,
        clock: Clock,
        chance: Chance,
        runtime: Runtime,
        root: Path,
        settings: KubeletSettings,
        *,
        version: str,
        labels: dict[str, str] | None = None,
        address: str = "127.0.0.1",
        endpoint_port: int = 0,
        metrics: Metrics | None = None,
        machine: Machine | None = None,
        framework: Framework = FRAMEWORK,
        drivers: NodeDrivers | None = None,
    ) -> None:
        """`version` is the kubelet's, like "1.37"; `machine` is where the node stands, None: on this one.

        `drivers`: DRA drivers, None: those that register below `root`.
        """
        self.name: Final = name
        self._client, self._clock, self._chance = client, clock, chance
        self._runtime, self._root, self._settings = runtime, root.absolute(), settings
        self._version, self._labels, self._address = version, labels or {}, address
        self._endpoint_port, self._machine = endpoint_port, machine
        local = LocalMachine(client, clock, chance.child("machine"), runtime, self._root, drivers=drivers)
        self.host: Final = Host(
            client, clock, chance, runtime, local, only_node=name, metrics=metrics, framework=framework
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Find what runs already, then take care of the node's pods."""
        AdmittedPods(RealDisk(self._root))
        await self.host.begin()
        # What the runtime can do is known only now.
        agent = self.host.add_node(self._specification())
        if self._settings.static_pod_path:
            static = StaticPods(Path(self._settings.static_pod_path), agent, self.host.pods, self._clock)
            # Before the node registers: mirrors of pods nobody has claimed yet would be deleted and made anew.
            static.look()
            self._tasks.append(asyncio.create_task(static.run(), name=f"static pods of {self.name}"))
        self._rotate_logs()
        await self.host.wait_heard()

    def _rotate_logs(self) -> None:
        from nodeward.kubelet.runtime.process.runtime import ProcessRuntime

        if not isinstance(self._runtime, ProcessRuntime):
            return  # a CRI runtime would have to be told to open its logs anew
        rotation = LogRotation(
            self._root / "logs" / "pods",
            self._clock,
            most_bytes=Quantity.parse(self._settings.container_log_max_size).value,
            most_files=self._settings.container_log_max_files,
        )
        self._tasks.append(asyncio.create_task(rotation.run(), name=f"log rotation of {self.name}"))

    async def stop(self) -> None:
        """Containers go on running."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.host.stop()

    def _specification(self) -> NodeSpecification:
        machine = self._machine or this_machine(self._root)
        model = NodeModel(
            settings=self._settings,
            kubelet_version=f"v{self._version}.0",
            labels=self._labels,
            capacity=machine.capacity,
            cpus=machine.cpus,
            architecture=machine.architecture,
            kernel_version=machine.kernel_version,
            os_image=machine.os_image,
            runtime_version=self._runtime.version,
            abilities=self._runtime.abilities,
            endpoint_port=self._endpoint_port,
        )
        return NodeSpecification(
            self.name,
            model,
            addresses=(self._address,),
            machine_id=machine.machine_id,
            system_uuid=machine.system_uuid,
            boot_id=machine.boot_id,
        )

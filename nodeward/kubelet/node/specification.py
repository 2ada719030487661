"""What a node is, before anybody has seen it: the part thousands share, the part that is its own, and the object.

`NodeModel` is the same for all nodes of a pool and is never copied; `NodeSpecification` is one node. From them comes
the `Node` a kubelet registers, with upstream's labels, annotation and system information.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from nodeward.api.core_v1.node import (
    DaemonEndpoint,
    Node,
    NodeAddress,
    NodeDaemonEndpoints,
    NodeFeatures,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
)
from nodeward.api.meta import ObjectMeta
from nodeward.base.quantity import Quantity
from nodeward.features.gates import Gates
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.cpu.topology import CPUTopology
from nodeward.kubelet.dra.described_drivers import DriverDescription
from nodeward.kubelet.node.abilities import static_config
from nodeward.rules.readiness import TIMED_BY_ANNOTATION

HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
OS_LABEL: Final = "kubernetes.io/os"
ARCH_LABEL: Final = "kubernetes.io/arch"
BETA_OS_LABEL: Final = "beta.kubernetes.io/os"
BETA_ARCH_LABEL: Final = "beta.kubernetes.io/arch"
#: Volumes are attached by a controller, not by the kubelet.
ATTACH_ANNOTATION: Final = "volumes.kubernetes.io/controller-managed-attach-detach"

_NO_LABELS: Final[Mapping[str, str]] = MappingProxyType({})


def _amounts(**texts: str) -> Mapping[str, Quantity]:
    return MappingProxyType({name.replace("_", "-"): Quantity.parse(text) for name, text in texts.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeModel:
    """What nodes of one kind have in common: software, machine and settings."""

    settings: KubeletSettings = field(default_factory=KubeletSettings)
    #: the kubelet's own version, as it is shown: v1.37.0
    kubelet_version: str = "v1.37.0"
    #: as `--node-labels` says; they go before the kubelet's own
    labels: Mapping[str, str] = field(default_factory=lambda: _NO_LABELS)
    #: without pods, which the settings say
    capacity: Mapping[str, Quantity] = field(
        default_factory=lambda: _amounts(cpu="4", memory="8Gi", ephemeral_storage="100Gi")
    )
    #: sockets, NUMA nodes, caches and cores; None: unknown, and each CPU counts as a core of one socket
    cpus: CPUTopology | None = None
    #: the DRA drivers of simulated nodes
    drivers: tuple[DriverDescription, ...] = ()
    operating_system: str = "linux"
    architecture: str = "amd64"
    kernel_version: str = ""
    os_image: str = ""
    runtime_version: str = "sim://1.0"
    #: what the container runtime is able to do, for features that depend on it (`Runtime.abilities`)
    abilities: Mapping[str, str] = field(default_factory=lambda: _NO_LABELS)
    supplemental_groups: bool = True
    #: where the kubelet's own server really listens; 0: as the settings say
    endpoint_port: int = 0

    @property
    def gates(self) -> Gates:
        return self.settings.gates

    @property
    def static_config(self) -> Mapping[str, str]:
        """What the node can do, beside its gates."""
        return static_config(self.settings, self.abilities)

    def whole_capacity(self) -> dict[str, Quantity]:
        """The capacity with the number of pods."""
        settings = self.settings
        pods = settings.max_pods
        if settings.pods_per_core and "cpu" in self.capacity:
            pods = min(pods, settings.pods_per_core * self.capacity["cpu"].value)
        return {**self.capacity, "pods": Quantity.of_int(pods)}

    def allocatable(self) -> dict[str, Quantity]:
        """What pods may have of it."""
        return self.settings.reservation.allocatable(self.whole_capacity())


@dataclass(frozen=True, slots=True)
class NodeSpecification:
    """One node: a model, and what only this one has."""

    name: str
    model: NodeModel
    addresses: tuple[str, ...] = ()
    machine_id: str = ""
    system_uuid: str = ""
    #: another one after every boot
    boot_id: str = ""
    #: empty: the name
    hostname: str = ""
    #: empty: as the settings say
    provider_id: str = ""

    @property
    def settings(self) -> KubeletSettings:
        return self.model.settings

    def labels(self) -> dict[str, str]:
        """The labels the node is registered with."""
        model = self.model
        return {
            HOSTNAME_LABEL: self.hostname or self.name,
            OS_LABEL: model.operating_system,
            ARCH_LABEL: model.architecture,
            BETA_OS_LABEL: model.operating_system,
            BETA_ARCH_LABEL: model.architecture,
            **model.labels,
        }

    def node_addresses(self) -> list[NodeAddress]:
        listed = [NodeAddress(type="InternalIP", address=address) for address in self.addresses]
        return [*listed, NodeAddress(type="Hostname", address=self.hostname or self.name)]

    def node_info(self) -> NodeSystemInfo:
        model = self.model
        # Before 1.33 (or with the gate off) the kubelet guessed the version of kube-proxy.
        proxy = "" if model.gates.enabled("DisableNodeKubeProxyVersion") else model.kubelet_version
        return NodeSystemInfo(
            machine_id=self.machine_id,
            system_uuid=self.system_uuid,
            boot_id=self.boot_id,
            kernel_version=model.kernel_version,
            os_image=model.os_image,
            container_runtime_version=model.runtime_version,
            kubelet_version=model.kubelet_version,
            kube_proxy_version=proxy,
            operating_system=model.operating_system,
            architecture=model.architecture,
        )

    def daemon_endpoints(self) -> NodeDaemonEndpoints:
        port = self.model.endpoint_port or self.settings.port
        return NodeDaemonEndpoints(kubelet_endpoint=DaemonEndpoint(port=port))

    def node_features(self) -> NodeFeatures | None:
        if not self.model.gates.enabled("SupplementalGroupsPolicy"):
            return None
        return NodeFeatures(supplemental_groups_policy=self.model.supplemental_groups)


def bare_node(specification: NodeSpecification) -> Node:
    """The node as its spec and metadata will be registered, without conditions."""
    settings = specification.settings
    annotations = {ATTACH_ANNOTATION: "true"} if settings.attach_detach_by_controller else {}
    if has_readiness_gates(settings):
        annotations[TIMED_BY_ANNOTATION] = specification.model.kubelet_version
    gates = [each.gate for each in settings.readiness_gates] if has_readiness_gates(settings) else []
    labels = specification.labels()
    return Node(
        metadata=ObjectMeta(name=specification.name, labels=labels, annotations=annotations),
        spec=NodeSpec(
            provider_id=specification.provider_id or settings.provider_id,
            taints=list(settings.taints),
            readiness_gates=gates,
        ),
        status=NodeStatus(
            capacity=specification.model.whole_capacity(),
            allocatable=specification.model.allocatable(),
            addresses=specification.node_addresses(),
            daemon_endpoints=specification.daemon_endpoints(),
            node_info=specification.node_info(),
            features=specification.node_features(),
        ),
    )


def has_readiness_gates(settings: KubeletSettings) -> bool:
    """Whether this kubelet knows of readiness gates at all (KEP-5233)."""
    return settings.gates.enabled("NodeReadinessGates")

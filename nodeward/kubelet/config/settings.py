"""What a kubelet does with its configuration: the settings it honours, with upstream's defaults, spans in nanoseconds.

A value is immutable and says nothing about one node, so thousands of simulated nodes share one. `KubeletSettings()`
is what an empty file gives in 1.37; files are read by `loading`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from nodeward.api.core_v1.container import Probe
from nodeward.api.core_v1.node import NodeReadinessGate
from nodeward.api.core_v1.references import Taint
from nodeward.base.duration import HOUR_NS, MINUTE_NS, SECOND_NS
from nodeward.features.gates import Gates
from nodeward.kubelet.config.cpu_options import CpuManagerOptions
from nodeward.kubelet.config.reserved import Reservation

DEFAULT_PORT: Final = 10250
DEFAULT_HEALTHZ_PORT: Final = 10248
DEFAULT_MAX_PODS: Final = 110
DEFAULT_LEASE_SECONDS: Final = 40
DEFAULT_UPDATE_NS: Final = 10 * SECOND_NS
DEFAULT_REPORT_NS: Final = 5 * MINUTE_NS
DEFAULT_MAX_IMAGES: Final = 50
DEFAULT_MAX_RESTART_NS: Final = 300 * SECOND_NS
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class GateProbe:
    """How the kubelet itself finds out whether a gate's condition holds; defaults are those of container probes."""

    #: exactly one of exec, httpGet, tcpSocket, grpc is set
    action: Probe
    period_ns: int = 10 * SECOND_NS
    timeout_ns: int = SECOND_NS
    initial_delay_ns: int = 0
    success_threshold: int = 1
    failure_threshold: int = 3


@dataclass(frozen=True, slots=True)
class ReadinessGateSettings:
    """One gate of the configuration (KEP-5233); without a probe its condition is somebody else's to report."""

    gate: NodeReadinessGate
    probe: GateProbe | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSettings:
    """The settings of a kubelet, checked."""

    gates: Gates = field(default_factory=lambda: Gates.of("1.37"))

    # -- its own server
    enable_server: bool = True
    address: str = "0.0.0.0"
    port: int = DEFAULT_PORT
    healthz_address: str = "127.0.0.1"
    #: 0: none
    healthz_port: int = DEFAULT_HEALTHZ_PORT
    enable_debugging_handlers: bool = True
    anonymous_auth: bool = False
    client_ca_file: str = ""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    streaming_idle_ns: int = 4 * HOUR_NS

    # -- the node object
    register_node: bool = True
    taints: tuple[Taint, ...] = ()
    readiness_gates: tuple[ReadinessGateSettings, ...] = ()
    provider_id: str = ""
    attach_detach_by_controller: bool = True
    status_update_ns: int = DEFAULT_UPDATE_NS
    status_report_ns: int = DEFAULT_REPORT_NS
    lease_seconds: int = DEFAULT_LEASE_SECONDS
    #: -1: all of them
    max_images: int = DEFAULT_MAX_IMAGES

    # -- room for pods
    max_pods: int = DEFAULT_MAX_PODS
    #: 0: only `max_pods` counts
    pods_per_core: int = 0
    #: -1: what the node has
    pod_pids_limit: int = -1
    reservation: Reservation = field(default_factory=Reservation)
    cpu_policy: str = "none"
    cpu_options: CpuManagerOptions = field(default_factory=CpuManagerOptions)
    cpu_reconcile_ns: int = 10 * SECOND_NS
    memory_policy: str = "None"
    topology_policy: str = "none"
    topology_scope: str = "container"
    topology_options: Mapping[str, str] = field(default_factory=lambda: _NOTHING)

    # -- pods
    static_pod_path: str = ""
    sync_ns: int = MINUTE_NS
    file_check_ns: int = 20 * SECOND_NS
    serialize_image_pulls: bool = True
    #: None: as many as there are, unless they are serialized
    max_parallel_image_pulls: int | None = None
    max_restart_ns: int = DEFAULT_MAX_RESTART_NS
    shutdown_grace_ns: int = 0
    shutdown_grace_critical_ns: int = 0
    cluster_dns: tuple[str, ...] = ()
    cluster_domain: str = ""
    resolv_conf: str = "/etc/resolv.conf"
    allowed_unsafe_sysctls: tuple[str, ...] = ()

    # -- the runtime
    runtime_endpoint: str = "unix:///run/containerd/containerd.sock"
    image_endpoint: str = ""
    runtime_timeout_ns: int = 2 * MINUTE_NS
    pod_logs_dir: str = "/var/log/pods"
    container_log_max_size: str = "10Mi"
    container_log_max_files: int = 5

    #: the file as it was, for `/configz`; what is accepted and changes nothing is only here
    given: Mapping[str, Any] = field(default_factory=lambda: _NOTHING, repr=False)

    @property
    def lease_renew_ns(self) -> int:
        """A quarter of the time the lease lasts."""
        return self.lease_seconds * SECOND_NS // 4

"""Services and the endpoints behind them."""

from __future__ import annotations

from typing import Annotated, ClassVar

from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.fields import (
    ATOMIC,
    REQUIRED,
    Int32,
    IntOrString,
    Keyed,
    KubeStruct,
    ListMap,
    Merge,
    OneOf,
    always,
    field,
    nested,
)
from nodeward.api.meta import Condition, KubeObject


class ClientIPConfig(KubeStruct):
    timeout_seconds: Int32 | None = None


class EndpointAddress(KubeStruct):
    is_atomic: ClassVar[bool] = True

    ip: Annotated[str, REQUIRED] = always("")
    hostname: str = ""
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(KubeStruct):
    is_atomic: ClassVar[bool] = True

    name: str = ""
    port: Annotated[Int32, REQUIRED] = always(0)
    protocol: Annotated[str, OneOf("SCTP", "TCP", "UDP")] = ""
    app_protocol: str | None = None


class EndpointSubset(KubeStruct):
    addresses: list[EndpointAddress] = []
    not_ready_addresses: list[EndpointAddress] = []
    ports: list[EndpointPort] = []


class Endpoints(KubeObject):
    subsets: list[EndpointSubset] = []


class PortStatus(KubeStruct):
    port: Annotated[Int32, REQUIRED] = always(0)
    protocol: Annotated[str, OneOf("SCTP", "TCP", "UDP"), REQUIRED] = always("")
    error: str | None = None


class LoadBalancerIngress(KubeStruct):
    ip: str = ""
    hostname: str = ""
    ip_mode: str | None = None
    ports: list[PortStatus] = []


class LoadBalancerStatus(KubeStruct):
    ingress: list[LoadBalancerIngress] = []


class ServicePort(KubeStruct):
    name: str = ""
    protocol: Annotated[str, OneOf("SCTP", "TCP", "UDP")] = ""
    app_protocol: str | None = None
    port: Annotated[Int32, REQUIRED] = always(0)
    target_port: IntOrString = always(0)
    node_port: Int32 = 0


class SessionAffinityConfig(KubeStruct):
    client_ip: ClientIPConfig | None = field(default=None, name="clientIP")


class ServiceSpec(KubeStruct):
    ports: Annotated[list[ServicePort], ListMap("port", "protocol"), Merge("port")] = []
    selector: Annotated[dict[str, str], ATOMIC] = {}
    cluster_ip: str = field(default="", name="clusterIP")
    cluster_ips: list[str] = field(default_factory=list, name="clusterIPs")
    type: Annotated[str, OneOf("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")] = ""
    external_ips: list[str] = field(default_factory=list, name="externalIPs")
    session_affinity: Annotated[str, OneOf("ClientIP", "None")] = ""
    load_balancer_ip: str = field(default="", name="loadBalancerIP")
    load_balancer_source_ranges: list[str] = []
    external_name: str = ""
    external_traffic_policy: Annotated[str, OneOf("Cluster", "Local")] = ""
    health_check_node_port: Int32 = 0
    publish_not_ready_addresses: bool = False
    session_affinity_config: SessionAffinityConfig | None = None
    ip_families: list[str] = []
    ip_family_policy: Annotated[
        str | None,
        OneOf("PreferDualStack", "RequireDualStack", "SingleStack"),
    ] = None
    allocate_load_balancer_node_ports: bool | None = None
    load_balancer_class: str | None = None
    internal_traffic_policy: Annotated[str | None, OneOf("Cluster", "Local")] = None
    traffic_distribution: str | None = None


class ServiceStatus(KubeStruct):
    load_balancer: LoadBalancerStatus = nested(LoadBalancerStatus)
    conditions: Annotated[list[Condition], Keyed("type")] = []


class Service(KubeObject):
    spec: ServiceSpec = nested(ServiceSpec)
    status: ServiceStatus = nested(ServiceStatus)


def is_externally_accessible(spec: ServiceSpec) -> bool:
    return spec.type in ("LoadBalancer", "NodePort") or (spec.type == "ClusterIP" and bool(spec.external_ips))


def needs_health_check(spec: ServiceSpec) -> bool:
    return spec.type == "LoadBalancer" and spec.external_traffic_policy == "Local"

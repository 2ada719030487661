"""Defaults of services, endpoints and endpoint slices: protocols, ports, policies."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.service import (
    ClientIPConfig,
    Endpoints,
    Service,
    SessionAffinityConfig,
    is_externally_accessible,
)
from nodeward.api.discovery_v1 import EndpointSlice

_AFFINITY_SECONDS: Final = 10800


def default_service(service: Service) -> None:
    spec = service.spec
    spec.session_affinity = spec.session_affinity or "None"
    config = spec.session_affinity_config
    if spec.session_affinity == "None":
        spec.session_affinity_config = None
    elif spec.session_affinity == "ClientIP":
        client = config.client_ip if config is not None else None
        if client is None or client.timeout_seconds is None:
            client = ClientIPConfig(timeout_seconds=_AFFINITY_SECONDS)
            spec.session_affinity_config = SessionAffinityConfig(client_ip=client)
    spec.type = spec.type or "ClusterIP"
    for port in spec.ports:
        port.protocol = port.protocol or "TCP"
        if port.target_port in (0, ""):
            port.target_port = port.port
    if is_externally_accessible(spec) and not spec.external_traffic_policy:
        spec.external_traffic_policy = "Cluster"
    if spec.internal_traffic_policy is None and spec.type in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.internal_traffic_policy = "Cluster"
    if spec.type == "LoadBalancer":
        if spec.allocate_load_balancer_node_ports is None:
            spec.allocate_load_balancer_node_ports = True
        for ingress in service.status.load_balancer.ingress:
            if ingress.ip and ingress.ip_mode is None:
                ingress.ip_mode = "VIP"


def default_endpoints(endpoints: Endpoints) -> None:
    for subset in endpoints.subsets:
        for port in subset.ports:
            port.protocol = port.protocol or "TCP"


def default_endpoint_slice(endpoints: EndpointSlice) -> None:
    for port in endpoints.ports:
        if port.name is None:
            port.name = ""
        if port.protocol is None:
            port.protocol = "TCP"

"""Printers of services, endpoints and endpoint slices."""

from __future__ import annotations

from collections.abc import Iterator

from nodeward.api.core_v1.service import Endpoints, Service, ServicePort
from nodeward.api.discovery_v1 import EndpointSlice
from nodeward.api.printing.cells import NONE, UNKNOWN, UNSET, age, labels_text, shortened
from nodeward.api.printing.printer import AGE, NAME, Cells, Column, Printer, wide


def _external_ip(service: Service) -> str:
    spec = service.spec
    match spec.type:
        case "ClusterIP" | "NodePort":
            return ",".join(spec.external_ips) or NONE
        case "LoadBalancer":
            names = (ingress.ip or ingress.hostname for ingress in service.status.load_balancer.ingress)
            return ",".join([*sorted({name for name in names if name}), *spec.external_ips]) or "<pending>"
        case "ExternalName":
            return spec.external_name
        case _:
            return UNKNOWN


def _port(port: ServicePort) -> str:
    number = f"{port.port}:{port.node_port}" if port.node_port > 0 else str(port.port)
    return f"{number}/{port.protocol}"


def _service(service: Service, now_ns: int) -> Cells:
    spec = service.spec
    return [
        service.metadata.name,
        spec.type,
        spec.cluster_ips[0] if spec.cluster_ips else NONE,
        _external_ip(service),
        ",".join(map(_port, spec.ports)) or NONE,
        age(service, now_ns),
        labels_text(spec.selector),
    ]


def _host_port(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _addresses(endpoints: Endpoints) -> Iterator[str]:
    for subset in endpoints.subsets:
        if not subset.ports:  # headless: the address is all there is
            yield from (address.ip for address in subset.addresses)
        for port in subset.ports:
            yield from (_host_port(address.ip, port.port) for address in subset.addresses)


def _endpoints(endpoints: Endpoints, now_ns: int) -> Cells:
    text = shortened(_addresses(endpoints)) if endpoints.subsets else NONE
    return [endpoints.metadata.name, text, age(endpoints, now_ns)]


def _slice_ports(endpoint_slice: EndpointSlice) -> Iterator[str]:
    for port in endpoint_slice.ports:
        if port.port is not None:
            yield str(port.port)
        else:
            yield "*" if port.name is None else port.name


def _endpoint_slice(endpoint_slice: EndpointSlice, now_ns: int) -> Cells:
    addresses = (address for endpoint in endpoint_slice.endpoints for address in endpoint.addresses)
    return [
        endpoint_slice.metadata.name,
        endpoint_slice.address_type,
        shortened(_slice_ports(endpoint_slice)) or UNSET,
        shortened(addresses) or UNSET,
        age(endpoint_slice, now_ns),
    ]


SERVICE = Printer(
    (
        NAME,
        Column("Type", description="How the service is reached."),
        Column("Cluster-IP", description="Address inside the cluster."),
        Column("External-IP", description="Addresses for the outside."),
        Column("Port(s)", description="Ports, with the port on every node after a colon."),
        AGE,
        wide("Selector", "Labels of the pods behind the service."),
    ),
    _service,
)
ENDPOINTS = Printer(
    (NAME, Column("Endpoints", description="Addresses and ports behind the service."), AGE), _endpoints
)
ENDPOINT_SLICE = Printer(
    (
        NAME,
        Column("AddressType", description="Family of the addresses."),
        Column("Ports", description="Ports of every endpoint."),
        Column("Endpoints", description="Addresses of the endpoints."),
        AGE,
    ),
    _endpoint_slice,
)

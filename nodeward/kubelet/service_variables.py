"""Variables that tell containers where services are: `REDIS_SERVICE_HOST`, and the older form Docker had."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from nodeward.api.core_v1.service import Service

_DEFAULT: Final = "default"
#: Told to every pod, wherever it is and whatever it asks for: clients inside find the API server by it.
_MASTER: Final = "kubernetes"


def service_variables(services: Iterable[Service], namespace: str, *, with_links: bool) -> dict[str, str]:
    """The variables a container in `namespace` is given."""
    chosen: dict[str, Service] = {}
    for service in services:
        meta, address = service.metadata, service.spec.cluster_ip
        if not address or address == "None" or not service.spec.ports:
            continue
        if meta.namespace == _DEFAULT and meta.name == _MASTER:
            chosen.setdefault(meta.name, service)
        elif meta.namespace == namespace and with_links:
            chosen[meta.name] = service
    found: dict[str, str] = {}
    for name in sorted(chosen):
        found |= _variables(chosen[name])
    return found


def _variables(service: Service) -> dict[str, str]:
    name, address, ports = _spelt(service.metadata.name), service.spec.cluster_ip, service.spec.ports
    found = {f"{name}_SERVICE_HOST": address, f"{name}_SERVICE_PORT": str(ports[0].port)}
    for port in ports:
        if port.name:
            found[f"{name}_SERVICE_PORT_{_spelt(port.name)}"] = str(port.port)
    host = f"[{address}]" if ":" in address else address
    for number, port in enumerate(ports):
        protocol = port.protocol or "TCP"
        url = f"{protocol.lower()}://{host}:{port.port}"
        if number == 0:
            found[f"{name}_PORT"] = url
        prefix = f"{name}_PORT_{port.port}_{protocol.upper()}"
        found[prefix] = url
        found[f"{prefix}_PROTO"] = protocol.lower()
        found[f"{prefix}_PORT"] = str(port.port)
        found[f"{prefix}_ADDR"] = address
    return found


def _spelt(name: str) -> str:
    return name.upper().replace("-", "_")

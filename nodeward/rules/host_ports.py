"""Host ports: which ones a pod wants on its node, and whether they are free there. Pure.

The scheduler's node cache and the kubelet's admission count the same ports by the same rule: a port on any address
takes that port on all addresses of the node.

Called by the scheduler and the kubelet.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Final, TypeAlias

from nodeward.api.core_v1.pod import PodSpec

#: (protocol, port) -> address -> how many pods use it
Ports: TypeAlias = dict[tuple[str, int], dict[str, int]]
#: (address, protocol, port)
HostPort: TypeAlias = tuple[str, str, int]

#: What a pod that names no address is taken to want.
ANY_ADDRESS: Final = "0.0.0.0"
_ports = operator.attrgetter("ports")


def host_ports(spec: PodSpec) -> tuple[HostPort, ...]:
    """Return the ports a pod wants on its node. Init containers that end leave none behind."""
    if not spec.init_containers and not any(map(_ports, spec.containers)):
        return ()
    containers = (
        *spec.containers,
        *(each for each in spec.init_containers if each.restart_policy == "Always"),
    )
    return tuple(
        (port.host_ip or ANY_ADDRESS, port.protocol or "TCP", port.host_port)
        for container in containers
        for port in container.ports
        if port.host_port
    )


def add_ports(ports: Ports, wanted: Iterable[HostPort]) -> None:
    """Count the ports of a pod that comes."""
    for address, protocol, port in wanted:
        users = ports.setdefault((protocol, port), {})
        users[address] = users.get(address, 0) + 1


def remove_ports(ports: Ports, held: Iterable[HostPort]) -> None:
    """Count the ports of a pod that goes."""
    for address, protocol, port in held:
        users = ports[protocol, port]
        users[address] -= 1
        if not users[address]:
            del users[address]
            if not users:
                del ports[protocol, port]


def has_conflict(ports: Ports, wanted: Iterable[HostPort]) -> bool:
    """Tell whether one of the wanted ports is taken."""
    for address, protocol, port in wanted:
        users = ports.get((protocol, port))
        if users and (address == ANY_ADDRESS or ANY_ADDRESS in users or address in users):
            return True
    return False

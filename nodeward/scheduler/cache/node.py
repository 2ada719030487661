"""One node as a plugin in plain form sees it: the object, the pods on it, and what they take.

Worked out from the object and the pods themselves, not from the table's columns, so that the two can be compared.
A view is a picture: it does not follow later changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nodeward.api.core_v1.node import Node
from nodeward.scheduler.cache.images import Image
from nodeward.scheduler.framework.pod import PodView

#: (protocol, port) -> address -> how many pods use it
Ports = dict[tuple[str, int], dict[str, int]]

ANY_ADDRESS = "0.0.0.0"  # what a pod that names no address is taken to want


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node at one moment."""

    node: Node
    pods: tuple[PodView, ...]
    #: cpu in millicores, all else in whole units
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    #: as `requested`, with a little CPU and memory for containers that ask for none
    scored: Mapping[str, int]
    ports: Ports
    #: the images on the node, by each of their names
    images: Mapping[str, Image]
    #: how many nodes there are in all
    nodes: int

    @property
    def name(self) -> str:
        return self.node.metadata.name


def add_ports(ports: Ports, wanted: Iterable[tuple[str, str, int]]) -> None:
    for address, protocol, port in wanted:
        users = ports.setdefault((protocol, port), {})
        users[address] = users.get(address, 0) + 1


def remove_ports(ports: Ports, held: Iterable[tuple[str, str, int]]) -> None:
    for address, protocol, port in held:
        users = ports[protocol, port]
        users[address] -= 1
        if not users[address]:
            del users[address]
            if not users:
                del ports[protocol, port]


def has_conflict(ports: Ports, wanted: Iterable[tuple[str, str, int]]) -> bool:
    """Whether one of the wanted ports is taken. A port on any address takes it on all of them."""
    for address, protocol, port in wanted:
        users = ports.get((protocol, port))
        if users and (address == ANY_ADDRESS or ANY_ADDRESS in users or address in users):
            return True
    return False

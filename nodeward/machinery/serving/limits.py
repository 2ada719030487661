"""What a peer may take of a server: sizes, times and numbers of connections.

A `Limits` is given to a `Listener` and kept by its connections (`connection.py`); the defaults are in docs/limits.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What a peer may take of us. Times are kept to within the shortest of them."""

    max_head: int = 64 << 10
    #: the largest request body, as kube-apiserver's
    max_body: int = 3 << 20
    #: how long a request's head, then its body, may take to arrive
    head_seconds: float = 30.0
    body_seconds: float = 60.0
    #: how long a connection may stay open between two requests
    idle_seconds: float = 120.0
    #: how long a peer may leave an answer untouched
    stall_seconds: float = 60.0
    #: connections in all, and from one address; a further one is closed at once
    max_connections: int = 4000
    max_connections_of_address: int = 2000
    #: how long we go on listening to a peer that was refused in mid-sentence, so that it hears why
    linger_seconds: float = 0.5

    def are_reached(self, count: int, addresses: Iterable[str], address: str) -> bool:
        """Tell whether there are as many connections as there may be, in all or from this address."""
        if count >= self.max_connections:
            return True
        most = self.max_connections_of_address
        return count >= most and sum(each == address for each in addresses) >= most

    @property
    def shortest_seconds(self) -> float:
        return min(self.head_seconds, self.body_seconds, self.idle_seconds, self.stall_seconds)

"""What came of asking, and where to ask: shared by all ways to ask."""

from __future__ import annotations

import os
from dataclasses import dataclass

from nodeward.api.core_v1.container import Container, EphemeralContainer
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """`ok` is None when it could not be asked at all; the text is what users read in events."""

    ok: bool | None
    text: str = ""


class NoSuchPort(WorldError):
    """The port to ask is not one."""


def port_number(port: int | str, container: Container | EphemeralContainer | None) -> int:
    """A port by number, or by the name it has in the container."""
    if isinstance(port, str):
        named = container.ports if container is not None else []
        found = next((each.container_port for each in named if each.name == port), None)
        if found is None:
            raise NoSuchPort(f"port {quote(port)} not found")
        port = found
    if not 0 < port < 65536:
        raise NoSuchPort(f"invalid port number: {port}")
    return port


def joined(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def dial_error(address: str, error: OSError) -> str:
    """A connection that could not be made, in the words users know."""
    words = os.strerror(error.errno).lower() if error.errno else str(error)
    return f"dial tcp {address}: connect: {words}"


def seconds_text(seconds: float) -> str:
    """A timeout as Go writes it."""
    return f"{seconds:g}s"

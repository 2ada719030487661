"""gRPC over unix sockets: how channels are made, and how Go calls the status of a call.

Used by the CRI client, by the kubelet for DRA drivers, and by drivers. Import it late: the library is large.
"""

from __future__ import annotations

from typing import Final

import grpc
import grpc.aio

_OPTIONS: Final = (
    # The path of the socket is no host name, and some servers refuse a request that says so.
    ("grpc.default_authority", "localhost"),
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.enable_http_proxy", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


def unix_channel(socket: str) -> grpc.aio.Channel:
    """Return a channel to a socket, which connects when it is used and again by itself."""
    return grpc.aio.insecure_channel(f"unix:{socket}", options=_OPTIONS)


def status_name(code: grpc.StatusCode) -> str:
    """Return the name of a status as Go writes it: DeadlineExceeded."""
    return "".join(part.capitalize() for part in code.name.split("_"))

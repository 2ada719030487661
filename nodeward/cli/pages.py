"""The HTTP pages of a component that runs alone: /healthz, /livez, /readyz and /metrics, on a port of its own."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from nodeward.apiserver.pki import Pki, server_context
from nodeward.base.errors import ConfigError
from nodeward.machinery.clock import Clock
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.serving.answer import Answer
from nodeward.machinery.serving.connection import Peer
from nodeward.machinery.serving.health import HealthPages
from nodeward.machinery.serving.listener import Listener
from nodeward.machinery.transport import Request

Checks = Mapping[str, Callable[[], bool]]


async def serve_pages(
    address: str,
    port: int,
    metrics: Metrics,
    clock: Clock,
    running: AsyncExitStack,
    *,
    alive: Checks,
    ready: Checks,
    has_tls: bool,
    flags: str,
) -> None:
    """Serve until `running` ends; port 0: nothing is opened. `flags` are those that choose the address.

    The certificate is made for this run: the pages contain nothing secret.
    """
    if not port:
        return
    living, readiness = HealthPages(metrics, alive), HealthPages(metrics, {**alive, **ready})

    async def handle(request: Request, peer: Peer) -> Answer:
        return await (readiness if request.path.startswith("/readyz") else living).handle(request, peer)

    context = None
    if has_tls:
        with tempfile.TemporaryDirectory() as directory:
            pki = Pki(Path(directory), clock.now_ns())
            context = server_context(pki.serving(socket.gethostname(), (address,)), pki.authority_path)
    listener = Listener(handle, clock)
    try:
        await listener.listen(address, port, context)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {address}:{port}: {error.strerror or error}; choose another with {flags} (0: no pages)"
        ) from None
    running.push_async_callback(listener.stop)

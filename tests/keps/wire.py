"""An API server of a chosen version and gates, reached as clients reach it: over TLS, with a certificate."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from nodeward.apiserver.pki import Pki, server_context
from nodeward.machinery.clock import RealClock
from nodeward.machinery.http_transport import HttpTransport
from nodeward.store.interface import Store
from tests.apiserver.running import Caller, running, settings


@asynccontextmanager
async def served(
    version: str = "1.37", gates: str = "", *, store: Store | None = None, **others: Any
) -> AsyncIterator[Caller]:
    """The administrator's way in. A store that is handed on shows what a server of another version left in it."""
    clock = RealClock()
    with tempfile.TemporaryDirectory() as home:
        pki = Pki(Path(home) / "pki", clock.now_ns())
        admin = pki.admin()
        identity = Path(home) / "admin.pem"
        identity.write_bytes(admin.certificate + admin.key)
        context = ssl.create_default_context(cadata=pki.authority_certificate.decode())
        context.load_cert_chain(identity)
        chosen = settings(version=version, gates=gates, **others)
        async with running(chosen, store=store, clock=clock) as server:
            tls = server_context(pki.serving("localhost"), pki.authority_path)
            port = await server.listen("127.0.0.1", 0, tls)
            transport = HttpTransport(f"https://127.0.0.1:{port}", clock=clock, ssl_context=context)
            try:
                yield Caller(transport)
            finally:
                await transport.aclose()

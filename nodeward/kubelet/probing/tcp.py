"""Whether somebody accepts connections."""

from __future__ import annotations

import asyncio

from nodeward.kubelet.probing.answer import ProbeAnswer, dial_error, joined
from nodeward.machinery.clock import Clock
from nodeward.machinery.eager import own_task


@own_task
async def ask_tcp(host: str, port: int, timeout: float, clock: Clock) -> ProbeAnswer:
    """Open a connection and close it again."""
    address = joined(host, port)
    try:
        async with clock.timeout(timeout):
            _, writer = await asyncio.open_connection(host, port)
    except TimeoutError:
        return ProbeAnswer(False, f"dial tcp {address}: i/o timeout")
    except OSError as error:
        return ProbeAnswer(False, dial_error(address, error))
    writer.transport.abort()
    return ProbeAnswer(True)

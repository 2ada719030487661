"""A command in a simulated container, as `kubectl exec` sees it: standard input in, output and an exit code out.

`SimRuntime.exec` makes one. The command runs when its output is read; one that reads its standard input (`tar x`,
`cat`) waits until that ends. An unknown command (a shell without a script, say) lasts as long as its caller stays.

What must stay true: standard input is kept up to `MOST_STDIN` bytes and no further.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.interface import ExecRequest
from nodeward.kubelet.simulated import shell
from nodeward.kubelet.simulated.container_view import ContainerView
from nodeward.machinery.clock import Clock

MOST_STDIN: Final = 4 << 20
#: What a program takes to start. kubectl loses output that comes before it has set up its streams.
_START_SECONDS: Final = 0.1


async def run_to_end(
    request: ExecRequest,
    view: ContainerView | None,
    clock: Clock,
    stdin: bytes = b"",
    timeout: float = 0.0,
) -> shell.CommandResult:
    """Run a command; without a view of the container it only says what it would have run. Raises TimeoutError."""
    if view is None:
        return shell.CommandResult(0, f"simulated: {' '.join(request.command)}\n".encode())
    end_ns = clock.monotonic_ns() + int(timeout * SECOND_NS) if timeout else 0
    return await shell.run(view, request.command, stdin, clock, end_ns)


class SimExec:
    """One command under way."""

    def __init__(self, request: ExecRequest, view: ContainerView | None, clock: Clock) -> None:
        self._request = request
        self._view = view
        self._clock = clock
        self._stdin = bytearray()
        self._stdin_over = asyncio.Event()
        self._code = 0
        self._is_known = shell.is_known(request.command)
        if not request.has_stdin:
            self._stdin_over.set()

    async def output(self) -> AsyncIterator[tuple[int, bytes]]:
        if shell.reads_stdin(self._request.command):
            await self._stdin_over.wait()
        await self._clock.sleep(_START_SECONDS)
        result = await run_to_end(self._request, self._view, self._clock, bytes(self._stdin))
        self._code = result.code
        if result.output:
            yield 1, result.output
        if result.errors:
            yield 1 if self._request.is_tty else 2, result.errors
        if not self._is_known:
            await self._stdin_over.wait()

    async def write(self, data: bytes) -> None:
        if len(self._stdin) + len(data) > MOST_STDIN:
            raise WorldError(f"a simulated container reads at most {MOST_STDIN} bytes")
        if self._is_known:
            self._stdin += data

    async def close_stdin(self) -> None:
        self._stdin_over.set()

    async def resize(self, width: int, height: int) -> None:
        """There is no terminal."""

    async def wait(self) -> int:
        return self._code

    async def kill(self) -> None:
        self._stdin_over.set()

"""Whether a command ends well: in a container, or on the node itself."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from typing import Final

from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.kubelet.probing.answer import ProbeAnswer, seconds_text
from nodeward.kubelet.runtime.interface import ExecRequest, Runtime
from nodeward.machinery.clock import Clock
from nodeward.machinery.eager import own_task

_MAX_OUTPUT: Final = 10 * 1024


async def ask_container(runtime: Runtime, request: ExecRequest, timeout: float) -> ProbeAnswer:
    """Run a command in a container; one that could not be run at all says nothing about the container."""
    try:
        result = await runtime.exec_sync(request, timeout)
    except TimeoutError:
        return ProbeAnswer(False, _timed_out(request.command, timeout))
    except WorldError as error:
        return ProbeAnswer(None, str(error))
    return ProbeAnswer(result.exit_code == 0, _shown(result.output))


@own_task
async def ask_node(command: Sequence[str], timeout: float, clock: Clock) -> ProbeAnswer:
    """Run a process of the node; when its time is up, it is killed with all it has started."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return ProbeAnswer(
            None, f"cannot run {quote(command[0] if command else '')}: {error.strerror or error}"
        )
    try:
        with clock.hold("a probe of the node"):
            async with clock.timeout(timeout):
                output = await _read(process)
                code = await process.wait()
    except TimeoutError:
        return ProbeAnswer(False, _timed_out(command, timeout))
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return ProbeAnswer(code == 0, _shown(output))


async def _read(process: asyncio.subprocess.Process) -> bytes:
    """All it says, of which the beginning is kept: one that talks without end must not wait for us."""
    kept = bytearray()
    if process.stdout is not None:
        while data := await process.stdout.read(65536):
            kept += data[: _MAX_OUTPUT - len(kept)]
    return bytes(kept)


def _shown(output: bytes) -> str:
    return output[:_MAX_OUTPUT].decode("utf-8", "replace")


def _timed_out(command: Sequence[str], timeout: float) -> str:
    return f"command timed out: {quote(' '.join(command))} timed out after {seconds_text(timeout)}"

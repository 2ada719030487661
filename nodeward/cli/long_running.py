"""What all long-running commands share: logging, event loop, gates, signals."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

from nodeward.base.errors import ConfigError
from nodeward.cli.up import loop_factory, stop_signal
from nodeward.features import Gates
from nodeward.machinery.clock import RealClock
from nodeward.machinery.garbage_collection import settle_garbage_collector
from nodeward.machinery.loop_watchdog import LoopWatchdog

LOG = logging.getLogger(__name__)

_INTERRUPTED = 130


def run_until_stopped(
    verbose: int, start: Callable[[AsyncExitStack], Coroutine[Any, Any, Awaitable[None] | None]]
) -> int:
    """Start something and wait for Ctrl-C; then close `running`, which `start` is given, in reverse order.

    If `start` returns an awaitable, the program also ends when that ends.
    """
    logging.basicConfig(
        level=(logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)],
        format="%(levelname).1s %(asctime)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_run(start))


async def _run(start: Callable[[AsyncExitStack], Coroutine[Any, Any, Awaitable[None] | None]]) -> int:
    stop = stop_signal()
    async with AsyncExitStack() as running:
        told = asyncio.create_task(stop.wait(), name="stop")
        starting = asyncio.create_task(start(running), name="start")
        await asyncio.wait((starting, told), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            await _cancelled(starting)
            print("stopped before it was ready", file=sys.stderr, flush=True)
            return _INTERRUPTED
        work = starting.result()
        settle_garbage_collector()
        watchdog = LoopWatchdog(RealClock())
        watchdog.start()
        running.callback(watchdog.stop)
        if work is None:
            await told
        else:
            working = asyncio.ensure_future(work)
            await asyncio.wait((working, told), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                told.cancel()
                working.result()
                return 0
            await _cancelled(working)
        print("stopping...", file=sys.stderr, flush=True)
    return 0


async def _cancelled(task: asyncio.Future[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def gates_of(args: argparse.Namespace) -> Gates:
    """Return the gates the flags set; log warnings about them."""
    try:
        gates = Gates.of(args.kubernetes_version, args.feature_gates)
    except ConfigError as error:
        flag = "--feature-gates" if args.feature_gates else "--kubernetes-version"
        raise ConfigError(f"{flag}: {error}") from None
    for warning in gates.warnings:
        LOG.warning("%s", warning)
    return gates

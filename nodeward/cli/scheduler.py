"""`nodeward scheduler`, an ordinary client of any cluster; and the scheduler beside an API server in one process.

Flags and files are read before anything is opened. The pages (/healthz, /livez, /readyz, /metrics) are served with a
certificate made for this run, since nobody is told anything secret there.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import sys
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

from nodeward.apiserver.pki import Pki, server_context
from nodeward.base.errors import ConfigError
from nodeward.cli.up import loop_factory, stop_signal
from nodeward.features import Gates, Version
from nodeward.machinery.clock import Clock, RealChance, RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config
from nodeward.machinery.serving.answer import Answer
from nodeward.machinery.serving.connection import Peer
from nodeward.machinery.serving.health import HealthPages
from nodeward.machinery.serving.listener import Listener
from nodeward.machinery.transport import Request
from nodeward.scheduler.config import load_scheduler_config
from nodeward.scheduler.scheduler import Scheduler
from nodeward.scheduler.settings import SchedulerSettings, default_profile

LOG = logging.getLogger(__name__)

#: What it is called in the cluster.
COMPONENT = "kube-scheduler"
#: Connections to the API server; more bindings than this wait for one.
CONNECTIONS = 64


def run(args: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> int:
    """Run until told to stop."""
    logging.basicConfig(
        level=(logging.WARNING, logging.INFO, logging.DEBUG)[min(args.verbose, 2)],
        format="%(levelname).1s %(asctime)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    gates = _gates(args)
    settings = _settings(args, gates)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_run(args, gates, settings, environment))


async def _run(
    args: argparse.Namespace, gates: Gates, settings: SchedulerSettings, environment: Mapping[str, str]
) -> int:
    clock = RealClock()
    stop = stop_signal()
    config = load_config(environment, path=args.kubeconfig or settings.kubeconfig, context=args.context)
    async with AsyncExitStack() as running:
        client = connect(
            config, clock=clock, environment=environment, component=COMPONENT, max_connections=CONNECTIONS
        )
        running.push_async_callback(client.aclose)
        chance = RealChance()
        scheduler = Scheduler(
            client,
            clock,
            chance,
            gates=gates,
            version=Version.parse(gates.version),
            settings=settings,
            identity=f"{socket.gethostname()}_{chance.uuid()}",
        )
        running.push_async_callback(scheduler.stop)
        await _serve_pages(args, scheduler, clock, running)
        work = asyncio.create_task(scheduler.run(), name="run")
        told = asyncio.create_task(stop.wait(), name="stop")
        names = ", ".join(profile.name for profile in settings.profiles)
        print(f"nodeward scheduler: {names} for {config.server}", flush=True)
        await asyncio.wait((work, told), return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            told.cancel()
            work.result()
        else:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            print("stopping...", file=sys.stderr, flush=True)
    return 0


async def _serve_pages(
    args: argparse.Namespace, scheduler: Scheduler, clock: Clock, running: AsyncExitStack
) -> None:
    if not args.secure_port:
        return
    alive = HealthPages(scheduler.metrics, {"scheduler": scheduler.is_alive})
    ready = HealthPages(
        scheduler.metrics, {"scheduler": scheduler.is_alive, "informer-sync": scheduler.is_synced}
    )

    async def handle(request: Request, peer: Peer) -> Answer:
        return await (ready if request.path.startswith("/readyz") else alive).handle(request, peer)

    listener = Listener(handle, clock)
    with tempfile.TemporaryDirectory() as directory:
        pki = Pki(Path(directory), clock.now_ns())
        context = server_context(pki.serving(socket.gethostname(), (args.bind_address,)), pki.authority_path)
    try:
        await listener.listen(args.bind_address, args.secure_port, context)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {args.bind_address}:{args.secure_port}: {error.strerror or error}; "
            "choose another with --bind-address and --secure-port (0: no pages)"
        ) from None
    running.push_async_callback(listener.stop)


def _gates(args: argparse.Namespace) -> Gates:
    try:
        gates = Gates.of(args.kubernetes_version, args.feature_gates)
    except ConfigError as error:
        flag = "--feature-gates" if args.feature_gates else "--kubernetes-version"
        raise ConfigError(f"{flag}: {error}") from None
    for warning in gates.warnings:
        LOG.warning("%s", warning)
    return gates


def _settings(args: argparse.Namespace, gates: Gates) -> SchedulerSettings:
    if args.config:
        settings = load_scheduler_config(args.config, gates)
    else:
        settings = SchedulerSettings((default_profile(gates),))
    if args.leader_elect:
        settings = replace(settings, leader_elect=args.leader_elect == "true")
    return settings

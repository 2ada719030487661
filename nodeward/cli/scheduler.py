"""`nodeward scheduler`: the scheduler as an ordinary client of any cluster.

Flags and files are read before anything is opened. The pages (/healthz, /livez, /readyz, /metrics) are served with a
certificate made for this run, since they contain nothing secret.
"""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Awaitable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace

from nodeward.cli.long_running import gates_of, run_until_stopped
from nodeward.cli.pages import serve_pages
from nodeward.features import Gates, Version
from nodeward.machinery.clock import RealChance, RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config
from nodeward.scheduler.config import load_scheduler_config
from nodeward.scheduler.scheduler import Scheduler
from nodeward.scheduler.settings import SchedulerSettings, default_profile

#: The component's name in events and leader election.
COMPONENT = "kube-scheduler"
#: Connections to the API server; more bindings than this wait for one.
CONNECTIONS = 64


def run(args: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> int:
    """Run until stopped by a signal."""
    gates = gates_of(args)
    settings = _settings(args, gates)
    config = load_config(environment, path=args.kubeconfig or settings.kubeconfig, context=args.context)

    async def start(running: AsyncExitStack) -> Awaitable[None]:
        clock, chance = RealClock(), RealChance()
        client = connect(
            config, clock=clock, environment=environment, component=COMPONENT, max_connections=CONNECTIONS
        )
        running.push_async_callback(client.aclose)
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
        await serve_pages(
            args.bind_address,
            args.secure_port,
            scheduler.metrics,
            clock,
            running,
            alive={"scheduler": scheduler.is_alive},
            ready={"informer-sync": scheduler.is_synced},
            has_tls=True,
            flags="--bind-address and --secure-port",
        )
        names = ", ".join(profile.name for profile in settings.profiles)
        print(f"nodeward scheduler: {names} for {config.server}", flush=True)
        return scheduler.run()

    return run_until_stopped(args.verbose, start)


def _settings(args: argparse.Namespace, gates: Gates) -> SchedulerSettings:
    if args.config:
        settings = load_scheduler_config(args.config, gates)
    else:
        settings = SchedulerSettings((default_profile(gates),))
    if args.leader_elect:
        settings = replace(settings, leader_elect=args.leader_elect == "true")
    return settings

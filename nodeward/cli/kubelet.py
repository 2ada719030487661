"""`nodeward kubelet`: nodes as ordinary clients of any cluster; a fleet of simulated ones, or one that is real.

Flags and files are read before anything is opened. A fleet follows its ConfigMap (`nodeward.cluster.fleet_control`).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from nodeward.base.errors import ConfigError
from nodeward.cli.cluster_flags import simulated_fleet
from nodeward.cli.pages import serve_pages
from nodeward.cli.standing import gates_of, run_until_stopped
from nodeward.cluster.description import FleetPlan
from nodeward.cluster.fleet import Fleet
from nodeward.cluster.fleet_control import COMPONENT, FleetControl
from nodeward.cluster.fleet_file import load_fleet_file
from nodeward.machinery.clock import RealChance, RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config
from nodeward.machinery.metrics import Metrics

CONNECTIONS: Final = 64


def run(args: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> int:
    """Run until told to stop."""
    if args.fleet and args.fleet_config:
        raise ConfigError("--fleet and --fleet-config: say one of them")
    plan = _plan(args)
    config = load_config(environment, path=args.kubeconfig, context=args.context)

    async def start(running: AsyncExitStack) -> None:
        clock, chance, metrics = RealClock(), RealChance(), Metrics()
        client = connect(
            config, clock=clock, environment=environment, component="kubelet", max_connections=CONNECTIONS
        )
        running.push_async_callback(client.aclose)
        expected = sum(pool.nodes for pool in plan.pools) if plan is not None else 0
        fleet = Fleet(client, clock, chance.child("fleet"), expected_nodes=expected, metrics=metrics)
        await serve_pages(
            args.healthz_bind_address,
            args.healthz_port,
            metrics,
            clock,
            running,
            alive={"fleet": lambda: fleet.is_healthy},
            ready={},
            has_tls=False,
            flags="--healthz-bind-address and --healthz-port",
        )
        running.push_async_callback(fleet.stop)
        await fleet.start()
        control = FleetControl(
            client.as_component(COMPONENT),
            fleet,
            chance.child("fleet control"),
            version=args.kubernetes_version,
            name=args.fleet_map,
        )
        running.push_async_callback(control.stop)
        await control.start(plan)
        print(f"nodeward kubelet: {len(fleet)} simulated nodes for {config.server}", flush=True)

    return run_until_stopped(args.verbose, start)


def _plan(args: argparse.Namespace) -> FleetPlan | None:
    """The fleet the flags ask for; None: the one that is there."""
    gates = gates_of(args)
    if args.fleet_config:
        return load_fleet_file(Path(args.fleet_config), args.kubernetes_version)
    if args.fleet:
        return simulated_fleet(args.fleet_name, args.fleet, args.kubernetes_version, gates)
    return None

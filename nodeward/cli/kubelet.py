"""`nodeward kubelet`: nodes as ordinary clients of any cluster: a fleet of simulated ones, or one node.

Flags and files are read before anything is opened. A fleet follows its ConfigMap (`nodeward.cluster.fleet_control`).
"""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from nodeward.base.errors import ConfigError
from nodeward.cli.cluster_flags import simulated_fleet
from nodeward.cli.long_running import gates_of, run_until_stopped
from nodeward.cli.node_flags import DEFAULT_HEALTHZ_PORT
from nodeward.cli.pages import serve_pages
from nodeward.cluster.description import FleetPlan
from nodeward.cluster.fleet import Fleet
from nodeward.cluster.fleet_control import COMPONENT, FleetControl
from nodeward.cluster.fleet_file import load_fleet_file
from nodeward.machinery.clock import RealChance, RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import ConnectionConfig, load_config
from nodeward.machinery.metrics import Metrics

CONNECTIONS: Final = 64


def run(args: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> int:
    """Run until stopped by a signal."""
    if bool(args.fleet) + bool(args.fleet_config) + bool(args.node_name) > 1:
        raise ConfigError("--fleet, --fleet-config and --node-name: say one of them")
    gates = gates_of(args)
    if args.node_name:
        return _run_node(args, environment)
    plan: FleetPlan | None = None  # the one that is there
    if args.fleet_config:
        plan = load_fleet_file(Path(args.fleet_config), args.kubernetes_version)
    elif args.fleet:
        plan = simulated_fleet(args.fleet_name, args.fleet, args.kubernetes_version, gates)
    config = load_config(environment, path=args.kubeconfig, context=args.context)

    async def start(running: AsyncExitStack) -> None:
        await _start_fleet(args, plan, config, environment, running)

    return run_until_stopped(args.verbose, start)


def _run_node(args: argparse.Namespace, environment: Mapping[str, str]) -> int:
    # Not for who runs a fleet.
    from nodeward.cli.one_node import read_node, start_node

    node = read_node(args)
    config = load_config(environment, path=args.kubeconfig, context=args.context)

    async def start(running: AsyncExitStack) -> None:
        await start_node(args, node, config, environment, running)
        print(f"nodeward kubelet: node {node.name} ({node.runtime}) for {config.server}", flush=True)

    return run_until_stopped(args.verbose, start)


async def _start_fleet(
    args: argparse.Namespace,
    plan: FleetPlan | None,
    config: ConnectionConfig,
    environment: Mapping[str, str],
    running: AsyncExitStack,
) -> None:
    clock, chance, metrics = RealClock(), RealChance(), Metrics()
    client = connect(
        config, clock=clock, environment=environment, component="kubelet", max_connections=CONNECTIONS
    )
    running.push_async_callback(client.aclose)
    expected = sum(pool.nodes for pool in plan.pools) if plan is not None else 0
    fleet = Fleet(client, clock, chance.child("fleet"), expected_nodes=expected, metrics=metrics)
    await serve_pages(
        args.healthz_bind_address or "127.0.0.1",
        DEFAULT_HEALTHZ_PORT if args.healthz_port is None else args.healthz_port,
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
        identity=f"kubelet_{socket.gethostname()}_{os.getpid()}",
    )
    running.push_async_callback(control.stop)
    await control.start(plan)
    if control.is_holder or not control.holder:
        print(f"nodeward kubelet: {len(fleet)} simulated nodes for {config.server}", flush=True)
    else:
        print(
            f"nodeward kubelet: the nodes of {args.fleet_map} are run by {control.holder}; waiting until it stops "
            "(another map: --fleet-map)",
            flush=True,
        )

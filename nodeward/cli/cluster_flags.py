"""The description of a cluster from the flags of `nodeward up`.

`--nodes N` gives one node that runs real processes and simulated ones for the rest; `--fleet-config` describes
everything in a file. Nothing is started here; `cli/up.py` starts it.
"""

from __future__ import annotations

import argparse
import socket
from pathlib import Path
from typing import Any, Final

from nodeward.base.errors import ConfigError
from nodeward.cli.server_flags import ServerOptions
from nodeward.cluster.description import ClusterDescription, FleetPlan, Pool
from nodeward.cluster.fleet_control import MAP_NAME
from nodeward.cluster.fleet_file import fleet_text, load_fleet, load_fleet_file
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.naming import chosen
from nodeward.features import Gates
from nodeward.features.gates import parse

#: The label that names the runtime of a node's containers.
RUNTIME_LABEL: Final = "nodeward.dev/runtime"


def describe(args: argparse.Namespace, wanted: ServerOptions) -> ClusterDescription:
    """Return the cluster the flags describe."""
    version = args.kubernetes_version
    return ClusterDescription(
        version=version,
        gates=wanted.gates,
        pools=_real_pools(args, version, wanted.gates),
        fleet=_fleet(args, version, wanted.gates),
        fleet_map=MAP_NAME,
        # The directory has one owner, so a process that was killed and started again there is the same holder.
        fleet_holder=f"up_{socket.gethostname()}_{wanted.home.absolute()}",
        has_scheduler=not args.no_scheduler,
        has_controllers=not args.no_controllers,
        controllers=_controllers(args.controllers),
    )


def _controllers(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    try:
        chosen(CONTROLLERS, names)
    except ConfigError as error:
        raise ConfigError(f"--controllers: {error}") from None
    return names


def _real_pools(args: argparse.Namespace, version: str, gates: Gates) -> tuple[Pool, ...]:
    """Return the pool of the first node, which runs real processes, if the flags ask for it."""
    if args.runtime != "process" or not args.nodes or args.fleet_config:
        return ()
    labels = {RUNTIME_LABEL: "process"}
    return (
        Pool(
            name="process", version=version, feature_gates=gates.as_flag(), runtime="process", labels=labels
        ),
    )


def _fleet(args: argparse.Namespace, version: str, gates: Gates) -> FleetPlan | None:
    if args.fleet_config:
        return load_fleet_file(Path(args.fleet_config), version)
    # Kubelets know the gates of the control plane unless a file says otherwise.
    simulated = args.nodes - len(_real_pools(args, version, gates))
    return simulated_fleet("sim", simulated, version, gates) if simulated > 0 else None


def simulated_fleet(name: str, nodes: int, version: str, gates: Gates) -> FleetPlan:
    """Return one pool of equal nodes."""
    pool: dict[str, Any] = {"name": name, "nodes": nodes, "version": version}
    if text := gates.as_flag():
        pool["featureGates"] = parse(text)
    pool["labels"] = {RUNTIME_LABEL: "sim"}
    return load_fleet(fleet_text([pool]).encode(), "--nodes", version)

"""From the flags of `nodeward up` to the description of a cluster.

`--nodes N` gives one node that runs real processes and simulated ones for the rest; `--fleet-config` says it all in a
file. Nothing is started here.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from nodeward.cli.server_flags import Wanted
from nodeward.cluster.description import ClusterDescription, Pool
from nodeward.cluster.fleet_file import load_fleet_file
from nodeward.features import Gates

#: How a node says what runs its containers.
RUNTIME_LABEL: Final = "nodeward.dev/runtime"


def describe(args: argparse.Namespace, wanted: Wanted) -> ClusterDescription:
    """The cluster the flags ask for."""
    version = args.kubernetes_version
    return ClusterDescription(
        version=version,
        gates=wanted.gates,
        pools=_pools(args, version, wanted.gates),
        has_scheduler=not args.no_scheduler,
        has_controllers=not args.no_controllers,
    )


def _pools(args: argparse.Namespace, version: str, gates: Gates) -> tuple[Pool, ...]:
    if args.fleet_config:
        return load_fleet_file(Path(args.fleet_config), version)
    # Kubelets know the gates of the control plane unless a file says otherwise.
    flag = gates.as_flag()
    pools = []
    simulated = args.nodes
    if args.runtime == "process" and args.nodes:
        simulated -= 1
        labels = {RUNTIME_LABEL: "process"}
        pools.append(
            Pool(name="process", version=version, feature_gates=flag, runtime="process", labels=labels)
        )
    if simulated:
        labels = {RUNTIME_LABEL: "sim"}
        pools.append(Pool(name="sim", nodes=simulated, version=version, feature_gates=flag, labels=labels))
    return tuple(pools)

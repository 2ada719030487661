"""The flags of the commands kubelet, fleet, controllers and dra-driver. Imports little, as `flags` does."""

from __future__ import annotations

import argparse
from typing import Final

from nodeward.cli.flag_types import count, directory, number, port
from nodeward.cli.usual_flags import connection_flags, leader_flag, version_flags

DEFAULT_HEALTHZ_PORT: Final = 10248
DEFAULT_CONTROLLERS_PORT: Final = 10257
DEFAULT_ROOT: Final = "/var/lib/kubelet"
DEFAULT_CDI_DIR: Final = "/var/run/cdi"
DEFAULT_FLEET_MAP: Final = "nodeward-fleet"

KUBELET: Final = """\
Run kubelets: thousands of simulated ones in one process (--fleet), or one that
runs real containers on this machine (--node-name). An ordinary client of
Nodeward's API server or of a real one. Ctrl-C stops it gracefully; containers
go on running.

A fleet is described in the ConfigMap kube-system/nodeward-fleet, which may be
edited while it runs: see nodeward fleet --help."""

CONTROLLERS: Final = """\
Run the controllers alone: ordinary clients of Nodeward's API server or of a real
one. Copies elect a leader, with the lease of kube-controller-manager. Ctrl-C
stops them gracefully."""

FLEET: Final = """\
Look at the nodes of a fleet and change them while it runs. All of it is in one
ConfigMap, kube-system/nodeward-fleet, which kubectl edit changes as well; these
commands write it anew, without its comments."""


DRA_DRIVER: Final = """\
Run a DRA driver for pretended devices, which a file describes (DeviceProfile).
With --node it registers with the kubelet of that node and prepares claims by
writing CDI files; without, it only publishes the devices. For any cluster and
any kubelet. Ctrl-C stops it; published devices stay."""


def dra_driver_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", metavar="PROFILE.yaml", help="the driver's name and its devices")
    connection_flags(parser)
    parser.add_argument(
        "--node",
        default="",
        metavar="NAME",
        help="the node to serve (default: none, a driver without node part)",
    )
    parser.add_argument(
        "--kubelet-dir", default="", metavar="DIR", help="where the kubelet of --node keeps its files"
    )
    parser.add_argument(
        "--cdi-dir",
        default=DEFAULT_CDI_DIR,
        metavar="DIR",
        help=f"where the container runtime looks for CDI files (default {DEFAULT_CDI_DIR})",
    )
    parser.add_argument(
        "--slow",
        default="0s",
        metavar="DURATION",
        help="how long the answer to a preparation takes (default 0s)",
    )
    parser.add_argument(
        "--fail-prepares",
        type=int,
        default=0,
        metavar="N",
        help="let the first N preparations fail; -1: all of them (default 0)",
    )
    parser.add_argument(
        "--fail-unprepares",
        type=int,
        default=0,
        metavar="N",
        help="let the first N unpreparations fail; -1: all of them (default 0)",
    )
    parser.add_argument(
        "--crash-in-prepare",
        action="store_true",
        help="kill the process in the middle of its first preparation; the next run goes on without",
    )
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="log what happens; -vv: in more detail"
    )


def _map_flag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--fleet-map",
        default=DEFAULT_FLEET_MAP,
        metavar="NAME",
        help=f"the ConfigMap in kube-system that describes the fleet (default {DEFAULT_FLEET_MAP})",
    )


def _verbose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="log what happens; -vv: in more detail"
    )


def _one_node(parser: argparse.ArgumentParser) -> None:
    node = parser.add_argument_group("one node")
    node.add_argument("--node-name", default="", metavar="NAME", help="run the kubelet of this node")
    node.add_argument(
        "--config",
        default="",
        metavar="FILE",
        help="a KubeletConfiguration (kubelet.config.k8s.io/v1beta1)",
    )
    node.add_argument(
        "--runtime",
        choices=("process", "cri", "sim"),
        default="process",
        help="the runtime: local processes (the default), CRI, or simulated containers",
    )
    node.add_argument(
        "--cri-socket",
        default="",
        metavar="PATH",
        help="the socket of the CRI runtime (default: from --config, else containerd's usual socket)",
    )
    node.add_argument(
        "--cdi-dirs",
        default="",
        metavar="DIR,...",
        help="where local processes find their devices (default /etc/cdi,/var/run/cdi)",
    )
    node.add_argument(
        "--root-dir",
        type=directory,
        default=DEFAULT_ROOT,
        metavar="DIR",
        help=f"where pods, volumes, logs and checkpoints are kept (default {DEFAULT_ROOT})",
    )
    node.add_argument(
        "--node-labels", default="", metavar="KEY=VALUE,...", help="labels to register the node with"
    )
    node.add_argument("--node-ip", default="", metavar="IP", help="the node's address (default 127.0.0.1)")
    node.add_argument(
        "--port",
        type=port,
        default=None,
        metavar="PORT",
        help="the port of the kubelet's server, for logs and exec (default: from --config, else 10250)",
    )


def kubelet_flags(parser: argparse.ArgumentParser) -> None:
    fleet = parser.add_argument_group("a fleet of simulated nodes")
    fleet.add_argument("--fleet", type=number, default=0, metavar="N", help="run N equal simulated nodes")
    fleet.add_argument(
        "--fleet-config", default="", metavar="FILE", help="run the pools of simulated nodes a file describes"
    )
    fleet.add_argument(
        "--fleet-name",
        default="sim",
        metavar="POOL",
        help="the name of the pool of --fleet; its nodes are POOL-0, POOL-1, ... (default sim)",
    )
    fleet.add_argument(
        "--fleet-map",
        default=DEFAULT_FLEET_MAP,
        metavar="NAME",
        help=f"the ConfigMap in kube-system that describes the fleet (default {DEFAULT_FLEET_MAP})",
    )
    _one_node(parser)
    connection_flags(parser)
    version_flags(parser, "kubelet")
    parser.add_argument(
        "--healthz-bind-address",
        default="",
        metavar="IP",
        help="the address of /healthz and /metrics (default: from --config, else 127.0.0.1)",
    )
    parser.add_argument(
        "--healthz-port",
        type=port,
        default=None,
        metavar="PORT",
        help=f"their port; 0: no pages (default: what --config says, else {DEFAULT_HEALTHZ_PORT})",
    )
    _verbose(parser)


def controllers_flags(parser: argparse.ArgumentParser) -> None:
    connection_flags(parser)
    parser.add_argument(
        "--controllers",
        default="*",
        metavar="NAME,...",
        help="which ones to run: * is all, foo adds one, -foo leaves one out (default *)",
    )
    leader_flag(parser, "true")
    parser.add_argument(
        "--use-service-account-credentials",
        choices=("true", "false"),
        nargs="?",
        const="true",
        default="false",
        help="let each controller act as its own service account (default false: all as the kubeconfig's user)",
    )
    parser.add_argument(
        "--root-ca-file",
        default="",
        metavar="FILE",
        help="certificates for the kube-root-ca.crt of every namespace (default: those of the kubeconfig)",
    )
    version_flags(parser, "kube-controller-manager")
    parser.add_argument(
        "--bind-address",
        default="127.0.0.1",
        metavar="IP",
        help="the address of /healthz, /livez, /readyz and /metrics, without authentication (default 127.0.0.1)",
    )
    parser.add_argument(
        "--secure-port",
        type=port,
        default=DEFAULT_CONTROLLERS_PORT,
        metavar="PORT",
        help=f"their port, with a certificate made for the run; 0: no pages (default {DEFAULT_CONTROLLERS_PORT})",
    )
    _verbose(parser)


READINESS: Final = """\
Ask about readiness rules (NodeReadinessRule), of any cluster, without changing
anything in it:

  nodeward readiness preview RULE.yaml    which nodes the rule would taint or
                                          release, which pods it would hold or evict"""


def readiness_flags(parser: argparse.ArgumentParser) -> None:
    questions = parser.add_subparsers(dest="question", metavar="QUESTION", required=True)
    summary = "which nodes and pods a rule would touch"
    preview = questions.add_parser(
        "preview", help=summary, description=f"Tell {summary}.", allow_abbrev=False
    )
    preview.set_defaults(parser=preview)
    preview.add_argument("rule", metavar="RULE.yaml", help="NodeReadinessRules; - is stdin")
    connection_flags(preview)
    preview.add_argument("--all", action="store_true", help="list every node and pod, however many there are")
    preview.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="how to print the answer"
    )


def fleet_flags(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, summary: str, target: str = "") -> argparse.ArgumentParser:
        below = actions.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
        )
        below.set_defaults(parser=below)
        if target:
            below.add_argument("target", metavar=target, help=f"the {target.lower()}")
        connection_flags(below)
        _map_flag(below)
        return below

    action("list", "list pools, how many of their nodes are ready, versions and gates")
    upgrade = action("upgrade", "give the kubelets of a pool another version or other gates", "POOL")
    upgrade.add_argument(
        "--version", default="", dest="to_version", metavar="VERSION", help="the version, 1.34 to 1.38"
    )
    upgrade.add_argument(
        "--feature-gates", default="", metavar="NAME=BOOL,...", help="gates to set; others stay as they are"
    )
    upgrade.add_argument(
        "--at-once",
        type=count,
        default=0,
        metavar="N",
        help="kubelets to restart at a time (default: a tenth)",
    )
    upgrade.add_argument(
        "--pause",
        default="",
        metavar="DURATION",
        help="wait between restarts, such as 30s (default 1s)",
    )
    scale = action("scale", "change how many nodes a pool has; the last ones go first", "POOL")
    scale.add_argument("nodes", type=number, metavar="N", help="the number of nodes")
    action("cut-off", "take the network of a node away", "NODE")
    action("reconnect", "give a node its network back", "NODE")
    action("reboot", "reboot a node: its containers end, and it has another boot id", "NODE")

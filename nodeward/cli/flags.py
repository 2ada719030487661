"""Every command and its flags. Imports little: help and shell completion need nothing else."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final, NamedTuple

from nodeward.cli import node_flags
from nodeward.cli.flag_types import count, directory, number, port
from nodeward.cli.usual_flags import DEFAULT_VERSION, connection_flags, leader_flag, version_flags

DEFAULT_DIR: Final = ".nodeward"
DEFAULT_PORT: Final = 6443
DEFAULT_NODES: Final = 3
DEFAULT_SCHEDULER_PORT: Final = 10259
DEFAULT_EVENT_TTL: Final = "1h"
DEFAULT_SERVICES: Final = "10.96.0.0/16"
#: the parts of `nodeward bench`
BENCHMARKS: Final = (
    "api",
    "cel",
    "cpus",
    "devices",
    "features",
    "readiness",
    "resize",
    "rules",
    "scheduler",
    "tolerations",
    "fleet",
    "deployment",
)


class Command(NamedTuple):
    """One subcommand: its help, its flags, and the module whose `run(args)` executes it."""

    name: str
    summary: str
    module: str
    add_flags: Callable[[argparse.ArgumentParser], None]
    description: str


def _server_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of every command that runs an API server."""
    parser.add_argument(
        "--dir",
        type=directory,
        default=DEFAULT_DIR,
        metavar="DIR",
        help=f"where state and certificates are kept (default {DEFAULT_DIR})",
    )
    parser.add_argument(
        "--bind-address",
        default="127.0.0.1",
        metavar="IP",
        help="the address to listen on (default 127.0.0.1)",
    )
    version_flags(parser, "kube-apiserver", ", for example AllBeta=true")
    parser.add_argument(
        "--enable-admission-plugins", default="", metavar="NAME,...", help="admission plugins to enable"
    )
    parser.add_argument(
        "--disable-admission-plugins", default="", metavar="NAME,...", help="admission plugins to disable"
    )
    parser.add_argument(
        "--token-auth-file",
        default="",
        metavar="FILE",
        help='static tokens: lines of token,user,uid,"group1,group2"',
    )
    parser.add_argument(
        "--anonymous-auth",
        choices=("true", "false"),
        default="true",
        help="treat requests without credentials as system:anonymous (default true); otherwise answer 401",
    )
    parser.add_argument(
        "--event-ttl",
        default=DEFAULT_EVENT_TTL,
        metavar="DURATION",
        help=f"how long events are kept after they were last written, 0 for ever (default {DEFAULT_EVENT_TTL})",
    )
    parser.add_argument(
        "--service-cluster-ip-range",
        default=DEFAULT_SERVICES,
        metavar="CIDR",
        help=f"addresses for services (default {DEFAULT_SERVICES})",
    )
    parser.add_argument(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="where to write the admin kubeconfig (default DIR/kubeconfig)",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="log the start, writes and refusals; -vv: every request",
    )


def _up(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=port,
        default=DEFAULT_PORT,
        metavar="PORT",
        help=f"the port to listen on, 0 for any free one (default {DEFAULT_PORT})",
    )
    parser.add_argument(
        "--store",
        default="sqlite",
        metavar="STORE",
        help="memory, sqlite (DIR/state.db, the default), sqlite:PATH, or etcd://host:port[,host:port...]",
    )
    parser.add_argument(
        "--nodes",
        type=number,
        default=DEFAULT_NODES,
        metavar="N",
        help=f"how many nodes: the first runs real processes, the others are simulated (default {DEFAULT_NODES})",
    )
    parser.add_argument(
        "--runtime",
        choices=("process", "sim"),
        default="process",
        help="the runtime of the first node: real processes (the default), or simulated containers as on the others",
    )
    parser.add_argument(
        "--fleet-config",
        default="",
        metavar="FILE",
        help="a file that describes pools of nodes, instead of --nodes",
    )
    parser.add_argument("--no-scheduler", action="store_true", help="run no scheduler")
    parser.add_argument("--no-controllers", action="store_true", help="run no controllers")
    parser.add_argument(
        "--controllers",
        default="*",
        metavar="NAME,...",
        help="which controllers to run: * is all, foo adds one, -foo leaves one out (default *)",
    )
    _server_flags(parser)


def _apiserver(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--secure-port",
        type=port,
        default=DEFAULT_PORT,
        dest="port",
        metavar="PORT",
        help=f"the port to listen on, 0 for any free one (default {DEFAULT_PORT})",
    )
    parser.add_argument(
        "--etcd-servers",
        default="",
        metavar="URL,...",
        help="etcd endpoints, http://host:port or https://host:port; without any, DIR/state.db is used",
    )
    parser.add_argument("--etcd-cafile", default="", metavar="FILE", help="the CA of etcd's certificates")
    parser.add_argument("--etcd-certfile", default="", metavar="FILE", help="our certificate for etcd")
    parser.add_argument("--etcd-keyfile", default="", metavar="FILE", help="our key for etcd")
    _server_flags(parser)


def _features(parser: argparse.ArgumentParser) -> None:
    questions = parser.add_subparsers(dest="question", metavar="QUESTION", required=True)

    def question(name: str, summary: str) -> argparse.ArgumentParser:
        described = f"Tell {summary}."
        parser = questions.add_parser(name, help=summary, description=described, allow_abbrev=False)
        parser.set_defaults(parser=parser)
        return parser

    discover = question("discover", "what a node with this version and these gates declares")
    discover.add_argument(
        "--kubernetes-version",
        default=DEFAULT_VERSION,
        metavar="VERSION",
        help=f"the version of the kubelet, 1.34 to 1.38 (default {DEFAULT_VERSION})",
    )
    discover.add_argument(
        "--feature-gates", default="", metavar="NAME=BOOL,...", help="feature gates of the kubelet"
    )
    discover.add_argument(
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a node setting that a feature needs, such as runtime.mountOptions=true; may be repeated",
    )
    infer = question("infer", "which features a pod needs to be placed, or to be changed")
    infer.add_argument(
        "pod", metavar="POD.yaml", help="a Pod, and the ResourceClaims it refers to; - is stdin"
    )
    infer.add_argument(
        "--old",
        default="",
        metavar="OLD.yaml",
        help="the pod before the change: print what the change to POD.yaml needs",
    )
    match = question(
        "match", "whether nodes have what a pod needs; exit code 1 if one has not, 2 if it cannot be told"
    )
    match.add_argument(
        "pod", metavar="POD.yaml", help="a Pod, and the ResourceClaims it refers to; - is stdin"
    )
    match.add_argument("node", nargs="+", metavar="NODE.yaml", help="files with Nodes")
    for asking in (infer, match):
        asking.add_argument(
            "--kubernetes-version",
            default=DEFAULT_VERSION,
            metavar="VERSION",
            help=f"the version of the cluster, any from 1.34 on (default {DEFAULT_VERSION})",
        )
    requirements = question("requirements", "what a node must have to declare a feature")
    requirements.add_argument("name", nargs="?", default="", metavar="NAME", help="a feature (default: all)")
    for asking in (discover, infer, match, requirements):
        asking.add_argument(
            "-o", "--output", choices=("text", "json"), default="text", help="how to print the answer"
        )


def _why(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=("pod",), help="what to explain: a pod")
    parser.add_argument("name", metavar="NAMESPACE/NAME", help="the pod; its name alone goes with -n")
    parser.add_argument(
        "-n", "--namespace", default="", metavar="NAMESPACE", help="the namespace, if the name has none"
    )
    connection_flags(parser)
    parser.add_argument(
        "--config",
        default="",
        metavar="FILE",
        help="a KubeSchedulerConfiguration, if the scheduler runs with one",
    )
    parser.add_argument(
        "--kubernetes-version",
        default="",
        metavar="VERSION",
        help="the version of the scheduler, 1.34 to 1.38 (default: the server's)",
    )
    parser.add_argument(
        "--feature-gates", default="", metavar="NAME=BOOL,...", help="feature gates of the scheduler"
    )
    parser.add_argument(
        "--as-if-pending", action="store_true", help="also explain a pod that is already bound"
    )
    parser.add_argument("--all", action="store_true", help="list every node, however many there are")
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="how to print the answer"
    )


def _tolerations(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n", "--namespace", default="", metavar="NAMESPACE", help="only this namespace (default: all)"
    )
    connection_flags(parser)
    parser.add_argument(
        "-o", "--output", choices=("text", "json", "yaml"), default="text", help="how to print the answer"
    )


def _cpus(parser: argparse.ArgumentParser) -> None:
    _of_a_node(parser, "a line for each")


def _devices(parser: argparse.ArgumentParser) -> None:
    _of_a_node(parser, "all")


def _of_a_node(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument("node", nargs="?", default="", metavar="NODE", help=f"the node (default: {default})")
    connection_flags(parser)
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="how to print the answer"
    )


def _scheduler(parser: argparse.ArgumentParser) -> None:
    connection_flags(parser, first="what --config says, ")
    parser.add_argument(
        "--config",
        default="",
        metavar="FILE",
        help="a KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1): profiles, plugins, backoff",
    )
    leader_flag(parser, "", ": what --config says, else true")
    version_flags(parser, "kube-scheduler")
    parser.add_argument(
        "--bind-address",
        default="127.0.0.1",
        metavar="IP",
        help="the address of /healthz, /livez, /readyz and /metrics, without authentication (default 127.0.0.1)",
    )
    parser.add_argument(
        "--secure-port",
        type=port,
        default=DEFAULT_SCHEDULER_PORT,
        metavar="PORT",
        help=f"their port, with a certificate made for the run; 0: no pages (default {DEFAULT_SCHEDULER_PORT})",
    )
    parser.add_argument(
        "-v", "--verbose", action="count", default=0, help="log what happens; -vv: in more detail"
    )


def _bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"parts to run: {', '.join(BENCHMARKS)} (default: all)"
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="how to print the figures"
    )
    parser.add_argument(
        "--nodes", type=count, default=5000, metavar="N", help="nodes in the cluster (default 5000)"
    )
    parser.add_argument(
        "--pods", type=count, default=10000, metavar="N", help="pods in the cluster (default 10000)"
    )


def _report_readiness(parser: argparse.ArgumentParser) -> None:
    connection_flags(parser)
    parser.add_argument("-v", "--verbose", action="store_true", help="log everything")


_REPORT_READINESS: Final = """\
Report one condition of a node, which a readiness gate may wait for: the side-car
of an agent that has a health endpoint. It needs the right to patch nodes/status,
and no other.

First the condition is False with reason Initializing; from then on it follows the
endpoint: True while that answers 2xx, else False. It is written only when something
changed. Without the API server the newest finding is tried again until it is taken.
Ctrl-C leaves the condition as it is.

environment:
  NODE_NAME             the node (required)
  CONDITION_TYPE        the condition, such as example.com/StorageReady (required)
  CHECK_ENDPOINT        the URL to ask, such as http://localhost:8080/healthz
                        (required; or CHECK_POINT)
  CHECK_INTERVAL        how often, such as 10s (default 30s; or POLL_INTERVAL)
  REPORT_STRATEGY       ReportContinuously (the default), or
                        ReportOnSuccessAndTerminate: end with the first success
  HEARTBEAT_PERIOD      write this often even if nothing changed, such as 5m
                        (default 0s: never)
  OFF_NODE              true: not running on the node; an endpoint that cannot be
                        reached means Unknown, and what others wrote is read
                        (needs the right to get nodes)
  IMPERSONATE_NODE      true: act as the node itself
  METRICS_BIND_ADDRESS  where to serve /metrics and /healthz, such as :9445
                        (default: nowhere)"""


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="the shell to complete in")


COMMANDS: Final = (
    Command(
        "up",
        "start a whole cluster in one process",
        "nodeward.cli.up",
        _up,
        "Start a whole cluster in one process: API server, scheduler, controllers and\n"
        "nodes, of which the first runs real processes. Certificates and a kubeconfig are\n"
        "made on the first start and kept; state survives a restart. Ctrl-C stops it\n"
        "gracefully.",
    ),
    Command(
        "apiserver",
        "run the API server alone",
        "nodeward.cli.up",
        _apiserver,
        "Run the API server alone, with the flags of kube-apiserver, on etcd or on a file of\n"
        "its own. Ctrl-C stops it gracefully.",
    ),
    Command(
        "scheduler",
        "run the scheduler alone, for any cluster",
        "nodeward.cli.scheduler",
        _scheduler,
        "Run the scheduler alone: an ordinary client of Nodeward's API server or of a real\n"
        "one, with the flags and the configuration file of kube-scheduler. Several may run\n"
        "side by side: copies of one elect a leader, others serve other schedulerNames.\n"
        "Ctrl-C stops it gracefully.",
    ),
    Command(
        "controllers",
        "run the controllers alone, for any cluster",
        "nodeward.cli.controllers",
        node_flags.controllers_flags,
        node_flags.CONTROLLERS,
    ),
    Command(
        "kubelet",
        "run nodes: a simulated fleet, or this machine",
        "nodeward.cli.kubelet",
        node_flags.kubelet_flags,
        node_flags.KUBELET,
    ),
    Command(
        "fleet",
        "change the nodes of a fleet while it runs",
        "nodeward.cli.fleet",
        node_flags.fleet_flags,
        node_flags.FLEET,
    ),
    Command(
        "features",
        "what nodes declare and pods need (KEP-5328)",
        "nodeward.cli.features",
        _features,
        "Query declared features, without a cluster: which ones a node would declare,\n"
        "which ones a pod needs, whether a node has them, and what a feature requires.",
    ),
    Command(
        "why",
        "explain why a pod is not scheduled",
        "nodeward.cli.why",
        _why,
        "Explain why a pod is not scheduled: for every node, every plugin of the scheduler\n"
        "that rejects it, or what each scores it. For any cluster; nothing in it is changed.",
    ),
    Command(
        "tolerations",
        "list objects with Lt and Gt tolerations (KEP-5471)",
        "nodeward.cli.tolerations",
        _tolerations,
        "List the pods, workloads and claims whose tolerations use Lt or Gt, and what\n"
        "happens to each once TaintTolerationComparisonOperators is off: to be run\n"
        "before a rollback. For any cluster; nothing in it is changed.",
    ),
    Command(
        "cpus",
        "show the CPUs of nodes and who owns them (KEP-6122)",
        "nodeward.cli.cpus",
        _cpus,
        "Show the CPUs of a node: sockets, NUMA nodes and cores, the owner of each CPU, and\n"
        "which CPUs are held in a scale-down delay, until when. Nothing is changed.",
    ),
    Command(
        "devices",
        "show the devices of DRA drivers and who has them",
        "nodeward.cli.devices",
        _devices,
        "Show the pools and devices of DRA drivers, on one node or all: generation, slices,\n"
        "taints, and which claims and pods have each device or a share of it. For any\n"
        "cluster; nothing in it is changed.",
    ),
    Command(
        "dra-driver",
        "run a DRA driver for pretended devices (KEP-5945)",
        "nodeward.cli.dra_driver",
        node_flags.dra_driver_flags,
        node_flags.DRA_DRIVER,
    ),
    Command(
        "report-readiness",
        "report one readiness condition of a node (side-car)",
        "nodeward.cli.report_readiness",
        _report_readiness,
        _REPORT_READINESS,
    ),
    Command(
        "readiness",
        "show what a readiness rule would do",
        "nodeward.cli.readiness",
        node_flags.readiness_flags,
        node_flags.READINESS,
    ),
    Command(
        "bench",
        "measure this machine and print the figures",
        "nodeward.cli.bench",
        _bench,
        "Measure this machine and print the figures. Nothing passes or fails.",
    ),
    Command(
        "completion",
        "print a shell completion script",
        "nodeward.cli.completion",
        _completion,
        "Print a script that completes commands, flags and their values. To use it:\n\n"
        "  bash:  source <(nodeward completion bash)\n"
        "  zsh:   source <(nodeward completion zsh)\n"
        "  fish:  nodeward completion fish | source",
    ),
)

"""`nodeward kubelet --node-name`: one node, with real or simulated containers, and its kubelet's server.

What must stay true: all flags and files are checked before anything is opened; a running container is never touched
because of a wrong configuration.
"""

from __future__ import annotations

import argparse
import os
import socket
import ssl
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from nodeward.apiserver.pki import KeyPair, Pki, server_context, write_private
from nodeward.base.errors import ConfigError
from nodeward.cli.pages import serve_pages
from nodeward.cluster.real_node import RealNode, runtime_named
from nodeward.features.gates import parse
from nodeward.kubelet.config.loading import load_file, load_text
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.host import Host
from nodeward.kubelet.node.specification import NodeModel, NodeSpecification
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.kubelet.server.application import KubeletServer
from nodeward.kubelet.simulated.machines import SimulatedMachines
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock, RealChance, RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import ConnectionConfig
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.serving.listener import Listener

CONNECTIONS: Final = 16


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """The node that flags and files describe."""

    name: str
    settings: KubeletSettings
    version: str
    runtime: str
    cri_socket: str
    root: Path
    labels: Mapping[str, str]
    address: str
    cdi_directories: tuple[str, ...] = ()


def read_node(args: argparse.Namespace) -> NodeOptions:
    """Read the node's flags and files; all errors are reported together."""
    gates = parse(args.feature_gates)
    if args.config:
        settings = load_file(args.config, args.kubernetes_version, gates)
    else:
        settings = load_text(b"", "--feature-gates", args.kubernetes_version, gates)
    socket_path = args.cri_socket or settings.runtime_endpoint
    return NodeOptions(
        args.node_name,
        settings,
        args.kubernetes_version,
        args.runtime,
        socket_path.removeprefix("unix://"),
        Path(args.root_dir).absolute(),
        _labels(args.node_labels),
        args.node_ip or "127.0.0.1",
        tuple(filter(None, args.cdi_dirs.split(","))),
    )


def _labels(text: str) -> dict[str, str]:
    labels = {}
    for pair in filter(None, text.split(",")):
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"--node-labels: {pair!r}: want KEY=VALUE,...")
        labels[key.strip()] = value.strip()
    return labels


async def start_node(
    args: argparse.Namespace,
    node: NodeOptions,
    config: ConnectionConfig,
    environment: Mapping[str, str],
    running: AsyncExitStack,
) -> None:
    """Start everything; `running` records how to stop it."""
    clock, chance, metrics = RealClock(), RealChance(), Metrics()
    client = connect(
        config, clock=clock, environment=environment, component="kubelet", max_connections=CONNECTIONS
    )
    running.push_async_callback(client.aclose)
    hosts: list[Host] = []
    settings = node.settings
    await serve_pages(
        args.healthz_bind_address or settings.healthz_address,
        settings.healthz_port if args.healthz_port is None else args.healthz_port,
        metrics,
        clock,
        running,
        alive={"syncloop": lambda: all(each.is_healthy for each in hosts)},
        ready={},
        has_tls=False,
        flags="--healthz-bind-address and --healthz-port",
    )
    port = 0
    if settings.enable_server:
        server = KubeletServer(lambda: hosts, clock, metrics)
        listener = Listener(server.handle, clock)
        tls = _tls(args, node, config, clock)
        wanted = settings.port if args.port is None else args.port
        try:
            port = await listener.listen(settings.address, wanted, tls)
        except OSError as error:
            raise ConfigError(
                f"cannot listen on {settings.address}:{wanted}: {error.strerror or error}; choose another with --port"
            ) from None
        running.push_async_callback(listener.stop)
        running.push_async_callback(server.aclose)
    if node.runtime == "sim":
        hosts.append(await _simulated(node, client, clock, chance, metrics, port, running))
        return
    runtime = runtime_named(
        "process" if node.runtime == "process" else "cri",
        node.root,
        clock,
        chance.child("runtime"),
        cri_socket=node.cri_socket,
        address=node.address,
        cdi_directories=node.cdi_directories,
    )
    real = RealNode(
        node.name,
        client,
        clock,
        chance,
        runtime,
        node.root,
        settings,
        version=node.version,
        labels=dict(node.labels),
        address=node.address,
        endpoint_port=port,
        metrics=metrics,
    )
    running.push_async_callback(real.stop)
    await real.start()
    hosts.append(real.host)


async def _simulated(
    node: NodeOptions,
    client: Client,
    clock: Clock,
    chance: Chance,
    metrics: Metrics,
    port: int,
    running: AsyncExitStack,
) -> Host:
    runtime = SimRuntime(clock)
    machines = SimulatedMachines(client, clock, chance.child("machines"), runtime)
    host = Host(client, clock, chance, runtime, machines, only_node=node.name, metrics=metrics)
    running.push_async_callback(host.stop)
    await host.start()
    model = NodeModel(
        settings=node.settings,
        kubelet_version=f"v{node.version}.0",
        labels=dict(node.labels),
        os_image="Nodeward (simulated)",
        runtime_version=host.runtime.version,
        abilities=host.runtime.abilities,
        endpoint_port=port,
    )
    host.add_node(NodeSpecification(node.name, model, addresses=(node.address,), boot_id=chance.uuid()))
    return host


def _tls(
    args: argparse.Namespace, node: NodeOptions, config: ConnectionConfig, clock: Clock
) -> ssl.SSLContext:
    """Make the TLS context of the kubelet's server: its certificate, and the authority of its clients."""
    settings, own = node.settings, node.root / "pki"
    names = (node.address, node.name, socket.gethostname(), "localhost", "127.0.0.1")
    kubeconfig = args.kubeconfig or os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0]
    beside = Path(kubeconfig).absolute().parent / "pki" if kubeconfig else None
    if settings.tls_cert_file:
        pair = KeyPair(b"", b"", Path(settings.tls_cert_file), Path(settings.tls_private_key_file))
    elif beside is not None and (beside / "ca.key").exists() and _read(beside / "ca.crt") == config.ca:
        # The cluster's authority is on this machine, so the API server can be shown what it believes.
        pair = Pki(beside, clock.now_ns()).kubelet_serving(names)
    else:
        pair = Pki(own, clock.now_ns()).kubelet_serving(names)
    if settings.client_ca_file:
        return server_context(pair, Path(settings.client_ca_file))
    trusted = own / "cluster-ca.crt"
    own.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(trusted, config.ca or Pki(own, clock.now_ns()).authority_certificate)
    return server_context(pair, trusted)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None

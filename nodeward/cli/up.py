"""`nodeward up` and `nodeward apiserver`: certificates, store, API server, sockets; then wait for a signal.

All flags are read before anything is created (`server_flags.py`). A failed or interrupted start is undone in reverse
order: the port is free again and the store closed.
"""

from __future__ import annotations

import argparse
import asyncio
import errno
import logging
import os
import shlex
import signal
import socket
import ssl
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from nodeward.apiserver.auth.token_keys import load_key
from nodeward.apiserver.kubelet_access import KubeletAccess, kubelet_client_context
from nodeward.apiserver.large_bodies import BodyThread
from nodeward.apiserver.pki import Pki, kubeconfig, server_context, write_private
from nodeward.apiserver.security import TokenSettings
from nodeward.apiserver.server import ApiServer, Settings
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.cli.server_flags import ServerOptions, read_flags
from nodeward.features import Gates
from nodeward.machinery.clock import Clock, RealChance, RealClock
from nodeward.machinery.garbage_collection import settle_garbage_collector
from nodeward.machinery.loop_watchdog import LoopWatchdog
from nodeward.machinery.serving.listener import bind
from nodeward.store.sqlite_file import FileLock

LOG = logging.getLogger(__name__)

#: What a shell gives for a program that Ctrl-C ended.
_INTERRUPTED = 130


def run(args: argparse.Namespace) -> int:
    """Run until stopped by a signal."""
    logging.basicConfig(
        level=(logging.WARNING, logging.INFO, logging.DEBUG)[min(args.verbose, 2)],
        format="%(levelname).1s %(asctime)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_serve(args))


def loop_factory() -> Any:
    """Return uvloop's factory where it is installed: TLS costs a fifth of the memory and half the time."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(args: argparse.Namespace) -> int:
    clock = RealClock()
    stop = stop_signal()
    began_ns = clock.monotonic_ns()
    async with AsyncExitStack() as running:
        starting = asyncio.create_task(_start(args, clock, running), name="start")
        told = asyncio.create_task(stop.wait(), name="stop")
        await asyncio.wait((starting, told), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            print("stopped before it was ready", file=sys.stderr, flush=True)
            return _INTERRUPTED
        wanted, address, server = starting.result()
        settle_garbage_collector()
        watchdog = LoopWatchdog(clock)
        watchdog.start()
        running.callback(watchdog.stop)
        _announce(args, wanted, address, (clock.monotonic_ns() - began_ns) / SECOND_NS)
        failing = asyncio.create_task(server.hub.failed(), name="failing")
        await asyncio.wait((failing, told), return_when=asyncio.FIRST_COMPLETED)
        if failing.done():
            told.cancel()
            failing.result()
        failing.cancel()
        print("stopping...", file=sys.stderr, flush=True)
    return 0


async def _start(
    args: argparse.Namespace, clock: Clock, running: AsyncExitStack
) -> tuple[ServerOptions, str, ApiServer]:
    """Start a cluster; return it, host, port and server. `running` records how to stop it."""
    wanted = read_flags(args)
    for warning in wanted.warnings:
        LOG.warning("%s", warning)
    _tell(wanted)
    bound = _bind(args)
    running.callback(bound.close)
    _make_home(wanted.home)
    if args.command == "up" or not wanted.store.is_shared:
        # Several API servers may share an etcd and their certificates; everything else in the directory has one owner.
        lock = FileLock(
            wanted.home / "cluster", shown=wanted.home, instead="a directory of its own with --dir"
        )
        lock.acquire()
        running.callback(lock.release)
    pki = Pki(wanted.home / "pki", clock.now_ns())
    host, port = _host(args), bound.getsockname()[1]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    serving = pki.serving(socket.gethostname(), (host, args.bind_address, wanted.service_address))
    settings = Settings(
        kubernetes_version=args.kubernetes_version,
        gates=wanted.gates,
        tokens=TokenSettings(keys=(load_key(pki.service_account_key()),)),
        static_tokens=wanted.static_tokens,
        allows_anonymous=args.anonymous_auth == "true",
        enable_admission=wanted.enable_admission,
        disable_admission=wanted.disable_admission,
        service_cidr=wanted.service_cidr,
        event_ttl_seconds=wanted.event_ttl_seconds,
        address=address,
        kubelets=_kubelet_access(pki),
        make_worker=BodyThread,
    )
    tls = server_context(serving, pki.authority_path)
    if args.command == "up":
        server = await _start_cluster(args, wanted, clock, settings, bound, tls, pki, running)
    else:
        server = ApiServer(wanted.store, clock, RealChance(), settings)
        running.push_async_callback(server.stop)
        await server.start()
        await _open(args, server, bound, tls)
    text = kubeconfig(f"https://{address}", pki.authority_certificate, pki.admin())
    _make_directory(wanted.kubeconfig.parent)
    write_private(wanted.kubeconfig, text.encode())
    return wanted, address, server


async def _open(
    args: argparse.Namespace, server: ApiServer, bound: socket.socket, tls: ssl.SSLContext
) -> None:
    try:
        await server.serve(bound, tls)
    except OSError as error:
        raise _no_port(args, error) from None


async def _start_cluster(
    args: argparse.Namespace,
    wanted: ServerOptions,
    clock: Clock,
    settings: Settings,
    bound: socket.socket,
    tls: ssl.SSLContext,
    pki: Pki,
    running: AsyncExitStack,
) -> ApiServer:
    # Not for who runs the API server alone.
    from nodeward.cli.cluster_flags import describe
    from nodeward.cluster.assembly import Cluster
    from nodeward.cluster.kubelet_serving import HOST

    description = describe(args, wanted)
    root_ca = pki.authority_certificate.decode()
    cluster = Cluster(
        description, wanted.store, clock, RealChance(), settings, root_ca=root_ca, home=wanted.home
    )
    running.push_async_callback(cluster.stop)
    await cluster.start_server()
    await _open(args, cluster.server, bound, tls)
    kubelet = pki.kubelet_serving((HOST, "localhost"))
    await cluster.serve_kubelets(server_context(kubelet, pki.authority_path))
    await cluster.start_parts()
    return cluster.server


def _kubelet_access(pki: Pki) -> KubeletAccess:
    """Make the API server's client certificate for kubelets, and the authority of theirs."""
    pair = pki.kubelet_client()
    if pair.certificate_path is None or pair.key_path is None:
        raise ConfigError("the certificate that is shown to kubelets must be in a file")
    return KubeletAccess(kubelet_client_context(pair.certificate_path, pair.key_path, pki.authority_path))


def _tell(wanted: ServerOptions) -> None:
    """Log what `-v` shows at the start."""
    LOG.info("store %s, certificates in %s", wanted.store_text, wanted.home / "pki")
    LOG.info("service addresses: %s", wanted.service_cidr)
    LOG.info("admission plugins: %s", ", ".join(wanted.admission))
    usual = {name: is_on for name, _, is_on in Gates.of(wanted.gates.version)}
    changed = [f"{name}={is_on}" for name, _, is_on in wanted.gates if is_on != usual[name]]
    LOG.info("Kubernetes %s, feature gates changed: %s", wanted.gates.version, ", ".join(changed) or "none")


def _process_age(otherwise: float) -> float:
    """Return the seconds since this process was started, imports included, where /proc has it."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return otherwise
    return uptime - ticks / os.sysconf("SC_CLK_TCK")


def _announce(args: argparse.Namespace, wanted: ServerOptions, address: str, seconds: float) -> None:
    print(
        f"nodeward {args.command}: Kubernetes v{args.kubernetes_version} at https://{address}, "
        f"ready in {_process_age(seconds):.2f} s\n"
        f"export KUBECONFIG={shlex.quote(str(wanted.kubeconfig.absolute()))}",
        flush=True,
    )


def stop_signal() -> asyncio.Event:
    """Return an event that the first Ctrl-C or SIGTERM sets; the second ends the program at once."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()

    def first() -> None:
        if event.is_set():
            os._exit(_INTERRUPTED)
        event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, first)
    return event


def _host(args: argparse.Namespace) -> str:
    return "127.0.0.1" if args.bind_address in ("0.0.0.0", "::") else str(args.bind_address)


def _bind(args: argparse.Namespace) -> socket.socket:
    try:
        return bind(args.bind_address, args.port)
    except OSError as error:
        raise _no_port(args, error) from None


def _no_port(args: argparse.Namespace, error: OSError) -> ConfigError:
    port_flag = "--port" if args.command == "up" else "--secure-port"
    is_address = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
    flag = "--bind-address" if is_address else port_flag
    why = error.strerror or error
    return ConfigError(f"cannot listen on {args.bind_address}:{args.port}: {why}; choose another with {flag}")


def _make_home(home: Path) -> None:
    """Create the cluster's directory, readable by the owner only: it holds all keys."""
    _make_directory(home.parent)
    _make_directory(home, 0o700)


def _make_directory(path: Path, mode: int = 0o777) -> None:
    try:
        path.mkdir(mode=mode, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the directory {path}: {error.strerror}") from None

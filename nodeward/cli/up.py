"""`nodeward up` and `nodeward apiserver`: certificates, store, API server, sockets; then wait to be stopped."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from nodeward.apiserver.auth.token_file import read_token_file
from nodeward.apiserver.auth.token_keys import load_key
from nodeward.apiserver.auth.user import User
from nodeward.apiserver.pki import Pki, kubeconfig, server_context
from nodeward.apiserver.security import TokenSettings
from nodeward.apiserver.server import ApiServer, Settings, bind
from nodeward.base.errors import ConfigError
from nodeward.cli.controllers import start_controllers
from nodeward.features import Gates
from nodeward.machinery.clock import Clock, RealChance, RealClock
from nodeward.store.interface import Store
from nodeward.store.opening import parse


def run(args: argparse.Namespace) -> int:
    """Run until told to stop."""
    logging.basicConfig(
        level=(logging.WARNING, logging.INFO, logging.DEBUG)[min(args.verbose, 2)],
        format="%(levelname).1s %(asctime)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(_serve(args))


def loop_factory() -> Any:
    """uvloop where there is one: TLS costs a fifth of the memory and half the time."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def _serve(args: argparse.Namespace) -> int:
    clock = RealClock()
    stop = _stop_signal()
    home = Path(args.dir)
    pki = Pki(home / "pki", clock.now_ns())
    server, address = await start_server(args, home, pki, clock)
    controllers = None
    if args.command == "up":
        controllers = await start_controllers(server, clock, pki.authority_certificate.decode())
    # What is alive now lives as long as the process; the collector need not look at it again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    _announce(args, home, address)
    await stop.wait()
    print("stopping...", file=sys.stderr, flush=True)
    if controllers is not None:
        await controllers.stop()
    await server.stop()
    return 0


def _process_age() -> float:
    """Seconds since this process was started, interpreter and imports included."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    uptime = float(Path("/proc/uptime").read_text().split()[0])
    return uptime - ticks / os.sysconf("SC_CLK_TCK")


def _announce(args: argparse.Namespace, home: Path, address: str) -> None:
    seconds = _process_age()
    print(
        f"nodeward {args.command}: Kubernetes v{args.kubernetes_version} at https://{address}, "
        f"ready in {seconds:.2f} s\nexport KUBECONFIG={_kubeconfig_path(args, home).absolute()}",
        flush=True,
    )


def _stop_signal() -> asyncio.Event:
    """Set by the first Ctrl-C or SIGTERM; the second one does not wait."""
    event = asyncio.Event()
    loop = asyncio.get_running_loop()

    def first() -> None:
        if event.is_set():
            os._exit(130)
        event.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, first)
    return event


def _host(args: argparse.Namespace) -> str:
    return "127.0.0.1" if args.bind_address in ("0.0.0.0", "::") else str(args.bind_address)


def _kubeconfig_path(args: argparse.Namespace, home: Path) -> Path:
    return Path(args.kubeconfig) if args.kubeconfig else home / "kubeconfig"


async def start_server(args: argparse.Namespace, home: Path, pki: Pki, clock: Clock) -> tuple[ApiServer, str]:
    """An API server that answers, and the host and port it answers on."""
    try:
        bound = bind(args.bind_address, args.port)
    except OSError as error:
        raise _no_port(args, error) from None
    with ExitStack() as unless_started:
        unless_started.callback(bound.close)
        started = await _start_on(bound, args, home, pki, clock)
        unless_started.pop_all()
    return started


def _no_port(args: argparse.Namespace, error: OSError) -> ConfigError:
    flag = "--port" if args.command == "up" else "--secure-port"
    why = error.strerror or error
    return ConfigError(f"cannot listen on {args.bind_address}:{args.port}: {why}; choose another with {flag}")


async def _start_on(
    bound: socket.socket, args: argparse.Namespace, home: Path, pki: Pki, clock: Clock
) -> tuple[ApiServer, str]:
    host, port = _host(args), bound.getsockname()[1]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    serving = pki.serving(socket.gethostname(), (host, args.bind_address))
    settings = Settings(
        kubernetes_version=args.kubernetes_version,
        gates=Gates.of(args.kubernetes_version, args.feature_gates),
        tokens=TokenSettings(keys=(load_key(pki.service_account_key()),)),
        static_tokens=_static_tokens(args.token_auth_file),
        allows_anonymous=args.anonymous_auth == "true",
        enable_admission=_enabled(args),
        disable_admission=_names(args.disable_admission_plugins),
        service_cidr=args.service_cluster_ip_range,
        address=address,
    )
    server = ApiServer(_store(args, home), clock, RealChance(), settings)
    await server.start()
    try:
        await server.serve(bound, server_context(serving, pki.authority_path))
    except OSError as error:
        await server.stop()
        raise _no_port(args, error) from None
    text = kubeconfig(f"https://{address}", pki.authority_certificate, pki.admin())
    _write_private(_kubeconfig_path(args, home), text)
    return server, address


def _store(args: argparse.Namespace, home: Path) -> Store:
    embedded = f"sqlite:{home / 'state.db'}"
    if args.command == "apiserver":
        return parse(_etcd_url(args) if args.etcd_servers else embedded)
    return parse(embedded if args.store == "sqlite" else args.store)


def _etcd_url(args: argparse.Namespace) -> str:
    """kube-apiserver's flags as the one text the store reads."""
    servers = [server.strip() for server in args.etcd_servers.split(",") if server.strip()]
    places: list[str] = []
    schemes: set[str] = set()
    for server in servers:
        scheme, separator, place = server.partition("://")
        if not separator or scheme not in ("http", "https"):
            raise ConfigError(f"--etcd-servers: {server!r} is no URL, for example http://127.0.0.1:2379")
        schemes.add(scheme)
        places.append(place.rstrip("/"))
    if len(schemes) != 1:
        raise ConfigError("--etcd-servers: write either http:// or https:// for all endpoints")
    url = f"etcd{'s' if schemes == {'https'} else ''}://{','.join(places)}"
    files = {"ca": args.etcd_cafile, "cert": args.etcd_certfile, "key": args.etcd_keyfile}
    given = {name: path for name, path in files.items() if path}
    return f"{url}?{urlencode(given)}" if given else url


def _static_tokens(path: str) -> dict[str, User]:
    if not path:
        return {}
    try:
        text = Path(path).read_text()
    except OSError as error:
        raise ConfigError(f"--token-auth-file: cannot read {path}: {error.strerror}") from None
    users, warnings = read_token_file(text, path)
    for warning in warnings:
        logging.getLogger(__name__).warning("%s", warning)
    return users


def _enabled(args: argparse.Namespace) -> tuple[str, ...]:
    """What was asked for, and NodeRestriction: kubelets here are told apart by their certificates."""
    asked = _names(args.enable_admission_plugins)
    is_off = "NodeRestriction" in _names(args.disable_admission_plugins)
    return asked if is_off or "NodeRestriction" in asked else (*asked, "NodeRestriction")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _write_private(path: Path, text: str) -> None:
    """Whole or not at all, and for the owner's eyes only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)

"""`nodeward controllers`: the controllers as ordinary clients of any cluster, one elected leader at a time.

Flags are read before anything is opened. By default all controllers act as the kubeconfig's user; with
`--use-service-account-credentials` each acts as its own service account, as with kube-controller-manager.
"""

from __future__ import annotations

import argparse
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final

from nodeward.base.errors import ConfigError, WorldError
from nodeward.cli.account_tokens import AccountToken
from nodeward.cli.long_running import gates_of, run_until_stopped
from nodeward.cli.pages import serve_pages
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.naming import chosen
from nodeward.controllers.runner import MANAGER, Runner
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock, RealChance, RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import ConnectionConfig, load_config
from nodeward.machinery.leader import LeaderElector

LOG: Final = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
CONNECTIONS: Final = 64


def run(args: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> int:
    """Run until told to stop, or until leadership is lost."""
    gates = gates_of(args)
    try:
        entries = chosen(CONTROLLERS, args.controllers.split(","))
    except ConfigError as error:
        raise ConfigError(f"--controllers: {error}") from None
    if not entries:
        raise ConfigError("--controllers: none is left to run; * is all of them")
    root_ca = _root_ca(args)
    config = load_config(environment, path=args.kubeconfig, context=args.context)
    if root_ca is None and config.ca:
        root_ca = config.ca.decode("ascii", "replace")

    async def start(running: AsyncExitStack) -> Awaitable[None]:
        clock, chance = RealClock(), RealChance()
        client = connect(
            config, clock=clock, environment=environment, component=MANAGER, max_connections=CONNECTIONS
        )
        running.push_async_callback(client.aclose)
        clients = _clients(args, config, client, clock, environment, running)
        runner = Runner(clients, clock, chance, gates=gates, root_ca=root_ca, controllers=entries)
        elector = LeaderElector(
            client,
            chance.child("leader"),
            name=MANAGER,
            namespace=NAMESPACE,
            identity=f"{socket.gethostname()}_{chance.uuid()}",
            on_new_leader=lambda leader: LOG.info("the leader is %s", leader),
        )
        await serve_pages(
            args.bind_address,
            args.secure_port,
            runner.metrics,
            clock,
            running,
            alive={"controllers": lambda: not runner.has_failed},
            ready={},
            has_tls=True,
            flags="--bind-address and --secure-port",
        )
        print(f"nodeward controllers: {len(entries)} for {config.server}", flush=True)
        return _work(runner, elector if args.leader_elect == "true" else None)

    return run_until_stopped(args.verbose, start)


async def _work(runner: Runner, elector: LeaderElector | None) -> None:
    async def lead() -> None:
        await runner.start()
        try:
            await runner.ended()
            raise WorldError("the controllers cannot go on; the log says why")
        finally:
            await runner.stop()

    await (lead() if elector is None else elector.run(lead))


def _clients(
    args: argparse.Namespace,
    config: ConnectionConfig,
    manager: Client,
    clock: Clock,
    environment: Mapping[str, str],
    running: AsyncExitStack,
) -> Callable[[str], Client]:
    if args.use_service_account_credentials != "true":
        return manager.as_component
    # It must not contain our own credentials.
    bare = replace(
        config, client_certificate=None, client_key=None, token="", token_file=None, username="", exec=None
    )

    def client_for(name: str) -> Client:
        if name == MANAGER:
            return manager
        client = connect(
            bare,
            clock=clock,
            environment=environment,
            component=name,
            max_connections=CONNECTIONS,
            credentials=AccountToken(manager, name),
        )
        running.push_async_callback(client.aclose)
        return client

    return client_for


def _root_ca(args: argparse.Namespace) -> str | None:
    if not args.root_ca_file:
        return None
    try:
        return Path(args.root_ca_file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--root-ca-file: {args.root_ca_file}: cannot be read: {error}") from None

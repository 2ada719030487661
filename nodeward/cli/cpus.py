"""`nodeward cpus [NODE]`: which CPUs a node has, who owns each, and what is held in a scale-down delay (KEP-6122).

An ordinary client: asks the node's kubelet for /debug/cpus, through the API server (`nodes/proxy`), Nodeward's or a
real kube-apiserver. The kubelet must be Nodeward's. Without a node, one line for each. Nothing is changed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

import msgspec

from nodeward.api.core_v1.node import Node
from nodeward.api.errors import ApiError
from nodeward.base.errors import ConfigError, WorldError
from nodeward.cli.cpus_page import CPUPage, as_table, as_text
from nodeward.cli.listing import all_of
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config

#: Nodes asked for one list.
MOST_NODES: Final = 500
_AT_ONCE: Final = 16


class NoAnswer(Exception):
    """A node's kubelet did not say which CPUs it has. Given why."""


def run(args: argparse.Namespace) -> int:
    """Ask, and print the answer."""
    environment = dict(os.environ)
    config = load_config(environment, path=args.kubeconfig, context=args.context)

    async def work() -> str:
        client = connect(config, clock=RealClock(), environment=environment, component="nodeward-cpus")
        try:
            return await shown(client, args.node, args.output)
        finally:
            await client.aclose()

    print(asyncio.run(work()))
    return 0


async def shown(client: Client, node: str, output: str) -> str:
    """What is printed: the map of a node, or a line for each node where none is named."""
    if not node:
        pages, notes = await every_node(client)
        return _json({"nodes": pages, "notes": notes}) if output == "json" else as_table(pages, notes)
    try:
        page = await ask(client, node)
    except NoAnswer as error:
        raise ConfigError(str(error)) from None
    return _json(page) if output == "json" else as_text(page)


async def ask(client: Client, node: str) -> CPUPage:
    """Ask the kubelet of one node. Raises `NoAnswer`."""
    path = f"/api/v1/nodes/{quote(node, safe='')}/proxy/debug/cpus"
    try:
        response = await client.raw("GET", path, f"node={quote(node, safe='')}")
        return msgspec.json.decode(response.body or b"", type=CPUPage)
    except ApiError as error:
        if error.code == 404 and error.status.details is not None and error.status.details.kind == "nodes":
            raise NoAnswer(f"there is no node {node!r}") from None
        why = "it does not know /debug/cpus, which only Nodeward's does" if error.code == 404 else str(error)
        raise NoAnswer(f"the kubelet of node {node!r} did not answer: {why}") from None
    except (WorldError, msgspec.MsgspecError) as error:
        raise NoAnswer(f"the kubelet of node {node!r} did not answer: {error}") from None


async def every_node(client: Client) -> tuple[list[CPUPage], list[str]]:
    """Ask all nodes, some at a time; return their answers and notes on those that gave none."""
    names = sorted(node.metadata.name for node in await all_of(client, Node))
    limit = asyncio.Semaphore(_AT_ONCE)

    async def one(name: str) -> CPUPage | str:
        async with limit:
            try:
                return await ask(client, name)
            except NoAnswer as error:
                return str(error)

    answers = await asyncio.gather(*map(one, names[:MOST_NODES]))
    notes = [each for each in answers if isinstance(each, str)]
    if len(names) > MOST_NODES:
        notes.append(f"{len(names) - MOST_NODES} more nodes were not asked; name one of them")
    return [each for each in answers if isinstance(each, CPUPage)], notes


def _json(value: CPUPage | Mapping[str, object]) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()

"""`nodeward devices [NODE]`: the pools and devices of DRA drivers, and which claims and pods have them.

An ordinary client of any cluster, a real kube-apiserver included: lists ResourceSlices, ResourceClaims and
DeviceTaintRules, and reads the node if one is named. Nothing in the cluster is changed.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from nodeward.api.core_v1.node import Node
from nodeward.api.errors import ApiError
from nodeward.api.resource_v1 import DeviceTaintRule, ResourceClaim, ResourceSlice
from nodeward.base.errors import ConfigError
from nodeward.cli.devices_page import DevicesPage, as_json, as_text, devices_page
from nodeward.cli.listing import some_of
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config


def run(args: argparse.Namespace) -> int:
    """List the devices, and print them."""
    environment = dict(os.environ)
    config = load_config(environment, path=args.kubeconfig, context=args.context)

    async def work() -> DevicesPage:
        client = connect(config, clock=RealClock(), environment=environment, component="nodeward-devices")
        try:
            return await gather(client, args.node)
        finally:
            await client.aclose()

    page = asyncio.run(work())
    print(as_json(page) if args.output == "json" else as_text(page))
    return 0


async def gather(client: Client, name: str = "") -> DevicesPage:
    """Return what there is to show: of one node, or of all."""
    notes: list[str] = []
    node = await _node(client, name) if name else None
    slices = await some_of(client, ResourceSlice, notes, "shown as if there were none")
    claims = await some_of(client, ResourceClaim, notes, "every device looks free")
    rules = await some_of(client, DeviceTaintRule, notes, "their taints are left out")
    return devices_page(slices, claims, rules, node, notes)


async def _node(client: Client, name: str) -> Node:
    try:
        return await client.get(Node, name)
    except ApiError as error:
        if error.code != 404:
            raise
        raise ConfigError(f"there is no node {name!r}") from None

"""`nodeward fleet`: show the nodes of a fleet, and change the ConfigMap that describes them.

The ConfigMap is read, changed, validated as the fleet itself validates it, and written with its resourceVersion; on a
conflict everything is done again.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

import yaml

from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.core_v1.node import Node
from nodeward.api.errors import ApiError
from nodeward.base.errors import ConfigError
from nodeward.cli.listing import aligned
from nodeward.cluster.description import FleetPlan
from nodeward.cluster.fleet_control import FILE, NAMESPACE, changes
from nodeward.cluster.fleet_file import dump, load_fleet
from nodeward.features.gates import parse
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config

_TRIES: Final = 10

Tree = dict[str, Any]


def run(args: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> int:
    """Carry out one action."""
    config = load_config(environment, path=args.kubeconfig, context=args.context)

    async def work() -> int:
        client = connect(config, clock=RealClock(), environment=environment, component="nodeward-fleet")
        try:
            return await act(client, args)
        finally:
            await client.aclose()

    return asyncio.run(work())


async def act(client: Client, args: argparse.Namespace) -> int:
    """Carry out one action with a client; print the result."""
    if args.action == "list":
        found = await _map(client, args.fleet_map)
        plan = _read(found.data.get(FILE, ""), args.fleet_map)
        print("\n".join(_table(plan, (await client.list(Node)).items)))
        return 0
    for _ in range(_TRIES):
        found = await _map(client, args.fleet_map)
        before = _read(found.data.get(FILE, ""), args.fleet_map)
        tree: Tree = yaml.safe_load(before.text)
        EDITS[args.action](tree, before, args)
        after = _read(dump(tree), args.fleet_map)
        lines = changes(before, after)
        if not lines:
            print("nothing to change")
            return 0
        found.data = {**found.data, FILE: after.text}
        try:
            await client.update(found)
        except ApiError as error:
            if error.reason != "Conflict":
                raise
            continue
        print("\n".join(lines))
        return 0
    raise ConfigError(
        f"configmap {NAMESPACE}/{args.fleet_map} changes faster than it can be edited; try again"
    )


async def _map(client: Client, name: str) -> ConfigMap:
    try:
        return await client.get(ConfigMap, name, NAMESPACE)
    except ApiError as error:
        if error.reason != "NotFound":
            raise
    raise ConfigError(
        f"there is no configmap {NAMESPACE}/{name}: no fleet runs here; start one with nodeward up --nodes N or "
        "nodeward kubelet --fleet N, or name its map with --fleet-map"
    )


def _read(text: str, name: str) -> FleetPlan:
    # Nodes that do not say their version have that of the fleet's process, which nobody knows here: any will do.
    return load_fleet(text.encode(), f"configmap {NAMESPACE}/{name}: {FILE}", "1.37")


# -- edits


def _upgrade(tree: Tree, plan: FleetPlan, args: argparse.Namespace) -> None:
    if not (args.to_version or args.feature_gates):
        raise ConfigError("say what to upgrade to: --version, --feature-gates or both")
    pool = _pool(tree, args.target)
    if args.to_version:
        pool["version"] = args.to_version
    if args.feature_gates:
        pool["featureGates"] = {**(pool.get("featureGates") or {}), **parse(args.feature_gates)}
    rollout = dict(pool.get("rollout") or {})
    if args.at_once:
        rollout["atOnce"] = args.at_once
    if args.pause:
        rollout["pause"] = args.pause
    if rollout:
        pool["rollout"] = rollout


def _scale(tree: Tree, plan: FleetPlan, args: argparse.Namespace) -> None:
    _pool(tree, args.target)["nodes"] = args.nodes
    gone = {f"{args.target}-{number}" for number in range(args.nodes, _size(plan, args.target))}
    if tree.get("nodes"):
        _keep_nodes(tree, [node for node in tree["nodes"] if node["name"] not in gone])


def _cut_off(tree: Tree, plan: FleetPlan, args: argparse.Namespace) -> None:
    _node(tree, args.target)["cutOff"] = True


def _reconnect(tree: Tree, plan: FleetPlan, args: argparse.Namespace) -> None:
    _node(tree, args.target).pop("cutOff", None)
    _keep_nodes(tree, [node for node in tree["nodes"] if len(node) > 1])


def _reboot(tree: Tree, plan: FleetPlan, args: argparse.Namespace) -> None:
    node = _node(tree, args.target)
    node["boots"] = node.get("boots", 0) + 1


EDITS: Final[Mapping[str, Callable[[Tree, FleetPlan, argparse.Namespace], None]]] = {
    "upgrade": _upgrade,
    "scale": _scale,
    "cut-off": _cut_off,
    "reconnect": _reconnect,
    "reboot": _reboot,
}


def _pool(tree: Tree, name: str) -> Tree:
    for pool in tree["pools"]:
        if pool["name"] == name:
            found: Tree = pool
            return found
    names = ", ".join(pool["name"] for pool in tree["pools"])
    raise ConfigError(f"there is no pool {name!r}; there are: {names}")


def _size(plan: FleetPlan, name: str) -> int:
    return next(pool.nodes for pool in plan.pools if pool.name == name)


def _node(tree: Tree, name: str) -> Tree:
    """Return the file's entry for a node; whether the node exists is checked when the file is read again."""
    nodes: list[Tree] = tree.setdefault("nodes", []) or []
    tree["nodes"] = nodes
    for node in nodes:
        if node["name"] == name:
            return node
    nodes.append({"name": name})
    return nodes[-1]


def _keep_nodes(tree: Tree, nodes: list[Tree]) -> None:
    tree["nodes"] = nodes
    if not nodes:
        del tree["nodes"]


# -- the list


def _table(plan: FleetPlan, nodes: list[Node]) -> list[str]:
    by_name = {node.metadata.name: node for node in nodes}
    rows = [("POOL", "NODES", "READY", "VERSION", "UP-TO-DATE", "FEATURE-GATES")]
    for pool in plan.pools:
        mine = [by_name[name] for name in (f"{pool.name}-{n}" for n in range(pool.nodes)) if name in by_name]
        ready = sum(
            any(c.type == "Ready" and c.status == "True" for c in node.status.conditions) for node in mine
        )
        current = sum(node.status.node_info.kubelet_version == f"v{pool.version}.0" for node in mine)
        rows.append(
            (pool.name, str(pool.nodes), str(ready), pool.version, str(current), pool.feature_gates or "-")
        )
    lines = aligned(rows)
    for name, state in plan.nodes.items():
        told = [
            *(["cut off"] if state.is_cut_off else []),
            *([f"rebooted {state.boots} times"] if state.boots else []),
        ]
        if told:
            lines.append(f"{name}: {', '.join(told)}")
    return lines

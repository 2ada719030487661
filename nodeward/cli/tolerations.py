"""`nodeward tolerations`: lists users of the numeric operators `Lt` and `Gt`, before the gate is disabled.

An ordinary client of any cluster, a real kube-apiserver included: lists everything that may hold tolerations, and says
what happens to each object once no component knows the operators (KEP-5471). Nothing in the cluster is changed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta
from nodeward.api.scheme import Kind
from nodeward.cli.listing import aligned, some_of
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config
from nodeward.rules.numeric_use import KINDS, NumericUse, numeric_uses, without_gate


@dataclass(frozen=True, slots=True)
class TolerationUse:
    """One object with a numeric toleration, its node, and what happens to it without the gate."""

    kind: Kind
    meta: ObjectMeta
    node: str
    without_gate: str
    uses: tuple[NumericUse, ...]


def run(args: argparse.Namespace) -> int:
    """List the objects, and print them."""
    environment = dict(os.environ)
    config = load_config(environment, path=args.kubeconfig, context=args.context)

    async def work() -> tuple[list[TolerationUse], list[str]]:
        client = connect(config, clock=RealClock(), environment=environment, component="nodeward-tolerations")
        try:
            return await gather(client, args.namespace)
        finally:
            await client.aclose()

    found, notes = asyncio.run(work())
    print(as_text(found, notes) if args.output == "text" else _written(found, notes, args.output))
    return 0


async def gather(client: Client, namespace: str = "") -> tuple[list[TolerationUse], list[str]]:
    """Return every object that uses the operators, of all namespaces or one; and notes on what could not be read."""
    notes: list[str] = []
    unknown = "what becomes of running pods is not known"
    nodes = {node.metadata.name: node for node in await some_of(client, Node, notes, unknown)}
    found: list[TolerationUse] = []
    for kind in KINDS:
        described = client.kind_of(kind)
        for obj in await some_of(client, kind, notes, "left out", namespace):
            if uses := numeric_uses(obj):
                where = obj.spec.node_name if isinstance(obj, Pod) else ""
                becomes = without_gate(obj, nodes.get(where))
                found.append(TolerationUse(described, obj.metadata, where, becomes, tuple(uses)))
    return found, notes


def as_text(found: Sequence[TolerationUse], notes: Sequence[str]) -> str:
    """Format a table, one line per toleration, and the notes."""
    lines = [("NAMESPACE", "KIND", "NAME", "TOLERATION", "WITHOUT THE GATE")]
    for each in found:
        cells = [each.meta.namespace, each.kind.name, each.meta.name, each.without_gate]
        for use in each.uses:
            lines.append((cells[0], cells[1], cells[2], str(use), cells[3]))
            cells = [""] * 4
    page = aligned(lines) if found else ["no toleration uses Lt or Gt"]
    return "\n".join([*page, *(f"note: {note}" for note in notes)])


def as_tree(found: Sequence[TolerationUse], notes: Sequence[str]) -> dict[str, Any]:
    """Return the same as a tree for programs, with the path of every field."""
    return {"items": [_tree(each) for each in found], "notes": list(notes)}


def _tree(found: TolerationUse) -> dict[str, Any]:
    tree = {
        "apiVersion": found.kind.api_version,
        "kind": found.kind.name,
        "namespace": found.meta.namespace,
        "name": found.meta.name,
        "withoutGate": found.without_gate,
        "tolerations": [{"path": use.path} | msgspec.to_builtins(use.toleration) for use in found.uses],
    }
    return tree | ({"nodeName": found.node} if found.node else {})


def _written(found: Sequence[TolerationUse], notes: Sequence[str], output: str) -> str:
    tree = as_tree(found, notes)
    if output == "json":
        return msgspec.json.format(msgspec.json.encode(tree)).decode()
    import yaml

    text: str = yaml.safe_dump(tree, sort_keys=False)
    return text.rstrip("\n")

"""The `readiness` part of the benchmark: how fast taints follow what nodes report, through the API.

An API server in one process, durable on SQLite, over TLS, and the controllers in another; the nodes are plain objects,
and this process plays their reporters. Time runs from the first request until a watcher has seen the last taint, so
the reporters' own writes are part of it.

Two ways are measured: a `NodeReadinessRule` (set: the rule is made; cleared: every node reports True), and readiness
gates (KEP-5233; set: every gate is given up; cleared: every node reports True).
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.node import Node
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.bench.api import CONNECTIONS, Server, server
from nodeward.bench.figures import ClusterSize, Figure
from nodeward.bench.load import hammer, request
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock, RealClock, SeededChance
from nodeward.machinery.connecting import connect
from nodeward.machinery.informer import Informer
from nodeward.machinery.kubeconfig import load_config

CONDITION: Final = "example.com/NetworkReady"
KEY: Final = "readiness.k8s.io/network"
GATES: Final = "NodeReadinessGates=true"
PATIENCE_SECONDS: Final = 300
_RULES: Final = "/apis/readiness.node.x-k8s.io/v1alpha1/nodereadinessrules"
_MERGE: Final = "application/strategic-merge-patch+json"


async def readiness_figures(cluster: ClusterSize) -> AsyncIterator[Figure]:
    clock, nodes = RealClock(), cluster.nodes
    for name, controller in (("rule", "node-readiness-controller"), ("gates", "node-lifecycle-controller")):
        async with _cluster(clock, controller, nodes, has_gates=name == "gates") as (running, watcher):
            cpu = running.cpu_seconds()
            if name == "rule":
                set_seconds = await watcher.seconds(running, iter([_rule()]), nodes, expected=201)
            else:
                given_up = _reports(nodes, "Unknown", "TimeoutExceeded")
                set_seconds = await watcher.seconds(running, given_up, nodes)
            clear_seconds = await watcher.seconds(running, _reports(nodes, "True", "Checked"), 0)
            cpu = running.cpu_seconds() - cpu
        size = f"{nodes:,} nodes, TLS, SQLite, {controller} in a process of its own"
        yield Figure(f"readiness/{name}-set", set_seconds, "s", f"until all nodes are tainted; {size}")
        yield Figure(
            f"readiness/{name}-clear", clear_seconds, "s", f"all report True, until no taint; {size}"
        )
        total = set_seconds + clear_seconds
        # On a machine that others use too, this is what can be compared.
        yield Figure(f"readiness/{name}-set-and-clear", total, "s", f"{cpu:.1f} s CPU of the server; {size}")


class _Watcher:
    """Knows which nodes have the taint, as any watcher of the API does."""

    def __init__(self, client: Client) -> None:
        self.informer: Final = Informer(client, Node, SeededChance(1))
        self.informer.add_handler(self._see, lambda _, new: self._see(new))
        self._tainted: set[str] = set()
        self._wanted = -1
        self._reached = asyncio.Event()

    def _see(self, node: Node) -> None:
        name = node.metadata.name
        if any(taint.key == KEY for taint in node.spec.taints):
            self._tainted.add(name)
        else:
            self._tainted.discard(name)
        if len(self._tainted) == self._wanted:
            self._reached.set()

    async def seconds(
        self, running: Server, requests: Iterator[bytes], wanted: int, *, expected: int = 200
    ) -> float:
        """From the first request until exactly so many nodes have the taint."""
        self._wanted = wanted
        self._reached.clear()
        clock = running.target.clock
        began_ns = clock.monotonic_ns()
        await hammer(running.target, requests, connections=CONNECTIONS, expected=expected)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._reached.wait()
        return (clock.monotonic_ns() - began_ns) / SECOND_NS


@asynccontextmanager
async def _cluster(
    clock: Clock, controller: str, nodes: int, *, has_gates: bool
) -> AsyncIterator[tuple[Server, _Watcher]]:
    # Nobody is there to take off the taint that new nodes have.
    flags = ("--feature-gates", GATES, "--disable-admission-plugins", "TaintNodesByCondition")
    async with server(clock, *flags) as running:
        creates = _nodes(nodes, has_gates=has_gates)
        await hammer(running.target, creates, connections=CONNECTIONS, expected=201)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "nodeward", "controllers", "--kubeconfig", str(running.kubeconfig),
            "--controllers", controller, "--leader-elect", "false", "--secure-port", "0",
            "--feature-gates", GATES, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        client = connect(load_config({}, path=str(running.kubeconfig)), clock=clock, environment={})
        watcher = _Watcher(client)
        watching = asyncio.create_task(watcher.informer.run())
        try:
            assert process.stdout is not None
            if not await process.stdout.readline():
                raise WorldError("the controllers did not start")
            await watcher.informer.wait_synced()
            yield running, watcher
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await client.aclose()
            process.send_signal(signal.SIGINT)
            await process.wait()


def _rule() -> bytes:
    body = {
        "metadata": {"name": "network"},
        "spec": {
            "conditions": [{"type": CONDITION, "requiredStatus": "True"}],
            "enforcementMode": "continuous",
            "taint": {"key": KEY, "effect": "NoSchedule"},
            "nodeSelector": {"matchLabels": {"pool": "a"}},
        },
    }
    return request("POST", _RULES, msgspec.json.encode(body))


def _reports(number: int, status: str, reason: str) -> Iterator[bytes]:
    condition = {"type": CONDITION, "status": status, "reason": reason}
    body = msgspec.json.encode({"status": {"conditions": [condition]}})
    return (request("PATCH", f"/api/v1/nodes/node-{each}/status", body, _MERGE) for each in range(number))


def _nodes(number: int, *, has_gates: bool) -> Iterator[bytes]:
    gate = {
        "conditionType": CONDITION,
        "timeoutSeconds": 300,
        "failureAction": "Taint",
        "readinessTaint": {"key": KEY, "effect": "NoSchedule"},
    }
    for index in range(number):
        name = f"node-{index}"
        body: dict[str, Any] = {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "pool": "a"}},
            "spec": {"readinessGates": [gate]} if has_gates else {},
            "status": {
                "allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
            },
        }
        yield request("POST", "/api/v1/nodes", msgspec.json.encode(body))

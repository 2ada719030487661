"""The `fleet` part of the benchmark: simulated nodes in a process of their own, over HTTPS, on a durable server.

Measured: how long until all nodes are Ready, what a node costs in memory, what a fleet costs that only sends its
heartbeats, and how fast pods that have their node become Running.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.bench.api import PODS_PATH, Server, server
from nodeward.bench.figures import ClusterSize, Figure
from nodeward.bench.load import hammer, request
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock, RealChance, RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.informer import Informer
from nodeward.machinery.kubeconfig import load_config
from nodeward.machinery.reading import projection

CONNECTIONS: Final = 32
#: Heartbeats are watched for this long, after as long a rest.
IDLE_SECONDS: Final = 30.0
#: Nobody waits longer than this for anything.
PATIENCE_SECONDS: Final = 300.0


class _Condition(msgspec.Struct):
    type: str = ""
    status: str = ""


class _Status(msgspec.Struct):
    phase: str = ""
    conditions: list[_Condition] = []


class _Seen(msgspec.Struct):
    """Of a node or a pod, whether it is what is waited for."""

    status: _Status = msgspec.field(default_factory=_Status)


_DECODE: Final = msgspec.json.Decoder(_Seen).decode


def is_ready(data: bytes) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in _DECODE(data).status.conditions)


def is_running(data: bytes) -> bool:
    return _DECODE(data).status.phase == "Running"


async def fleet_figures(cluster: ClusterSize) -> AsyncIterator[Figure]:
    """Measure; figures come as they are known."""
    clock = RealClock()
    async with server(clock, "--controllers", "*", "--nodes", "0") as running:
        config = load_config({}, path=str(running.kubeconfig))
        client = connect(config, clock=clock, environment={}, component="bench")
        try:
            async for figure in _measure(cluster, clock, running, client):
                yield figure
        finally:
            await client.aclose()


async def _measure(
    cluster: ClusterSize, clock: Clock, running: Server, client: Client
) -> AsyncIterator[Figure]:
    nodes, pods = cluster.nodes, cluster.pods
    where = f"{nodes} simulated nodes in one process, HTTPS, server with controllers on SQLite"
    async with simulated_fleet(running, 1, "one") as lonely:
        await until(clock, client, Node, is_ready, 1)
        await clock.sleep(2)
        alone = _rss_bytes(lonely)
    started = clock.monotonic_ns()
    async with simulated_fleet(running, nodes, "sim") as fleet:
        # The lonely node is Ready until somebody misses it.
        await until(clock, client, Node, is_ready, nodes + 1)
        seconds = (clock.monotonic_ns() - started) / SECOND_NS
        yield Figure("fleet/ready", seconds, "s", f"from the start of the process; {where}")
        await clock.sleep(IDLE_SECONDS)
        per_node = (_rss_bytes(fleet) - alone) / nodes / 1024
        yield Figure("fleet/memory-per-node", per_node, "KB", f"beyond a fleet of one; {where}")
        before, server_before = _cpu_seconds(fleet), running.cpu_seconds()
        await clock.sleep(IDLE_SECONDS)
        share = (_cpu_seconds(fleet) - before) / IDLE_SECONDS * 100
        yield Figure("fleet/idle-cpu", share, "% core", f"leases every 10 s; {where}")
        share = (running.cpu_seconds() - server_before) / IDLE_SECONDS * 100
        yield Figure("fleet/idle-cpu-server", share, "% core", f"the same time; {where}")
        bodies = (request("POST", PODS_PATH, _pod(number, nodes)) for number in range(pods))
        # The fleet stands still until all pods have their node, so that nothing but starting them is measured.
        fleet.send_signal(signal.SIGSTOP)
        await hammer(running.target, bodies, connections=CONNECTIONS, expected=201)
        fleet.send_signal(signal.SIGCONT)
        began = clock.monotonic_ns()
        await until(clock, client, Pod, is_running, pods)
        seconds = (clock.monotonic_ns() - began) / SECOND_NS
        told = f"{pods} pods that had their node, to the last Running"
        yield Figure("fleet/pods-running", pods / seconds, "pods/s", f"{told}; {where}")


def _pod(number: int, nodes: int) -> bytes:
    return msgspec.json.encode(
        {
            "metadata": {"name": f"pod-{number}", "labels": {"app": "bench"}},
            "spec": {"nodeName": f"sim-{number % nodes}", "containers": [{"name": "c", "image": "image"}]},
        }
    )


async def until(
    clock: Clock, client: Client, kind: type, holds: Callable[[bytes], bool], wanted: int
) -> None:
    """Wait until so many objects are as they should be."""
    informer = Informer(client, projection(holds), RealChance(), kind=client.kind_of(kind))
    watching = asyncio.create_task(informer.run())
    try:
        async with clock.timeout(PATIENCE_SECONDS):
            while sum(informer.list()) < wanted:
                await clock.sleep(0.1)
    except TimeoutError:
        have = sum(informer.list())
        raise WorldError(
            f"{have} of {wanted} after {PATIENCE_SECONDS:.0f} s; this machine is too busy"
        ) from None
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


@asynccontextmanager
async def simulated_fleet(
    running: Server, nodes: int, name: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run simulated nodes in a process of their own; they are called NAME-0, NAME-1, ..."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "nodeward", "kubelet", "--fleet", str(nodes), "--fleet-name", name,
        "--fleet-map", f"bench-{name}", "--healthz-port", "0", "--kubeconfig", str(running.kubeconfig),
        stdout=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()
        await process.wait()


def _rss_bytes(process: asyncio.subprocess.Process) -> int:
    fields = Path(f"/proc/{process.pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def _cpu_seconds(process: asyncio.subprocess.Process) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

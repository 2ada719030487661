"""Pods created and bound over HTTPS: an API server's process on SQLite, `nodeward scheduler` as another, and the bench.

Twice for every kind of pod: created while the scheduler works, from the first create to the last binding anybody can
see; and created while it is stopped, from the moment it goes on to the last binding. All three share the machine.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.bench.api import PODS_PATH, Server, server
from nodeward.bench.figures import ClusterSize, Figure
from nodeward.bench.load import hammer, listen, request
from nodeward.bench.workloads import SLA, plain, tolerating, tree_of
from nodeward.machinery.clock import Clock, RealClock

GATES: Final = "NodeDeclaredFeatures=true,TaintTolerationComparisonOperators=true,NodeReadinessGates=true"
CONNECTIONS: Final = 32
AIM: Final = 1500
FEATURE: Final = "RestartAllContainersOnContainerExits"
DECLARED: Final = 20
#: Bound pods, as they become that.
_BOUND: Final = "/api/v1/pods?watch=1&fieldSelector=spec.nodeName!=&resourceVersion="


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What binding some pods took, and the CPU time of both processes."""

    pods: int
    seconds: float
    server_seconds: float
    scheduler_seconds: float

    @property
    def rate(self) -> float:
        return self.pods / self.seconds

    def cost(self) -> str:
        """Microseconds of CPU time per pod."""
        server, scheduler = (each / self.pods * 1e6 for each in (self.server_seconds, self.scheduler_seconds))
        return f"CPU per pod: server {server:.0f} us, scheduler {scheduler:.0f} us"


async def binding_figures(cluster: ClusterSize) -> AsyncIterator[Figure]:
    """All figures, in the order they are measured."""
    clock = RealClock()
    for name, says, shape in (
        ("plain", "CPU and memory", plain),
        ("features", f"1 of {DECLARED} declared features needed", _restarting),
        ("tolerations", "a numeric toleration (Gt)", tolerating),
    ):
        async with _cluster(clock, cluster.nodes) as (running, scheduler):
            size = f"{says}; {cluster.pods:,} pods, {cluster.nodes:,} nodes; TLS, SQLite"
            done = await _bound(
                running, scheduler, clock, _creates(shape, cluster.pods, "live"), cluster.pods
            )
            aim = f"aim {AIM:,}; " if name == "plain" else ""
            yield Figure(
                f"scheduler/https-{name}", done.rate, "pods/s", f"{aim}create to bound; {size}; {done.cost()}"
            )
            scheduler.send_signal(signal.SIGSTOP)
            creates = _creates(shape, cluster.pods, "late")
            await hammer(running.target, creates, connections=CONNECTIONS, expected=201)
            done = await _bound(running, scheduler, clock, iter(()), cluster.pods)
            yield Figure(
                f"scheduler/https-{name}-waiting",
                done.rate,
                "pods/s",
                f"pods that waited for the scheduler; {size}; {done.cost()}",
            )


async def _bound(
    running: Server, scheduler: asyncio.subprocess.Process, clock: Clock, creates: Iterator[bytes], pods: int
) -> Scheduled:
    counter = await listen(running.target, _BOUND + await _revision(running), 1)
    before = running.cpu_seconds(), _cpu_seconds(scheduler)
    started = clock.monotonic_ns()
    scheduler.send_signal(signal.SIGCONT)
    await hammer(running.target, creates, connections=CONNECTIONS, expected=201)
    async with asyncio.timeout(600):
        await counter.reach(pods)
    seconds = (clock.monotonic_ns() - started) / SECOND_NS
    counter.close()
    return Scheduled(pods, seconds, running.cpu_seconds() - before[0], _cpu_seconds(scheduler) - before[1])


@asynccontextmanager
async def _cluster(clock: Clock, nodes: int) -> AsyncIterator[tuple[Server, asyncio.subprocess.Process]]:
    # Nobody is there to say that nodes are ready.
    flags = ("--feature-gates", GATES, "--disable-admission-plugins", "TaintNodesByCondition")
    async with server(clock, *flags) as running:
        await hammer(running.target, _nodes(nodes), connections=CONNECTIONS, expected=201)
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "nodeward", "scheduler", "--kubeconfig", str(running.kubeconfig),
            "--leader-elect", "false", "--secure-port", "0", "--feature-gates", GATES,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            if not await process.stdout.readline():
                raise WorldError("the scheduler did not start")
            # The first pod is bound when the scheduler knows all nodes.
            await _bound(running, process, clock, _creates(plain, 1, "first"), 1)
            yield running, process
        finally:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGINT)
            await process.wait()


async def _revision(running: Server) -> str:
    reader, writer = await asyncio.open_connection(
        running.target.host, running.target.port, ssl=running.target.tls, server_hostname=running.target.host
    )
    writer.write(request("GET", "/api/v1/namespaces?limit=1"))
    text = await reader.read(4096)
    writer.close()
    return text.partition(b'"resourceVersion":"')[2].partition(b'"')[0].decode()


def _cpu_seconds(process: asyncio.subprocess.Process) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _restarting(group: int, tree: dict[str, Any]) -> None:
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}
    tree["spec"]["containers"][0] |= {"restartPolicy": "Never", "restartPolicyRules": [rule]}


def _creates(shape: Callable[[int, dict[str, Any]], None], number: int, prefix: str) -> Iterator[bytes]:
    templates: list[bytes] = []
    for group in range(20):
        tree = tree_of("NAME", f"app-{group}")
        shape(group, tree)
        templates.append(msgspec.json.encode(tree))
    for index in range(number):
        name = b"%b-%d" % (prefix.encode(), index)
        yield request("POST", PODS_PATH, templates[index % len(templates)].replace(b"NAME", name))


def _nodes(number: int) -> Iterator[bytes]:
    for index in range(number):
        others = [f"Feature{each:03}" for each in range(DECLARED - 1)]
        # Every tenth lacks the one that is needed.
        declared = sorted(others if not index % 10 else [*others, FEATURE])
        body = {
            "metadata": {"name": f"node-{index}", "labels": {"kubernetes.io/hostname": f"node-{index}"}},
            "spec": {"taints": [{"key": SLA, "value": str(95 + index % 5), "effect": "PreferNoSchedule"}]},
            "status": {
                "allocatable": {"cpu": "32", "memory": "128Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "declaredFeatures": declared,
            },
        }
        yield request("POST", "/api/v1/nodes", msgspec.json.encode(body))

"""The `deployment` part of the benchmark: one Deployment scaled from nothing, on `nodeward up` with a fleet.

Everything is at work in the one process users start: API server on SQLite, controllers, scheduler, simulated nodes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.bench.api import server
from nodeward.bench.figures import ClusterSize, Figure
from nodeward.bench.fleet import is_running, until
from nodeward.bench.load import hammer, request
from nodeward.machinery.clock import RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config

PATH = "/apis/apps/v1/namespaces/default/deployments"


async def deployment_figures(cluster: ClusterSize) -> AsyncIterator[Figure]:
    """Measure; the pods have room on the nodes."""
    clock = RealClock()
    nodes = max(cluster.pods // 100, 1)
    flags = ("--nodes", str(nodes), "--runtime", "sim")
    async with server(clock, *flags, alone=()) as running:
        config = load_config({}, path=str(running.kubeconfig))
        client = connect(config, clock=clock, environment={}, component="bench")
        try:
            before = running.cpu_seconds()
            started = clock.monotonic_ns()
            await hammer(
                running.target,
                iter([request("POST", PATH, _deployment(cluster.pods))]),
                connections=1,
                expected=201,
            )
            await until(clock, client, Pod, is_running, cluster.pods)
            seconds = (clock.monotonic_ns() - started) / SECOND_NS
            spent = (running.cpu_seconds() - before) / cluster.pods * 1e6
            told = f"{cluster.pods} replicas from 0 to the last Running, {nodes} simulated nodes, one process on SQLite"
            yield Figure("deployment/running", cluster.pods / seconds, "pods/s", told)
            yield Figure("deployment/cpu", spent, "us/pod", f"of that process; {told}")
        finally:
            await client.aclose()


def _deployment(replicas: int) -> bytes:
    labels = {"app": "bench"}
    container = {"name": "c", "image": "image", "resources": {"requests": {"cpu": "10m"}}}
    return msgspec.json.encode(
        {
            "metadata": {"name": "bench"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }
    )

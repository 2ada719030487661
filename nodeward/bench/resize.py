"""The `resize` part of the benchmark: running pods of simulated nodes are resized, over HTTPS, on a durable server.

Measured: how fast 1,000 resizes come from the first PATCH to the last status that says they are in force.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.bench.api import PODS_PATH, server
from nodeward.bench.figures import ClusterSize, Figure
from nodeward.bench.fleet import CONNECTIONS, is_ready, is_running, simulated_fleet, until
from nodeward.bench.load import hammer, request
from nodeward.machinery.clock import RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_config

PODS: Final = 1_000
NODES: Final = 100
_BEFORE: Final = "100m"
_AFTER: Final = "200m"
_PATCH: Final = "application/strategic-merge-patch+json"


class _Resources(msgspec.Struct):
    requests: dict[str, str] = {}


class _Container(msgspec.Struct):
    resources: _Resources = msgspec.field(default_factory=_Resources)


class _Condition(msgspec.Struct):
    type: str = ""


class _Status(msgspec.Struct, rename="camel"):
    container_statuses: list[_Container] = []
    conditions: list[_Condition] = []


class _Seen(msgspec.Struct):
    """Of a pod, what its node says of its resources."""

    status: _Status = msgspec.field(default_factory=_Status)


_DECODE: Final = msgspec.json.Decoder(_Seen).decode


def _is_resized(data: bytes) -> bool:
    status = _DECODE(data).status
    return all(
        each.resources.requests.get("cpu") == _AFTER for each in status.container_statuses
    ) and not any(each.type.startswith("PodResize") for each in status.conditions)


async def resize_figures(_cluster: ClusterSize) -> AsyncIterator[Figure]:
    """Measure; `--nodes` and `--pods` change nothing here."""
    clock = RealClock()
    async with server(clock, "--controllers", "*", "--nodes", "0") as running:
        config = load_config({}, path=str(running.kubeconfig))
        client = connect(config, clock=clock, environment={}, component="bench")
        try:
            async with simulated_fleet(running, NODES, "sim"):
                await until(clock, client, Node, is_ready, NODES)
                bodies = (request("POST", PODS_PATH, _pod(number)) for number in range(PODS))
                await hammer(running.target, bodies, connections=CONNECTIONS, expected=201)
                await until(clock, client, Pod, is_running, PODS)
                patch = msgspec.json.encode({"spec": _containers(_AFTER)})
                bodies = (
                    request("PATCH", f"{PODS_PATH}/pod-{number}/resize", patch, _PATCH)
                    for number in range(PODS)
                )
                began = clock.monotonic_ns()
                await hammer(running.target, bodies, connections=CONNECTIONS, expected=200)
                await until(clock, client, Pod, _is_resized, PODS)
                seconds = (clock.monotonic_ns() - began) / SECOND_NS
        finally:
            await client.aclose()
    where = f"{NODES} simulated nodes in one process, HTTPS, server with controllers on SQLite"
    yield Figure(
        "resize/in-force", PODS / seconds, "pods/s", f"{PODS} pods, first PATCH to last status; {where}"
    )


def _pod(number: int) -> bytes:
    spec = {"nodeName": f"sim-{number % NODES}", **_containers(_BEFORE)}
    return msgspec.json.encode(
        {"metadata": {"name": f"pod-{number}", "labels": {"app": "bench"}}, "spec": spec}
    )


def _containers(cpu: str) -> dict[str, object]:
    return {"containers": [{"name": "c", "image": "image", "resources": {"requests": {"cpu": cpu}}}]}

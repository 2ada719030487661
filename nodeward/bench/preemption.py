"""Preemption in process: every node is full of pods that matter less, and each pod that comes must make room first.

The API is played by a transport that says yes: victims that are deleted leave the table at once, as if their node had
ended them, so that what is measured is the search for victims and two decisions per pod.
"""

from __future__ import annotations

import gc
from typing import Any

from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import invariant
from nodeward.bench.figures import Spent, cpu_seconds
from nodeward.bench.workloads import Workload, nodes, pods
from nodeward.features import Gates, Version
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock, RealChance
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.recorder import EventRecorder
from nodeward.machinery.transport import Request, Response
from nodeward.scheduler.attempt import as_placed
from nodeward.scheduler.cycle import Engine
from nodeward.scheduler.engine_factory import SchedulerAccess, build_engine
from nodeward.scheduler.framework.context import FrameworkHandle
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.settings import SchedulerSettings, default_profile

#: Pods a node is full of; each takes this many CPUs of its 32.
EACH = 4


def _tenant(group: int, tree: dict[str, Any]) -> None:
    tree["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(32 // EACH)


def _important(group: int, tree: dict[str, Any]) -> None:
    _tenant(group, tree)
    tree["spec"]["priority"] = 1000


TENANTS = Workload("tenants", "", _tenant)
IMPORTANT = Workload("preemption", f"a victim for each; nodes full with {EACH} pods", _important, share=0.05)


class _Yes:
    """Takes everything; remembers which pods were deleted."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        if request.method == "DELETE":
            self.deleted.append(request.path.rpartition("/")[2])
        return Response(200, {}, b"{}")

    async def aclose(self) -> None:
        pass


async def preempted(gates: Gates, clock: Clock, node_count: int, pod_count: int) -> Spent:
    """What it takes to place pods that all must preempt."""
    wire = _Yes()
    client = Client(wire, clock=clock)
    chance = RealChance()

    def handle_of(reach: SchedulerAccess) -> FrameworkHandle:
        return FrameworkHandle(
            client=client,
            clock=clock,
            chance=chance,
            recorder=EventRecorder(client, chance, component="bench"),
            nominator=reach.nominator,
            metrics=Metrics(),
            filter_plain=lambda cycle, pod, node: reach.filters().filter_plain(cycle, pod, node),
            filters=reach.filters,
            activate=reach.activate,
            spawn=lambda _, work: work.close(),
            waiting=reach.waiting,
        )

    settings = SchedulerSettings((default_profile(gates),))
    engine = build_engine(
        settings, gates=gates, version=Version.parse("1.37"), clock=clock, handle_of=handle_of
    )
    for each in nodes(node_count):
        engine.table.upsert_node(each)
    for tenant in pods(TENANTS, node_count * EACH, "tenant"):
        engine.queue.add(PodView(tenant), clock.monotonic_ns())
    placed, without = engine.decide_all()
    invariant(not without, f"{without} pods that were to fill the nodes found no room")
    waiting = list(pods(IMPORTANT, pod_count))
    gc.collect()
    gc.freeze()
    started, cpu = clock.monotonic_ns(), cpu_seconds()
    for pod in waiting:
        engine.queue.add(PodView(pod), clock.monotonic_ns())
    placed = await _decide(engine, wire)
    spent = Spent(pod_count, (clock.monotonic_ns() - started) / SECOND_NS, cpu_seconds() - cpu)
    invariant(placed == pod_count, f"{placed} of {pod_count} pods got room")
    return spent


async def _decide(engine: Engine, wire: _Yes) -> int:
    placed = 0
    while (attempt := engine.next()) is not None:
        if attempt.failure is None:
            engine.finish(attempt)
            placed += 1
        elif attempt.failure.work is not None:
            await attempt.failure.work()
            for uid in wire.deleted:
                gone, node = engine.table.pod(uid), engine.table.node_of(uid)
                engine.table.remove_pod(uid)
                if gone is not None and node is not None:
                    seen = PodView(as_placed(gone.pod, node))
                    engine.queue.assigned_pod_deleted(seen, engine.clock.monotonic_ns())
            wire.deleted.clear()
    return placed

"""The `scheduler` part of the benchmark: decisions in process, then pods created and bound over HTTPS.

In process means all that decides and nothing of the API: pods enter the queue, leave it one by one, get a node, are
counted there and taken for bound. What is timed starts with decoded pods and ends when the queue is empty.
"""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Iterable

from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import invariant
from nodeward.bench.binding import binding_figures
from nodeward.bench.figures import ClusterSize, Figure, Spent, cpu_seconds
from nodeward.bench.preemption import IMPORTANT, preempted
from nodeward.bench.workloads import WORKLOADS, Workload, features_named, nodes, pods
from nodeward.features import Gates, Version
from nodeward.features.declared import FRAMEWORK
from nodeward.machinery.clock import RealClock
from nodeward.scheduler.cycle import Engine
from nodeward.scheduler.engine_factory import alone
from nodeward.scheduler.framework.pod import PodView

GATES = "NodeDeclaredFeatures=true,TaintTolerationComparisonOperators=true,NodeReadinessGates=true"
#: The largest cluster: nodes and pods for each of those that were asked for.
LARGER = 10


async def scheduler_figures(cluster: ClusterSize) -> AsyncIterator[Figure]:
    """All figures, in the order they are measured."""
    clock = RealClock()
    for workload in WORKLOADS:
        number = max(1, int(cluster.pods * workload.share))
        spent = decided(workload, cluster.nodes, number)
        for figure in _figures(workload.name, spent, _conditions(workload, cluster.nodes, number)):
            yield figure
    number = max(1, int(cluster.pods * IMPORTANT.share))
    spent = await preempted(Gates.of("1.37", GATES), clock, cluster.nodes, number)
    for figure in _figures(IMPORTANT.name, spent, _conditions(IMPORTANT, cluster.nodes, number)):
        yield figure
    many, more = cluster.nodes * LARGER, cluster.pods * LARGER
    spent = decided(WORKLOADS[0], many, more)
    conditions = (
        f"aim half of scheduler/{WORKLOADS[0].name}; {WORKLOADS[0].says}; {more:,} pods, {many:,} nodes"
    )
    for figure in _figures(f"{WORKLOADS[0].name}-larger", spent, conditions):
        yield figure
    async for figure in binding_figures(cluster):
        yield figure


def _figures(name: str, spent: Spent, conditions: str) -> Iterable[Figure]:
    yield Figure(f"scheduler/{name}", spent.rate, "pods/s", conditions)
    yield Figure(f"scheduler/{name}-cpu", spent.cpu_rate, "pods/s", "the same per second of CPU time")


def _conditions(workload: Workload, number: int, count: int) -> str:
    aim = f"aim {workload.aim:,}; " if workload.aim else ""
    kinds = f"{workload.signatures} signatures" if workload.signatures > 1 else "1 signature"
    return f"{aim}{workload.says}; {count:,} pods of {kinds}, {number:,} nodes; in process"


def decided(workload: Workload, node_count: int, pod_count: int, gates: str = GATES) -> Spent:
    """Place so many pods of one kind on so many nodes, in process, and measure it."""
    features = features_named(workload.features) if workload.features else FRAMEWORK
    engine = alone(Gates.of("1.37", gates), Version.parse("1.37"), RealClock(), features=features)
    for each in nodes(node_count, workload.features):
        engine.table.upsert_node(each)
    # Tables grow and plans are made before the clock runs: a scheduler lives longer than ten thousand pods.
    placed, without = _decide(engine, pods(workload, 2 * workload.signatures, "warm"))
    invariant(without == 0, f"{without} of the first pods found no node")
    waiting = list(pods(workload, pod_count))
    # As the scheduler's own process has it.
    gc.collect()
    gc.freeze()
    started, cpu = engine.clock.monotonic_ns(), cpu_seconds()
    placed, without = _decide(engine, waiting)
    spent = Spent(pod_count, (engine.clock.monotonic_ns() - started) / SECOND_NS, cpu_seconds() - cpu)
    invariant(placed == pod_count, f"{without} of {pod_count} pods found no node")
    return spent


def _decide(engine: Engine, waiting: Iterable[Pod]) -> tuple[int, int]:
    add, now_ns = engine.queue.add, engine.clock.monotonic_ns
    for pod in waiting:
        add(PodView(pod), now_ns())
    return engine.decide_all()

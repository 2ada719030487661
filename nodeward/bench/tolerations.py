"""The `tolerations` part of the benchmark: what numeric tolerations cost the scheduler (KEP-5471), as ratios.

The proposal promises that a gate that is on and unused slows nothing down, and that a numeric toleration costs about
what an equality costs. Whole decisions in process are measured in turns, in CPU time, so that other load matters
little, and the fastest round of each counts. The `rules` part measures the comparison alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from nodeward.bench.figures import ClusterSize, Figure
from nodeward.bench.scheduler import GATES, decided
from nodeward.bench.workloads import SLA, Shape, Workload

ROUNDS: Final = 5
OFF: Final = GATES.replace(
    "TaintTolerationComparisonOperators=true", "TaintTolerationComparisonOperators=false"
)


def _asking(operator: str, value: str) -> Shape:
    def shape(group: int, tree: dict[str, Any]) -> None:
        tree["spec"]["tolerations"].append({"key": SLA, "operator": operator, "value": value, "effect": ""})

    return shape


# Nodes promise 95 to 99: both tolerate the same fifth of them, so that the rest of a decision is the same.
EQUAL: Final = Workload("equal", "an Equal toleration", _asking("Equal", "99"))
GREATER: Final = Workload("greater", "a Gt toleration", _asking("Gt", "98"))

#: name -> (what pods ask for, gates)
MEASURED: Final = {"equal-gate-off": (EQUAL, OFF), "equal": (EQUAL, GATES), "gt": (GREATER, GATES)}


async def tolerations_figures(cluster: ClusterSize) -> AsyncIterator[Figure]:
    """All figures, in the order they are measured."""
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, (workload, gates) in MEASURED.items():
            spent = decided(workload, cluster.nodes, cluster.pods, gates)
            best[name] = min(spent.cpu_seconds, best.get(name, spent.cpu_seconds))
    size = f"{cluster.pods:,} pods of 20 signatures, {cluster.nodes:,} nodes; per second of CPU time, best of {ROUNDS}"
    for name, (workload, gates) in MEASURED.items():
        gate = "off" if gates is OFF else "on"
        says = f"{workload.says}, gate {gate}; {size}"
        yield Figure(f"tolerations/{name}", cluster.pods / best[name], "pods/s", says)
    unused = best["equal"] / best["equal-gate-off"]
    yield Figure("tolerations/unused-gate-cost", unused, "x", "aim 1; Equal with the gate on against off")
    used = best["gt"] / best["equal"]
    yield Figure("tolerations/gt-cost", used, "x", "aim 1; Gt against Equal, the gate on")

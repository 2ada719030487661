"""The `rules` part of the benchmark: tolerations against thousands of nodes, and the validation of a typical pod.

A numeric toleration (KEP-5471) is measured beside an equality, once as the scheduler asks (a column of taint-set
ids, sets judged before), once for a list of tolerations nobody has asked with yet, and once as the plain rule for
one pair.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import msgspec

from nodeward.api.codec import decoder
from nodeward.api.context import Context
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import Taint, Toleration
from nodeward.api.defaults import DEFAULTS
from nodeward.base.invariant import invariant
from nodeward.bench.figures import ClusterSize, Figure
from nodeward.features import Gates
from nodeward.machinery.clock import Clock, RealClock
from nodeward.rules.taint_columns import TaintSets
from nodeward.rules.tolerations import tolerates
from nodeward.validation.registry import VALIDATORS

SETS: Final = 100
ROUNDS: Final = 300
INNER: Final = 10
KEY: Final = "node.example.com/sla"

_PROBE: Final = {"httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10}
_CONTAINER: Final = {
    "name": "web",
    "image": "registry.example/shop/web:1.4.2",
    "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
    "env": [
        {"name": "LOG_LEVEL", "value": "info"},
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    ],
    "resources": {"requests": {"cpu": "250m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
    "readinessProbe": _PROBE,
    "livenessProbe": _PROBE,
    "volumeMounts": [{"name": "config", "mountPath": "/etc/web"}],
}
#: What a Deployment makes of a web server.
TYPICAL_POD: Final[dict[str, Any]] = {
    "metadata": {
        "name": "web-5d8f7c9b6-x2x9z",
        "namespace": "shop",
        "labels": {"app": "web", "tier": "front", "pod-template-hash": "5d8f7c9b6"},
    },
    "spec": {
        "containers": [_CONTAINER],
        "serviceAccountName": "web",
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "tolerations": [{"key": KEY, "operator": "Gt", "value": "900", "effect": "NoSchedule"}],
        "volumes": [{"name": "config", "configMap": {"name": "web-config"}}],
    },
}


async def rules_figures(cluster: ClusterSize) -> AsyncIterator[Figure]:
    """All figures. Two ways are measured in turns, so that both see the same machine; the fastest round counts."""
    import numpy as np

    clock, nodes = RealClock(), cluster.nodes
    sets = TaintSets(numeric=True)
    known = [sets.id_of(_taints(number)) for number in range(SETS)]
    ids = np.array([known[node % SETS] for node in range(nodes)], np.int32)
    equal, greater = _asking("Equal"), _asking("Gt")
    found = (sets.are_tolerated(equal, ids).sum(), sets.are_tolerated(greater, ids).sum())
    invariant(found == (nodes // SETS, nodes // SETS * (SETS // 2 - 1)), f"tolerated by {found} nodes")

    size = f"one pod, {nodes:,} nodes, {SETS} different taint sets"
    by_equal, by_greater = _in_turns(
        clock, lambda: sets.are_tolerated(equal, ids), lambda: sets.are_tolerated(greater, ids)
    )
    yield Figure("rules/tolerate-column-equal", by_equal / 1e3, "us", f"Equal, sets judged before; {size}")
    yield Figure("rules/tolerate-column-gt", by_greater / 1e3, "us", f"Gt, sets judged before; {size}")
    yield Figure("rules/tolerate-column-gt-cost", by_greater / by_equal, "x", "Gt against Equal, column form")

    by_equal, by_greater = _in_turns(clock, lambda: _afresh(equal), lambda: _afresh(greater))
    yield Figure("rules/tolerate-judge-equal", by_equal / 1e3, "us", f"Equal, asked first; {SETS} sets")
    yield Figure("rules/tolerate-judge-gt", by_greater / 1e3, "us", f"Gt, asked first; {SETS} sets")

    taint = _taints(SETS - 1)[0]
    by_equal, by_greater = _in_turns(
        clock,
        lambda: tolerates(equal[0], taint, numeric=True),
        lambda: tolerates(greater[0], taint, numeric=True),
    )
    yield Figure("rules/tolerate-one-equal", by_equal, "ns", "Equal, one toleration and one taint")
    yield Figure("rules/tolerate-one-gt", by_greater, "ns", "Gt, one toleration and one taint")
    yield Figure("rules/tolerate-one-gt-cost", by_greater / by_equal, "x", "Gt against Equal, plain form")

    yield Figure("rules/validate-pod", _validation(clock) / 1e3, "us", "a typical pod, every rule")


def _taints(number: int) -> list[Taint]:
    return [Taint(key=KEY, value=str(number), effect="NoSchedule")]


def _asking(operator: str) -> list[Toleration]:
    value = str(SETS // 2)
    return [Toleration(key=KEY, operator=operator, value=value, effect="NoSchedule")]


def _afresh(tolerations: list[Toleration]) -> None:
    sets = TaintSets(numeric=True)
    for number in range(SETS):
        sets.id_of(_taints(number))
    sets.judge(tolerations)


def _validation(clock: Clock) -> float:
    pod = decoder(Pod).decode(msgspec.json.encode(TYPICAL_POD))
    DEFAULTS[Pod](pod)
    create = VALIDATORS[Pod].create
    context = Context(Gates.of("1.37", "TaintTolerationComparisonOperators=true"))
    faults = create(pod, context)
    invariant(not faults, f"the typical pod is sound: {faults}")
    taken, _ = _in_turns(clock, lambda: create(pod, context), lambda: None)
    return taken


def _in_turns(clock: Clock, one: Callable[[], Any], other: Callable[[], Any]) -> tuple[float, float]:
    """How long each takes, in ns."""
    best = [1 << 62, 1 << 62]
    for _ in range(ROUNDS):
        for which, ask in enumerate((one, other)):
            started = clock.monotonic_ns()
            for _ in range(INNER):
                ask()
            best[which] = min(best[which], max(1, clock.monotonic_ns() - started))
    return best[0] / INNER, best[1] / INNER

"""`nodeReadinessGates` of a configuration file (KEP-5233): gates as the API has them, each with or without a probe.

The gates are checked as the API server will check them, so that a kubelet never starts with gates it cannot
register; probes are checked as those of containers, except that a port must be a number: a node has no named ones.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from nodeward.api.core_v1.container import Probe
from nodeward.api.core_v1.node import NodeReadinessGate
from nodeward.api.core_v1.references import Taint
from nodeward.base.duration import SECOND_NS
from nodeward.base.fieldpath import FieldPath
from nodeward.base.problems import Problems
from nodeward.features.gates import Gates
from nodeward.kubelet.config.settings import GateProbe, ReadinessGateSettings
from nodeward.validation.core.node_readiness import validate_readiness_gates
from nodeward.validation.pod.probe import validate_readiness_probe

GATE: Final = "NodeReadinessGates"
FIELD: Final = "nodeReadinessGates"


def read_readiness_gates(
    items: list[Any], gates: Gates | None, problems: Problems
) -> tuple[ReadinessGateSettings, ...]:
    """The gates of a file; what is wrong with them is told."""
    if items and gates is not None and not gates.enabled(GATE):
        remedy = (
            f"set featureGates: {{{GATE}: true}} or leave the field out"
            if gates.knows(GATE)
            else f"a kubelet of version {gates.version} does not have it"
        )
        problems.say(
            FIELD, f"{GATE} feature gate is required for Kubelet configuration option {FIELD}; {remedy}"
        )
    read = [_gate(item) for item in items]
    for error in validate_readiness_gates(read, FieldPath(FIELD)):
        problems.add(error)
    return tuple(
        ReadinessGateSettings(gate, _probe(item.get("probe"), FieldPath(FIELD).index(number), problems))
        for number, (gate, item) in enumerate(zip(read, items, strict=True))
    )


def _gate(item: dict[str, Any]) -> NodeReadinessGate:
    taint = item.get("readinessTaint")
    return NodeReadinessGate(
        condition_type=item.get("conditionType", ""),
        timeout_seconds=item.get("timeoutSeconds"),
        failure_action=item.get("failureAction", ""),
        readiness_taint=None if taint is None else msgspec.convert(taint, Taint),
    )


def _probe(tree: dict[str, Any] | None, gate: FieldPath, problems: Problems) -> GateProbe | None:
    if tree is None:
        return None
    probe = msgspec.convert(tree, Probe)
    path = gate.child("probe")
    if probe.http_get is not None:
        probe.http_get.scheme = probe.http_get.scheme or "HTTP"
        probe.http_get.path = probe.http_get.path or "/"
    for error in validate_readiness_probe(probe, None, path):
        problems.add(error)
    for name, action in (("httpGet", probe.http_get), ("tcpSocket", probe.tcp_socket)):
        if action is not None and isinstance(action.port, str):
            problems.wrong(
                str(path.child(name, "port")), action.port, "must be a number: a node has no named ports"
            )
    return GateProbe(
        probe,
        (probe.period_seconds or 10) * SECOND_NS,
        (probe.timeout_seconds or 1) * SECOND_NS,
        probe.initial_delay_seconds * SECOND_NS,
        probe.success_threshold or 1,
        probe.failure_threshold or 3,
    )

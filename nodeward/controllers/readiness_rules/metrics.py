"""The metrics of readiness rules, under node-readiness-controller's names; removed with their rule.

Called by `controller`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from nodeward import __version__
from nodeward.machinery.metrics import Metrics

_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LATENCY: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_BOOTSTRAP: Final = (1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0)

Look = Callable[[], Mapping[tuple[str, ...], float]]


class ReadinessRuleMetrics:
    """`held_and_released` and `by_state` are asked when somebody looks."""

    def __init__(self, metrics: Metrics, rules: Look, held_and_released: Look, by_state: Look) -> None:
        metrics.gauge("node_readiness_rules_total", "Number of NodeReadinessRules.", (), rules)
        metrics.gauge(
            "node_readiness_rule_nodes",
            "Number of nodes that a rule holds, and that it has released.",
            ("rule", "state"),
            held_and_released,
        )
        metrics.gauge(
            "node_readiness_nodes_by_state",
            "Number of nodes in each readiness state, for each rule.",
            ("rule", "state"),
            by_state,
        )
        metrics.gauge("node_readiness_build_info", "The version that runs, as a label.", ("version",)).set(
            1, __version__
        )
        self.operations: Final = metrics.counter(
            "node_readiness_taint_operations_total",
            "Number of taints that were added and removed.",
            ("rule", "operation"),
        )
        self.evaluation: Final = metrics.histogram(
            "node_readiness_evaluation_duration_seconds",
            "How long it took to apply a rule to a node, in seconds.",
            _SECONDS,
            ("rule",),
        )
        self.failures: Final = metrics.counter(
            "node_readiness_failures_total", "Number of nodes that could not be changed.", ("rule", "reason")
        )
        self.completed: Final = metrics.counter(
            "node_readiness_bootstrap_completed_total",
            "Number of nodes that passed a bootstrap-only rule.",
            ("rule",),
        )
        self.bootstrap: Final = metrics.histogram(
            "node_readiness_bootstrap_duration_seconds",
            "Time from the making of a node to its release by a bootstrap-only rule, in seconds.",
            _BOOTSTRAP,
            ("rule",),
        )
        self.latency: Final = metrics.histogram(
            "node_readiness_reconciliation_latency_seconds",
            "Time from the change of a condition to the change of the taint, in seconds.",
            _LATENCY,
            ("rule", "operation"),
        )
        self.unsatisfied: Final = metrics.counter(
            "node_readiness_condition_failures_total",
            "Number of times a condition was looked at and was not as the rule asks.",
            ("rule", "condition"),
        )
        self.last: Final = metrics.gauge(
            "node_readiness_rule_last_reconciliation_timestamp_seconds",
            "When a rule was last looked at, in seconds since 1970.",
            ("rule",),
        )

    def forget(self, rule: str) -> None:
        for counter in (self.operations, self.failures, self.completed, self.unsatisfied):
            counter.forget("rule", rule)
        for histogram in (self.evaluation, self.bootstrap, self.latency):
            histogram.forget("rule", rule)
        self.last.remove(rule)

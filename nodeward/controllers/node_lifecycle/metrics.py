"""The metrics of the node lifecycle controller, under Kubernetes' names.

Called by `controller`; calls `zones`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from nodeward.controllers.node_lifecycle.zones import ZoneCensus
from nodeward.machinery.metrics import Histogram, Metrics, exponential


class NodeLifecycleMetrics:
    def __init__(self, metrics: Metrics) -> None:
        self._health = metrics.gauge(
            "node_collector_zone_health", "Gauge measuring percentage of healthy nodes per zone.", ("zone",)
        )
        self._size = metrics.gauge(
            "node_collector_zone_size", "Gauge measuring number of registered Nodes per zones.", ("zone",)
        )
        self._unhealthy = metrics.gauge(
            "node_collector_unhealthy_nodes_in_zone",
            "Gauge measuring number of not Ready Nodes per zones.",
            ("zone",),
        )
        self.evictions: Final = metrics.counter(
            "node_collector_evictions_total",
            "Number of Node evictions that happened since current instance of NodeController started.",
            ("zone",),
        )
        self.gate_failures: Final = metrics.counter(
            "node_readiness_gate_failures_total",
            "Number of readiness gates of nodes that were given up, by condition type and by what was done then.",
            ("condition_type", "action"),
        )
        self.node_round: Final[Histogram] = metrics.histogram(
            "node_collector_update_node_health_duration_seconds",
            "Duration in seconds for NodeController to update the health of a single node.",
            exponential(0.001, 4, 8),
        ).of()
        self._round: Final[Histogram] = metrics.histogram(
            "node_collector_update_all_nodes_health_duration_seconds",
            "Duration in seconds for NodeController to update the health of all nodes.",
            exponential(0.01, 4, 8),
        ).of()
        self._zones: dict[str, None] = {}

    def know_zone(self, zone: str) -> None:
        """Show a zone with zero evictions from its first node on."""
        self.evictions.inc(zone, by=0)

    def observe_round(self, census: Mapping[str, ZoneCensus], seconds: float) -> None:
        """Record what one round of the monitor found, and how long it took."""
        self._round.observe(seconds)
        for zone in [zone for zone in self._zones if zone not in census]:
            self._set(zone, ZoneCensus())
            del self._zones[zone]
        for zone, count in census.items():
            self._zones[zone] = None
            self._set(zone, count)

    def _set(self, zone: str, count: ZoneCensus) -> None:
        self._size.set(count.size, zone)
        self._unhealthy.set(count.not_ready, zone)
        self._health.set(100 * count.ready / count.size if count.size else 100, zone)

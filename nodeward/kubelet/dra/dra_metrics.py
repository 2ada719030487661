"""What DRA managers count, under the names of Kubernetes; skipped calls also under those of KEP-5945.

One object per process, as `KubeletMetrics` has it: the managers of all its nodes count together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from nodeward.kubelet.dra.claim_info import ClaimCache
from nodeward.machinery.metrics import Metrics

_ANY: Final = "<any>"
#: 15 buckets from 0.1 to 40 seconds, each longer than the one before by the same factor.
_BOUNDS: Final = tuple(round(0.1 * 400 ** (number / 14), 6) for number in range(15))
_DRIVER: Final = ("driver_name",)


class DRAMetrics:
    """The metrics of the DRA managers of one process."""

    def __init__(self, metrics: Metrics) -> None:
        self._operations: Final = metrics.histogram(
            "dra_operations_duration_seconds",
            "Seconds that the preparation and unpreparation of the claims of a pod took.",
            bounds=_BOUNDS,
            labels=("operation_name", "is_error"),
        )
        self._calls: Final = metrics.histogram(
            "dra_grpc_operations_duration_seconds",
            "Seconds that calls to drivers took.",
            bounds=_BOUNDS,
            labels=("driver_name", "method_name", "grpc_status_code"),
        )
        self._prepare_skips: Final = tuple(
            metrics.counter(name, "Preparations of a claim that its driver was not asked for.", _DRIVER)
            for name in ("kubelet_dra_node_prepare_skips_total", "dra_node_prepare_skips_total")
        )
        self._unprepare_skips: Final = tuple(
            metrics.counter(name, "Unpreparations of a claim that its driver was not asked for.", _DRIVER)
            for name in ("kubelet_dra_node_unprepare_skips_total", "dra_node_unprepare_skips_total")
        )
        self._followed: dict[int, ClaimCache] = {}
        metrics.gauge(
            "dra_resource_claims_in_use",
            "Claims that pods use, by driver; <any> is all of them.",
            _DRIVER,
            self._in_use,
        )

    def follow(self, cache: ClaimCache) -> None:
        """Count the claims of a node from now on."""
        self._followed[id(cache)] = cache

    def leave(self, cache: ClaimCache) -> None:
        """Count the claims of a node no more."""
        self._followed.pop(id(cache), None)

    def operated(self, operation: str, seconds: float, *, is_error: bool) -> None:
        """Count one preparation or unpreparation of a pod's claims."""
        self._operations.observe(seconds, operation, "true" if is_error else "false")

    def called(self, driver: str, method: str, code: str, seconds: float) -> None:
        """Count one call of a driver."""
        self._calls.observe(seconds, driver, method, code)

    def skipped_prepare(self, driver: str) -> None:
        """Count a claim that a driver was not asked to prepare."""
        for counter in self._prepare_skips:
            counter.inc(driver)

    def skipped_unprepare(self, driver: str) -> None:
        """Count a claim that a driver was not asked to unprepare."""
        for counter in self._unprepare_skips:
            counter.inc(driver)

    def _in_use(self) -> Mapping[tuple[str, ...], float]:
        counted: Counter[tuple[str, ...]] = Counter({(_ANY,): 0})
        for cache in self._followed.values():
            counted[(_ANY,)] += len(cache)
            for driver, count in cache.in_use().items():
                counted[(driver,)] += count
        return dict(sorted(counted.items()))

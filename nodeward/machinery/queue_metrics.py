"""The metrics of work queues, under the names of Kubernetes' controllers; their values are read at scrape time.

The controllers' runner calls this with the queues it works on. What must stay true: nothing is counted twice, so the
queues themselves do all counting (`WorkQueue.stats`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nodeward.machinery.metrics import Metrics
from nodeward.machinery.workqueue import QueueStats, WorkQueue


def show_queues(metrics: Metrics, queues: Sequence[WorkQueue[Any]]) -> None:
    """Show how these queues do; each has a name of its own."""

    def read(value: Callable[[QueueStats], float]) -> Callable[[], dict[tuple[str, ...], float]]:
        return lambda: {(queue.name,): value(queue.stats()) for queue in queues}

    metrics.gauge(
        "workqueue_depth", "Keys that wait for a worker.", ("name",), read(lambda stats: stats.depth)
    )
    metrics.counter(
        "workqueue_adds_total", "Keys added that were not there.", ("name",), read(lambda stats: stats.adds)
    )
    metrics.counter(
        "workqueue_retries_total", "Keys added with a delay.", ("name",), read(lambda stats: stats.retries)
    )
    metrics.gauge(
        "workqueue_unfinished_work_seconds",
        "Seconds workers have had the keys they have now, all together.",
        ("name",),
        read(lambda stats: stats.unfinished_seconds),
    )
    metrics.gauge(
        "workqueue_longest_running_processor_seconds",
        "Seconds the slowest worker has had its key.",
        ("name",),
        read(lambda stats: stats.longest_running_seconds),
    )

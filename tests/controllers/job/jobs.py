"""Jobs for tests, in the fewest words, and workers that run their pods to the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from nodeward.api.batch_v1 import Job, JobSpec
from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta
from nodeward.base.timestamp import rfc3339
from nodeward.controllers import CONTROLLERS
from nodeward.controllers.job.pod_facts import index_of
from nodeward.controllers.pods.state import is_ready
from nodeward.machinery.clock import VirtualClock
from tests.controllers.workloads import NAMESPACE, Workloads, template, workloads

ONLY_JOBS = tuple(entry for entry in CONTROLLERS if entry.name == "job-controller")

#: A pod's exit code; None: it runs for ever.
Outcome = Callable[[Pod], int | None]


def job(name: str = "web", *, restart: str = "Never", **spec: Any) -> Job:
    made = template()
    made.metadata.labels = {}
    made.spec.restart_policy = restart
    return Job(
        metadata=ObjectMeta(name=name, namespace=NAMESPACE), spec=JobSpec(**{"template": made, **spec})
    )


def indexed(completions: int, parallelism: int | None = None, **spec: Any) -> Job:
    return job(
        completion_mode="Indexed", completions=completions, parallelism=parallelism or completions, **spec
    )


class Workers:
    """Runs every pod that has become ready for `seconds`, and ends it with the code `outcome` gives."""

    def __init__(self, each: Workloads, outcome: Outcome, seconds: float = 1.0) -> None:
        self.outcome = outcome
        self.seconds = seconds
        #: Exit codes in the order pods ended, by index or 0.
        self.ended: list[tuple[int, int]] = []
        self._each = each
        self._at_work: dict[str, asyncio.Task[None]] = {}
        each.kubelets.pods.add_handler(self._seen, lambda _, new: self._seen(new))

    def _seen(self, pod: Pod) -> None:
        uid = pod.metadata.uid
        if uid not in self._at_work and is_ready(pod) and pod.metadata.deletion_timestamp is None:
            self._at_work[uid] = asyncio.create_task(self._run(pod))

    async def _run(self, pod: Pod) -> None:
        code = self.outcome(pod)
        if code is None:
            return
        clock = self._each.cluster.clock
        await clock.sleep(self.seconds)
        current = self._each.kubelets.pods.get(pod.metadata.name, pod.metadata.namespace)
        if current is None or current.metadata.deletion_timestamp is not None:
            return
        self.ended.append((index_of(pod) or 0, code))
        await end(self._each, pod, code)


async def end(each: Workloads, pod: Pod, code: int, **status: Any) -> None:
    """Let a pod end now."""
    now = rfc3339(each.cluster.clock.now_ns())
    container = {
        "name": "web",
        "state": {"terminated": {"exitCode": code, "startedAt": now, "finishedAt": now}},
        "ready": False,
        "restartCount": 0,
        "image": "web:1",
        "imageID": "",
    }
    phase = "Failed" if code else "Succeeded"
    await each.kubelets.finish(pod, phase, **{"containerStatuses": [container], **status})


@asynccontextmanager
async def jobs(
    clock: VirtualClock,
    outcome: Outcome = lambda pod: 0,
    *,
    seconds: float = 1.0,
    controllers: Any = ONLY_JOBS,
    **kubelets: Any,
) -> AsyncIterator[tuple[Workloads, Workers]]:
    async with workloads(clock, controllers=controllers, **kubelets) as each:
        yield each, Workers(each, outcome, seconds)


async def found(each: Workloads, name: str = "web") -> Job:
    return await each.cluster.client.get(Job, name, NAMESPACE)


def conditions(one: Job) -> dict[str, tuple[str, str]]:
    """Status and reason by type."""
    return {each.type: (each.status, each.reason) for each in one.status.conditions}


def counts(one: Job) -> tuple[int, int, int]:
    """active, succeeded, failed"""
    return one.status.active, one.status.succeeded, one.status.failed

"""Pods that carry a job's finalizer and have no job to count them: the finalizer is taken off, so that they can go.

Their job is gone, or over, or they were let go of. Keys are pods, "namespace/name".

Called by `controller`; calls `conditions`, `pod_facts` and `pod_writes`.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.batch_v1 import Job
from nodeward.api.core_v1.pod import Pod
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.job.conditions import is_finished
from nodeward.controllers.job.pod_facts import is_tracked
from nodeward.controllers.job.pod_writes import PodWrites
from nodeward.controllers.pods.controller_ref_manager import controller_of
from nodeward.controllers.pods.index import OwnerIndex
from nodeward.controllers.pods.owners import key_of
from nodeward.machinery.informer import Informer
from nodeward.machinery.workqueue import WorkQueue

WORKERS: Final = 1


class Orphans:
    def __init__(
        self, context: ControllerContext, jobs: Informer[Job], pods: OwnerIndex[Pod], writes: PodWrites
    ) -> None:
        self._jobs = jobs
        self._pods = pods
        self._writes = writes
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="job_orphan_pod")
        pods.informer.add_handler(self._pod_seen, lambda _, new: self._pod_seen(new))
        jobs.add_handler(on_update=lambda _, new: self._job_seen(new), on_delete=self._job_gone)

    def work(self) -> Work[str]:
        return Work(self._queue, self._handle, workers=WORKERS)

    def _job_seen(self, job: Job) -> None:
        if is_finished(job):
            self._job_gone(job)

    def _job_gone(self, job: Job) -> None:
        for pod in self._pods.controlled_by(job.metadata.uid):
            self._pod_seen(pod)

    def _pod_seen(self, pod: Pod) -> None:
        if is_tracked(pod) and self._is_orphan(pod):
            self._queue.add(key_of(pod))

    def _is_orphan(self, pod: Pod) -> bool:
        reference = controller_of(pod)
        if reference is None:
            return True
        if reference.kind != self._jobs.kind.name or reference.api_version != self._jobs.kind.api_version:
            return False
        job = self._jobs.get(reference.name, pod.metadata.namespace)
        if job is None or job.metadata.uid != reference.uid:
            return True
        return is_finished(job) and not is_managed_elsewhere(job)

    async def _handle(self, key: str) -> float | None:
        pod = self._pods.informer.by_key(key)
        if pod is None or not is_tracked(pod) or not self._is_orphan(pod):
            return None
        failed = await self._writes.release([pod])
        for error in failed.values():
            raise error
        return None


def is_managed_elsewhere(job: Job) -> bool:
    """Tell whether another controller looks after this job."""
    return job.spec.managed_by not in (None, "kubernetes.io/job-controller")

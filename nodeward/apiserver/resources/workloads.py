"""Workloads with a habit of their own: older APIs leave their pods behind when they are deleted."""

from __future__ import annotations

from typing import Any, ClassVar

from nodeward.api.batch_v1 import Job
from nodeward.api.codec import encode
from nodeward.api.meta import LabelSelector
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import Strategy


class PodTemplates(Strategy):
    answers_deleted: ClassVar[bool] = True
    counts_generations: ClassVar[bool] = True

    def desired(self, obj: Any) -> bytes:
        return encode(obj.template)


class ReplicationControllers(Strategy):
    counts_generations: ClassVar[bool] = True
    selectable: ClassVar[tuple[str, ...]] = ("status.replicas",)

    def orphans_by_default(self, obj: Any) -> bool:
        return True


_OLD_UID, _OLD_NAME = "controller-uid", "job-name"
_PREFIX = "batch.kubernetes.io/"


class Jobs(Strategy):
    counts_generations: ClassVar[bool] = True
    selectable: ClassVar[tuple[str, ...]] = ("status.successful",)

    def prepare_create(self, obj: Job, env: Environment) -> None:
        super().prepare_create(obj, env)
        if not obj.spec.manual_selector:
            self._select_own_pods(obj)
            self.default(obj)  # labels of the job follow those of its pods

    def _select_own_pods(self, job: Job) -> None:
        """The server makes selector and labels, so that two jobs never fight over pods."""
        meta = job.metadata
        meta_of_pod = job.spec.template.metadata
        own = {
            _OLD_UID: meta.uid,
            _PREFIX + _OLD_UID: meta.uid,
            _OLD_NAME: meta.name,
            _PREFIX + _OLD_NAME: meta.name,
        }
        meta_of_pod.labels = {**own, **meta_of_pod.labels}
        if job.spec.selector is None:
            job.spec.selector = LabelSelector()
        job.spec.selector.match_labels = {**job.spec.selector.match_labels, _PREFIX + _OLD_UID: meta.uid}

    def orphans_by_default(self, obj: Any) -> bool:
        return True

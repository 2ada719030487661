"""Strategies of workloads: generations, pod templates of disabled features, orphaning defaults of older APIs."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from nodeward.api.batch_v1 import Job
from nodeward.api.codec import same
from nodeward.api.core_v1.pod import PodTemplateSpec
from nodeward.api.defaults.pod_gates import drop_disabled_spec_fields
from nodeward.api.meta import LabelSelector
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.strategy import SPEC_PATHS, Paths, Strategy

TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


class Templated(Strategy):
    """A kind with a pod template: fields of the template whose feature is off are dropped."""

    counts_generations: ClassVar[bool] = True

    def template(self, obj: Any) -> PodTemplateSpec | None:
        found: PodTemplateSpec | None = obj.spec.template
        return found

    def prepare_create(self, obj: Any, env: Environment) -> None:
        super().prepare_create(obj, env)
        self._drop_disabled(obj, None, env)

    def prepare_update(self, new: Any, old: Any, env: Environment) -> None:
        self._drop_disabled(new, old, env)
        super().prepare_update(new, old, env)

    def _drop_disabled(self, new: Any, old: Any, env: Environment) -> None:
        mine, theirs = self.template(new), self.template(old) if old is not None else None
        if mine is not None:
            drop_disabled_spec_fields(mine.spec, theirs.spec if theirs is not None else None, env.context)


class Deployments(Templated):
    status_reset: ClassVar[Paths] = (*SPEC_PATHS, ("metadata", "labels"))

    def prepare_status(self, new: Any, old: Any, env: Environment) -> None:
        super().prepare_status(new, old, env)
        new.metadata.labels = old.metadata.labels

    def desired(self, obj: Any) -> Any:
        """Include annotations, which are copied to replica sets."""
        return obj.spec, obj.metadata.annotations


class DaemonSets(Templated):
    """An annotation counts the changes of the template (upstream: `deprecated.daemonset.template.generation`)."""

    def default(self, obj: Any) -> None:
        super().default(obj)
        obj.metadata.annotations.setdefault(TEMPLATE_GENERATION, "0")

    def prepare_create(self, obj: Any, env: Environment) -> None:
        super().prepare_create(obj, env)
        obj.metadata.annotations[TEMPLATE_GENERATION] = str(max(1, _template_generation(obj)))

    def prepare_update(self, new: Any, old: Any, env: Environment) -> None:
        super().prepare_update(new, old, env)
        count = _template_generation(old)
        if not same(new.spec.template, old.spec.template):
            count += 1
        new.metadata.annotations[TEMPLATE_GENERATION] = str(count)


def _template_generation(obj: Any) -> int:
    text = obj.metadata.annotations.get(TEMPLATE_GENERATION, "0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


class ReplicaSets(Templated):
    selectable: ClassVar[tuple[str, ...]] = ("status.replicas",)


class CronJobs(Templated):
    def template(self, obj: Any) -> PodTemplateSpec | None:
        found: PodTemplateSpec | None = obj.spec.job_template.spec.template
        return found


class PodTemplates(Templated):
    answers_deleted: ClassVar[bool] = True

    def template(self, obj: Any) -> PodTemplateSpec | None:
        found: PodTemplateSpec | None = obj.template
        return found

    def desired(self, obj: Any) -> Any:
        return obj.template


class ReplicationControllers(Templated):
    selectable: ClassVar[tuple[str, ...]] = ("status.replicas",)

    def orphans_by_default(self, obj: Any) -> bool:
        return True


_OLD_UID, _OLD_NAME = "controller-uid", "job-name"
_PREFIX = "batch.kubernetes.io/"


class Jobs(Templated):
    selectable: ClassVar[tuple[str, ...]] = ("status.successful",)
    warns_of_orphans: ClassVar[str] = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove "
        "them or set propagationPolicy=Orphan to suppress this warning"
    )

    def default(self, obj: Job) -> None:
        is_bare = not obj.metadata.labels
        super().default(obj)
        if is_bare:
            # The same map, not a copy: what the server adds to the labels of the pods is then the job's as well.
            obj.metadata.labels = obj.spec.template.metadata.labels

    def prepare_create(self, obj: Job, env: Environment) -> None:
        super().prepare_create(obj, env)
        if not obj.spec.manual_selector:
            self._select_own_pods(obj)

    def _select_own_pods(self, job: Job) -> None:
        """Set selector and labels from the job's uid, so that two jobs never select the same pods."""
        meta, labels = job.metadata, job.spec.template.metadata.labels
        # In place: a job without labels of its own shares those of its pods. A label of the user's is left for
        # validation to refuse.
        for name, value in ((_OLD_NAME, meta.name), (_OLD_UID, meta.uid)):
            labels.setdefault(name, value)
            labels.setdefault(_PREFIX + name, value)
        if job.spec.selector is None:
            job.spec.selector = LabelSelector()
        job.spec.selector.match_labels.setdefault(_PREFIX + _OLD_UID, meta.uid)

    def orphans_by_default(self, obj: Any) -> bool:
        return True

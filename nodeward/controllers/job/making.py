"""The pods of a job, as they are made: with the finalizer that keeps them until they are counted, and their index.

Called by `pod_writes`; calls `pod_facts` and `policies`.
"""

from __future__ import annotations

from typing import Final

import msgspec

from nodeward.api.batch_v1 import Job
from nodeward.api.core_v1.container import Container, EnvVar, EnvVarSource
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.references import ObjectFieldSelector
from nodeward.api.meta import OwnerReference
from nodeward.controllers.job.pod_facts import (
    INDEX,
    INDEX_FAILURES,
    INDEX_IGNORED_FAILURES,
    TRACKING,
    counts_by_index,
    ignored_index_failures,
    index_failures,
)
from nodeward.controllers.job.policies import judge_failure
from nodeward.controllers.pods.control import pod_from_template

_ENV: Final = "JOB_COMPLETION_INDEX"
_MAX_PREFIX: Final = 58


def new_pod(job: Job, reference: OwnerReference, index: int | None, replaced: Pod | None) -> Pod:
    """Return a pod, for `index` if the job has any; `replaced`: the pod of the same index that failed before it."""
    pod = pod_from_template(job.spec.template, job, reference)
    meta = pod.metadata
    if TRACKING not in meta.finalizers:
        meta.finalizers.append(TRACKING)
    if index is None:
        return pod
    suffix = f"-{index}-"
    meta.generate_name = job.metadata.name[: _MAX_PREFIX - len(suffix)] + suffix
    meta.annotations[INDEX] = meta.labels[INDEX] = str(index)
    if counts_by_index(job):
        counted, ignored = _failures(job, replaced)
        meta.annotations[INDEX_FAILURES] = str(counted)
        if ignored:
            meta.annotations[INDEX_IGNORED_FAILURES] = str(ignored)
    pod.spec = _knowing_its_index(pod.spec, f"{job.metadata.name}-{index}")
    return pod


def _failures(job: Job, replaced: Pod | None) -> tuple[int, int]:
    """Return the failures of the index so far: counted, and ignored by policy."""
    if replaced is None:
        return 0, 0
    counted, ignored = index_failures(replaced), ignored_index_failures(replaced)
    return (counted + 1, ignored) if judge_failure(job, replaced).counts else (counted, ignored + 1)


def _knowing_its_index(spec: PodSpec, hostname: str) -> PodSpec:
    return msgspec.structs.replace(
        spec,
        hostname=hostname,
        containers=[_with_index(each) for each in spec.containers],
        init_containers=[_with_index(each) for each in spec.init_containers],
    )


def _with_index(container: Container) -> Container:
    if any(each.name == _ENV for each in container.env):
        return container
    source = EnvVarSource(field_ref=ObjectFieldSelector(field_path=f"metadata.labels['{INDEX}']"))
    return msgspec.structs.replace(container, env=[*container.env, EnvVar(name=_ENV, value_from=source)])

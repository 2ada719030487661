"""Jobs and cron jobs: batch/v1."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.core_v1.pod import PodTemplateSpec
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.fields import (
    REQUIRED,
    SET,
    Int32,
    Int64,
    Keyed,
    KubeStruct,
    Merge,
    OneOf,
    RequiredList,
    Time,
    WithRequiredLists,
    always,
    always_null,
    nested,
    required_list,
)
from nodeward.api.meta import KubeObject, LabelSelector, ObjectMeta
from nodeward.api.scheduling_v1alpha3 import (
    WorkloadPodGroupDisruptionMode,
    WorkloadPodGroupResourceClaim,
    WorkloadPodGroupSchedulingConstraints,
    WorkloadPodGroupSchedulingPolicy,
)


class JobSchedulingConfiguration(KubeStruct):
    scheduling_policy: WorkloadPodGroupSchedulingPolicy | None = None
    scheduling_constraints: WorkloadPodGroupSchedulingConstraints | None = None
    disruption_mode: WorkloadPodGroupDisruptionMode | None = None
    resource_claims: Annotated[list[WorkloadPodGroupResourceClaim], Keyed("name")] = []


class PodFailurePolicyOnExitCodesRequirement(WithRequiredLists):
    container_name: str | None = None
    operator: Annotated[str, OneOf("In", "NotIn"), REQUIRED] = always("")
    values: Annotated[RequiredList[Int32], SET, REQUIRED] = required_list()


class PodFailurePolicyOnPodConditionsPattern(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    status: str = always("")


class PodFailurePolicyRule(KubeStruct):
    action: Annotated[str, OneOf("Count", "FailIndex", "FailJob", "Ignore"), REQUIRED] = always("")
    on_exit_codes: PodFailurePolicyOnExitCodesRequirement | None = None
    on_pod_conditions: list[PodFailurePolicyOnPodConditionsPattern] = []


class PodFailurePolicy(WithRequiredLists):
    rules: Annotated[RequiredList[PodFailurePolicyRule], REQUIRED] = required_list()


class SuccessPolicyRule(KubeStruct):
    succeeded_indexes: str | None = None
    succeeded_count: Int32 | None = None


class SuccessPolicy(WithRequiredLists):
    rules: Annotated[RequiredList[SuccessPolicyRule], REQUIRED] = required_list()


class JobSpec(KubeStruct):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    pod_failure_policy: PodFailurePolicy | None = None
    success_policy: SuccessPolicy | None = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    selector: LabelSelector | None = None
    manual_selector: bool | None = None
    template: Annotated[PodTemplateSpec, REQUIRED] = nested(PodTemplateSpec)
    ttl_seconds_after_finished: Int32 | None = None
    completion_mode: Annotated[str | None, OneOf("Indexed", "NonIndexed")] = None
    suspend: bool | None = None
    pod_replacement_policy: Annotated[str | None, OneOf("Failed", "TerminatingOrFailed")] = None
    managed_by: str | None = None
    scheduling: JobSchedulingConfiguration | None = None


class JobTemplateSpec(KubeStruct):
    metadata: ObjectMeta = nested(ObjectMeta)
    spec: JobSpec = nested(JobSpec)


class CronJobSpec(KubeStruct):
    schedule: Annotated[str, REQUIRED] = always("")
    time_zone: str | None = None
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: Annotated[str, OneOf("Allow", "Forbid", "Replace")] = ""
    suspend: bool | None = None
    job_template: Annotated[JobTemplateSpec, REQUIRED] = nested(JobTemplateSpec)
    successful_jobs_history_limit: Int32 | None = None
    failed_jobs_history_limit: Int32 | None = None


class CronJobStatus(KubeStruct):
    active: list[ObjectReference] = []
    last_schedule_time: Time | None = None
    last_successful_time: Time | None = None


class CronJob(KubeObject):
    spec: Annotated[CronJobSpec, REQUIRED] = nested(CronJobSpec)
    status: CronJobStatus = nested(CronJobStatus)


class JobCondition(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    status: Annotated[str, REQUIRED] = always("")
    last_probe_time: Time | None = always_null()
    last_transition_time: Time | None = always_null()
    reason: str = ""
    message: str = ""


class UncountedTerminatedPods(KubeStruct):
    succeeded: Annotated[list[str], SET] = []
    failed: Annotated[list[str], SET] = []


class JobStatus(KubeStruct):
    conditions: Annotated[list[JobCondition], Merge("type")] = []
    start_time: Time | None = None
    completion_time: Time | None = None
    active: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    terminating: Int32 | None = None
    completed_indexes: str = ""
    failed_indexes: str | None = None
    uncounted_terminated_pods: UncountedTerminatedPods | None = None
    ready: Int32 | None = None


class Job(KubeObject):
    spec: JobSpec = nested(JobSpec)
    status: JobStatus = nested(JobStatus)

"""The rules users give for failures and for success: `podFailurePolicy` and `successPolicy`. Pure.

The first rule that matches decides. A failure that no rule matches counts.

Called by the other modules of this package; calls `indexes`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from nodeward.api.batch_v1 import (
    Job,
    PodFailurePolicyOnExitCodesRequirement,
    PodFailurePolicyRule,
    SuccessPolicyRule,
)
from nodeward.api.core_v1.pod import Pod
from nodeward.controllers.job.indexes import Indexes

FAIL_JOB: Final = "FailJob"
FAIL_INDEX: Final = "FailIndex"
IGNORE: Final = "Ignore"
COUNT: Final = "Count"


class PolicyMatch(NamedTuple):
    #: What the rule that matched asks for; empty if none did.
    action: str = ""
    #: What matched, for the user; only for `FailJob`.
    message: str = ""

    @property
    def counts(self) -> bool:
        """Whether the failure counts towards the limits."""
        return self.action != IGNORE


def judge_failure(job: Job, pod: Pod) -> PolicyMatch:
    """Return what the failure of this pod means."""
    policy = job.spec.pod_failure_policy
    for number, rule in enumerate(policy.rules if policy is not None else ()):
        what = _what_matches(rule, pod)
        if what is not None:
            text = f"{what} matching {rule.action} rule at index {number}"
            return PolicyMatch(rule.action, text if rule.action == FAIL_JOB else "")
    return PolicyMatch()


def _what_matches(rule: PodFailurePolicyRule, pod: Pod) -> str | None:
    name = f"{pod.metadata.namespace}/{pod.metadata.name}"
    if rule.on_exit_codes is not None:
        for status in (*pod.status.container_statuses, *pod.status.init_container_statuses):
            ended = status.state.terminated
            if ended is not None and _is_meant(rule.on_exit_codes, status.name, ended.exit_code):
                return f"Container {status.name} for pod {name} failed with exit code {ended.exit_code}"
        return None
    patterns = [(pattern.type, pattern.status) for pattern in rule.on_pod_conditions]
    for condition in pod.status.conditions:
        if (condition.type, condition.status) in patterns:
            return f"Pod {name} has condition {condition.type}"
    return None


def _is_meant(wish: PodFailurePolicyOnExitCodesRequirement, container: str, code: int) -> bool:
    if code == 0 or (wish.container_name is not None and wish.container_name != container):
        return False
    return (code in wish.values) == (wish.operator == "In")


def success_by_policy(job: Job, succeeded: Indexes) -> str | None:
    """Return which rule says that enough has succeeded, for the user; None: not yet."""
    policy = job.spec.success_policy
    if policy is None or not succeeded.runs:
        return None
    for number, rule in enumerate(policy.rules):
        if _is_enough(rule, succeeded, job.spec.completions or 0):
            return f"Matched rules at index {number}"
    return None


def _is_enough(rule: SuccessPolicyRule, succeeded: Indexes, completions: int) -> bool:
    if rule.succeeded_indexes is None:
        return rule.succeeded_count is not None and len(succeeded) >= rule.succeeded_count
    wanted = Indexes.parse(rule.succeeded_indexes, completions)
    if not wanted.runs:
        return False
    found = len(wanted & succeeded)
    return found == len(wanted) or (rule.succeeded_count is not None and found >= rule.succeeded_count)

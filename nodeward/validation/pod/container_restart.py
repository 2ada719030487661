"""Whether and when a container is restarted on its own, and how it takes a resize of its resources."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import (
    Container,
    ContainerResizePolicy,
    ContainerRestartRule,
    ContainerRestartRuleOnExitCodes,
)
from nodeward.base.fielderror import (
    FieldError,
    forbidden,
    invalid,
    not_supported,
    required,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.validation.checks import Distinct, Fields, check_choice, check_count, check_one_of, one_of
from nodeward.validation.pod.options import PodOptions

_EXIT_CODES_LIMIT: Final = 255
_POLICIES: Final = ("Always", "Never", "OnFailure")
_EXIT_CODES: Final = Fields(
    ContainerRestartRuleOnExitCodes,
    operator=one_of("In", "NotIn"),
    values=lambda codes, path: check_count(codes, path, _EXIT_CODES_LIMIT),
)
_RESIZED: Final = ("cpu", "memory")
_RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")
_RULES_LIMIT: Final = 20


def validate_restart(container: Container, path: FieldPath, options: PodOptions) -> list[FieldError]:
    """A regular container's own restart policy."""
    if container.restart_policy is None and not container.restart_policy_rules:
        return []
    if options.restart_rules():
        return _restart(container.restart_policy, container.restart_policy_rules, path, options)
    if container.restart_policy is None:
        return []
    return [forbidden(path.child("restartPolicy"), "may not be set for non-init containers")]


def validate_init_restart(container: Container, path: FieldPath, options: PodOptions) -> list[FieldError]:
    """An init container's; Always makes it a sidecar."""
    policy, rules = container.restart_policy, container.restart_policy_rules
    if policy is None:
        if not rules:
            return []
        detail = "must specify restartPolicy when restart rules are used"
        return [required(path.child("restartPolicy"), detail)]
    if policy == "Always" and not rules:
        return []
    if not options.restart_rules():
        if policy == "Always":
            return []
        return [not_supported(path.child("restartPolicy"), policy, ("Always",))]
    if policy == "Always" and not options.restart_all_containers():
        detail = "restartPolicyRules are not allowed for init containers with restart policy Always"
        return [forbidden(path.child("restartPolicyRules"), detail)]
    return _restart(policy, rules, path, options)


def _restart(
    policy: str | None, rules: list[ContainerRestartRule], path: FieldPath, options: PodOptions
) -> list[FieldError]:
    at = path.child("restartPolicy")
    if policy is None:
        errors = [required(at, "must specify restartPolicy when restart rules are used")]
    else:
        errors = check_one_of(policy, at, _POLICIES)
    at = path.child("restartPolicyRules")
    errors += check_count(rules, at, _RULES_LIMIT)
    is_all_known = bool(rules) and options.restart_all_containers()
    actions = ("Restart", "RestartAllContainers") if is_all_known else ("Restart",)
    for i, rule in enumerate(rules):
        errors += check_one_of(rule.action, at.index(i).child("action"), actions)
        where = at.index(i).child("exitCodes")
        errors += _EXIT_CODES(rule.exit_codes, where)
        if rule.exit_codes is None:
            errors.append(required(where, "must be specified"))
    return errors


def validate_resize_policy(
    policies: list[ContainerResizePolicy], pod_restart_policy: str, path: FieldPath
) -> list[FieldError]:
    errors: list[FieldError] = []
    seen = Distinct()
    for i, policy in enumerate(policies):
        errors += seen.add(policy.resource_name, path.index(i))
        errors += check_choice(policy.resource_name, path, _RESIZED)
        errors += check_choice(policy.restart_policy, path, _RESIZE_POLICIES)
        if pod_restart_policy == "Never" and policy.restart_policy != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid(path, policy.restart_policy, detail))
    return errors

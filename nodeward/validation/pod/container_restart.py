"""Whether and when a container is restarted on its own, and how it takes a resize of its resources."""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.container import Container, ContainerResizePolicy, ContainerRestartRule
from nodeward.base.fielderror import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from nodeward.base.fieldpath import FieldPath
from nodeward.validation.checks import check_choice, check_count, check_one_of
from nodeward.validation.pod.options import PodOptions

_POLICIES: Final = ("Always", "Never", "OnFailure")
_OPERATORS: Final = ("In", "NotIn")
_RESIZED: Final = ("cpu", "memory")
_RESIZE_POLICIES: Final = ("NotRequired", "RestartContainer")
_RULES_LIMIT: Final = 20
_EXIT_CODES_LIMIT: Final = 255


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
    errors: list[FieldError] = []
    if policy is None:
        detail = "must specify restartPolicy when restart rules are used"
        errors.append(required(path.child("restartPolicy"), detail))
    elif policy not in _POLICIES:
        errors.append(not_supported(path.child("restartPolicy"), policy, _POLICIES))
    errors += check_count(rules, path.child("restartPolicyRules"), _RULES_LIMIT)
    if not rules:
        return errors
    actions = ("Restart", "RestartAllContainers") if options.restart_all_containers() else ("Restart",)
    for i, rule in enumerate(rules):
        at = path.child("restartPolicyRules").index(i)
        errors += check_one_of(rule.action, at.child("action"), actions)
        codes = rule.exit_codes
        if codes is None:
            errors.append(required(at.child("exitCodes"), "must be specified"))
            continue
        errors += check_one_of(codes.operator, at.child("exitCodes", "operator"), _OPERATORS)
        errors += check_count(codes.values, at.child("exitCodes", "values"), _EXIT_CODES_LIMIT)
    return errors


def validate_resize_policy(
    policies: list[ContainerResizePolicy], pod_restart_policy: str, path: FieldPath
) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, policy in enumerate(policies):
        if policy.resource_name in seen:
            errors.append(duplicate(path.index(i), policy.resource_name))
        seen.add(policy.resource_name)
        errors += check_choice(policy.resource_name, path, _RESIZED)
        errors += check_choice(policy.restart_policy, path, _RESIZE_POLICIES)
        if pod_restart_policy == "Never" and policy.restart_policy != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(invalid(path, policy.restart_policy, detail))
    return errors

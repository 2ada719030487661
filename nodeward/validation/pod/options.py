"""What a pod's rules allow beyond the plain ones: features that are on, and what the old object already does.

An update must stay possible for an object that was fine when it was made, so most rules that became stricter look at
the old spec first. Every question is asked only when the answer matters: a plain pod asks none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nodeward.api.context import Context
from nodeward.api.core_v1.affinity import PodAffinityTerm
from nodeward.api.core_v1.container import Container, EphemeralContainer
from nodeward.api.core_v1.pod import PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import env_name, label_value_faults, relaxed_env_name
from nodeward.rules.pod_resources import is_sidecar
from nodeward.rules.resource_names import is_divisible_hugepages, is_hugepages
from nodeward.validation.meta.labels import validate_label_selector
from nodeward.validation.meta.paths import local_path_faults
from nodeward.validation.pod.tolerations import Numbers, numbers, uses_comparison_operators

AnyContainer = Container | EphemeralContainer


def containers_of(spec: PodSpec) -> Iterator[AnyContainer]:
    """Init, regular, ephemeral: the order in which Kubernetes visits them."""
    yield from spec.init_containers
    yield from spec.containers
    yield from spec.ephemeral_containers


def containers_with_path(spec: PodSpec, path: FieldPath) -> Iterator[tuple[AnyContainer, FieldPath]]:
    lists: tuple[tuple[str, Sequence[AnyContainer]], ...] = (
        ("initContainers", spec.init_containers),
        ("containers", spec.containers),
        ("ephemeralContainers", spec.ephemeral_containers),
    )
    for name, containers in lists:
        if containers:
            at = path.child(name)
            for i, container in enumerate(containers):
                yield container, at.index(i)


Question = Callable[["PodOptions"], bool]


def _once(question: Question) -> Question:
    """Remember the answer: a question may be asked for every item of a long list."""

    def ask(self: PodOptions) -> bool:
        if self.answers is None:
            self.answers = {}
        if question not in self.answers:
            self.answers[question] = question(self)
        return self.answers[question]

    return ask


class PodOptions:
    """The questions, for one validation. `is_pod` is False for pod templates."""

    __slots__ = ("_old_env_names", "answers", "ctx", "is_pod", "old", "old_meta")

    def __init__(
        self,
        ctx: Context,
        old: PodSpec | None = None,
        old_meta: ObjectMeta | None = None,
        *,
        is_pod: bool = False,
    ) -> None:
        self.ctx = ctx
        self.old = old
        self.old_meta = old_meta
        self.is_pod = is_pod
        self.answers: dict[Question, bool] | None = None
        self._old_env_names: set[str] | None = None

    def comparison_operators(self) -> Numbers:
        was_used = self.old is not None and uses_comparison_operators(self.old.tolerations)
        return numbers(self.ctx, was_used=was_used)

    @_once
    def indivisible_hugepages(self) -> bool:
        if self.old is None:
            return False
        lists = [self.old.overhead]
        for container in containers_of(self.old):
            lists += [container.resources.limits, container.resources.requests]
        return any(
            is_hugepages(name) and not is_divisible_hugepages(name, quantity)
            for resources in lists
            for name, quantity in resources.items()
        )

    def relaxed_env_name(self, name: str) -> bool:
        """Is printable ASCII enough for this name?"""
        if self.ctx.on("RelaxedEnvironmentVariableValidation"):
            return True
        if self.old is None or not env_name(name) or relaxed_env_name(name):
            return False
        if self._old_env_names is None:
            containers = list(containers_of(self.old))
            self._old_env_names = {variable.name for c in containers for variable in c.env}
            self._old_env_names |= {source.prefix for c in containers for source in c.env_from}
        return name in self._old_env_names

    @_once
    def env_files(self) -> bool:
        return self.ctx.on("EnvFiles") or (
            self.old is not None
            and any(
                variable.value_from is not None and variable.value_from.file_key_ref is not None
                for container in containers_of(self.old)
                for variable in container.env
            )
        )

    @_once
    def restart_rules(self) -> bool:
        old = self.old
        return self.ctx.on("ContainerRestartRules") or (
            old is not None
            and (
                any(
                    c.restart_policy not in (None, "Always") or c.restart_policy_rules
                    for c in old.init_containers
                )
                or any(c.restart_policy is not None for c in old.containers)
            )
        )

    @_once
    def restart_all_containers(self) -> bool:
        old = self.old
        return self.ctx.on("RestartAllContainersOnContainerExits") or (
            old is not None
            and (
                any(
                    rule.action == "RestartAllContainers"
                    for c in (*old.containers, *old.init_containers)
                    for rule in c.restart_policy_rules
                )
                or any(is_sidecar(c) and c.restart_policy_rules for c in old.init_containers)
            )
        )

    @_once
    def sidecar_resize_policy(self) -> bool:
        return self.ctx.on("InPlacePodVerticalScaling") or (
            self.old is not None and any(is_sidecar(c) and c.resize_policy for c in self.old.init_containers)
        )

    @_once
    def restart_container_for_init(self) -> bool:
        return self.old is not None and any(
            policy.restart_policy == "RestartContainer"
            for c in self.old.init_containers
            if not is_sidecar(c)
            for policy in c.resize_policy
        )

    def pod_level_resources(self) -> bool:
        return self.ctx.on("PodLevelResources")

    def invalid_deletion_cost(self) -> bool:
        return not self.ctx.on("PodDeletionCost")

    @_once
    def invalid_affinity_label_values(self) -> bool:
        affinity = self.old.affinity if self.old is not None else None
        if affinity is None:
            return False
        terms: list[PodAffinityTerm] = []
        for half in (affinity.pod_affinity, affinity.pod_anti_affinity):
            if half is not None:
                terms += half.required_during_scheduling_ignored_during_execution
                terms += [
                    weighted.pod_affinity_term
                    for weighted in half.preferred_during_scheduling_ignored_during_execution
                ]
        return any(
            validate_label_selector(term.label_selector, ROOT)
            or validate_label_selector(term.namespace_selector, ROOT)
            for term in terms
        )

    @_once
    def invalid_node_affinity_values(self) -> bool:
        affinity = self.old.affinity if self.old is not None else None
        if affinity is None or affinity.node_affinity is None:
            return False
        selector = affinity.node_affinity.required_during_scheduling_ignored_during_execution
        return selector is not None and any(
            label_value_faults(value)
            for term in selector.node_selector_terms
            for expression in term.match_expressions
            for value in expression.values
        )

    @_once
    def invalid_spread_selectors(self) -> bool:
        return self.old is not None and any(
            validate_label_selector(constraint.label_selector, ROOT)
            for constraint in self.old.topology_spread_constraints
        )

    @_once
    def non_local_token_path(self) -> bool:
        return self.old is not None and any(
            source.service_account_token is not None and local_path_faults(source.service_account_token.path)
            for volume in self.old.volumes
            if volume.projected is not None
            for source in volume.projected.sources
        )

    def user_namespaces_with_devices(self) -> bool:
        return (
            self.old is not None
            and self.old.host_users is False
            and any(container.volume_devices for container in containers_of(self.old))
        )

    def user_namespaces_with_host_network(self) -> bool:
        return self.ctx.on("UserNamespacesHostNetworkSupport") or (
            self.old is not None and self.old.host_users is False and self.old.host_network
        )

    def only_recursive_selinux_change(self) -> bool:
        context = self.old.security_context if self.old is not None else None
        is_used = context is not None and context.se_linux_change_policy is not None
        return not self.ctx.on("SELinuxMount") and not is_used

    @_once
    def empty_image_volume(self) -> bool:
        return self.old is not None and any(
            volume.image is not None and not volume.image.reference for volume in self.old.volumes
        )

    @_once
    def sys_admin_without_escalation(self) -> bool:
        if self.old is None:
            return False
        for container in containers_of(self.old):
            context = container.security_context
            if (
                context is not None
                and not context.allow_privilege_escalation
                and context.capabilities is not None
                and "CAP_SYS_ADMIN" in context.capabilities.add
            ):
                return True
        return False

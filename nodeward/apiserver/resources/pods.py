"""The strategy of pods: they start Pending, keep what their node decided, and end after a grace period.

Three subresources change parts the main resource does not: status (the node), resize (container resources only) and
ephemeralcontainers (additions only). What must stay true: what an update does not own is taken from the old object, so
a client that sends more changes nothing by it.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from nodeward.api.codec import decoder, encode
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.core_v1.pod_status import PodCondition, PodStatus
from nodeward.api.scheme import Kind
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.resources.pod_preparation import drop_disabled_pod_fields, prepare_pod
from nodeward.apiserver.resources.strategy import (
    SPEC_PATHS,
    STATUS_PATHS,
    CreateReview,
    Paths,
    Strategy,
    UpdateMode,
)
from nodeward.apiserver.resources.validated_specs import ValidatedSpecs, spec_key
from nodeward.base.fielderror import FieldError
from nodeward.rules.names import dns_label
from nodeward.rules.qos import qos_class
from nodeward.validation.meta.metadata import validate_metadata
from nodeward.validation.pod.pod import pod_name
from nodeward.validation.pod.resize import validate_pod_resize
from nodeward.validation.pod.update import validate_ephemeral_containers_update


class Pods(Strategy):
    counts_generations: ClassVar[bool] = True
    answers_deleted: ClassVar[bool] = True
    selectable: ClassVar[tuple[str, ...]] = (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    )

    status_reset: ClassVar[Paths] = (
        *SPEC_PATHS,
        ("metadata", "deletionTimestamp"),
        ("metadata", "ownerReferences"),
    )

    def __init__(self, kind: Kind, served: Kind | None = None) -> None:
        super().__init__(kind, served)
        self._validated = ValidatedSpecs()

    def update_modes(self) -> tuple[UpdateMode, ...]:
        return (
            *super().update_modes(),
            UpdateMode("resize", self.prepare_resize, self.validate_resize, STATUS_PATHS),
            UpdateMode("ephemeralcontainers", self.prepare_ephemeral, self.validate_ephemeral, STATUS_PATHS),
        )

    def review_create(self, obj: Pod, env: Environment) -> CreateReview:
        """Validate a new pod; for a spec that was found valid before, only what depends on the pod's name."""
        key = spec_key(obj)
        if key is None or key not in self._validated:
            review = super().review_create(obj, env)
            if key is not None and not review.errors and not review.warnings:
                self._validated.add(key)
            return review
        errors = validate_metadata(obj.metadata, pod_name, namespaced=True)
        is_plain_name = not dns_label(obj.metadata.name)
        return CreateReview(errors, [] if errors or is_plain_name else self.warnings(obj, None, env))

    def prepare_create(self, obj: Pod, env: Environment) -> None:
        prepare_pod(obj, env.context)
        obj.metadata.generation = 1
        obj.status = PodStatus(phase="Pending", qos_class=qos_class(obj.spec))
        if obj.spec.scheduling_gates:
            gated = PodCondition(
                type="PodScheduled",
                status="False",
                reason="SchedulingGated",
                message="Scheduling is blocked due to non-empty scheduling gates",
            )
            obj.status.conditions.append(gated)

    def prepare_update(self, new: Pod, old: Pod, env: Environment) -> None:
        drop_disabled_pod_fields(new, old, env.context)
        new.status = old.status
        self.count_generation(new, old)

    def prepare_status(self, new: Pod, old: Pod, env: Environment) -> None:
        new.spec = old.spec
        new.metadata.owner_references = old.metadata.owner_references
        if not new.status.qos_class:
            new.status.qos_class = old.status.qos_class

    # -- resize

    def prepare_resize(self, new: Pod, old: Pod, env: Environment) -> None:
        """Keep the old pod but for resources of containers and of the pod, and resize policies.

        Containers that were added, removed or renamed are left as they were sent, so that validation refuses them.
        """
        wanted, ctx = new.spec, env.context
        new.status = old.status
        _keep_metadata(new, old)
        if _sizes(wanted) == _sizes(old.spec):
            new.spec = _copy(old.spec)
            new.spec.containers = _resized(wanted.containers, new.spec.containers)
            new.spec.init_containers = _resized(wanted.init_containers, new.spec.init_containers)
            # A client that does not know pod-level resources does not remove them.
            keeps = wanted.resources is None and ctx.on("PodLevelResourcesFixDefaulting")
            if ctx.on("InPlacePodLevelResourcesVerticalScaling") and not keeps:
                new.spec.resources = wanted.resources
            if ctx.on("InPlacePodVerticalScalingMemoryBackedVolumes"):
                new.spec.volumes = wanted.volumes
            drop_disabled_pod_fields(new, old, ctx)
        self.count_generation(new, old)

    def validate_resize(self, new: Pod, old: Pod, env: Environment) -> list[FieldError]:
        return validate_pod_resize(new, old, env.context)

    # -- ephemeral containers

    def prepare_ephemeral(self, new: Pod, old: Pod, env: Environment) -> None:
        added = new.spec.ephemeral_containers
        new.spec = _copy(old.spec)
        new.spec.ephemeral_containers = added
        new.status = old.status
        _keep_metadata(new, old)
        self.count_generation(new, old)

    def validate_ephemeral(self, new: Pod, old: Pod, env: Environment) -> list[FieldError]:
        return validate_ephemeral_containers_update(new, old, env.context)

    # -- the end

    def grace_seconds(self, obj: Pod, requested: int | None) -> int | None:
        """Return the grace period; 0 for a pod that is not bound or has ended."""
        if not obj.spec.node_name or is_terminal(obj):
            return 0
        grace = requested if requested is not None else obj.spec.termination_grace_period_seconds or 0
        return max(grace, 1) if grace < 0 else grace


def _sizes(spec: PodSpec) -> tuple[int, int]:
    return len(spec.containers), len(spec.init_containers)


def _resized(wanted: list[Container], stored: list[Container]) -> list[Container]:
    """Return the stored containers with the wanted resources; if names differ, the wanted ones, to be refused."""
    if [each.name for each in wanted] != [each.name for each in stored]:
        return wanted
    for mine, theirs in zip(stored, wanted, strict=True):
        mine.resources = theirs.resources
        mine.resize_policy = theirs.resize_policy
    return stored


def _copy(spec: PodSpec) -> PodSpec:
    return decoder(PodSpec).decode(encode(spec))


def _keep_metadata(new: Any, old: Any) -> None:
    """Take the old metadata: these subresources change only what they are for."""
    # A copy: the generation that is counted next must not change the old object, which admission compares with.
    new.metadata = msgspec.structs.replace(
        old.metadata,
        managed_fields=new.metadata.managed_fields,
        resource_version=new.metadata.resource_version,
    )

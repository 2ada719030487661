"""What may be written into a pod's status, and which steps containers may take.

The status is the node's word, so little of it is checked: names that must fit the spec, addresses, and that a container
which has ended for good does not come back.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.context import Context
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import ContainerStatus, PodCondition, PodStatus
from nodeward.base.fielderror import FieldError, forbidden, internal, invalid
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import label_key_faults
from nodeward.validation.checks import check_immutable, check_subdomain
from nodeward.validation.meta.addresses import is_dual_stack, parse_ip, validate_ip
from nodeward.validation.meta.metadata import validate_metadata_update
from nodeward.validation.pod.options import PodOptions
from nodeward.validation.pod.status_claims import (
    validate_claim_statuses,
    validate_extended_claim,
    validate_node_allocatable_claims,
)
from nodeward.validation.pod.status_containers import (
    validate_allocated_resources,
    validate_container_transitions,
    validate_users,
    validate_volume_mount_statuses,
)
from nodeward.validation.pod.status_volumes import validate_volume_health
from nodeward.validation.pod.update import validate_annotations_update
from nodeward.validation.validator import distinct

STATUS: Final = ROOT.child("status")
_OWN_CONDITIONS: Final = frozenset({"PodScheduled", "Ready", "Initialized"})
_NOT_NEGATIVE: Final = "must be a non-negative integer"


def validate_pod_status_update(new: Pod, old: Pod, ctx: Context) -> list[FieldError]:
    options = PodOptions(ctx, old.spec, old.metadata, is_pod=True)
    status = new.status
    errors = validate_metadata_update(new.metadata, old.metadata)
    if new.metadata.annotations or old.metadata.annotations:
        errors += validate_annotations_update(new, old, options)
    errors += _conditions(status.conditions)
    errors += _node_names(new, old, ctx)
    if status.observed_generation < 0:
        errors.append(invalid(STATUS.child("observedGeneration"), status.observed_generation, _NOT_NEGATIVE))
    errors += check_immutable(status.qos_class, old.status.qos_class, STATUS.child("qosClass"))
    errors += validate_container_transitions(status, old, options, STATUS)
    if status.resource_claim_statuses:
        errors += validate_claim_statuses(new, STATUS.child("resourceClaimStatuses"))
    if status.extended_resource_claim_status is not None:
        errors += validate_extended_claim(
            status.extended_resource_claim_status, new.spec, STATUS.child("extendedResourceClaimStatus")
        )
    if status.node_allocatable_resource_claim_statuses:
        errors += validate_node_allocatable_claims(new, STATUS.child("nodeAllocatableResourceClaimStatuses"))
    if status.volume_health:
        errors += validate_volume_health(status.volume_health, new.spec, STATUS.child("volumeHealth"))
    errors += _pod_ips(status, old.status, ctx)
    if status.host_ips:
        errors += _host_ips(status, old.status, ctx)
    return distinct(errors + _containers(new, ctx))


def _containers(pod: Pod, ctx: Context) -> list[FieldError]:
    lists: tuple[tuple[str, list[ContainerStatus]], ...] = (
        ("containerStatuses", pod.status.container_statuses),
        ("initContainerStatuses", pod.status.init_container_statuses),
        ("ephemeralContainerStatuses", pod.status.ephemeral_container_statuses),
    )
    errors: list[FieldError] = []
    for name, statuses in lists:
        if any(status.user is not None for status in statuses):
            errors += validate_users(statuses, pod.spec.os, STATUS.child(name))
    for name, statuses in lists:
        if any(status.allocated_resources_status for status in statuses):
            errors += validate_allocated_resources(statuses, pod, name, STATUS.child(name))
    for name, statuses in lists:
        if any(m.volume_status is not None for s in statuses for m in s.volume_mounts) and ctx.on(
            "ImageVolumeWithDigest"
        ):
            errors += validate_volume_mount_statuses(statuses, STATUS.child(name))
    return errors


def _conditions(conditions: list[PodCondition]) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, condition in enumerate(conditions):
        if condition.observed_generation < 0:
            at = STATUS.child("conditions").index(i).child("observedGeneration")
            errors.append(invalid(at, condition.observed_generation, _NOT_NEGATIVE))
        if condition.type not in _OWN_CONDITIONS and (faults := label_key_faults(condition.type)):
            at = STATUS.child("conditions").index(i).child("Type")
            errors += [invalid(at, condition.type, fault) for fault in faults]
    return errors


def _node_names(new: Pod, old: Pod, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    if new.spec.node_name != old.spec.node_name:
        errors.append(forbidden(STATUS.child("nodeName"), "may not be changed directly"))
    name = new.status.nominated_node_name
    if name and name != old.status.nominated_node_name:
        at = STATUS.child("nominatedNodeName")
        errors += check_subdomain(name, at)
        if old.spec.node_name and ctx.on("ClearingNominatedNodeNameAfterBinding"):
            errors.append(forbidden(at, "may not be set on pods that are already bound to a node"))
    return errors


def _pod_ips(new: PodStatus, old: PodStatus, ctx: Context) -> list[FieldError]:
    path = STATUS.child("podIPs")
    texts = [address.ip for address in new.pod_ips]
    errors = _addresses(texts, {address.ip for address in old.pod_ips}, new.pod_ips, path, ctx)
    if bool(new.pod_ip) != bool(texts):
        detail = "podIP and podIPs must either both be set or both be unset"
        errors.append(invalid(path, new.pod_ips or None, detail))
    elif texts and new.pod_ip != texts[0]:
        errors.append(invalid(path.index(0).child("ip"), texts[0], "must be equal to `podIP`"))
    return errors


def _host_ips(new: PodStatus, old: PodStatus, ctx: Context) -> list[FieldError]:
    path = STATUS.child("hostIPs")
    texts = [address.ip for address in new.host_ips]
    errors: list[FieldError] = []
    if new.host_ip != texts[0]:
        errors.append(invalid(path.index(0).child("ip"), texts[0], "must be equal to `hostIP`"))
    return errors + _addresses(texts, {address.ip for address in old.host_ips}, new.host_ips, path, ctx)


def _addresses(
    texts: list[str], old: set[str], shown: object, path: FieldPath, ctx: Context
) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, text in enumerate(texts):
        if text not in old:
            errors += validate_ip(text, path.index(i), ctx)
    if len(texts) > 1:
        parsed = [parse_ip(text) for text in texts]
        if None in parsed:
            bad = texts[parsed.index(None)]
            detail = f"failed to check for dual stack with error:could not parse IP: {bad}"
            errors.append(internal(path, detail))
        if None in parsed or len(texts) > 2 or not is_dual_stack(parsed):
            detail = "may specify no more than one IP for each IP family"
            errors.append(invalid(path, shown, detail))
    return errors

"""Which ResourceClaims a pod uses, and which claims are for whom.

A pod names a claim, or a template from which one is generated for it; the generated name stands in the pod's status. A
generated claim belongs to its pod only. Faults are the texts Kubernetes users know.

Called by the scheduler, controllers and the kubelet.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from nodeward.api.core_v1.pod import Pod, PodResourceClaim
from nodeward.api.resource_v1 import ResourceClaim, ResourceClaimConsumerReference
from nodeward.base.errors import NodewardError

#: On claims that are allocated: they are not deleted before they are released.
CLAIM_FINALIZER: Final = "resource.kubernetes.io/delete-protection"
#: On generated claims: which entry of the pod's `resourceClaims` it is for.
POD_CLAIM_ANNOTATION: Final = "resource.kubernetes.io/pod-claim-name"


class ClaimReferenceError(NodewardError):
    """A reference of a pod leads to no claim that the pod can use now."""


def claim_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    """Return the name of the claim a pod refers to; None: there is none on purpose, the reference is passed over."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    where = f'pod "{pod.metadata.namespace}/{pod.metadata.name}"'
    if reference.resource_claim_template_name is None:
        text = f'{where}, spec.resourceClaim "{reference.name}": none of the supported fields are set'
        raise ClaimReferenceError(text)
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise ClaimReferenceError(f"{where}: ResourceClaim not created yet")


def is_generated(reference: PodResourceClaim) -> bool:
    """Tell whether the claim is generated from a template, so that it must belong to the pod."""
    return reference.resource_claim_name is None


def known_claim_names(pod: Pod) -> Iterator[str]:
    """Return the names of the pod's claims, of those that have a name by now."""
    for reference in pod.spec.resource_claims:
        try:
            name = claim_name(pod, reference)
        except ClaimReferenceError:
            continue
        if name is not None:
            yield name


def used_claim_names(pod: Pod) -> list[str]:
    """Return the names of the pod's claims, that for extended resources included, of those that have a name by now."""
    names = [*known_claim_names(pod)]
    if pod.status.extended_resource_claim_status is not None:
        names.append(pod.status.extended_resource_claim_status.resource_claim_name)
    return names


def belongs_to_pod(claim: ResourceClaim, pod: Pod) -> bool:
    """Tell whether the pod controls the claim."""
    return any(each.controller and each.uid == pod.metadata.uid for each in claim.metadata.owner_references)


def check_claim(claim: ResourceClaim, pod: Pod, reference: PodResourceClaim) -> None:
    """Raise `ClaimReferenceError` if the pod cannot use the claim it refers to."""
    meta = claim.metadata
    if meta.deletion_timestamp is not None:
        raise ClaimReferenceError(f'resourceclaim "{meta.name}" is being deleted')
    if is_generated(reference):
        check_owner(claim, pod)


def check_owner(claim: ResourceClaim, pod: Pod) -> None:
    """Raise `ClaimReferenceError` if the pod does not control the claim."""
    if not belongs_to_pod(claim, pod):
        meta = claim.metadata
        mine, its = f"{meta.namespace}/{meta.name}", f"{pod.metadata.namespace}/{pod.metadata.name}"
        raise ClaimReferenceError(f"ResourceClaim {mine} was not created for Pod {its} (Pod is not owner)")


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Tell whether the claim is reserved for the pod."""
    return any(each.uid == pod.metadata.uid for each in claim.status.reserved_for)


def consumer_reference(pod: Pod) -> ResourceClaimConsumerReference:
    """Return the entry of `reservedFor` that stands for a pod."""
    return ResourceClaimConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)

"""The claims of a pod, read from the API and checked before anything is prepared.

The DRA manager asks before a sandbox starts, and admission before a pod is taken whose claims may need what the node
does not declare (KEP-5945). Texts are those of Kubernetes.

What must stay true: only claims are used that are allocated and reserved for the pod.
"""

from __future__ import annotations

from collections.abc import Iterator

from nodeward.api.core_v1.container import Container, EphemeralContainer
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.api.resource_v1 import DeviceRequestAllocationResult, ResourceClaim
from nodeward.base.errors import WorldError
from nodeward.machinery.client import Client
from nodeward.rules.resource_claims import (
    ClaimReferenceError,
    check_owner,
    claim_name,
    is_generated,
    is_reserved_for,
)


class DRAError(WorldError):
    """Claims of a pod are not prepared, or not unprepared; it is tried again."""


def has_claims(pod: Pod) -> bool:
    """Tell whether a pod refers to claims."""
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None


def claim_names(pod: Pod) -> Iterator[tuple[str, bool]]:
    """Return the names of a pod's claims, and whether the claim must belong to the pod. Raises `DRAError`."""
    try:
        for reference in pod.spec.resource_claims:
            name = claim_name(pod, reference)
            if name is not None:
                yield name, is_generated(reference)
    except ClaimReferenceError as error:
        raise DRAError(str(error)) from None
    extended = pod.status.extended_resource_claim_status
    if extended is not None:
        yield extended.resource_claim_name, True


def container_requests(pod: Pod, container: Container | EphemeralContainer) -> Iterator[tuple[str, str]]:
    """Return (claim, request) for all devices a container uses; request "" is for all. Raises `DRAError`."""
    wanted: dict[str, list[str]] = {}
    for each in container.resources.claims:
        wanted.setdefault(each.name, []).append(each.request)
    try:
        for reference in pod.spec.resource_claims:
            if reference.name in wanted and (name := claim_name(pod, reference)) is not None:
                for request in wanted[reference.name]:
                    yield name, request
    except ClaimReferenceError as error:
        raise DRAError(str(error)) from None
    extended = pod.status.extended_resource_claim_status
    for mapping in extended.request_mappings if extended is not None else ():
        if extended is not None and mapping.container_name == container.name:
            yield extended.resource_claim_name, mapping.request_name


async def read_claim(client: Client, namespace: str, name: str) -> ResourceClaim:
    """Return a claim as the API has it now. Raises `DRAError`."""
    try:
        return await client.get(ResourceClaim, name, namespace)
    except (ApiError, WorldError) as error:
        raise DRAError(f"fetch ResourceClaim {name}: {error}") from error


def usable_results(claim: ResourceClaim, pod: Pod, *, must_own: bool) -> list[DeviceRequestAllocationResult]:
    """Return what a claim is allocated, if the pod may use it. Raises `DRAError`."""
    if must_own:
        try:
            check_owner(claim, pod)
        except ClaimReferenceError as error:
            raise DRAError(str(error)) from None
    meta, its = claim.metadata, pod.metadata
    if not is_reserved_for(claim, pod):
        raise DRAError(
            f"pod {its.name} ({its.uid}) is not allowed to use ResourceClaim {meta.name} ({meta.uid})"
        )
    if claim.status.allocation is None:
        raise DRAError(f"ResourceClaim {meta.name}: not allocated")
    return claim.status.allocation.devices.results

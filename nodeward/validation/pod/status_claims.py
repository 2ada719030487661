"""What a pod's status says of its resource claims."""

from __future__ import annotations

from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.pod_status import NodeAllocatableResourceClaimStatus, PodExtendedResourceClaimStatus
from nodeward.base.fielderror import FieldError, duplicate, invalid, required
from nodeward.base.fieldpath import FieldPath
from nodeward.base.quantity import Quantity
from nodeward.rules.names import dns_subdomain
from nodeward.rules.resource_names import is_pod_level
from nodeward.validation.checks import Distinct, check_label, check_name, check_present, check_subdomain


def validate_claim_statuses(pod: Pod, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    known, seen = {claim.name for claim in pod.spec.resource_claims}, Distinct()
    for i, status in enumerate(pod.status.resource_claim_statuses):
        at = path.index(i)
        if status.name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(at.child("name"), status.name, detail))
        errors += seen.add(status.name, at.child("name"))
        errors += check_subdomain(status.resource_claim_name, at.child("resourceClaimName"))
    return errors


def validate_extended_claim(
    status: PodExtendedResourceClaimStatus, spec: PodSpec, path: FieldPath
) -> list[FieldError]:
    """The claim made for extended resources that a DRA driver serves."""
    mappings = path.child("requestMappings")
    errors = check_present(status.request_mappings, mappings, "at least one request mapping is required")
    containers = {container.name: container for container in (*spec.init_containers, *spec.containers)}
    seen: set[tuple[str, str, str]] = set()
    for i, mapping in enumerate(status.request_mappings):
        at = mappings.index(i)
        container = containers.get(mapping.container_name)
        if container is None:
            detail = "must match the name of an entry in spec.initContainers.name or spec.containers.name"
            errors.append(invalid(at.child("containerName"), mapping.container_name, detail))
        elif mapping.resource_name not in container.resources.requests:
            detail = (
                "must match the extended resource name of an entry in spec.initContainers.resources.requests "
                "or spec.containers.resources.requests"
            )
            errors.append(invalid(at.child("resourceName"), mapping.resource_name, detail))
        errors += check_label(mapping.request_name, path.child("requestName"))
        key = (mapping.container_name, mapping.resource_name, mapping.request_name)
        if key in seen:
            fields = zip(("containerName", "resourceName", "requestName"), key, strict=True)
            errors += [duplicate(at.child(field), value) for field, value in fields]
        seen.add(key)
    return errors + check_name(status.resource_claim_name, path.child("resourceClaimName"), dns_subdomain)


def validate_node_allocatable_claims(pod: Pod, path: FieldPath) -> list[FieldError]:
    """What claims take from the node's own resources."""
    errors: list[FieldError] = []
    references = {claim.resource_claim_name for claim in pod.spec.resource_claims}
    references |= {status.resource_claim_name for status in pod.status.resource_claim_statuses}
    seen: set[str] = set()
    for i, status in enumerate(pod.status.node_allocatable_resource_claim_statuses):
        at = path.index(i)
        name = status.resource_claim_name
        if name in seen:
            errors.append(duplicate(at, status))
        seen.add(name)
        if not name:
            errors.append(required(at.child("resourceClaimName")))
            continue
        if name not in references:
            detail = "no mapping found in pod reference"
            errors.append(invalid(at.child("resourceClaimName"), name, detail))
        errors += _amounts(status, at)
    return errors


def _amounts(status: NodeAllocatableResourceClaimStatus, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, mapping in enumerate(status.mapping):
        at = path.child("mapping").index(i)
        errors += _resource(mapping.name, at.child("name")) + validate_amount(
            mapping.quantity, at.child("quantity")
        )
    for i, overhead in enumerate(status.overhead):
        at = path.child("overhead").index(i)
        errors += _resource(overhead.name, at.child("name"))
        if overhead.per_pod is None and overhead.per_container is None:
            errors.append(invalid(at, "", "at least one of perPod or perContainer must be set"))
        errors += validate_amount(overhead.per_pod, at.child("perPod"))
        errors += validate_amount(overhead.per_container, at.child("perContainer"))
    return errors


def _resource(name: str, path: FieldPath) -> list[FieldError]:
    return [] if is_pod_level(name) else [invalid(path, name, "must be a node allocatable resource name")]


def validate_amount(quantity: Quantity | None, path: FieldPath) -> list[FieldError]:
    """What a claim takes from the node's own resources."""
    if quantity is None or quantity.nanos >= 0:
        return []
    return [invalid(path, str(quantity), "must be non-negative")]

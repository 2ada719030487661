"""The metrics of the ResourceClaim controller, under Kubernetes' names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from nodeward.api.resource_v1 import ResourceClaim
from nodeward.machinery.metrics import Metrics
from nodeward.rules.resource_claims import POD_CLAIM_ANNOTATION

#: On claims that the scheduler makes for extended resources.
EXTENDED_RESOURCE_ANNOTATION: Final = "resource.kubernetes.io/extended-resource-claim"


class ResourceClaimMetrics:
    def __init__(self, metrics: Metrics, claims: Callable[[], Sequence[ResourceClaim]]) -> None:
        """`claims`: all claims that are known, counted when somebody looks."""
        self._creates = metrics.counter(
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "Number of ResourceClaims creation requests, categorized by creation status, admin access and owner.",
            ("status", "admin_access", "owner_api_group", "owner_api_kind"),
        )
        metrics.gauge(
            "dynamic_resource_allocation_resource_claims",
            "Number of ResourceClaims, categorized by allocation status, admin access, and source.",
            ("allocated", "admin_access", "source"),
        ).also(lambda: _counted(claims()))

    def created(self, claim: ResourceClaim, *, has_failed: bool = False) -> None:
        """Count a claim that was created for a pod, or could not be."""
        self._creates.inc("failure" if has_failed else "success", _has_admin_access(claim), "", "Pod")


def _counted(claims: Sequence[ResourceClaim]) -> Mapping[tuple[str, ...], float]:
    return Counter(
        (_word(claim.status.allocation is not None), _has_admin_access(claim), _source(claim))
        for claim in claims
    )


def _source(claim: ResourceClaim) -> str:
    if claim.metadata.annotations.get(EXTENDED_RESOURCE_ANNOTATION) == "true":
        return "extended_resource"
    return "resource_claim_template" if claim.metadata.annotations.get(POD_CLAIM_ANNOTATION) else ""


def _has_admin_access(claim: ResourceClaim) -> str:
    requests = claim.spec.devices.requests
    return _word(any(each.exactly is not None and each.exactly.admin_access for each in requests))


def _word(is_true: object) -> str:
    return "true" if is_true else "false"

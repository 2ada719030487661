"""A claim from a template, for one entry of a pod's `resourceClaims`.

Its name is generated from the pod and the entry; the pod owns it, so that it goes when the pod goes.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta, OwnerReference
from nodeward.api.resource_v1 import ResourceClaim, ResourceClaimTemplate
from nodeward.rules.resource_claims import POD_CLAIM_ANNOTATION

#: The longest part of a name that is not drawn: a hyphen and five characters make it 63.
LONGEST_BASE: Final = 57


def claim_from_template(template: ResourceClaimTemplate, pod: Pod, entry: str) -> ResourceClaim:
    """Return the claim to create for an entry of the pod. The spec is the template's own."""
    wanted = template.spec.metadata
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True
    )
    return ResourceClaim(
        metadata=ObjectMeta(
            generate_name=generated_base(pod.metadata.name, entry),
            namespace=pod.metadata.namespace,
            labels=dict(wanted.labels),
            annotations={**wanted.annotations, POD_CLAIM_ANNOTATION: entry},
            owner_references=[owner],
        ),
        spec=template.spec.spec,
    )


def generated_base(pod: str, entry: str) -> str:
    """Return what the name of a generated claim begins with; of long names both parts lose as much of their length."""
    base = f"{pod}-{entry}-"
    if len(base) <= LONGEST_BASE:
        return base
    kept = [part[: len(part) * LONGEST_BASE // len(base)] for part in (pod, entry)]
    return "-".join(kept)


def owning_pod(claim: ResourceClaim) -> tuple[str, str]:
    """Return name and uid of the pod a claim was generated for; empty if it was not."""
    for owner in claim.metadata.owner_references:
        if owner.controller and owner.api_version == "v1" and owner.kind == "Pod":
            return owner.name, owner.uid
    return "", ""

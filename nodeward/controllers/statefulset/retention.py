"""Who owns the claims of a stateful set's pods, so that the garbage collector deletes them when they should go. Pure.

| whenScaled | whenDeleted | owner |
|---|---|---|
| Retain | Retain | nobody |
| Retain | Delete | the set |
| Delete | Retain | the pod, once it is to be scaled away |
| Delete | Delete | the set; the pod instead, once it is to be scaled away |

Claims that belong to another set or pod of the same name, or that somebody else controls, are left alone.

Called by `pod_control`; calls `identity`.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.apps_v1 import StatefulSet
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.meta import KubeObject, OwnerReference
from nodeward.controllers.statefulset.identity import ordinal_of, ordinals

_SET: Final = ("apps/v1", "StatefulSet")
_POD: Final = ("v1", "Pod")
_DELETE: Final = "Delete"


def deletes_when_scaled(owner: StatefulSet) -> bool:
    policy = owner.spec.persistent_volume_claim_retention_policy
    return policy is not None and policy.when_scaled == _DELETE


def deletes_when_deleted(owner: StatefulSet) -> bool:
    policy = owner.spec.persistent_volume_claim_retention_policy
    return policy is not None and policy.when_deleted == _DELETE


def corrected_owners(
    claim: PersistentVolumeClaim, owner: StatefulSet, pod: Pod
) -> list[OwnerReference] | None:
    """Return the owners the claim should have; None if it has them, or must not be touched."""
    known = claim.metadata.owner_references
    ours = [each for each in known if _names(each, owner, _SET) or _names(each, pod, _POD)]
    if any(each.uid not in (owner.metadata.uid, pod.metadata.uid) for each in ours):
        return None
    others = [each for each in known if each not in ours]
    wanted = [] if has_other_controller(claim, owner, pod) else _wanted(owner, pod)
    if [(each.uid, each.controller) for each in ours] == [(each.uid, each.controller) for each in wanted]:
        return None
    return [*others, *wanted]


def has_other_controller(claim: PersistentVolumeClaim, owner: StatefulSet, pod: Pod) -> bool:
    """Tell whether somebody else decides about the claim, although the set has a policy for it."""
    if not deletes_when_scaled(owner) and not deletes_when_deleted(owner):
        return False
    uids = (owner.metadata.uid, pod.metadata.uid)
    return any(each.controller and each.uid not in uids for each in claim.metadata.owner_references)


def is_left_over(claim: PersistentVolumeClaim, owner: StatefulSet, name: str) -> bool:
    """Tell whether the claim is still to go with an earlier pod of this name: no new one can be made until it has."""
    if not deletes_when_scaled(owner):
        return False
    return any(
        (each.api_version, each.kind, each.name) == (*_POD, name) for each in claim.metadata.owner_references
    )


def _wanted(owner: StatefulSet, pod: Pod) -> list[OwnerReference]:
    is_leaving = deletes_when_scaled(owner) and ordinal_of(owner, pod) not in ordinals(owner)
    if is_leaving:
        return [_reference(pod, _POD)]
    return [_reference(owner, _SET)] if deletes_when_deleted(owner) else []


def _names(reference: OwnerReference, obj: KubeObject, kind: tuple[str, str]) -> bool:
    return (reference.api_version, reference.kind, reference.name) == (*kind, obj.metadata.name)


def _reference(obj: KubeObject, kind: tuple[str, str]) -> OwnerReference:
    return OwnerReference(
        api_version=kind[0],
        kind=kind[1],
        name=obj.metadata.name,
        uid=obj.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )

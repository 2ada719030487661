"""Claims and the volumes that may serve them: which claims a pod has, what is bound, and what matches.

Pure questions about objects, for schedulers and whoever binds volumes. A volume that is reserved for a claim (by its
`claimRef`) serves that claim or none; else the smallest that is large enough does. In-tree volumes are taken as they
are: they are not translated to the CSI drivers that replaced them.

Called by the scheduler and controllers; calls `affinity` and `selectors`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolume, PersistentVolumeClaim
from nodeward.api.storage_v1 import StorageClass
from nodeward.base.quantity import Quantity
from nodeward.rules.affinity import holds
from nodeward.rules.selectors import LabelRequirements, SelectorError, from_label_selector

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
_BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
_STORAGE: Final = "storage"
_NOTHING: Final = Quantity.of_int(0)

Storage = TypeVar("Storage", PersistentVolume, PersistentVolumeClaim)


class ClaimUse(NamedTuple):
    """A claim a pod refers to by name; one made for the pod alone belongs to it."""

    name: str
    is_ephemeral: bool


def claims_of(pod: Pod) -> list[ClaimUse]:
    """Return the claims of a pod, in the order of its volumes."""
    found: list[ClaimUse] = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            found.append(ClaimUse(volume.persistent_volume_claim.claim_name, False))
        elif volume.ephemeral is not None:
            found.append(ClaimUse(f"{pod.metadata.name}-{volume.name}", True))
    return found


def ownership_fault(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Return why an ephemeral volume's claim does not belong to this pod; "" if it does."""
    mine, theirs = pod.metadata, claim.metadata
    if any(each.controller and each.uid == mine.uid for each in theirs.owner_references):
        return ""
    return (
        f"PVC {theirs.namespace}/{theirs.name} was not created for pod {mine.namespace}/{mine.name} "
        "(pod is not owner)"
    )


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    named = claim.metadata.annotations.get(_BETA_CLASS)
    return named if named is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    named = volume.metadata.annotations.get(_BETA_CLASS)
    return named if named is not None else volume.spec.storage_class_name


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def is_reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Tell whether the volume names this claim; one that names no uid takes whoever has the name."""
    wanted = volume.spec.claim_ref
    return (
        wanted is not None
        and (wanted.namespace, wanted.name) == (claim.metadata.namespace, claim.metadata.name)
        and wanted.uid in ("", claim.metadata.uid)
    )


def is_reachable(volume: PersistentVolume, node: Node) -> bool:
    """Tell whether the volume can be used on the node, as far as the node's labels tell."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    return any(holds(term, node) for term in affinity.required.node_selector_terms)


def size(claim: PersistentVolumeClaim) -> Quantity:
    return claim.spec.resources.requests.get(_STORAGE, _NOTHING)


def selector_of(claim: PersistentVolumeClaim) -> LabelRequirements | None:
    """Return which volumes the claim wants by label (None: any). Raises `SelectorError`."""
    return from_label_selector(claim.spec.selector)


def could_serve(
    claim: PersistentVolumeClaim, volume: PersistentVolume, *, with_attributes_class: bool
) -> bool:
    """Tell whether the volume may serve the claim on a node that can reach it."""
    spec, wanted = volume.spec, claim.spec
    if spec.claim_ref is not None and not is_reserved_for(volume, claim):
        return False
    if volume.metadata.deletion_timestamp is not None or spec.capacity.get(_STORAGE, _NOTHING) < size(claim):
        return False
    if (spec.volume_mode or "Filesystem") != (wanted.volume_mode or "Filesystem"):
        return False
    attributes = wanted.volume_attributes_class_name or ""
    if (spec.volume_attributes_class_name or "") != (attributes if with_attributes_class else ""):
        return False
    if is_reserved_for(volume, claim):
        return True
    if volume.status.phase != "Available" or class_of_volume(volume) != class_of_claim(claim):
        return False
    try:
        selector = selector_of(claim)
    except SelectorError:
        return False
    if selector is not None and not selector.matches(volume.metadata.labels):
        return False
    return set(wanted.access_modes) <= set(spec.access_modes)


def by_preference(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], *, with_attributes_class: bool = True
) -> list[PersistentVolume]:
    """Return the volumes that could serve the claim, the best first: one reserved for it, else the smallest.

    If one is reserved for the claim, no other comes into question.
    """
    fitting = [
        each for each in volumes if could_serve(claim, each, with_attributes_class=with_attributes_class)
    ]
    reserved = next((each for each in fitting if is_reserved_for(each, claim)), None)
    if reserved is not None:
        return [reserved]
    return sorted(fitting, key=lambda each: each.spec.capacity.get(_STORAGE, _NOTHING))


def match(
    preferred: Sequence[PersistentVolume], node: Node, taken: Collection[str] = ()
) -> PersistentVolume | None:
    """Return the first of them that the node can reach and nobody has taken."""
    return next(
        (each for each in preferred if each.metadata.name not in taken and is_reachable(each, node)), None
    )


def allows_node(storage: StorageClass, labels: Mapping[str, str]) -> bool:
    """Tell whether volumes of the class may be made for a node with these labels."""
    terms = storage.allowed_topologies
    return not terms or any(
        bool(term.match_label_expressions)
        and all(labels.get(wish.key) in wish.values for wish in term.match_label_expressions)
        for term in terms
    )

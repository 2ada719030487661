"""What makes a pod the one it is: its ordinal, and the name, labels, host name and claims that follow from it. Pure.

Called by the other modules of this package.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from nodeward.api.apps_v1 import StatefulSet
from nodeward.api.core_v1.pod import Pod, PodSpec, PodTemplateSpec
from nodeward.api.core_v1.storage import PersistentVolumeClaim
from nodeward.api.core_v1.volume import Volume
from nodeward.api.core_v1.volume_sources import PersistentVolumeClaimVolumeSource
from nodeward.api.meta import ObjectMeta, OwnerReference
from nodeward.controllers.controller_revisions import HASH_LABEL
from nodeward.controllers.pods.control import pod_from_template

POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
POD_INDEX: Final = "apps.kubernetes.io/pod-index"

_NAME: Final = re.compile(r"(.*)-([0-9]{1,10})")
_MOST: Final = 2**31


def ordinal_of(owner: StatefulSet, pod: Pod) -> int | None:
    """Return the place of a pod in this set, by its name; None if it has none here."""
    match = _NAME.fullmatch(pod.metadata.name)
    if match is None or match[1] != owner.metadata.name:
        return None
    ordinal = int(match[2])
    return ordinal if ordinal < _MOST else None


def ordinals(owner: StatefulSet) -> range:
    """Return the ordinals the set should have pods for."""
    start = owner.spec.ordinals.start if owner.spec.ordinals is not None else 0
    return range(start, start + (owner.spec.replicas or 0))


def pod_name(owner: StatefulSet, ordinal: int) -> str:
    return f"{owner.metadata.name}-{ordinal}"


def claim_name(owner: StatefulSet, template: PersistentVolumeClaim, ordinal: int) -> str:
    return f"{template.metadata.name}-{owner.metadata.name}-{ordinal}"


def labels_of(name: str, ordinal: int) -> dict[str, str]:
    """Return what every pod of a set carries."""
    return {POD_NAME: name, POD_INDEX: str(ordinal)}


def revision_of(pod: Pod) -> str:
    """Return the name of the revision the pod was made from."""
    return pod.metadata.labels.get(HASH_LABEL, "")


def new_pod(
    owner: StatefulSet, template: PodTemplateSpec, revision: str, ordinal: int, reference: OwnerReference
) -> Pod:
    """Return the pod of this place, of the template of this revision."""
    pod = pod_from_template(template, owner, reference)
    name = pod_name(owner, ordinal)
    pod.metadata.name, pod.metadata.generate_name = name, ""
    pod.metadata.labels |= {**labels_of(name, ordinal), HASH_LABEL: revision}
    pod.spec = _with_storage(owner, pod.spec, ordinal, name)
    return pod


def _with_storage(owner: StatefulSet, spec: PodSpec, ordinal: int, name: str) -> PodSpec:
    templates = owner.spec.volume_claim_templates
    mounted = [
        Volume(
            name=template.metadata.name,
            persistent_volume_claim=PersistentVolumeClaimVolumeSource(
                claim_name=claim_name(owner, template, ordinal)
            ),
        )
        for template in templates
    ]
    names = [volume.name for volume in mounted]
    others = [volume for volume in spec.volumes if volume.name not in names]
    return msgspec.structs.replace(
        spec, volumes=[*mounted, *others], hostname=name, subdomain=owner.spec.service_name
    )


def claims_of(owner: StatefulSet, ordinal: int) -> list[PersistentVolumeClaim]:
    """Return the claims of this place, as they are made."""
    selected = owner.spec.selector.match_labels if owner.spec.selector is not None else {}
    return [
        PersistentVolumeClaim(
            metadata=ObjectMeta(
                name=claim_name(owner, template, ordinal),
                namespace=owner.metadata.namespace,
                labels={**template.metadata.labels, **selected},
                annotations=dict(template.metadata.annotations),
            ),
            spec=template.spec,
        )
        for template in owner.spec.volume_claim_templates
    ]

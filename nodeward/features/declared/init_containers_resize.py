"""InPlacePodVerticalScalingInitContainers: resources of init containers that end can be changed.

Init containers with `restartPolicy: Always` are sidecars; every node that can resize at all resizes those.
The gate alone is not enough: the kubelet must be one that resizes running pods.
"""

from __future__ import annotations

from typing import Final

from nodeward.features.declared.abilities import POD_RESIZE, able
from nodeward.features.declared.feature import Feature, PodInfo, Requirements

NAME: Final = "InPlacePodVerticalScalingInitContainers"
_SIDECAR: Final = "Always"


def _is_needed(old: PodInfo, new: PodInfo) -> bool:
    # Whether init containers were added or removed is for validation to say, which comes first.
    pairs = zip(old.spec.init_containers, new.spec.init_containers, strict=False)
    return any(
        before.restart_policy != _SIDECAR and before.resources != after.resources for before, after in pairs
    )


FEATURE: Final = Feature(
    name=NAME, requirements=Requirements((NAME,), able(POD_RESIZE)), update_rule=_is_needed
)

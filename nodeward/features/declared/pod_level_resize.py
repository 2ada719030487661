"""InPlacePodLevelResourcesVerticalScaling: the resources of a running pod as a whole can be changed (KEP-5419).

A pod with such resources runs on any node; only to change them the node must know how.
The gate alone is not enough: the kubelet must be one that resizes running pods.
"""

from __future__ import annotations

from typing import Final

from nodeward.features.declared.abilities import POD_RESIZE, able
from nodeward.features.declared.feature import Feature, PodInfo, Requirements

NAME: Final = "InPlacePodLevelResourcesVerticalScaling"


def _is_needed(old: PodInfo, new: PodInfo) -> bool:
    # Amounts compare by what they are, not by how they are written: 1000m is 1.
    return old.spec.resources != new.spec.resources


FEATURE: Final = Feature(
    name=NAME, requirements=Requirements((NAME,), able(POD_RESIZE)), update_rule=_is_needed
)

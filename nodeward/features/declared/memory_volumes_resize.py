"""InPlacePodVerticalScalingMemoryBackedVolumes: the size of an emptyDir in memory can be changed.

Only a size that was set and is still set counts; anything else about volumes is for validation to refuse.
The gate alone is not enough: the kubelet must be one that resizes mounted volumes.
"""

from __future__ import annotations

from typing import Final

from nodeward.features.declared.abilities import MEMORY_VOLUME_RESIZE, able
from nodeward.features.declared.feature import Feature, PodInfo, Requirements
from nodeward.features.declared.shapes import AnyVolume

NAME: Final = "InPlacePodVerticalScalingMemoryBackedVolumes"
_MEMORY: Final = "Memory"


def _is_needed(old: PodInfo, new: PodInfo) -> bool:
    before, after = old.spec.volumes, new.spec.volumes
    return len(before) == len(after) and any(map(_is_resized, before, after))


def _is_resized(before: AnyVolume, after: AnyVolume) -> bool:
    was, now = before.empty_dir, after.empty_dir
    if before.name != after.name or was is None or now is None or now.medium != _MEMORY:
        return False
    return was.size_limit is not None and now.size_limit is not None and was.size_limit != now.size_limit


FEATURE: Final = Feature(
    name=NAME, requirements=Requirements((NAME,), able(MEMORY_VOLUME_RESIZE)), update_rule=_is_needed
)

"""VolumeBindMountOptions: volumes mounted into a container with options of their own, such as noexec.

The kubelet needs its gate, and the container runtime must pass the options on; one name stands for both.
"""

from __future__ import annotations

from typing import Final

from nodeward.features.declared.abilities import MOUNT_OPTIONS, able
from nodeward.features.declared.feature import Feature, PodInfo, Requirements

NAME: Final = "VolumeBindMountOptions"


def _is_needed(pod: PodInfo) -> bool:
    spec = pod.spec
    return any(
        mount.bind_mount_options
        for containers in (spec.containers, spec.init_containers, spec.ephemeral_containers)
        for container in containers
        for mount in container.volume_mounts
    )


FEATURE: Final = Feature(
    name=NAME,
    requirements=Requirements((NAME,), able(MOUNT_OPTIONS)),
    scheduling_rule=_is_needed,
    # Ephemeral containers come to pods that have a node.
    scheduling_fields=(
        "containers[*].volume_mounts[*].bind_mount_options",
        "init_containers[*].volume_mounts[*].bind_mount_options",
    ),
)

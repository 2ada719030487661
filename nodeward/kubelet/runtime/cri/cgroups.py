"""Where a pod's containers are accounted for: the name of its group, and taking the group away at the end.

The runtime makes the group with the first container and leaves it behind; whoever named it removes it. Layouts: one
directory below every controller (v1) or one below the root (v2).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.rules.qos import GUARANTEED, qos_class

CGROUPFS: Final = "cgroupfs"
SYSTEMD: Final = "systemd"
_MOUNT: Final = Path("/sys/fs/cgroup")


def pod_group(pod: Pod, root: str, driver: str = CGROUPFS) -> str:
    """The pod's group as the runtime wants it named; empty without a root: the runtime's own choice."""
    if not root:
        return ""
    kind = qos_class(pod.spec)
    parts = [root, *([] if kind == GUARANTEED else [kind.lower()]), f"pod{pod.metadata.uid}"]
    if driver == SYSTEMD:
        # A dash in a slice's name means "below".
        return "-".join(part.replace("-", "_") for part in parts) + ".slice"
    return "/" + "/".join(parts)


def remove_group(root: str, uid: str, mount: Path = _MOUNT) -> None:
    """Remove the group of a pod of which nothing runs; systemd removes its slices itself.

    Its class is not asked for: whoever removes a pod may know nothing of it but its uid.
    """
    if not root:
        return
    tops = [mount / root, *(each / root for each in _children(mount))]
    for top in tops:
        for parent in (top, *_children(top)):
            group = parent / f"pod{uid}"
            if group.is_dir():
                for folder, _, _ in os.walk(group, topdown=False):
                    # Busy: something still runs, and whoever starts the pod anew uses the group again.
                    with contextlib.suppress(OSError):
                        os.rmdir(folder)


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(each for each in folder.iterdir() if each.is_dir())
    except OSError:
        return []

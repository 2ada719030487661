"""Who manages groups on this node, systemd or nobody: pods' groups must be named accordingly, or no pod starts.

Runtimes from containerd 2.0 on answer the question; of older ones the configuration is read, which they tell.
"""

from __future__ import annotations

import json
import logging
from typing import Any, Final

import grpc

from nodeward.kubelet.runtime.cri.calls import Calls, CriError
from nodeward.kubelet.runtime.cri.cgroups import CGROUPFS, SYSTEMD

LOG: Final = logging.getLogger(__name__)

_DRIVERS: Final = (SYSTEMD, CGROUPFS)


async def find_driver(call: Calls) -> str:
    """`systemd` or `cgroupfs`. Raises `CriError`."""
    try:
        told = await call("RuntimeConfig")
    except CriError as error:
        if error.code is not grpc.StatusCode.UNIMPLEMENTED:
            raise
    else:
        if told.HasField("linux"):
            return _DRIVERS[told.linux.cgroup_driver]
    status = await call("Status", verbose=True)
    return driver_in(status.info.get("config", ""))


def driver_in(config: str) -> str:
    """What a runtime's own configuration says; one that says nothing manages groups itself."""
    try:
        tree = json.loads(config or "{}")
    except ValueError:
        LOG.warning("the container runtime's configuration cannot be read; groups are taken to be its own")
        return CGROUPFS
    containerd = _part(tree, "containerd")
    runtime = _part(_part(containerd, "runtimes"), str(containerd.get("defaultRuntimeName", "runc")))
    return SYSTEMD if _part(runtime, "options").get("SystemdCgroup") is True else CGROUPFS


def _part(tree: Any, name: str) -> dict[str, Any]:
    found = tree.get(name) if isinstance(tree, dict) else None
    return found if isinstance(found, dict) else {}

"""Names of what a node must be able to do before it declares a feature, beside having a gate on (KEP-5328).

They are keys of a node's static configuration. A feature asks for them in its requirements; a kubelet says what its own
code and its container runtime can do (`nodeward.kubelet.node.abilities`), an autoscaler says it for nodes that do not
exist yet. A node whose code or machine cannot do a thing must not declare it, whatever the gate says.

Used by the features of this package and by the kubelet, which knows what it can do.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

#: The kubelet changes the resources of running pods.
POD_RESIZE: Final = "kubelet.podResize"
#: The kubelet changes the size of volumes in memory while they are mounted.
MEMORY_VOLUME_RESIZE: Final = "kubelet.memoryVolumeResize"
#: The CPU manager's policy, `none` or `static`; no feature asks for it today.
CPU_MANAGER_POLICY: Final = "kubelet.cpuManagerPolicy"
#: The runtime gives a pod user namespaces of its own on the network of the node.
USER_NAMESPACES_HOST_NETWORK: Final = "runtime.userNamespacesHostNetwork"
#: The runtime mounts volumes with the options noexec, nodev and nosuid.
MOUNT_OPTIONS: Final = "runtime.mountOptions"

ABLE: Final = "true"


def able(*names: str) -> Mapping[str, str]:
    """Return these abilities, as static configuration."""
    return MappingProxyType(dict.fromkeys(names, ABLE))

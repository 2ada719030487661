"""UserNamespacesHostNetworkSupport: a pod with user namespaces of its own on the network of its node.

The kubelet needs its gate, and the container runtime must be able to; a node has the feature if both hold, and says so
with one name. Both fields are fixed when the pod is made, so an update never needs it.
"""

from __future__ import annotations

from typing import Final

from nodeward.features.declared.abilities import USER_NAMESPACES_HOST_NETWORK, able
from nodeward.features.declared.feature import Feature, PodInfo, Requirements

NAME: Final = "UserNamespacesHostNetworkSupport"


def _is_needed(pod: PodInfo) -> bool:
    return pod.spec.host_network and pod.spec.host_users is False


FEATURE: Final = Feature(
    name=NAME,
    requirements=Requirements((NAME,), able(USER_NAMESPACES_HOST_NETWORK)),
    scheduling_rule=_is_needed,
    scheduling_fields=("host_network", "host_users"),
)

"""ExtendWebSocketsToKubelet: exec, attach and port-forward reach the kubelet as WebSockets (KEP-4006).

No pod needs it: the API server reads the name from the node and either passes the connection on or translates it.

Called by `apiserver.subresources.translating`, `declared` and `kubelet.server.streams`; calls `feature`.
"""

from __future__ import annotations

from typing import Final

from nodeward.features.declared.feature import Feature, Requirements

NAME: Final = "ExtendWebSocketsToKubelet"

FEATURE: Final = Feature(
    name=NAME,
    requirements=Requirements((NAME,)),
    direct_consumer="kube-apiserver, for exec, attach and port-forward",
)

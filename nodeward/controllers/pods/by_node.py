"""The pods of one node, from the informer that all controllers share.

Called by the node lifecycle controller, `node_lifecycle.pods_not_ready` and the taint eviction controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nodeward.api.core_v1.pod import Pod
from nodeward.machinery.informer import Informer, InformerFactory

_NODE: Final = "spec.nodeName"


class PodsByNode:
    """Pods, findable by the node they were given to."""

    def __init__(self, informers: InformerFactory) -> None:
        self.informer: Final[Informer[Pod]] = informers.informer(Pod)
        if not self.informer.has_index(_NODE):
            self.informer.add_index(_NODE, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())

    def on(self, node: str) -> Sequence[Pod]:
        """Return the pods on this node, whatever their state."""
        return self.informer.by_index(_NODE, node)

"""DRANodeAllocatableResources: devices that are made of a node's own cpu and memory.

No pod needs it; the API server refuses slices of such devices for nodes that do not have it.

Called by `apiserver.admission.node_declared_feature_validator` and `declared`; calls `feature`.
"""

from __future__ import annotations

from typing import Final

from nodeward.features.declared.feature import Feature, Requirements

NAME: Final = "DRANodeAllocatableResources"

FEATURE: Final = Feature(
    name=NAME,
    requirements=Requirements((NAME,)),
    direct_consumer="kube-apiserver, when a ResourceSlice is written",
)

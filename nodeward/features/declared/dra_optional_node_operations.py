"""DRAOptionalNodeOperations: what Kubernetes 1.37 calls DraOptionalNodePreparation.

A node that was given the gate by its shipped name declares the shipped name too, so that schedulers and drivers built
for Kubernetes 1.37 find it. Nothing here needs it: our pods need `DraOptionalNodePreparation`.
"""

from __future__ import annotations

from typing import Final

from nodeward.features.declared.feature import Feature, Requirements

NAME: Final = "DRAOptionalNodeOperations"

FEATURE: Final = Feature(
    name=NAME,
    requirements=Requirements((NAME,)),
    direct_consumer="a kube-scheduler of Kubernetes 1.37, which allocates devices only where they can be used",
)

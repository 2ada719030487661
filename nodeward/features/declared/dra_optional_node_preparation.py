"""DraOptionalNodePreparation: devices whose drivers have no part on the node (KEP-5945).

A pod needs it once one of its claims is allocated with a result that skips the node's operations. A claim that is
allocated in the same scheduling cycle is not seen by the rule; the allocator looks at the node's list itself.
"""

from __future__ import annotations

from typing import Final

from nodeward.features.declared.feature import Feature, PodInfo, Requirements

NAME: Final = "DraOptionalNodePreparation"
OPTIONAL_PREPARATION_GATE: Final = "DRAOptionalNodePreparation"


def _is_needed(pod: PodInfo) -> bool:
    # The list form names operations, `*` for all: whichever is skipped, the kubelet must know how to skip.
    return any(
        result.skip_node_operations
        for claim in pod.resource_claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    )


FEATURE: Final = Feature(
    name=NAME,
    requirements=Requirements((OPTIONAL_PREPARATION_GATE,)),
    scheduling_rule=_is_needed,
    scheduling_fields=(),
    direct_consumer="kube-scheduler, which allocates devices only where they can be used",
)

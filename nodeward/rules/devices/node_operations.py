"""Which nodes can skip the operations that drivers do on nodes, as slices and allocation results say (KEP-5945)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from nodeward.api.resource_v1 import DeviceRequestAllocationResult
from nodeward.features.declared.dra_optional_node_operations import NAME as OPERATIONS_FEATURE
from nodeward.features.declared.dra_optional_node_preparation import NAME as PREPARATION_FEATURE


def can_skip(operations: bool | Sequence[str] | None, declared: Collection[str]) -> bool:
    """Tell whether a node with these declared features can skip these operations. None of them, every node can."""
    if not operations or PREPARATION_FEATURE in declared:
        return True
    # A kubelet of Kubernetes 1.37 reads the list form only, and declares the feature by its shipped name.
    return operations is not True and OPERATIONS_FEATURE in declared


def can_skip_all(results: Iterable[DeviceRequestAllocationResult], declared: Collection[str]) -> bool:
    """Tell whether a node can skip what all results of an allocation say."""
    return all(can_skip(each.skip_node_operations, declared) for each in results)

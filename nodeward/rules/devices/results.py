"""What a claim's status says once devices are chosen: results, configuration and the nodes that can use them.

Configuration of the classes comes first, each class once, then that of the claim which concerns a request that was
used. Called by `allocator.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from nodeward.api.core_v1.references import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from nodeward.api.resource_v1 import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from nodeward.rules.affinity import NAME_FIELD
from nodeward.rules.devices.allocator_features import AllocatorFeatures, NodeOperations
from nodeward.rules.devices.errors import AllocationError
from nodeward.rules.devices.requests import RequestToAllocate
from nodeward.rules.devices.taking import ChosenDevice

FROM_CLASS: Final = "FromClass"
FROM_CLAIM: Final = "FromClaim"


def allocation_result(
    claim: ResourceClaim,
    used: Sequence[RequestToAllocate],
    chosen: Sequence[ChosenDevice],
    node: str,
    features: AllocatorFeatures,
    new_share_id: Callable[[], str],
) -> AllocationResult:
    """Return the allocation of a claim. `used`: per request, the alternative that was chosen."""
    results = [_result(each, features, new_share_id) for each in chosen]
    devices = DeviceAllocationResult(results=results, config=_configuration(claim, used))
    try:
        selector = _node_selector(chosen, node)
    except AllocationError as error:
        raise AllocationError(f"create NodeSelector for claim {claim.metadata.name}: {error}") from None
    return AllocationResult(devices=devices, node_selector=selector)


def _result(
    chosen: ChosenDevice, features: AllocatorFeatures, new_share_id: Callable[[], str]
) -> DeviceRequestAllocationResult:
    request, device = chosen.request, chosen.device
    is_copied = features.node_operations is not NodeOperations.UNKNOWN
    operations = device.slice.spec.skip_node_operations if is_copied else None
    with_conditions = features.binding_conditions
    return DeviceRequestAllocationResult(
        request=request.full_name,
        driver=device.id.driver,
        pool=device.id.pool,
        device=device.id.device,
        admin_access=True if request.admin_access else None,
        tolerations=list(request.tolerations),
        binding_conditions=list(device.device.binding_conditions) if with_conditions else [],
        binding_failure_conditions=list(device.device.binding_failure_conditions) if with_conditions else [],
        share_id=new_share_id() if chosen.is_share else None,
        consumed_capacity=chosen.consumed,
        skip_node_operations=None if operations == [] else operations,
    )


def _configuration(
    claim: ResourceClaim, used: Sequence[RequestToAllocate]
) -> list[DeviceAllocationConfiguration]:
    by_class: dict[str, list[DeviceAllocationConfiguration]] = {}
    found: list[DeviceAllocationConfiguration] = []
    for request in used:
        name = request.device_class.metadata.name
        known = by_class.get(name)
        if known is not None:
            for each in known:
                each.requests.append(request.full_name)
            continue
        by_class[name] = [
            DeviceAllocationConfiguration(source=FROM_CLASS, requests=[request.full_name], opaque=each.opaque)
            for each in request.device_class.spec.config
        ]
        found += by_class[name]
    names = [(request.full_name, request.parent or request.full_name) for request in used]
    for config in claim.spec.devices.config:
        if not config.requests or any(not _is_free_of(config.requests, each) for each in names):
            found.append(
                DeviceAllocationConfiguration(
                    source=FROM_CLAIM, requests=list(config.requests), opaque=config.opaque
                )
            )
    for each in found:
        if not any(_is_free_of(each.requests, names_of_one) for names_of_one in names):
            # Naming none means all.
            each.requests = []
    return found


def _is_free_of(requests: Sequence[str], names: Iterable[str]) -> bool:
    """Tell whether a list of requests has none of the names of a request."""
    return not any(name in requests for name in names)


def _node_selector(chosen: Sequence[ChosenDevice], node: str) -> NodeSelector | None:
    """Return which nodes can use all the devices; None: every node can."""
    fields: list[NodeSelectorRequirement] = []
    expressions: list[NodeSelectorRequirement] = []
    for each in chosen:
        if each.device.node_name is not None or each.device.device.binds_to_node:
            here = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=[node])
            return NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[here])])
        selector = each.device.node_selector
        terms = selector.node_selector_terms if selector is not None else []
        if len(terms) > 1:
            raise AllocationError(f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms")
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeSelectorTerm(match_fields=fields, match_expressions=expressions)
    return NodeSelector(node_selector_terms=[term])


def _add_new(known: list[NodeSelectorRequirement], more: Iterable[NodeSelectorRequirement]) -> None:
    for each in more:
        if not any(
            (each.key, each.operator) == (other.key, other.operator) and set(each.values) == set(other.values)
            for other in known
        ):
            known.append(each)

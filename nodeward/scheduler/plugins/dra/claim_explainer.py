"""Why nodes cannot give a pod its claims, in more words than an event has: for `nodeward why`.

Asked by DynamicResources about nodes its filter rejected. Nodes that see the same devices share an answer. The work
over all nodes is bounded; of nodes beyond that only the filter's reason is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from nodeward.api.core_v1.node import Node
from nodeward.api.resource_v1 import AllocationResult, ResourceClaim
from nodeward.rules.devices.errors import SearchLimitReached
from nodeward.rules.devices.holders import holders_of
from nodeward.rules.devices.requests import full_claim_name
from nodeward.rules.devices.search import SearchBudget
from nodeward.scheduler.framework.listers import Listers
from nodeward.scheduler.framework.status import Status
from nodeward.scheduler.plugins.dra.pod_claims import PodClaimState

#: Devices that are looked at to explain one pod.
EXPLAINED_DEVICES: Final = 200_000

#: (claim, its allocation, node) -> whether the node can use it
AllocatedJudge: TypeAlias = Callable[[ResourceClaim, AllocationResult, Node], Status]


class ClaimExplainer:
    """Explains the claims of one pod."""

    def __init__(self, state: PodClaimState, listers: Listers, judge: AllocatedJudge) -> None:
        self._state: Final = state
        self._judge: Final = judge
        self._holders: Final = holders_of(listers.list(ResourceClaim))
        self._budget: Final = SearchBudget(EXPLAINED_DEVICES)
        #: by what a node sees and declares
        self._known: Final[dict[tuple[int, frozenset[str]], tuple[str, ...]]] = {}

    def notes(self, node: Node) -> tuple[str, ...]:
        """Say what keeps the pod's claims from a node that was rejected."""
        found: list[str] = []
        for _, claim, allocation in self._state.allocated:
            fault = self._judge(claim, allocation, node)
            if not fault.is_success:
                reasons = ", ".join(fault.reasons)
                found.append(f"claim {full_claim_name(claim)} is allocated, and not for this node: {reasons}")
        return tuple(found) or self._about_devices(node)

    def _about_devices(self, node: Node) -> tuple[str, ...]:
        allocator = self._state.allocator
        if allocator is None:
            return ()
        key = id(allocator.pools_of(node)), frozenset(node.status.declared_features)
        found = self._known.get(key)
        if found is None:
            try:
                found = allocator.explain(node, self._budget, self._holders)
            except SearchLimitReached:
                found = ()
            self._known[key] = found
        return found

"""DynamicResources: a pod goes where its ResourceClaims can be allocated, and gets them before it is bound (DRA).

Claims that are allocated tie the pod to the nodes that can use them. The others are allocated in the same cycle: the
filter asks the allocator about each node, Reserve takes the devices in memory, so that the next pod finds them taken,
and PreBind writes allocation and reservation to the claim. Pods without claims cost nothing. All faults are
unresolvable: preempting pods does not release devices.

The parts are in `dra/`; the allocator is in `nodeward.rules.devices`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.core_v1.node import Node
from nodeward.api.resource_v1 import (
    AllocationResult,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from nodeward.base.invariant import InvariantBroken
from nodeward.features.declared.dra_optional_node_preparation import FEATURE
from nodeward.features.declared.feature import NODE_DECLARED_FEATURES_GATE
from nodeward.rules.affinity import selects
from nodeward.rules.devices.allocator import UNDECLARED, Allocated, NoDevices, PodAllocator
from nodeward.rules.devices.allocator_features import AllocatorFeatures
from nodeward.rules.devices.errors import AllocationError, SearchLimitReached
from nodeward.rules.devices.node_operations import can_skip_all
from nodeward.rules.devices.search import SearchBudget
from nodeward.rules.resource_claims import ClaimReferenceError, is_reserved_for
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.events import ClusterEventWithHint
from nodeward.scheduler.framework.plugin import (
    ColumnScorePlugin,
    CycleState,
    EnqueueExtensions,
    ExplainedFilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    RejectedRows,
    RejectionNotes,
    ReservePlugin,
    ScoreExtensions,
    StatefulPlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, failed, unresolvable, unschedulable
from nodeward.scheduler.plugins.dra.binding_conditions import BindingConditions
from nodeward.scheduler.plugins.dra.claim_explainer import ClaimExplainer
from nodeward.scheduler.plugins.dra.claim_hints import ClaimHints
from nodeward.scheduler.plugins.dra.claim_writes import ClaimWriteError, ClaimWriter
from nodeward.scheduler.plugins.dra.device_state import DeviceState
from nodeward.scheduler.plugins.dra.pod_claims import PodClaimFinder, PodClaimState
from nodeward.scheduler.plugins.normalizing import by_largest
from nodeward.scheduler.plugins.volumes.row_answers import judge_rows

if TYPE_CHECKING:
    from nodeward.scheduler.cache.node import NodeView
    from nodeward.scheduler.cache.table import NodeTable

#: Devices that the search on one node may look at, for each second of the argument `filterTimeout`.
DEVICES_PER_SECOND: Final = 10_000
FILTER_TIMEOUT_SECONDS: Final = 10
#: Devices that the searches of one attempt may look at, over all nodes, whatever the timeout is.
ATTEMPT_BUDGET: Final = 1_000_000

NOT_AVAILABLE: Final = unresolvable("resourceclaim not available on the node")
UNDECLARED_FEATURE: Final = unresolvable(UNDECLARED)


class DynamicResources(
    PreEnqueuePlugin,
    PreFilterPlugin,
    ExplainedFilterPlugin,
    PostFilterPlugin,
    PreScorePlugin,
    ColumnScorePlugin,
    ScoreExtensions,
    StatefulPlugin,
    ReservePlugin,
    PreBindPlugin,
    EnqueueExtensions,
):
    name: ClassVar[str] = "DynamicResources"
    gate: ClassVar[str] = "DynamicResourceAllocation"
    default_weight: ClassVar[int] = 2
    objects = (ResourceClaim, ResourceSlice, DeviceClass, DeviceTaintRule)
    pod_fields = ()  # stateful: asked for every pod it concerns
    concerns_pods_with: ClassVar[str] = "spec.resource_claims"

    def __init__(self, context: PluginContext) -> None:
        self._features = AllocatorFeatures.of(context.gates)
        is_checked = context.gates.enabled(NODE_DECLARED_FEATURES_GATE)
        self._checks_features = is_checked and FEATURE.matters_in(context.version)
        self._listers = context.listers
        self._state = DeviceState.of(context, self._features)
        state = self._state
        self._finder = PodClaimFinder(
            context.listers, state.claims, state.slices, state.expressions, self._features
        )
        self._hints = ClaimHints(
            self._finder, state.slices, state.expressions, self._features, self._judge_node
        )
        # Unlike upstream: work is counted instead of time, so that the same claims always get the same answer.
        timeout = context.arguments.get("filterTimeout", FILTER_TIMEOUT_SECONDS)
        self._node_budget = round(timeout * DEVICES_PER_SECOND) or ATTEMPT_BUDGET
        self._conditions: BindingConditions | None = None
        self._handle = context.handle
        self._writer: ClaimWriter | None = None
        if self._features.binding_conditions:
            self._conditions = BindingConditions(context, state.claims)
        if context.handle is not None:
            timestamps = self._features.binding_conditions
            self._writer = ClaimWriter(context.handle.client, context.handle.clock, timestamps=timestamps)
        self._table: NodeTable | None = None

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return self._hints.lines()

    def concerns(self, pod: PodView, table: NodeTable | None = None) -> bool:
        return bool(pod.pod.spec.resource_claims)

    def pre_enqueue(self, pod: PodView) -> Status:
        if not pod.pod.spec.resource_claims:
            return SUCCESS
        try:
            self._finder.claims_of(pod.pod)
        except ClaimReferenceError as error:
            return unresolvable(str(error))
        return SUCCESS

    # -- filter

    def pre_filter(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        self._table = table
        if not self.concerns(pod):
            return SKIP
        state = self._finder.state_of(pod.pod)
        if isinstance(state, Status):
            return state
        if state is None:
            return SKIP
        cycle.data[self.name] = state
        return SUCCESS

    def filter_rows(
        self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]
    ) -> RejectedRows | None:
        state: PodClaimState | None = cycle.data.get(self.name)
        if state is None:
            return None
        if state.allocated:
            return judge_rows(table, rows, lambda _, node: self._judge_node(state, node))
        allocator = state.allocator
        if allocator is None:
            return None
        budget = SearchBudget(ATTEMPT_BUDGET)
        fits = self._state.fits.of(state.key, state.inventory)
        return fits.rejected(
            table, rows, self._state.claims.log, lambda node: self._judge_devices(allocator, node, budget)
        )

    def filter(self, cycle: CycleState, pod: PodView, node: NodeView) -> Status:
        state: PodClaimState | None = cycle.data.get(self.name)
        return self._judge_node(state, node.node) if state is not None else SUCCESS

    def _judge_node(self, state: PodClaimState, node: Node) -> Status:
        """Say whether the node can use the claims that are allocated, and has devices for the others."""
        verdict = SUCCESS
        for place, claim, allocation in state.allocated:
            fault = self._judge_allocated(claim, allocation, node)
            if not fault.is_success:
                verdict = fault
                state.unavailable[place] = None
        if not verdict.is_success or state.allocator is None:
            return verdict
        return self._judge_devices(state.allocator, node, SearchBudget(ATTEMPT_BUDGET))[0]

    def _judge_allocated(self, claim: ResourceClaim, allocation: AllocationResult, node: Node) -> Status:
        selector = allocation.node_selector
        if selector is not None and not selects(selector, node):
            return NOT_AVAILABLE
        if not self._skips(allocation, node):
            return UNDECLARED_FEATURE
        may_be = self._conditions is None or self._conditions.may_become_true(claim)
        return SUCCESS if may_be else NOT_AVAILABLE

    def explain_rows(self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]) -> RejectionNotes:
        state: PodClaimState = cycle.data[self.name]
        explainer = ClaimExplainer(state, self._listers, self._judge_allocated)
        return RejectionNotes(
            np.arange(len(rows)), [explainer.notes(table.view(row).node) for row in rows.tolist()]
        )

    def _skips(self, allocation: AllocationResult, node: Node) -> bool:
        """Say whether the node can skip what the results of an allocation say (KEP-5945)."""
        if not self._checks_features:
            return True
        return can_skip_all(allocation.devices.results, node.status.declared_features)

    def _judge_devices(self, allocator: PodAllocator, node: Node, budget: SearchBudget) -> tuple[Status, int]:
        answer = self._allocate(allocator, node, budget)
        return (answer, 0) if isinstance(answer, Status) else (SUCCESS, answer.preference)

    def _allocate(self, allocator: PodAllocator, node: Node, budget: SearchBudget) -> Allocated | Status:
        here = SearchBudget(min(self._node_budget, budget.left))
        budget.left -= here.left
        try:
            answer = allocator.allocate(node, here, self._new_share_id)
        except SearchLimitReached as error:
            return failed(f"node {node.metadata.name}: {error}")
        except AllocationError as error:
            return unresolvable(str(error)) if error.is_for_one_node else failed(str(error))
        finally:
            budget.left += max(here.left, 0)
        return unresolvable(answer.reason) if isinstance(answer, NoDevices) else answer

    def _new_share_id(self) -> str:
        return self._handle.chance.uuid() if self._handle is not None else ""

    def post_filter(
        self, cycle: CycleState, pod: PodView, table: NodeTable, rejected: Mapping[str, Status]
    ) -> PostFilterResult:
        """Release a claim that nobody uses, if some node could not use it: other devices may fit."""
        state: PodClaimState | None = cycle.data.get(self.name)
        writer = self._writer
        if state is None or writer is None:
            return PostFilterResult(unschedulable())
        for place in state.unavailable:
            claim = state.claims[place]
            if all(each.uid == pod.uid for each in claim.status.reserved_for):
                return PostFilterResult(
                    unschedulable("deallocation of ResourceClaim completed"),
                    work=lambda claim=claim: writer.deallocate(claim),  # type: ignore[misc]
                )
        return PostFilterResult(unschedulable())

    # -- score

    def pre_score(self, cycle: CycleState, pod: PodView, table: NodeTable) -> Status:
        state: PodClaimState | None = cycle.data.get(self.name)
        return SUCCESS if state is not None and state.has_alternatives else SKIP

    def score_rows(self, cycle: CycleState, table: NodeTable, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        state: PodClaimState = cycle.data[self.name]
        if state.allocated:
            return np.array(
                [self._preference(state, table.view(row).node) for row in rows.tolist()], np.int64
            )
        return self._state.fits.of(state.key, state.inventory).scores(rows)

    def score(self, cycle: CycleState, pod: PodView, node: NodeView) -> int:
        return self._preference(cycle.data[self.name], node.node)

    def normalize(self, cycle: CycleState, scores: NDArray[np.int64]) -> NDArray[np.int64]:
        return by_largest(scores)

    def _preference(self, state: PodClaimState, node: Node) -> int:
        if state.allocator is None:
            return 0
        return self._judge_devices(state.allocator, node, SearchBudget(ATTEMPT_BUDGET))[1]

    # -- once there is a node

    def reserve(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        state: PodClaimState | None = cycle.data.get(self.name)
        table = self._table
        if state is None or table is None or state.allocator is None:
            return SUCCESS
        row = table.row_of(node)
        found = table.node(row) if row is not None else None
        if found is None:
            raise InvariantBroken(f"pod {pod.key} was given to node {node}, which is not there")
        answer = self._allocate(state.allocator, found, SearchBudget(ATTEMPT_BUDGET))
        if isinstance(answer, Status):
            return answer
        for place, allocation in zip(state.unallocated, answer.results, strict=True):
            state.decided[place] = allocation
            self._state.claims.reserve(state.claims[place], allocation)
        return SUCCESS

    def unreserve(self, cycle: CycleState, pod: PodView, node: str) -> None:
        state: PodClaimState | None = cycle.data.get(self.name)
        handle, writer = self._handle, self._writer
        if state is None or handle is None or writer is None:
            return
        for place, claim in enumerate(state.claims):
            if place in state.decided:
                self._state.claims.release(claim)
            if place in state.written:
                handle.spawn(pod, writer.unreserve(claim, pod.pod))
        state.decided.clear()
        state.written.clear()

    async def pre_bind(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        state: PodClaimState | None = cycle.data.get(self.name)
        writer = self._writer
        if state is None:
            return SUCCESS
        if writer is None:
            raise InvariantBroken("claims were to be written where nothing can be written")
        for place, claim in enumerate(state.claims):
            if is_reserved_for(claim, pod.pod):
                continue
            try:
                written = await writer.bind(claim, state.decided.get(place), pod.pod)
            except ClaimWriteError as error:
                return failed(str(error))
            state.claims[place] = written
            state.written[place] = None
            self._state.claims.assume(written)
        if self._conditions is not None:
            fault = await self._conditions.wait(state, pod, node)
            if fault:
                return failed(fault)
        for place in state.decided:
            self._state.claims.release(state.claims[place])
        return SUCCESS

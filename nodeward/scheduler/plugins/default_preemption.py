"""DefaultPreemption: a pod that fits nowhere makes room by having pods of lower priority deleted.

Only where that helps, only as many pods as necessary, and on the node where it does least harm. That node is nominated
for the pod; the victims are evicted beside the scheduling loop, and until all evictions have begun the pod stays out of
the active queue. Search, comparison and eviction are in `preemption/`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from nodeward.api.policy_v1 import PodDisruptionBudget
from nodeward.base.invariant import InvariantBroken
from nodeward.scheduler.cache.ranked_pods import RankedPodRows
from nodeward.scheduler.fit_error import fit_error_message
from nodeward.scheduler.framework.context import FrameworkHandle, PluginContext
from nodeward.scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    Resource,
)
from nodeward.scheduler.framework.plugin import (
    CycleState,
    EnqueueExtensions,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SUCCESS, Code, Status, failed, unresolvable, unschedulable
from nodeward.scheduler.plugins.preemption.budgets import Budgets
from nodeward.scheduler.plugins.preemption.candidate import Wanted
from nodeward.scheduler.plugins.preemption.eviction import Evictions, is_terminating_by_preemption
from nodeward.scheduler.plugins.preemption.search import Search
from nodeward.scheduler.rejections import Rejections

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable

NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
WAITING: Final = unresolvable("waiting for the preemption for this pod to be finished")


class DefaultPreemption(PostFilterPlugin, PreEnqueuePlugin, EnqueueExtensions):
    name: ClassVar[str] = "DefaultPreemption"
    objects = (PodDisruptionBudget,)

    def __init__(self, context: PluginContext) -> None:
        arguments = context.arguments
        default = Wanted()
        self._wanted = Wanted(
            int(arguments.get("minCandidateNodesPercentage", default.percentage)),
            int(arguments.get("minCandidateNodesAbsolute", default.absolute)),
        )
        self._listers = context.listers
        self._budgets = Budgets(())
        self._budgets_version: int | None = None
        self._table: NodeTable | None = None
        self._tenants: RankedPodRows | None = None
        self._offset = 0
        self._handle = context.handle
        self._evictions: Evictions | None = None
        if context.handle is not None:
            self._evictions = Evictions(self.name, context.handle, self._seen)
            self._attempts = context.handle.metrics.counter(
                "scheduler_preemption_attempts_total", "Attempts to preempt until now."
            )

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), _after_pod_is_gone),)

    def pre_enqueue(self, pod: PodView) -> Status:
        is_running = self._evictions is not None and self._evictions.is_running(pod.uid)
        return WAITING if is_running else SUCCESS

    def post_filter(
        self, cycle: CycleState, pod: PodView, table: NodeTable, rejected: Mapping[str, Status]
    ) -> PostFilterResult:
        handle, evictions = self._handle, self._evictions
        if handle is None or evictions is None:
            raise InvariantBroken("preemption was asked to act where nothing can be done")
        self._attempts.inc()
        hindrance = self._hindrance(pod, table, rejected, handle)
        if hindrance:
            return PostFilterResult(unschedulable(f"preemption: {hindrance}"))
        if not table.count:
            return PostFilterResult(failed("preemption: no nodes available"))
        rows = _hopeful(rejected, table)
        reasons: Counter[str] = Counter()
        if len(rows):
            search = Search(
                cycle,
                pod,
                table,
                self._tenants_of(table),
                handle.filters(),
                self._current_budgets(),
                handle.nominator,
            )
            offset = self._offset % len(rows)
            found = search.run(rows, offset, self._wanted.of(len(rows)))
            # Unlike upstream, which starts anywhere by chance, the next search starts where this one ended.
            self._offset = offset + found.looked_at
            if found.best is not None:
                count = len(found.best.victims)
                text = f"found a potential placement for pod on node {found.best.node}, preempting {count} victims"
                status = Status(Code.SUCCESS, (f"preemption: {text}",))
                return PostFilterResult(status, found.best.node, evictions.begin(pod, found.best))
            reasons = found.reasons
        if table.count > len(rows):
            reasons[NOT_HELPFUL] += table.count - len(rows)
        text = fit_error_message(table.count, reasons)
        return PostFilterResult(unschedulable(f"preemption: {text}"), clears=True)

    def _hindrance(
        self, pod: PodView, table: NodeTable, rejected: Mapping[str, Status], handle: FrameworkHandle
    ) -> str:
        """Why this pod may not preempt now, or ""."""
        if pod.pod.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        promised = handle.nominator.node_of(pod.uid) or pod.pod.status.nominated_node_name
        row = table.row_of(promised) if promised else None
        if row is None:
            return ""
        why = rejected.get(promised)
        if why is not None and why.code is Code.UNRESOLVABLE:
            return ""
        is_waiting = any(
            each.priority < pod.priority and is_terminating_by_preemption(each.pod)
            for each in table.pods_on(row)
        )
        return "not eligible due to a terminating pod on the nominated node." if is_waiting else ""

    def _tenants_of(self, table: NodeTable) -> RankedPodRows:
        if self._tenants is None or self._table is not table:
            self._table, self._tenants = table, RankedPodRows(table)
        self._tenants.refresh()
        return self._tenants

    def _current_budgets(self) -> Budgets:
        version = self._listers.version(PodDisruptionBudget)
        if version != self._budgets_version:
            self._budgets = Budgets(self._listers.list(PodDisruptionBudget))
            self._budgets_version = version
        return self._budgets

    def _seen(self, uid: str) -> PodView | None:
        return self._table.pod(uid) if self._table is not None else None


def _hopeful(rejected: Mapping[str, Status], table: NodeTable) -> NDArray[np.int64]:
    """The rows where somebody's going may help."""
    if isinstance(rejected, Rejections):
        return rejected.rows_with(Code.UNSCHEDULABLE)
    return table.rows_of(name for name, status in rejected.items() if status.code is Code.UNSCHEDULABLE)


def _after_pod_is_gone(pod: PodView, old: Any, new: Any) -> QueueingHint:
    # That its victims go is what the pod waits for, but whether that helps is for the filters to say that rejected it.
    return QueueingHint.SKIP

"""The scheduling cycle: take the next pod, find it a node, count it there; or say why not and put it back.

`Engine` is the scheduler without the API: nothing in it waits. `Scheduler` calls `next` for every attempt, hands those
with a node to `Binder` (which calls `finish` or `give_up`) and records the failures; `EventHandlers` keep table and
queue up to date. An attempt asks `NodeChooser` for the best node, then Reserve and Permit plugins, or PostFilter
plugins if no node fits. A benchmark of decisions needs no `Scheduler`:

    engine = alone(gates, Version.parse("1.37"), clock)              # nodeward.scheduler.engine_factory
    engine.table.upsert_node(node)                                   # as many as you like
    engine.queue.add(PodView(pod), engine.clock.monotonic_ns())
    placed, failed = engine.decide_all()                             # until the queue has nothing to give

What must stay true: a pod taken out of the queue is given back to it exactly once, by `finish`, `give_up` or a failure,
whatever plugins do; a pod is counted on a node from the decision on until it is bound or given up.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import InvariantBroken
from nodeward.scheduler.attempt import SCHEDULER_ERROR, UNSCHEDULABLE, Attempt, Failure, as_placed
from nodeward.scheduler.cache.classes import own_cycle
from nodeward.scheduler.cache.plugin_set import PluginFailed
from nodeward.scheduler.cache.plugin_timer import PluginTimer
from nodeward.scheduler.fit_error import NO_NODES, fit_error_message
from nodeward.scheduler.framework.plugin import PostFilterResult
from nodeward.scheduler.framework.status import SUCCESS, Code, Status, failed, unschedulable
from nodeward.scheduler.metrics import ERROR, SchedulerMetrics
from nodeward.scheduler.metrics import UNSCHEDULABLE as UNSCHEDULABLE_RESULT
from nodeward.scheduler.node_selection import NodeChoice, NodeChooser
from nodeward.scheduler.plugin_guard import guarded
from nodeward.scheduler.queue.queued_pod import Place
from nodeward.scheduler.queue.scheduling_queue import ASSIGNED_POD_DELETE
from nodeward.scheduler.rejections import Rejections

if TYPE_CHECKING:
    from nodeward.machinery.clock import Clock
    from nodeward.scheduler.cache.table import NodeTable
    from nodeward.scheduler.framework.plugin import CycleState
    from nodeward.scheduler.profile import ActingPlugins, Profile
    from nodeward.scheduler.queue.scheduling_queue import SchedulingQueue
    from nodeward.scheduler.waiting_pods import WaitingPods

LOG: Final = logging.getLogger(__name__)

#: One decision in so many is timed plugin by plugin.
SAMPLED: Final = 10


class Engine:
    """Decides which pod goes to which node. Callers record events of the cluster in `table` and `queue` themselves."""

    def __init__(
        self,
        table: NodeTable,
        queue: SchedulingQueue,
        profiles: Mapping[str, Profile],
        clock: Clock,
        metrics: SchedulerMetrics,
        waiting: WaitingPods,
        *,
        offset: int = 0,
    ) -> None:
        """`offset` is where ties between equal nodes are broken first."""
        self.table: Final = table
        self.queue: Final = queue
        self.profiles: Final = profiles
        self.clock: Final = clock
        self.metrics: Final = metrics
        self.waiting: Final = waiting
        self._chooser = NodeChooser(table, queue.nominator, offset)
        self._decisions = 0
        self._stopwatch = PluginTimer(
            clock.monotonic_ns,
            lambda point, plugin, status, seconds: metrics.plugin_seconds.observe(
                seconds, plugin, point, status
            ),
        )

    def next(self) -> Attempt | None:
        """Decide about the next pod of the queue; None: the queue has none to give now."""
        queue, table = self.queue, self.table
        while True:
            now_ns = self.clock.monotonic_ns()
            queued = queue.pop(now_ns)
            if queued is None:
                return None
            view = queued.pod
            profile = self.profiles.get(queued.profile)
            if profile is None or table.node_of(view.uid) is not None:
                # Counted somewhere already: its binding is under way, or known.
                queue.done(view.uid)
                continue
            attempt = Attempt(queued, view, profile, now_ns)
            if view.pod.metadata.deletion_timestamp is not None:
                queue.done(view.uid)
                attempt.failure = Failure("", f"skip schedule deleting pod: {view.key}", Place.UNSCHEDULABLE)
                return attempt
            self._attempt(attempt)
            return attempt

    def decide_all(self, most: int = 2**62) -> tuple[int, int]:
        """Decide as long as there are pods, at most so often; all that get a node are taken for bound.

        How many got a node, and how many did not.
        """
        placed = without = 0
        while placed + without < most and (attempt := self.next()) is not None:
            if attempt.failure is None:
                self.finish(attempt)
                placed += 1
            else:
                without += 1
        return placed, without

    def finish(self, attempt: Attempt) -> None:
        """The API took the binding."""
        uid = attempt.view.uid
        # Not given up if its event is late: as long as the pod exists, the event will come.
        self.table.finish_binding(uid, math.inf)
        self.queue.done(uid)
        self.metrics.bound(attempt.queued, attempt.profile.name, attempt.began_ns, self.clock.monotonic_ns())

    def give_up(self, attempt: Attempt, status: Status, *, is_verdict: bool) -> None:
        """The binding failed: undo all, put the pod back, and let others have the room.

        `is_verdict`: a plugin rejected it, so that its events wake the pod; else it is tried again after a while.
        """
        view, node = attempt.view, attempt.node
        self._unreserve(attempt)
        was_assumed = self.table.forget(view.uid)
        if is_verdict and status.is_rejected:
            # Put back before the others are told: what it took itself is no reason to try it again.
            self._fail_on_node(attempt, status)
            if was_assumed:
                self.queue.move_all(
                    ASSIGNED_POD_DELETE,
                    as_placed(view.pod, node),
                    None,
                    self.clock.monotonic_ns(),
                    lambda other: other.uid != view.uid,
                )
            return
        if was_assumed:
            gone = as_placed(view.pod, node)
            self.queue.move_all(ASSIGNED_POD_DELETE, gone, None, self.clock.monotonic_ns())
        LOG.warning("pod %s was not bound to %s: %s", view.key, node, status.message)
        reason = UNSCHEDULABLE if status.is_rejected else SCHEDULER_ERROR
        self._fail(attempt, reason, status.message)

    # -- the way to a node

    def _attempt(self, attempt: Attempt) -> None:
        self._decisions += 1
        plugins = attempt.profile.classes.plugins
        is_timed = self._decisions % SAMPLED == 0
        if is_timed:
            plugins.watch = self._stopwatch
        problem = guarded("scheduling", attempt.view.key, self._decide, attempt)
        if problem is not None:
            if attempt.node:
                self._unreserve(attempt)
                self.table.forget(attempt.view.uid)
            self._fail(attempt, SCHEDULER_ERROR, problem)
        if is_timed:
            plugins.watch = None
            for point, seconds in self._stopwatch.lap().items():
                self.metrics.point_seconds.observe(seconds, point, Code.SUCCESS.value, attempt.profile.name)
        self.metrics.algorithm_seconds.observe((self.clock.monotonic_ns() - attempt.began_ns) / SECOND_NS)

    def _decide(self, attempt: Attempt) -> None:
        table, profile, view = self.table, attempt.profile, attempt.view
        if not table.count:
            # Unlike upstream, which blames nobody and so tries again and again: a node wakes it.
            self._fail(attempt, UNSCHEDULABLE, NO_NODES, profile.filters)
            return
        choice = self._chooser.choose(profile, view)
        row, found, cycle = choice.pick
        if row is None:
            self._found_nothing(attempt, choice)
            return
        found.placed += 1
        attempt.node = node = table.name_of(row)
        attempt.acting = acting = profile.acting(found.stateful)
        if acting is not None:
            attempt.cycle = own_cycle(view, cycle) if cycle is found.cycle else cycle
        if not table.assume(view, node, found.amounts):
            raise InvariantBroken(f"pod {view.key} ({view.uid}) is counted on a node already")
        if len(self.queue.nominator):
            self.queue.nominator.delete(view.uid)
        if acting is None or attempt.cycle is None:
            return
        status = self._reserve(attempt, attempt.cycle, acting)
        if status.is_success:
            status = self._permit(attempt, attempt.cycle, acting)
        if status.is_success:
            return
        self._unreserve(attempt)
        table.forget(view.uid)
        if status.is_rejected:
            self._fail_on_node(attempt, status)
        else:
            self._fail(attempt, SCHEDULER_ERROR, status.message)

    def _reserve(self, attempt: Attempt, cycle: CycleState, acting: ActingPlugins) -> Status:
        for plugin in acting.reserves:
            status = plugin.reserve(cycle, attempt.view, attempt.node)
            if not status.is_success:
                return _by(status, plugin.name, "Reserve")
        return SUCCESS

    def _permit(self, attempt: Attempt, cycle: CycleState, acting: ActingPlugins) -> Status:
        waits: dict[str, float] = {}
        for plugin in acting.permits:
            status, seconds = plugin.permit(cycle, attempt.view, attempt.node)
            if status.code is Code.WAIT:
                waits[plugin.name] = seconds
            elif not status.is_success:
                return _by(status, plugin.name, "Permit")
        if waits:
            attempt.waiting = self.waiting.add(attempt.view, attempt.node, waits)
        return SUCCESS

    def _unreserve(self, attempt: Attempt) -> None:
        """Call Unreserve in reverse order, also of plugins that did not get to reserve: each knows what it did."""
        if attempt.cycle is None or attempt.acting is None:
            return
        for plugin in reversed(attempt.acting.reserves):
            # If one fails, the others must be undone all the same.
            guarded(
                "undoing for", attempt.view.key, plugin.unreserve, attempt.cycle, attempt.view, attempt.node
            )

    # -- the way back

    def _found_nothing(self, attempt: Attempt, choice: NodeChoice) -> None:
        profile, view = attempt.profile, attempt.view
        said = profile.classes.diagnose(view, choice.promised)
        self.metrics.evaluated_in_vain(choice.pick.found, profile.name, said)
        nominated: str | None = ""
        made = PostFilterResult(SUCCESS)
        if profile.post_filters:
            made = self._post_filter(attempt, choice)
            nominated = made.node if made.status.is_success else "" if made.clears else None
        message = fit_error_message(
            said.nodes,
            said.counts,
            post_filter=made.status.message,
            pre_filter=said.before.message if said.before is not None else "",
            notes=said.notes,
        )
        self._fail(attempt, UNSCHEDULABLE, message, said.rejected_by, said.pending_for, nominated, made)

    def _post_filter(self, attempt: Attempt, choice: NodeChoice) -> PostFilterResult:
        """Ask PostFilter plugins in order until one finds a node, or says that nothing can be done."""
        profile, view, table = attempt.profile, attempt.view, self.table
        pick = choice.pick
        cycle = own_cycle(view, pick.cycle) if pick.cycle is pick.found.cycle else pick.cycle
        rejected = Rejections(profile.classes, view, table, choice.promised)
        reasons: list[str] = []
        clears = False
        work = None
        for plugin in profile.post_filters:
            made = plugin.post_filter(cycle, view, table, rejected)
            if made.status.is_success or made.status.code is Code.UNRESOLVABLE:
                return made
            if not made.status.is_rejected:
                LOG.error("pod %s: plugin %s: %s", view.key, plugin.name, made.status.message)
                return made
            reasons += made.status.reasons
            clears = clears or made.clears
            work = work or made.work
        return PostFilterResult(unschedulable(*reasons), work=work, clears=clears)

    def _fail_on_node(self, attempt: Attempt, status: Status) -> None:
        """A plugin rejected the one node that was chosen."""
        counts = dict.fromkeys(status.reasons, 1)
        is_pending = status.code is Code.PENDING
        rejected = () if is_pending or not status.plugin else (status.plugin,)
        pending = (status.plugin,) if is_pending else ()
        self._fail(attempt, UNSCHEDULABLE, fit_error_message(1, counts), rejected, pending)

    def _fail(
        self,
        attempt: Attempt,
        reason: str,
        message: str,
        rejected_by: Iterable[str] = (),
        pending_for: Iterable[str] = (),
        nominated: str | None = "",
        made: PostFilterResult | None = None,
    ) -> None:
        now_ns = self.clock.monotonic_ns()
        result = UNSCHEDULABLE_RESULT if reason == UNSCHEDULABLE else ERROR
        self.metrics.attempt(result, attempt.profile.name, (now_ns - attempt.began_ns) / SECOND_NS)
        place = self.queue.add_unschedulable(attempt.queued, rejected_by, pending_for, now_ns)
        if nominated is not None:
            self.queue.nominate(attempt.queued, nominated)
        attempt.node = ""
        attempt.failure = Failure(reason, message, place, nominated, made.work if made is not None else None)


def _by(status: Status, plugin: str, point: str) -> Status:
    """Add the plugin's name to its status, and the extension point to an error."""
    if status.is_rejected:
        return status.of(plugin)
    return failed(str(PluginFailed(status.of(plugin), point))).of(plugin)

"""Handlers of watch events: they keep the node table and the scheduling queue up to date.

Called by the informers of nodes, pods and the kinds in the `objects` of plugins; calls the table (`cache/table.py`) and
the queue (`queue/scheduling_queue.py`), which wakes pods that an event may help. Pods that have ended are not watched:
a field selector leaves them out, so that the end of a pod arrives as its deletion.

What must stay true: a pod is in the queue while it has no node and asks for one of our profiles, and in the table while
it has one; a change of a pod that is placed but not seen bound is held back, except its deletion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.meta import KubeObject
from nodeward.machinery.informer import InformerFactory
from nodeward.scheduler.attempt import as_placed
from nodeward.scheduler.cycle import Engine
from nodeward.scheduler.framework.events import Action, ClusterEvent
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.informer_listers import InformerListers
from nodeward.scheduler.node_changes import NODE_ADD, NODE_DELETE, NODE_UPDATE, node_changes
from nodeward.scheduler.queue.scheduling_queue import ASSIGNED_POD_DELETE

#: Pods that have not ended.
NOT_ENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"


class EventHandlers:
    """Keeps the table and the queue of an engine up to date. `wake`: called when the queue may have a pod to give."""

    def __init__(
        self,
        engine: Engine,
        informers: InformerFactory,
        listers: InformerListers,
        wake: Callable[[], None],
    ) -> None:
        self._table, self._queue, self._waiting = engine.table, engine.queue, engine.waiting
        self._profiles = engine.profiles
        self._clock = engine.clock
        self._wake = wake
        # Kinds that are looked up, but for which no plugin registered an event, wake nobody.
        waking = {event.resource for profile in engine.profiles.values() for event in profile.hints}
        for kind in listers.kinds:
            if kind in waking:
                self._follow_kind(listers, kind)
        # Nodes before pods, so that pods known at the start find their nodes.
        informers.informer(Node).add_handler(self._node_added, self._node_updated, self._node_deleted)
        pods = informers.informer(Pod, field_selector=NOT_ENDED)
        pods.add_handler(self._pod_added, self._pod_updated, self._pod_deleted)

    # -- nodes

    def _node_added(self, node: Node) -> None:
        self._table.upsert_node(node)
        self._happened(NODE_ADD, None, node)

    def _node_updated(self, old: Node, new: Node) -> None:
        if old.metadata.uid != new.metadata.uid:
            # Made anew under the same name; the pods on it stay, as upstream has it.
            self._table.upsert_node(new)
            self._happened(NODE_ADD, None, new)
            return
        events = node_changes(old, new)
        if self._table.have_changed(old, new):
            events.append(NODE_UPDATE)
        if events:
            self._table.upsert_node(new)
        else:
            self._table.keep_node(new)
        for event in events:
            self._happened(event, old, new)

    def _node_deleted(self, node: Node) -> None:
        self._happened(NODE_DELETE, node, None)
        self._table.remove_node(node.metadata.name)

    # -- pods

    def _pod_added(self, pod: Pod) -> None:
        if is_terminal(pod):
            return
        if pod.spec.node_name:
            self._assigned(PodView(pod))
        elif pod.spec.scheduler_name in self._profiles:
            self._queue.add(PodView(pod), self._now())
            self._wake()

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        if old.metadata.uid != new.metadata.uid:
            self._pod_deleted(old)
            self._pod_added(new)
        elif is_terminal(new):
            self._pod_deleted(new)
        elif old.spec.node_name:
            before, after = PodView(old), PodView(new)
            self._table.update_pod(after)
            if self._queue.assigned_pod_updated(before, after, self._now()):
                self._wake()
        elif new.spec.node_name:
            view = PodView(new)
            self._queue.delete(view)
            self._assigned(view)
        elif new.spec.scheduler_name in self._profiles:
            self._update_waiting(PodView(old), PodView(new))

    def _pod_deleted(self, pod: Pod) -> None:
        view = PodView(pod)
        was_assigned = bool(pod.spec.node_name)
        if not was_assigned and pod.spec.scheduler_name not in self._profiles:
            return
        self._queue.delete(view)
        if not was_assigned and self._table.is_assumed(view.uid):
            self._drop_assumed(view)
            return
        has_left = self._table.remove_pod(view.uid)
        if was_assigned or has_left:
            self._happened(ASSIGNED_POD_DELETE, pod, None)
        elif pod.status.nominated_node_name:
            self._nomination_ended(view)

    def _assigned(self, view: PodView) -> None:
        before = self._table.node_of(view.uid)
        self._table.add_pod(view)
        if before is not None and before != view.pod.spec.node_name:
            # Somebody else bound it elsewhere: there is room where we had put it.
            self._queue.assigned_pod_deleted(view, self._now())
        self._queue.assigned_pod_added(view, self._now())
        self._wake()

    def _update_waiting(self, old: PodView, new: PodView) -> None:
        if self._table.is_assumed(new.uid):
            is_dying = new.pod.metadata.deletion_timestamp is not None
            if is_dying and old.pod.metadata.deletion_timestamp is None:
                self._drop_assumed(new)
            return
        self._queue.update(old, new, self._now())
        promised = old.pod.status.nominated_node_name
        if promised and promised != new.pod.status.nominated_node_name:
            self._nomination_ended(old)
        self._wake()

    def _drop_assumed(self, view: PodView) -> None:
        """Forget a pod that was deleted between its decision and its binding; the binding fails by itself."""
        gone = as_placed(view.pod, self._table.node_of(view.uid) or "")
        waiting = self._waiting.get(view.uid)
        if waiting is None or not waiting.reject("", "removed"):
            self._table.remove_pod(view.uid)
        self._happened(ASSIGNED_POD_DELETE, gone, None)

    def _nomination_ended(self, view: PodView) -> None:
        """Wake pods of lower or equal priority: the node that was nominated for this pod is free for them now."""
        self._queue.move_all(
            ASSIGNED_POD_DELETE, view.pod, None, self._now(), lambda other: other.priority <= view.priority
        )
        self._wake()

    # -- anything else

    def _follow_kind(self, listers: InformerListers, kind: type[KubeObject]) -> None:
        added, updated, deleted = (
            ClusterEvent(kind, action) for action in (Action.ADD, Action.UPDATE_OTHER, Action.DELETE)
        )

        def told(old: Any, new: Any) -> None:
            self._happened(added if old is None else deleted if new is None else updated, old, new)

        listers.tell(kind, told)

    def _happened(self, event: ClusterEvent, old: Any, new: Any) -> None:
        if self._queue.move_all(event, old, new, self._now()):
            self._wake()

    def _now(self) -> int:
        return self._clock.monotonic_ns()

"""Garbage collection: what has lost its last owner goes.

Owners deleted in the foreground go after their dependents; owners that orphan go after their dependents have
forgotten them.

Keys are uids, of objects and of owners that are named but were never seen. `owner_graph` says when to look at which;
here it is decided what a look means, and done through the API.

What must stay true:
* an object is deleted only if the API has confirmed, for each of its owners, that it is gone, or is itself being
  deleted in the foreground; and only the very version of the object for which that was found (or one with the same
  owners)
* an owner whose kind nobody serves, or that cannot be where the reference says, keeps its dependents
* a finalizer is removed only when all kinds have been listed and no dependent is left that it waits for

Run by `controllers.runner`; calls `garbage_kinds`, `owner_graph` and `owner_writes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any, Final

from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.errors import ApiError
from nodeward.api.scheme import Kind
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.garbage_kinds import PERIOD_SECONDS, GarbageKinds
from nodeward.controllers.owner_graph import (
    FOREGROUND,
    ORPHAN,
    Meta,
    ObservedObject,
    OwnerGraph,
    OwnerLocation,
    Reference,
    fits,
    place_of,
    places,
)
from nodeward.controllers.owner_writes import OwnerWrites
from nodeward.machinery.informer import Informer
from nodeward.machinery.recorder import WARNING
from nodeward.machinery.workqueue import WorkQueue

WORKERS: Final = 20
#: An owner that the API knows and no informer has told of is asked for again after this time.
RECHECK_SECONDS: Final = 30.0


class ReferenceState(Enum):
    """What a reference is worth."""

    SOLID = "the owner is there, or cannot be judged"
    LEAVING = "the owner is going and wants to be forgotten"
    WAITING = "the owner is going and waits for its dependents to go"
    DANGLING = "there is no such owner"


class GarbageCollector:
    def __init__(self, context: ControllerContext) -> None:
        self._writes = OwnerWrites(context.client)
        self._recorder = context.recorder
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="garbage_collector_attempt_to_delete")
        self._rounds: WorkQueue[str] = WorkQueue(context.clock, name="garbage_collector_kinds")
        self._rounds.add("kinds")
        self._graph = OwnerGraph(self._queue.add, self._report)
        self._kinds = GarbageKinds(context.client, context.clock, context.informers, self._follow)
        self._sync_errors = context.metrics.counter(
            "garbagecollector_controller_resources_sync_error_total",
            "Number of garbage collector resources sync errors",
        )

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._rounds, self._ask_for_kinds), Work(self._queue, self._handle, workers=WORKERS))

    async def _ask_for_kinds(self, _: str) -> float:
        try:
            is_news = await self._kinds.refresh()
        except (ApiError, WorldError):
            self._sync_errors.inc()
            raise
        if is_news:
            for uid in self._graph.missing():
                self._queue.add(uid)
        return PERIOD_SECONDS

    def _follow(self, kind: Kind, informer: Informer[Meta]) -> None:
        def changed(old: Meta, new: Meta) -> None:
            if old.uid != new.uid:
                self._graph.on_object_deleted(old)
            self._graph.on_object_changed(kind, new)

        informer.add_handler(
            on_add=lambda meta: self._graph.on_object_changed(kind, meta),
            on_update=changed,
            on_delete=self._graph.on_object_deleted,
        )

    def _report(self, dependent: ObservedObject, owner: Reference) -> None:
        kind, meta = dependent
        about = ObjectReference(
            kind=kind.name,
            api_version=kind.api_version,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
        )
        named = f"[{owner.api_version}/{owner.kind}, namespace: {meta.namespace}, name: {owner.name}, uid: {owner.uid}]"
        message = f"ownerRef {named} does not exist in namespace {quote(meta.namespace)}"
        self._recorder.event(about, WARNING, "OwnerRefInvalidNamespace", message)

    # -- looking --------------------------------------------------------------------------------------------------

    async def _handle(self, uid: str) -> float | None:
        await self._kinds.is_complete.wait()
        found = self._graph.get(uid)
        if found is None:
            return await self._look_for_missing(uid)
        if found.meta.waits:
            await self._let_go_if_free(found)
        if found.meta.is_going:
            # It goes anyway; only an owner that orphans must not wait for that.
            await self._writes.forget(found, self._leaving(found.meta))
            return None
        if found.meta.owners:
            await self._judge(found)
        return None

    async def _look_for_missing(self, uid: str) -> float | None:
        """Ask the API once for all dependents that mean the same owner."""
        is_there = False
        for place in dict.fromkeys(place for place, _ in places(self._graph.dependents(uid), uid)):
            if self._graph.is_absent(uid, place) or not self._can_be_there(place):
                continue
            if (await self._ask(place, uid))[0] is ReferenceState.DANGLING:
                self._graph.mark_absent(uid, place)
            else:
                is_there = True
        # Soon an informer tells of it; if none follows its kind, there is no other way to hear of its end.
        return RECHECK_SECONDS if is_there else None

    async def _let_go_if_free(self, found: ObservedObject) -> None:
        uid = found.meta.uid
        if found.meta.is_orphaning:
            if not self._graph.has_dependents(uid):
                await self._writes.remove_finalizer(found, ORPHAN)
        elif not self._graph.is_held(uid):
            await self._writes.remove_finalizer(found, FOREGROUND)

    async def _judge(self, found: ObservedObject) -> None:
        states = [(reference, await self._state(reference, found.meta)) for reference in found.meta.owners]
        kept = [each for each, state in states if state is ReferenceState.SOLID]
        if len(kept) == len(states):
            return
        if any(state in (ReferenceState.SOLID, ReferenceState.LEAVING) for _, state in states):
            # A waiting owner's reference goes too, or that owner would wait for ever.
            await self._writes.forget(
                found, [each for each, state in states if state is not ReferenceState.SOLID]
            )
            return
        finalizers = found.meta.finalizers or ()
        policy = "Background"
        if any(state is ReferenceState.WAITING for _, state in states) and self._graph.has_dependents(
            found.meta.uid
        ):
            policy = "Foreground"
        elif ORPHAN in finalizers:
            policy = "Orphan"
        elif FOREGROUND in finalizers:
            policy = "Foreground"
        await self._writes.delete(found, policy)

    def _leaving(self, meta: Meta) -> list[Reference]:
        owners = ((reference, self._graph.get(reference.uid)) for reference in meta.owners)
        return [reference for reference, owner in owners if owner is not None and owner.meta.is_orphaning]

    async def _state(self, reference: Reference, dependent: Meta) -> ReferenceState:
        owner = self._graph.get(reference.uid)
        place = place_of(reference, dependent)
        if owner is not None and fits(owner, reference, dependent):
            if owner.meta.is_orphaning:
                return ReferenceState.LEAVING
            if not owner.meta.is_deleting_dependents:
                # If that is no longer true, we are about to be told, and look again.
                return ReferenceState.SOLID
        elif self._can_be_there(place) and self._graph.is_absent(reference.uid, place):
            return ReferenceState.DANGLING
        state, live = await self._ask(place, reference.uid)
        if state is ReferenceState.DANGLING:
            self._graph.mark_absent(reference.uid, place)
        if live is not None and live.is_orphaning:
            return ReferenceState.LEAVING
        if live is not None and live.is_deleting_dependents:
            return ReferenceState.WAITING
        return state

    def _can_be_there(self, place: OwnerLocation) -> bool:
        kind = self._kinds.resolve(place.api_version, place.kind)
        return kind is not None and (bool(place.namespace) or not kind.is_namespaced)

    async def _ask(self, place: OwnerLocation, uid: str) -> tuple[ReferenceState, Meta | None]:
        """Return what the API says of an owner."""
        kind = self._kinds.resolve(place.api_version, place.kind)
        if kind is None or not self._can_be_there(place):
            return ReferenceState.SOLID, None
        live = await self._writes.get(kind, place.name, place.namespace)
        if live is None or live.uid != uid:
            return ReferenceState.DANGLING, None
        return ReferenceState.SOLID, live

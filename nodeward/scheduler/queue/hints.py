"""Which plugins want to hear of an event, and whether it is worth trying a waiting pod again.

Built once per profile (scheduler name) from what its plugins register; what an event means is worked out when it first
happens and kept. A plugin that registers nothing is never asked; one that is no `EnqueueExtensions` at all is taken
to care about everything. Only plugins that rejected a pod decide about it: `QUEUE` from one that had said "pending"
means at once, from any other after the backoff.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple, TypeAlias

from nodeward.api.meta import KubeObject
from nodeward.api.scheme import SCHEME
from nodeward.base.errors import ConfigError
from nodeward.scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    QueueingHintFunction,
    Resource,
    WaitingPodIndex,
)
from nodeward.scheduler.framework.plugin import EnqueueExtensions, Plugin
from nodeward.scheduler.framework.pod import PodView


class HintLine(NamedTuple):
    """What one plugin registered for an event."""

    plugin: str
    hint: QueueingHintFunction | None
    pod_index: WaitingPodIndex | None = None


class AskedHint(NamedTuple):
    """A hint that is asked about pods its plugin rejected. `is_pending`: the plugin had said "pending"."""

    is_pending: bool
    hint: QueueingHintFunction | None
    pod_index: WaitingPodIndex | None


#: One profile: who registered what, in the order of its plugins.
HintMap: TypeAlias = "dict[ClusterEvent, list[HintLine]]"
#: Whom to ask about one pod and one event: those that said "pending" first.
Asked: TypeAlias = "tuple[AskedHint, ...]"

_EVERYTHING: Final = (ClusterEventWithHint(ClusterEvent(Resource.WILDCARD, Action.ALL)),)


class QueueingStrategy(IntEnum):
    """What to do with a pod; the larger wins."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


def event_label(event: ClusterEvent) -> str:
    """What metrics and log lines call the event, as Kubernetes does: `NodeAdd`, `AssignedPodUpdatePodLabel`."""
    if event.label:
        return event.label
    action = Action.UPDATE if event.action is Action.UPDATE_OTHER else event.action
    return _resource_label(event.resource) + "".join(
        word.capitalize() for word in (action.name or "").split("_")
    )


def _resource_label(resource: Resource | type[KubeObject]) -> str:
    if isinstance(resource, Resource):
        return resource.value
    kind = SCHEME.by_type(resource)
    return f"{kind.group}/{kind.name}" if kind.group else kind.name


def is_wildcard(event: ClusterEvent) -> bool:
    """Whether the event moves every pod, whoever rejected it."""
    return event.resource is Resource.WILDCARD and event.action == Action.ALL


def hint_map(plugins: Iterable[Plugin]) -> HintMap:
    """What the plugins of one profile registered."""
    found: HintMap = {}
    for plugin in plugins:
        registered: Sequence[ClusterEventWithHint] = _EVERYTHING
        if isinstance(plugin, EnqueueExtensions):
            registered = plugin.events_to_register()
        for line in registered:
            kind = line.event.resource
            if isinstance(kind, type) and kind not in plugin.objects:
                raise ConfigError(
                    f"scheduler plugin {plugin.name} registers events of {kind.__name__}, which is not in its `objects`"
                )
            found.setdefault(line.event, []).append(HintLine(plugin.name, line.hint, line.pod_index))
    return found


@dataclass(frozen=True, slots=True)
class _Meaning:
    """One event, looked up: its label, and per profile who wants to hear of it."""

    label: str
    is_wildcard: bool
    #: any plugin of any profile: what a gating plugin's interest is judged by
    plugins: frozenset[str]
    by_profile: Mapping[str, tuple[HintLine, ...]]


class Hints:
    """The hint maps of all profiles."""

    def __init__(self, profiles: Mapping[str, HintMap]) -> None:
        self._profiles = dict(profiles)
        self._meanings: dict[ClusterEvent, _Meaning] = {}
        lines = [
            line for each in self._profiles.values() for registered in each.values() for line in registered
        ]
        #: every index that a plugin registered an event with, each once
        self.indexes: Final = tuple(
            dict.fromkeys(line.pod_index for line in lines if line.pod_index is not None)
        )

    def label(self, event: ClusterEvent) -> str:
        return self._meaning(event).label

    def is_of_interest(self, event: ClusterEvent) -> bool:
        """Whether any plugin of any profile wants to hear of it."""
        meaning = self._meaning(event)
        return meaning.is_wildcard or bool(meaning.plugins)

    def may_ungate(self, event: ClusterEvent, gating_plugin: str) -> bool:
        """Whether the plugin that keeps a pod out wants to hear of it; if not, nobody else needs to be asked."""
        meaning = self._meaning(event)
        return meaning.is_wildcard or gating_plugin in meaning.plugins

    def asked(
        self, profile: str, rejected_by: Sequence[str], pending_for: Sequence[str], event: ClusterEvent
    ) -> Asked | QueueingStrategy:
        """Whom to ask about pods of `profile` with these rejectors, or the answer if nobody needs to be asked."""
        if not rejected_by and not pending_for:
            return QueueingStrategy.AFTER_BACKOFF
        meaning = self._meaning(event)
        if meaning.is_wildcard or profile not in self._profiles:
            return QueueingStrategy.AFTER_BACKOFF
        found = [
            AskedHint(line.plugin in pending_for, line.hint, line.pod_index)
            for line in meaning.by_profile[profile]
            if line.plugin in pending_for or line.plugin in rejected_by
        ]
        # Stable, so that each kind is asked in the order of the plugins.
        found.sort(key=lambda asked: not asked.is_pending)
        return tuple(found) or QueueingStrategy.SKIP

    def _meaning(self, event: ClusterEvent) -> _Meaning:
        known = self._meanings.get(event)
        if known is None:
            by_profile = {
                profile: tuple(
                    line
                    for registered, lines in known_hints.items()
                    for line in lines
                    if registered.covers(event)
                )
                for profile, known_hints in self._profiles.items()
            }
            plugins = frozenset(line.plugin for lines in by_profile.values() for line in lines)
            known = _Meaning(event_label(event), is_wildcard(event), plugins, by_profile)
            self._meanings[event] = known
        return known


def verdict(asked: Asked | QueueingStrategy, pod: PodView, old: Any, new: Any) -> QueueingStrategy:
    """Is the pod worth another try? Asks no more plugins than it takes."""
    if isinstance(asked, QueueingStrategy):
        return asked
    for each in asked:
        if each.hint is None or each.hint(pod, old, new) is QueueingHint.QUEUE:
            return QueueingStrategy.IMMEDIATELY if each.is_pending else QueueingStrategy.AFTER_BACKOFF
    return QueueingStrategy.SKIP

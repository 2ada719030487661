"""A profile: the plugins of one scheduler name, sorted by the extension points they claim.

Made by `engine_factory`; asked by the engine, the binder and the queue, per extension point, which plugins to call in
which order. Plugins that filter and score are called through `classes`, which shares their answers between pods.
"""

# mypy: disable-error-code="type-abstract"
# Plugins are sorted by the abstract classes they claim.

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from nodeward.base.errors import ConfigError
from nodeward.scheduler.cache.classes import PodClasses
from nodeward.scheduler.framework.context import PluginContext, make_plugin, named
from nodeward.scheduler.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    QueueSortPlugin,
    ReservePlugin,
)
from nodeward.scheduler.plugins import REGISTRY
from nodeward.scheduler.queue.hints import HintMap, hint_map
from nodeward.scheduler.queue.queued_pod import SortKey, priority_sort, sort_key_of
from nodeward.scheduler.settings import ProfileSettings

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable

#: Only the events of a plugin that can reject a pod can wake it.
_REJECTING: Final = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)

P = TypeVar("P", bound=Plugin)


@dataclass(frozen=True, slots=True)
class ActingPlugins:
    """The plugins that act on some pods once they have a node, beside the one that binds them."""

    reserves: tuple[ReservePlugin, ...]
    permits: tuple[PermitPlugin, ...]
    pre_binds: tuple[PreBindPlugin, ...]
    post_binds: tuple[PostBindPlugin, ...]


class Profile:
    """The plugins of one scheduler name over one table."""

    def __init__(self, settings: ProfileSettings, plugins: Sequence[Plugin], table: NodeTable) -> None:
        self.name: Final = settings.name
        self.plugins: Final = tuple(plugins)
        weights = {use.name: use.weight for use in settings.plugins}
        disabled = settings.disabled_points
        self.classes: Final = PodClasses(table, plugins, weights, disabled)

        def at(point: str, kind: type[P]) -> tuple[P, ...]:
            return tuple(
                plugin
                for plugin in plugins
                if isinstance(plugin, kind) and point not in disabled.get(plugin.name, ())
            )

        self.pre_enqueues: Final = at("preEnqueue", PreEnqueuePlugin)
        self.post_filters: Final = at("postFilter", PostFilterPlugin)
        self.binds: Final = at("bind", BindPlugin)
        self._acting = ActingPlugins(
            at("reserve", ReservePlugin),
            at("permit", PermitPlugin),
            at("preBind", PreBindPlugin),
            at("postBind", PostBindPlugin),
        )
        self._acting_for: dict[frozenset[str], ActingPlugins | None] = {}
        #: the plugins that can reject a node: all of them do when there is none
        self.filters: Final = tuple(part.name for part in self.classes.plugins.filters)
        self._sorts = at("queueSort", QueueSortPlugin)

    def acting(self, concerned: frozenset[str]) -> ActingPlugins | None:
        """The plugins that act on a pod that concerns these stateful plugins; None if there are none.

        A stateful plugin acts only on pods that concern it, any other on every pod.
        """
        try:
            return self._acting_for[concerned]
        except KeyError:
            pass
        unconcerned = self.classes.plugins.stateful - concerned

        def of(plugins: tuple[P, ...]) -> tuple[P, ...]:
            return tuple(each for each in plugins if each.name not in unconcerned)

        every = self._acting
        chosen = ActingPlugins(
            of(every.reserves), of(every.permits), of(every.pre_binds), of(every.post_binds)
        )
        is_any = chosen.reserves or chosen.permits or chosen.pre_binds or chosen.post_binds
        found = self._acting_for[concerned] = chosen if is_any else None
        return found

    @property
    def hints(self) -> HintMap:
        """The events that may wake a pod of this profile."""
        return hint_map(plugin for plugin in self.plugins if isinstance(plugin, _REJECTING))

    @property
    def sort(self) -> SortKey:
        """The order of the active queue."""
        if not self._sorts or self._sorts[0].name == "PrioritySort":
            return priority_sort
        return sort_key_of(self._sorts[0].less)


def make_profile(
    settings: ProfileSettings,
    context_of: Callable[[Mapping[str, Any]], PluginContext],
    table: NodeTable,
    registry: Sequence[type[Plugin]] = REGISTRY,
) -> Profile:
    """A profile from its settings. `context_of` turns the arguments of a plugin into what it is made from."""
    known = named(registry)
    plugins: list[Plugin] = []
    for use in settings.plugins:
        kind = known.get(use.name)
        if kind is None:
            raise ConfigError(
                f'profile "{settings.name}": there is no plugin "{use.name}"; there are {", ".join(sorted(known))}'
            )
        plugins.append(make_plugin(kind, context_of(settings.arguments.get(use.name, {}))))
    return Profile(settings, plugins, table)

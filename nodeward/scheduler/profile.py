"""One profile at work: the plugins of a scheduler name, made and sorted by what they take part in.

In goes what the settings say and a way to make plugins; out comes, per extension point, who is asked in which order.
Plugins that filter and score live in `classes`, which remembers their answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from nodeward.base.errors import ConfigError
from nodeward.scheduler.cache.classes import PodClasses
from nodeward.scheduler.framework.plugin import Plugin
from nodeward.scheduler.plugins import REGISTRY, Setting, Shipped
from nodeward.scheduler.queue.hints import HintMap, hint_map
from nodeward.scheduler.queue.queued_pod import SortKey, priority_sort, sort_key_of
from nodeward.scheduler.settings import ProfileSettings

if TYPE_CHECKING:
    from nodeward.scheduler.cache.table import NodeTable
    from nodeward.scheduler.framework.pod import PodView

#: What a plugin that may reject a pod has one of: only its events can wake the pod.
_REJECTING: Final = ("pre_enqueue", "pre_filter", "filter", "filter_rows", "reserve", "permit")


class Profile:
    """The plugins of one scheduler name over one table."""

    def __init__(self, settings: ProfileSettings, plugins: Sequence[Plugin], table: NodeTable) -> None:
        self.name: Final = settings.name
        self.plugins: Final = tuple(plugins)
        weights = {use.name: use.weight for use in settings.plugins}
        disabled = settings.disabled_points
        self.classes: Final = PodClasses(table, plugins, weights, disabled)

        def at(point: str, method: str) -> tuple[Any, ...]:
            return tuple(
                plugin
                for plugin in plugins
                if hasattr(plugin, method) and point not in disabled.get(plugin.name, ())
            )

        self.pre_enqueues: Final = at("preEnqueue", "pre_enqueue")
        self.post_filters: Final = at("postFilter", "post_filter")
        self.reserves: Final = at("reserve", "reserve")
        self.permits: Final = at("permit", "permit")
        self.pre_binds: Final = at("preBind", "pre_bind")
        self.binds: Final = at("bind", "bind")
        self.post_binds: Final = at("postBind", "post_bind")
        acting = (*self.reserves, *self.permits, *self.pre_binds, *self.post_binds)
        self._acts = bool(acting)
        self._acts_without_volumes = any(not getattr(each, "is_about_volumes", False) for each in acting)
        #: the plugins that can reject a node: all of them do when there is none
        self.filters: Final = tuple(part.name for part in self.classes.plugins.filters)
        self._sorts = at("queueSort", "less")

    def acts_on(self, pod: PodView) -> bool:
        """Whether a plugin acts on this pod once it has a node, beside the one that binds it."""
        return self._acts_without_volumes or (self._acts and bool(pod.pod.spec.volumes))

    @property
    def hints(self) -> HintMap:
        """The events that may wake a pod of this profile."""
        return hint_map(
            plugin for plugin in self.plugins if any(hasattr(plugin, method) for method in _REJECTING)
        )

    @property
    def sort(self) -> SortKey:
        """The order of the active queue."""
        if not self._sorts or self._sorts[0].name == "PrioritySort":
            return priority_sort
        return sort_key_of(self._sorts[0].less)


def make_profile(
    settings: ProfileSettings,
    setting_of: Callable[[Mapping[str, Any]], Setting],
    table: NodeTable,
    registry: Sequence[Shipped] = REGISTRY,
) -> Profile:
    """A profile from its settings. `setting_of` turns the arguments of a plugin into what it is made from."""
    known = {each.name: each for each in registry}
    plugins: list[Plugin] = []
    for use in settings.plugins:
        shipped = known.get(use.name)
        if shipped is None:
            raise ConfigError(
                f'profile "{settings.name}": there is no plugin "{use.name}"; there are {", ".join(sorted(known))}'
            )
        plugins.append(shipped.make(setting_of(settings.arguments.get(use.name, {}))))
    return Profile(settings, plugins, table)

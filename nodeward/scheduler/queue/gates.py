"""PreEnqueue: which pods may enter the active queue, and who keeps the others out.

Asked whenever a pod is about to become active. The plugin that says no becomes the pod's gating plugin and one of its
rejectors, so that the events this plugin registered wake the pod; it is asked first next time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from nodeward.scheduler.framework.plugin import PreEnqueuePlugin
from nodeward.scheduler.framework.status import Code
from nodeward.scheduler.queue.queued_pod import QueuedPod


class PreEnqueueGates:
    """The PreEnqueue plugins of all profiles."""

    def __init__(
        self, plugins: Mapping[str, Sequence[PreEnqueuePlugin]], reasons: Counter[tuple[str, str]]
    ) -> None:
        """`reasons` counts the pods a plugin stands in the way of, by (plugin, profile)."""
        self._plugins = {profile: tuple(each) for profile, each in plugins.items()}
        self._reasons = reasons

    def let_in(self, queued: QueuedPod) -> bool:
        """Whether the pod may enter; if not, who keeps it out is written down in it."""
        plugins = self._plugins.get(queued.profile, ())
        before = queued.gating_plugin
        if before:
            plugins = tuple(sorted(plugins, key=lambda plugin: plugin.name != before))
        for plugin in plugins:
            if plugin.pre_enqueue(queued.pod).code is not Code.SUCCESS:
                self._close(queued, plugin.name)
                return False
        queued.gating_plugin = ""
        return True

    def _close(self, queued: QueuedPod, plugin: str) -> None:
        queued.gating_plugin = plugin
        if plugin in queued.unschedulable_plugins:
            return
        if plugin not in queued.pending_plugins:
            self._reasons[plugin, queued.profile] += 1
        queued.unschedulable_plugins = tuple(sorted((*queued.unschedulable_plugins, plugin)))

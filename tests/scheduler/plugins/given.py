"""Plugins that a test made itself, put into a registry."""

from __future__ import annotations

from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.plugin import Plugin


def given(plugin: Plugin) -> type[Plugin]:
    """A class for the registry whose one instance is the given plugin; it is told what it would have been made from."""

    def new(_: type[Plugin], context: PluginContext) -> Plugin:
        plugin.__dict__["context"] = context
        return plugin

    return type(type(plugin).__name__, (type(plugin),), {"__new__": new, "name": plugin.name})

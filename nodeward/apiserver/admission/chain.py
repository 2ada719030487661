"""The plugins in their order: a write passes all that are on, first those that change, then those that refuse."""

from __future__ import annotations

from collections.abc import Sequence

from nodeward.apiserver.admission.plugin import Plugin, Write


class Chain:
    """Only plugins that override a half are asked for it."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self.plugins = tuple(plugins)
        self.names = tuple(plugin.name for plugin in plugins)
        self._waiting = tuple(p.is_early for p in plugins if type(p).is_early is not Plugin.is_early)
        self._admitting = tuple(p.admit for p in plugins if type(p).admit is not Plugin.admit)
        self._validating = tuple(p.validate for p in plugins if type(p).validate is not Plugin.validate)

    def then(self, plugin: Plugin) -> Chain:
        """This chain and one more."""
        return Chain((*self.plugins, plugin))

    def is_early(self, write: Write) -> bool:
        """Whether some plugin would rather see the write a moment later."""
        return any(is_early(write) for is_early in self._waiting)

    def admit(self, write: Write) -> None:
        for admit in self._admitting:
            admit(write)

    def validate(self, write: Write) -> None:
        for validate in self._validating:
            validate(write)

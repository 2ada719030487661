"""All that is wrong with one file, collected and told at once: nobody should have to start a program five times.

Whoever reads a file notes what is wrong and goes on with a default; `settle`, at the end, raises if there was anything.
Each line has the file, the line, the field and what is wrong with it.

Called by the scheduler, the kubelet and the cluster assembly; calls `fielderror`, `fieldpath` and `yaml_text`.
"""

from __future__ import annotations

from nodeward.base.errors import ConfigError
from nodeward.base.fielderror import FieldError, render
from nodeward.base.fieldpath import FieldPath
from nodeward.base.yaml_text import YamlDocument


class Problems:
    """What is wrong, in the order it was found; `source` is a file, or what to call settings that come from none."""

    def __init__(self, source: YamlDocument | str) -> None:
        self._source = source
        self._told: list[str] = []

    def __len__(self) -> int:
        return len(self._told)

    def say(self, field: FieldPath | str, what: str) -> None:
        name = str(field)
        if isinstance(self._source, YamlDocument):
            self._told.append(self._source.told(name, what))
        else:
            self._told.append(f"{self._source}: {name}: {what}" if name else f"{self._source}: {what}")

    def add(self, error: FieldError) -> None:
        self.say(error.field, error.body)

    def wrong(self, field: FieldPath | str, value: object, what: str) -> None:
        """A value that is not allowed, and what would be."""
        self.say(field, f"Invalid value: {render(value)}: {what}")

    def settle(self) -> None:
        """Raise if there is anything to tell."""
        if len(self._told) == 1:
            raise ConfigError(self._told[0])
        if self._told:
            shown = self._source.shown if isinstance(self._source, YamlDocument) else self._source
            listed = "".join(f"\n  {each}" for each in self._told)
            raise ConfigError(f"{shown}: {len(self._told)} things are wrong:{listed}")

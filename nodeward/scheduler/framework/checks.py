"""What is wrong with a plugin class, told when it is made: a misspelt method must not be one that is never called.

Called by `make_plugin` in `context.py`, for every plugin of every profile. A plugin claims its extension points by
type, so a method that is missing, or that belongs to a point it does not claim, can be named with what was meant.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Iterator
from typing import Final

from nodeward.base.errors import ConfigError
from nodeward.scheduler.framework import plugin as framework
from nodeward.scheduler.framework.plugin import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)

#: How much a name is to be like one of the framework's to be taken for a misspelling of it.
_ALIKE: Final = 0.8


@functools.cache
def _methods() -> dict[str, tuple[type[Plugin], ...]]:
    """Every method of an extension point, with the types that have it."""
    found: dict[str, list[type[Plugin]]] = {}
    for value in vars(framework).values():
        if inspect.isclass(value) and issubclass(value, Plugin):
            for name in vars(value).get("__abstractmethods__", ()):
                if name in vars(value):
                    found.setdefault(name, []).append(value)
    return {name: tuple(types) for name, types in found.items()}


@functools.cache
def check_plugin(kind: type[Plugin]) -> None:
    """Raise ConfigError if the class is not what it claims to be, or has what it does not claim."""
    for fault in _faults(kind):
        raise ConfigError(f"scheduler plugin {kind.__name__}: {fault}")


def _faults(kind: type[Plugin]) -> Iterator[str]:
    if not isinstance(getattr(kind, "name", None), str) or not kind.name:
        yield "has no name"
    own = [
        name
        for each in kind.__mro__
        if each.__module__ != framework.__name__ and each is not object
        for name in vars(each)
        if not name.startswith("_")
    ]
    known = _methods()
    for missing in sorted(kind.__abstractmethods__):
        near = difflib.get_close_matches(missing, own, n=1, cutoff=_ALIKE)
        hint = f'; did you misspell it as "{near[0]}"?' if near else ""
        yield f'claims {_claimed(kind, missing)} but has no method "{missing}"{hint}'
    unclaimed = {name for name, types in known.items() if not issubclass(kind, types)}
    for name in own:
        if name in unclaimed:
            yield f'has a method "{name}" but does not claim {known[name][0].__name__}'
        if name in known or hasattr(Plugin, name):
            continue
        near = difflib.get_close_matches(name, unclaimed, n=1, cutoff=_ALIKE)
        if near:
            yield (
                f'"{name}" belongs to no extension point; did you mean "{near[0]}" of {known[near[0]][0].__name__}?'
            )
    answers = issubclass(kind, FilterPlugin | ScorePlugin | PreFilterPlugin | PreScorePlugin)
    if answers and not hasattr(kind, "pod_fields"):
        yield "filters or scores, but does not declare in pod_fields what of a pod its answers depend on"


def _claimed(kind: type[Plugin], method: str) -> str:
    """The extension point of a method, as the class claims it."""
    return next(each.__name__ for each in _methods()[method] if issubclass(kind, each))

"""References to variables in texts: `$(NAME)` becomes its value, `$$` a dollar sign, all else stays as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))", re.DOTALL)


def expand(text: str, *known: Mapping[str, str]) -> str:
    """The text with what is known put in; the first map that has a name counts, and an unknown name stays."""
    return expand_with(text, lambda name: next((each[name] for each in known if name in each), None))


def expand_with(text: str, value_of: Callable[[str], str | None]) -> str:
    """The text with each reference replaced by what `value_of` says, or left as it is where it says None."""

    def replaced(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return "$"
        value = value_of(name)
        return match.group(0) if value is None else value

    return _REFERENCE.sub(replaced, text)


def expand_all(texts: Iterable[str], known: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(expand(text, known) for text in texts)

"""Versions of Kubernetes, to be compared: `1.36`, `v1.36.2`, `1.37.0-beta.1+build`.

Text goes in, an ordered value comes out. The order is that of semantic versions: a missing patch is 0, a pre-release
comes before its release, what follows a plus does not count.

Called by `declared`, `feature` and `framework`; calls `errors`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from nodeward.features.declared.errors import FeatureError

_NUMBER: Final = r"(0|[1-9][0-9]{0,8})"
_IDENTIFIERS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_VERSION: Final = re.compile(
    rf"v?{_NUMBER}\.{_NUMBER}(?:\.{_NUMBER})?(?:-({_IDENTIFIERS}))?(?:\+{_IDENTIFIERS})?"
)
#: Comes after every identifier of a pre-release.
_RELEASED: Final = ((2, 0, ""),)


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """One version. Make one with `Version.parse`."""

    major: int
    minor: int
    patch: int = 0
    #: identifiers as (0, number, "") or (1, 0, text), so that they compare as semantic versions do
    _stage: tuple[tuple[int, int, str], ...] = _RELEASED

    @classmethod
    def parse(cls, text: str) -> Version:
        match = _VERSION.fullmatch(text)
        if match is None:
            raise FeatureError(f'"{text}" is not a version, such as 1.36 or v1.36.2')
        major, minor, patch, stage = match.groups()
        return cls(int(major), int(minor), int(patch or 0), _order(stage))

    def __str__(self) -> str:
        text = f"{self.major}.{self.minor}.{self.patch}"
        if self._stage == _RELEASED:
            return text
        return text + "-" + ".".join(name or str(number) for _, number, name in self._stage)


def _order(stage: str | None) -> tuple[tuple[int, int, str], ...]:
    if stage is None:
        return _RELEASED
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in stage.split("."))

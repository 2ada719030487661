"""The default imagePullPolicy, which depends on the image's tag."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_PART: Final = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    rf"(?:localhost/|[^/]*[.:A-Z][^/]*/)?{_PART}(?:/{_PART})*(?::(?P<tag>\w[\w.-]{{0,127}}))?(?P<digest>@[\w:+.-]+)?",
    re.ASCII,
)


@lru_cache(maxsize=4096)
def pull_policy_for(image: str) -> str:
    """Return Always for images tagged `latest`, or with neither tag nor digest; else IfNotPresent."""
    named = _IMAGE.fullmatch(image)
    if named is None:
        return "IfNotPresent"
    is_latest = named["tag"] == "latest" or (named["tag"] is None and named["digest"] is None)
    return "Always" if is_latest else "IfNotPresent"

"""Versions compare as semantic versions do."""

from __future__ import annotations

from itertools import pairwise

import pytest

from nodeward.features import FeatureError, Version

IN_ORDER = [
    "1.35",
    "1.36.0-alpha",
    "1.36.0-alpha.1",
    "1.36.0-alpha.2",
    "1.36.0-alpha.10",
    "1.36.0-beta.0",
    "1.36.0-rc.1",
    "1.36",
    "1.36.1",
    "1.36.12",
    "1.37",
    "2.0",
]


def test_versions_are_ordered() -> None:
    parsed = [Version.parse(text) for text in IN_ORDER]
    assert all(a < b for a, b in pairwise(parsed))


@pytest.mark.parametrize("text", ["1.36", "v1.36", "1.36.0", "v1.36.0+k3s1", "1.36.0+build.7"])
def test_one_version_has_many_spellings(text: str) -> None:
    assert Version.parse(text) == Version.parse("1.36")
    assert str(Version.parse(text)) == "1.36.0"


def test_a_pre_release_is_printed() -> None:
    assert str(Version.parse("v1.37.0-beta.1+x")) == "1.37.0-beta.1"


@pytest.mark.parametrize("text", ["", "1", "1.x", "1.36.", "01.36", "1.36.0.1", "1.36-", "V1.36", "1.36 "])
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(FeatureError, match="is not a version, such as"):
        Version.parse(text)

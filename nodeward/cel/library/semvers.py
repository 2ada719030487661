"""Semantic versions in expressions: `semver("1.2.3").major()`.

Parsing is that of blang/semver, which Kubernetes uses, with its messages. Build metadata takes no part in order, but in
equality as upstream has it: two versions are equal when neither is greater.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import Final

from nodeward.base.fielderror import quote
from nodeward.cel import cel_types as t
from nodeward.cel.declarations import Function, Implementation, Overload
from nodeward.cel.values import INT_MAX, EvaluationError, ExtensionValue

SEMVER: Final = t.struct("kubernetes.Semver")
_DIGITS: Final = re.compile(r"[0-9]*")
_WORD: Final = re.compile(r"[0-9A-Za-z-]*")


class SemverError(ValueError):
    """The text is not a semantic version. The message is the one Kubernetes gives."""


class Semver(ExtensionValue):
    """A version: three numbers, identifiers of a pre-release, identifiers of a build."""

    cel_type = SEMVER

    def __init__(
        self, numbers: tuple[int, int, int], before: tuple[int | str, ...], build: tuple[str, ...]
    ) -> None:
        self.numbers = numbers
        self.before = before
        self.build = build

    @staticmethod
    def parse(text: str) -> Semver:
        """Parse strictly; raises SemverError."""
        return _parse(text)

    @cached_property
    def order(self) -> tuple[object, ...]:
        """What versions are sorted by: a release follows its pre-releases, numbers precede words."""
        before = tuple((0, each, "") if isinstance(each, int) else (1, 0, each) for each in self.before)
        return (*self.numbers, not self.before, before)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.order == other.order

    def __hash__(self) -> int:
        return hash(self.order)

    def __str__(self) -> str:
        before = f"-{'.'.join(map(str, self.before))}" if self.before else ""
        build = f"+{'.'.join(self.build)}" if self.build else ""
        return f"{'.'.join(map(str, self.numbers))}{before}{build}"


@lru_cache(maxsize=1024)
def _parse(text: str) -> Semver:
    if not text:
        raise SemverError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    major, minor = _number("Major", parts[0]), _number("Minor", parts[1])
    patch, has_build, build = parts[2].partition("+")
    patch, has_before, before = patch.partition("-")
    numbers = (major, minor, _number("Patch", patch))
    identifiers = tuple(_prerelease(each) for each in before.split(".")) if has_before else ()
    return Semver(numbers, identifiers, tuple(map(_build, build.split("."))) if has_build else ())


def _number(name: str, text: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in {name.lower()} number {quote(text)}")
    if len(text) > 1 and text.startswith("0"):
        raise SemverError(f"{name} number must not contain leading zeroes {quote(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) >= 2**64:
        raise SemverError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> int | str:
    if not text:
        raise SemverError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text.startswith("0"):
            raise SemverError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        return _unsigned(text)
    if not _WORD.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in prerelease {quote(text)}")
    return text


def _build(text: str) -> str:
    if not text:
        raise SemverError("Build meta data is empty")
    if not _WORD.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in build meta data {quote(text)}")
    return text


def _normalized(text: str) -> str:
    """Return the version with what strict parsing needs: no `v`, no leading zeroes, three numbers."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped[:1].isdigit() else f"0{stripped}"
    if len(parts) < 3 and any(mark in parts[-1] for mark in "+-"):
        raise SemverError("short version cannot contain PreRelease/Build meta data")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _semver(text: str, is_normalized: bool = False) -> Semver:
    try:
        return _parse(_normalized(text) if is_normalized else text)
    except SemverError as error:
        raise EvaluationError(str(error)) from None


def _is_semver(text: str, is_normalized: bool = False) -> bool:
    try:
        _semver(text, is_normalized)
    except EvaluationError:
        return False
    return True


def _compare(left: Semver, right: Semver) -> int:
    if left.order == right.order:
        return 0
    return 1 if left.order > right.order else -1


def _part(index: int) -> Implementation:
    def run(version: Semver) -> int:
        value = version.numbers[index]
        return value if value <= INT_MAX else value - 2**64

    return run


def _member(
    name: str, id_: str, other: tuple[t.CelType, ...], result: t.CelType, run: Implementation
) -> Function:
    return Function(name, (Overload(id_, (SEMVER, *other), result, run, is_member=True),))


SEMVERS: Final = (
    Function(
        "semver",
        (
            Overload("string_to_semver", (t.STRING,), SEMVER, _semver),
            Overload("string_bool_to_semver", (t.STRING, t.BOOL), SEMVER, _semver),
        ),
    ),
    Function(
        "isSemver",
        (
            Overload("is_semver_string", (t.STRING,), t.BOOL, _is_semver),
            Overload("is_semver_string_bool", (t.STRING, t.BOOL), t.BOOL, _is_semver),
        ),
    ),
    _member("isGreaterThan", "semver_is_greater_than", (SEMVER,), t.BOOL, lambda a, b: _compare(a, b) > 0),
    _member("isLessThan", "semver_is_less_than", (SEMVER,), t.BOOL, lambda a, b: _compare(a, b) < 0),
    _member("compareTo", "semver_compare_to", (SEMVER,), t.INT, _compare),
    _member("major", "semver_major", (), t.INT, _part(0)),
    _member("minor", "semver_minor", (), t.INT, _part(1)),
    _member("patch", "semver_patch", (), t.INT, _part(2)),
)

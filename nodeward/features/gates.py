"""Feature gates as a value: which features are on in one component, of one version, started with some flags.

In come a Kubernetes version and what `--feature-gates` (or the map `featureGates` of a configuration file) says;
out comes a frozen `Gates` that is handed to whoever asks. Nothing is global, so components of different versions
live in one process. The errors are those of Kubernetes, plus the nearest known name for one that is unknown.

What must stay true: a `Gates` exists only if every gate that is on has all gates it needs on.

Made by the command line and the cluster assembly for each component; calls `catalogue`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from nodeward.base.errors import ConfigError
from nodeward.base.invariant import InvariantBroken
from nodeward.features.catalogue import (
    ALIASES,
    ALL_ALPHA,
    ALL_BETA,
    CATALOGUE,
    NEWEST,
    OLDEST,
    FeatureSpec,
    Stage,
)

_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "false", "FALSE", "False"))
_VERSION: Final = re.compile(r"1\.(0|[1-9]\d*)")
_WHOLE_STAGES: Final = {ALL_ALPHA: Stage.ALPHA, ALL_BETA: Stage.BETA}


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates of one component. Iterates as (name, stage, is on), for the metric `kubernetes_feature_enabled`."""

    version: str
    min_compatibility: str
    _on: Mapping[str, bool] = field(hash=False, repr=False)
    #: what an operator should hear about the flags, although they are accepted
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, version: str, text: str = "", *, min_compatibility: str = "") -> Gates:
        """Return the gates of a `version` ("1.37") with `--feature-gates=text`."""
        return cls.of_mapping(version, parse(text), min_compatibility=min_compatibility)

    @classmethod
    def of_mapping(cls, version: str, values: Mapping[str, bool], *, min_compatibility: str = "") -> Gates:
        minor = _minor(version, OLDEST, NEWEST, "emulation version")
        floor = minor - 1
        if min_compatibility:
            floor = _minor(min_compatibility, OLDEST - 1, minor, "minCompatibilityVersion version")
        specs = {name: gate.at(minor, floor) for name, gate in CATALOGUE.items()}
        settings = _settings(values, specs, minor, floor)
        on = {name: spec.default for name, spec in specs.items()} | settings
        for whole, stage in _WHOLE_STAGES.items():
            if whole in settings:
                derived = (name for name, spec in specs.items() if spec.stage is stage)
                on |= {
                    name: on[whole] for name in derived if name not in settings and name not in _WHOLE_STAGES
                }
        _check_needs(on, specs)
        for alias, name in ALIASES.items():
            # Who asks for the other name wants to know whether it was used: the node then declares it (KEP-5945).
            on[alias] = on[name] and values.get(alias, False)
        return cls(f"1.{minor}", f"1.{floor}", on, tuple(_warnings(settings, specs)))

    def enabled(self, name: str) -> bool:
        """Tell whether the feature is on (for an alias: and that name was used). An unknown gate is a bug."""
        try:
            return self._on[name]
        except KeyError:
            raise InvariantBroken(f'feature "{name}" is not registered in FeatureGate') from None

    def knows(self, name: str) -> bool:
        """Tell whether a component of this version knows the feature, on or off."""
        gate = CATALOGUE.get(ALIASES.get(name, name))
        if gate is None:
            raise InvariantBroken(f'feature "{name}" is not registered in FeatureGate')
        return gate.at(int(self.version[2:]), int(self.min_compatibility[2:])).stage is not Stage.PRE_ALPHA

    def __iter__(self) -> Iterator[tuple[str, str, bool]]:
        minor, floor = int(self.version[2:]), int(self.min_compatibility[2:])
        for name, gate in CATALOGUE.items():
            stage = gate.at(minor, floor).stage
            if stage is not Stage.PRE_ALPHA:
                yield name, stage.value, self._on[name]

    def as_flag(self) -> str:
        """Return the text that makes the same gates again: what differs from the defaults of the version."""
        plain = Gates.of(self.version, min_compatibility=self.min_compatibility)
        used = {name: alias for alias, name in ALIASES.items() if self._on[alias]}
        return ",".join(
            f"{used.get(name, name)}={str(is_on).lower()}"
            for name, _, is_on in self
            if plain.enabled(name) is not is_on
        )


def parse(text: str) -> dict[str, bool]:
    """Parse `A=true, B=false` into a mapping; the last value of a name wins."""
    values: dict[str, bool] = {}
    for item in text.split(","):
        if not item:
            continue
        name, equals, value = item.partition("=")
        name, value = name.strip(), value.strip()
        if not equals:
            raise ConfigError(f"missing bool value for {name}")
        if value not in _TRUE and value not in _FALSE:
            why = f'strconv.ParseBool: parsing "{value}": invalid syntax'
            raise ConfigError(f"invalid value of {name}={value}, err: {why}")
        values[name] = value in _TRUE
    return values


def describe(version: str) -> list[str]:
    """Return the gates that can be chosen in a version, one line each, as `--help` lists them."""
    return [
        f"{name}=true|false ({stage} - default={str(is_on).lower()})"
        for name, stage, is_on in Gates.of(version)
        if stage in (Stage.ALPHA.value, Stage.BETA.value)
    ]


def _minor(version: str, oldest: int, newest: int, what: str) -> int:
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ConfigError(f'{what} "{version}" is not of the form major.minor, such as 1.{newest}')
    minor = int(match[1])
    if not oldest <= minor <= newest:
        raise ConfigError(f"{what} {version} is not between [1.{oldest}, 1.{newest}]")
    return minor


def _settings(
    values: Mapping[str, bool], specs: Mapping[str, FeatureSpec], minor: int, floor: int
) -> dict[str, bool]:
    """Return the values by the names of the catalogue, or all that is wrong with them."""
    settings: dict[str, bool] = {}
    errors = []
    for given, is_on in values.items():
        name = ALIASES.get(given, given)
        spec = specs.get(name)
        if spec is None:
            errors.append(f"unrecognized feature gate: {given}{_nearest(given)}")
            break
        value = str(is_on).lower()
        if spec.is_locked and spec.default is not is_on:
            default = str(spec.default).lower()
            errors.append(f"cannot set feature gate {given} to {value}, feature is locked to {default}")
        elif spec.stage is Stage.PRE_ALPHA:
            where = f"emulated version 1.{minor}, min compatibility version 1.{floor}"
            errors.append(f"cannot set feature gate {given} to {value}, feature is PreAlpha at {where}")
        elif settings.get(name, is_on) is not is_on:
            errors.append(f"feature gate {name} is set to true and false, by two of its names")
        else:
            settings[name] = is_on
    _refuse(errors)
    return settings


def _check_needs(on: Mapping[str, bool], specs: Mapping[str, FeatureSpec]) -> None:
    # Unlike upstream: a gate does not need one that the emulated version has never heard of.
    errors = []
    for name, gate in CATALOGUE.items():
        if not on[name]:
            continue
        off = [need for need in gate.needs if not on[need] and specs[need].stage is not Stage.PRE_ALPHA]
        if off:
            errors.append(f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]")
    _refuse(errors)


def _refuse(errors: list[str]) -> None:
    if errors:
        raise ConfigError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def _warnings(settings: Mapping[str, bool], specs: Mapping[str, FeatureSpec]) -> Iterable[str]:
    words = {Stage.GA: "GA", Stage.DEPRECATED: "deprecated"}
    for name, is_on in settings.items():
        word = words.get(specs[name].stage)
        if word:
            what = f"{name}={str(is_on).lower()}"
            yield f"setting {word} feature gate {what}. It will be removed in a future release."


def _nearest(name: str) -> str:
    """Return a hint for a name that is no gate; case does not matter to it."""
    known = {each.lower(): each for each in (*CATALOGUE, *ALIASES)}
    found = difflib.get_close_matches(name.lower(), known, n=1)
    return f' (did you mean "{known[found[0]]}"?)' if found else ""

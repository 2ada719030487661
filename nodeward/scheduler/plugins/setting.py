"""What a plugin is made from: gates, the version it lives in, and the arguments of its entry in the configuration.

Arguments are those of `KubeSchedulerConfiguration` as plain values, already checked by whoever read the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from nodeward.features.declared import FRAMEWORK, Framework, Version
from nodeward.features.gates import Gates
from nodeward.scheduler.framework.plugin import Plugin


@dataclass(frozen=True, slots=True)
class Setting:
    """All that may shape a plugin."""

    gates: Gates
    version: Version
    arguments: Mapping[str, Any] = field(default_factory=dict)
    features: Framework = FRAMEWORK


Make: TypeAlias = Callable[[Setting], Plugin]


@dataclass(frozen=True, slots=True)
class Shipped:
    """One line of the registry. A plugin whose gate is off does not exist."""

    name: str
    make: Make
    #: of its score, unless the configuration says otherwise; 0: it does not score
    weight: int = 0
    gate: str = ""

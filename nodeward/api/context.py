"""The context of API rules: which feature gates are on.

Passed to validators and strategies by the API server. This layer does not know the catalogue of gates, and nothing is
read from globals, so that a 1.34 and a 1.37 server can live in one process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class FeatureGates(Protocol):
    """The feature gates as this layer sees them (implemented by `nodeward/features`): a frozen value."""

    def enabled(self, name: str) -> bool: ...

    def knows(self, name: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Context:
    """The context of one server, passed to every validator."""

    gates: FeatureGates

    def on(self, gate: str) -> bool:
        """Tell whether the gate is on."""
        return self.gates.enabled(gate)

    def knows(self, gate: str) -> bool:
        """Tell whether this version has the gate at all; if not, its fields do not exist."""
        return self.gates.knows(gate)

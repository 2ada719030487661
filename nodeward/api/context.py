"""What a rule of the API may know of the world around the object: which features are on.

The API layer does not know the catalogue of gates; whoever calls hands one in. Nothing here is read from globals,
so that a 1.34 and a 1.37 server can live in one process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Gates(Protocol):
    """Feature gates, as the features layer makes them: a frozen value."""

    def enabled(self, name: str) -> bool: ...

    def knows(self, name: str) -> bool: ...


@dataclass(frozen=True, slots=True)
class Context:
    """Handed to every validator."""

    gates: Gates

    def on(self, gate: str) -> bool:
        """Is the gate on?"""
        return self.gates.enabled(gate)

    def knows(self, gate: str) -> bool:
        """Has a server of this version heard of the gate at all? If not, what it brought does not exist."""
        return self.gates.knows(gate)

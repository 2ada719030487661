"""One node as `FilterPlugin` and `ScorePlugin` see it: the object, the pods on it, and what they take.

Worked out from the object and the pods themselves, not from the table's columns, so that the two can be compared. A
view is a snapshot: it does not follow later changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nodeward.api.core_v1.node import Node
from nodeward.rules.host_ports import Ports
from nodeward.scheduler.framework.pod import PodView


@dataclass(frozen=True, slots=True)
class NodeView:
    """One node at one moment."""

    node: Node
    pods: tuple[PodView, ...]
    #: cpu in millicores, all else in whole units
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    #: as `requested`, with a little CPU and memory for containers that ask for none
    scored: Mapping[str, int]
    ports: Ports

    @property
    def name(self) -> str:
        return self.node.metadata.name

"""What every part of the benchmark shares: the cluster it is asked to measure, its figures, and CPU time spent."""

from __future__ import annotations

import os
from dataclasses import dataclass

import msgspec


@dataclass(frozen=True, slots=True)
class ClusterSize:
    """How many nodes and pods a part measures with; `--nodes` and `--pods`."""

    nodes: int
    pods: int


class Figure(msgspec.Struct, frozen=True):
    """One measured number and what it was measured on; `-o json` prints a list of these."""

    name: str
    value: float
    unit: str
    conditions: str


@dataclass(frozen=True, slots=True)
class Spent:
    """What deciding about some pods took."""

    pods: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        return self.pods / self.seconds

    @property
    def cpu_rate(self) -> float:
        return self.pods / max(self.cpu_seconds, 0.01)


def cpu_seconds() -> float:
    """CPU time of this process until now."""
    times = os.times()
    return times.user + times.system

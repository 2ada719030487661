"""All parts of the benchmark by name, and one run of some of them.

Called by `nodeward bench` (`nodeward/cli/bench.py`), which prints. A part yields its figures as they come; a new one
is a module and a line in `PARTS`, and its name in `nodeward/cli/flags.py`, which may import nothing slow.
"""

from __future__ import annotations

import os
import platform
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, TypeAlias

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.bench.api import api_figures
from nodeward.bench.cel import cel_figures
from nodeward.bench.cpus import cpus_figures
from nodeward.bench.deployment import deployment_figures
from nodeward.bench.devices import devices_figures
from nodeward.bench.features import features_figures
from nodeward.bench.figures import ClusterSize, Figure
from nodeward.bench.fleet import fleet_figures
from nodeward.bench.readiness import readiness_figures
from nodeward.bench.resize import resize_figures
from nodeward.bench.rules import rules_figures
from nodeward.bench.scheduler import scheduler_figures
from nodeward.bench.tolerations import tolerations_figures
from nodeward.machinery.clock import RealClock

Part: TypeAlias = Callable[[ClusterSize], AsyncIterator[Figure]]

#: name -> what measures it
PARTS: Final[dict[str, Part]] = {
    "api": api_figures,
    "cel": cel_figures,
    "cpus": cpus_figures,
    "devices": devices_figures,
    "features": features_figures,
    "readiness": readiness_figures,
    "resize": resize_figures,
    "rules": rules_figures,
    "scheduler": scheduler_figures,
    "tolerations": tolerations_figures,
    "fleet": fleet_figures,
    "deployment": deployment_figures,
}


def chosen(names: Iterable[str]) -> dict[str, Part]:
    """Return the parts of these names, all of them for none; an unknown name is a ConfigError."""
    wanted = list(names) or list(PARTS)
    for name in wanted:
        if name not in PARTS:
            raise ConfigError(f"there is no benchmark {name!r}; there are: {', '.join(PARTS)}")
    return {name: PARTS[name] for name in wanted}


async def measure(parts: Iterable[Part], cluster: ClusterSize) -> AsyncIterator[Figure]:
    """Run the parts one after another, between two measurements of the machine itself."""
    yield _speed("before")
    for part in parts:
        async for figure in part(cluster):
            yield figure
    yield _speed("after")


def machine() -> str:
    """Describe the machine in one line."""
    return (
        f"{os.cpu_count()} CPUs, {platform.machine()}, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f}; server and client share the machine"
    )


def _speed(when: str) -> Figure:
    """How fast this machine runs Python now: shared machines differ twofold from hour to hour."""
    clock, turns = RealClock(), 1_000_000
    best = min(_spin(clock, turns) for _ in range(5))
    conditions = f"turns of an adding loop on one core, {when} the rest; compare runs by it"
    return Figure(f"machine/python-{when}", turns / best / 1e6, "M/s", conditions)


def _spin(clock: RealClock, turns: int) -> float:
    started, total = clock.monotonic_ns(), 0
    for turn in range(turns):
        total += turn
    return (clock.monotonic_ns() - started) / SECOND_NS

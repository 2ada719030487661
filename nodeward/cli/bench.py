"""`nodeward bench`: measure this machine and print what was measured, on what. Not a test: nothing passes or fails."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

import msgspec

from nodeward.base.errors import ConfigError
from nodeward.cli.bench_api import api_figures
from nodeward.cli.bench_deployment import deployment_figures
from nodeward.cli.bench_features import features_figures
from nodeward.cli.bench_figures import Figure
from nodeward.cli.bench_fleet import fleet_figures
from nodeward.cli.bench_readiness import readiness_figures
from nodeward.cli.bench_rules import rules_figures
from nodeward.cli.bench_scheduler import scheduler_figures
from nodeward.cli.up import loop_factory
from nodeward.machinery.clock import RealClock

Part: TypeAlias = Callable[[argparse.Namespace], AsyncIterator[Figure]]

#: name -> what measures it
PARTS: dict[str, Part] = {
    "api": api_figures,
    "features": features_figures,
    "readiness": readiness_figures,
    "rules": rules_figures,
    "scheduler": scheduler_figures,
    "fleet": fleet_figures,
    "deployment": deployment_figures,
}


def run(args: argparse.Namespace) -> int:
    """Run the parts that were asked for, printing as figures come."""
    names = args.names or list(PARTS)
    for name in names:
        if name not in PARTS:
            raise ConfigError(f"there is no benchmark {name!r}; there are: {', '.join(PARTS)}")
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        figures = runner.run(_measure(args, names))
    if args.output == "json":
        print(msgspec.json.format(msgspec.json.encode(figures)).decode())
    return 0


async def _measure(args: argparse.Namespace, names: list[str]) -> list[Figure]:
    is_text = args.output == "text"
    if is_text:
        print(_machine(), flush=True)
    figures: list[Figure] = []

    def show(figure: Figure) -> None:
        figures.append(figure)
        line = f"{figure.name:<34} {figure.value:>12,.4g} {figure.unit:<8} {figure.conditions}"
        print(line, flush=True, file=sys.stdout if is_text else sys.stderr)

    show(_speed("before"))
    for name in names:
        async for figure in PARTS[name](args):
            show(figure)
    show(_speed("after"))
    return figures


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
    return (clock.monotonic_ns() - started) / 1e9


def _machine() -> str:
    return (
        f"# {os.cpu_count()} CPUs, {platform.machine()}, Python {platform.python_version()}, "
        f"load {os.getloadavg()[0]:.1f}; server and client share the machine"
    )

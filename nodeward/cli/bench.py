"""`nodeward bench`: measure this machine and print what was measured, on what. Not a test: nothing passes or fails.

The flags become a `ClusterSize` and names of parts; `nodeward/bench/parts.py` measures.
"""

from __future__ import annotations

import argparse
import asyncio
import sys

import msgspec

from nodeward.bench.figures import ClusterSize, Figure
from nodeward.bench.parts import chosen, machine, measure
from nodeward.cli.up import loop_factory


def run(args: argparse.Namespace) -> int:
    """Run the parts that were asked for, printing as figures come."""
    parts = chosen(args.names).values()
    is_text = args.output == "text"

    async def main() -> list[Figure]:
        figures: list[Figure] = []
        async for figure in measure(parts, ClusterSize(args.nodes, args.pods)):
            figures.append(figure)
            line = f"{figure.name:<34} {figure.value:>12,.4g} {figure.unit:<8} {figure.conditions}"
            print(line, flush=True, file=sys.stdout if is_text else sys.stderr)
        return figures

    if is_text:
        print(f"# {machine()}", flush=True)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        figures = runner.run(main())
    if not is_text:
        print(msgspec.json.format(msgspec.json.encode(figures)).decode())
    return 0

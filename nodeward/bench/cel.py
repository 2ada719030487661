"""The `cel` part of the benchmark: device selectors compiled and evaluated, costs counted, hostile patterns matched.

Every figure is the fastest of some rounds in one process on one core.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final

from nodeward.base.duration import SECOND_NS
from nodeward.base.quantity import Quantity
from nodeward.bench.figures import ClusterSize, Figure
from nodeward.cel.device import compile_selector, device_variables, matches, parse_version
from nodeward.cel.values import CostLimitExceeded
from nodeward.machinery.clock import RealClock

ROUNDS: Final = 7
EVALUATIONS: Final = 20_000
COMPILATIONS: Final = 50
_D: Final = "gpu.example.com"
_A: Final = f'device.attributes["{_D}"]'
#: name -> a selector as users write them
SELECTORS: Final = {
    "attribute": f'device.driver == "{_D}" && {_A}.memory >= 40',
    "capacity": f'device.driver == "{_D}" && device.capacity["{_D}"].memory.compareTo(quantity("40Gi")) >= 0',
    "version": f'{_A}.firmware.isGreaterThan(semver("1.0.0"))',
    "optional": f'{_A}.?model.orValue("") in ["A100", "H100"]',
    "pattern": f'{_A}.model.matches("^A[0-9]+$")',
}
_COSTLY: Final = "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))"
#: Exponential for a matcher that tries one path after another.
_HOSTILE: Final = '("a" + device.driver).matches("^(([a-z])+.)+[A-Z]([a-z])+$")'


async def cel_figures(_cluster: ClusterSize) -> AsyncIterator[Figure]:
    """All figures."""
    clock = RealClock()
    device = device_variables(
        _D,
        {"memory": 80, "model": "A100", "firmware": parse_version("1.2.3")},
        {"memory": Quantity.parse("80Gi")},
    )
    for name, text in SELECTORS.items():
        program = compile_selector(text)

        def evaluate() -> None:
            for _ in range(EVALUATIONS):
                matches(program, device)  # noqa: B023

        seconds = _fastest(clock, evaluate)
        yield Figure(f"cel/{name}", EVALUATIONS / seconds / 1e3, "k/s", text)

    def compile_all() -> None:
        for _ in range(COMPILATIONS):
            compile_selector(SELECTORS["attribute"])

    seconds = _fastest(clock, compile_all)
    yield Figure(
        "cel/compile", seconds / COMPILATIONS * 1e6, "us", f"{SELECTORS['attribute']}, with its cost estimate"
    )
    costly, hostile = compile_selector(_COSTLY), compile_selector(_HOSTILE)

    def run_to_the_limit() -> None:
        try:
            matches(costly, device)
        except CostLimitExceeded:
            return

    seconds = _fastest(clock, run_to_the_limit, rounds=2)
    yield Figure("cel/limit", seconds, "s", f"{_COSTLY}, stopped at a cost of 1,000,000")
    seconds = _fastest(clock, lambda: matches(hostile, device))
    yield Figure("cel/hostile-pattern", seconds * 1e6, "us", _HOSTILE)


def _fastest(clock: RealClock, run: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the seconds of the fastest round."""
    best = 1 << 62
    for _ in range(rounds):
        started = clock.monotonic_ns()
        run()
        best = min(best, clock.monotonic_ns() - started)
    return best / SECOND_NS

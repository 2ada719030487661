"""The `features` part of the benchmark: one pod's needs against what thousands of nodes declare (KEP-5328).

The same question three ways: a loop over sets of names, a loop over bitmaps, and the column form. Every node declares
almost all features and the pod needs three, so that a set is not done after the first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, TypeVar

from nodeward.base.invariant import invariant
from nodeward.bench.figures import ClusterSize, Figure
from nodeward.features.declared import FeatureTable, feature_matrix, match_column
from nodeward.machinery.clock import Clock, RealClock

T = TypeVar("T")

FEATURES: Final = 100
NEEDED: Final = 3
ROUNDS: Final = 50


async def features_figures(cluster: ClusterSize) -> AsyncIterator[Figure]:
    """All figures; the fastest of many rounds counts, because others only show what else the machine did."""
    clock = RealClock()
    names = tuple(f"Feature{number:03}" for number in range(FEATURES))
    table = FeatureTable(names)
    # One node in ten lacks one of the needed features.
    declared = [
        {name for place, name in enumerate(names) if (place + node) % (10 * NEEDED)}
        for node in range(cluster.nodes)
    ]
    needed = {names[place * FEATURES // NEEDED] for place in range(NEEDED)}
    present = [table.set_of(sorted(each)) for each in declared]
    required = table.set_of(sorted(needed))
    bits, bitmaps = required.bits, [each.bits for each in present]
    matrix = feature_matrix(table, present)
    words = required.as_words()

    sets, by_sets = _fastest(clock, lambda: [needed <= each for each in declared])
    ints, by_ints = _fastest(clock, lambda: [bits & have == bits for have in bitmaps])
    column, by_column = _fastest(clock, lambda: match_column(words, matrix))
    invariant(sets == ints == column.tolist() and 0 < sum(sets) < len(sets), "three ways, one answer")

    size = f"one pod needing {NEEDED} features, {cluster.nodes:,} nodes declaring about {FEATURES}"
    yield Figure("features/match-sets", by_sets / 1e3, "us", f"a loop over sets of names; {size}")
    yield Figure("features/match-bitmaps", by_ints / 1e3, "us", f"a loop over bitmaps; {size}")
    yield Figure("features/match-column", by_column / 1e3, "us", f"the column form; {size}")
    yield Figure(
        "features/match-speedup", by_sets / by_column, "x", "the column form against the loop over sets"
    )


def _fastest(clock: Clock, ask: Callable[[], T]) -> tuple[T, int]:
    answer, best = ask(), 0
    for _ in range(ROUNDS):
        started = clock.monotonic_ns()
        answer = ask()
        taken = max(1, clock.monotonic_ns() - started)
        best = min(best or taken, taken)
    return answer, best

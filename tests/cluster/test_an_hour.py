"""An hour of a 100-node cluster takes seconds, and is the same hour whatever the order of Python's sets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.e2e.cluster import REPOSITORY

pytestmark = pytest.mark.slow

#: On a quiet machine it is 5 s; a busy one, and one with slow cores, gets its share of patience.
MOST_CPU_SECONDS = 30.0


def hour(hash_seed: int) -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.cluster.hour"],
        capture_output=True,
        text=True,
        check=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
    )
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def test_an_hour_of_a_hundred_nodes_is_short_and_the_same_whatever_the_hash_seed() -> None:
    first, second = hour(1), hour(4242)
    figure = f"an hour of 100 nodes: {first['cpu']:.1f} s and {second['cpu']:.1f} s of CPU, {first['writes']} writes"
    sys.stderr.write(f"{figure}\n")
    assert first["running"] == 50
    assert first["versions"] == ["v1.36.0", "v1.37.0"]
    # Every node renewed its lease every ten seconds, or the hour would be cheap for another reason.
    assert first["writes"] > 35_000
    assert first.pop("cpu") < MOST_CPU_SECONDS
    assert second.pop("cpu") < MOST_CPU_SECONDS
    assert first == second

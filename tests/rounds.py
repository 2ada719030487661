"""Tests that play with chance: one seed for the whole run, and how many rounds each of them plays.

`tests/conftest.py` settles the seed before any worker starts and prints it at the end of the run; tests ask for
`seed_of` their own name. A run plays a few rounds of each test with a seed of its own; `make soak` plays all of them.
Two variables decide: `NODEWARD_TEST_SEED` repeats the draws of an earlier run, `NODEWARD_SOAK` is the share of the
full rounds to play (1 for all of them). A share or seed that cannot be read stops the run.
"""

from __future__ import annotations

import os
import secrets
from typing import Final

import pytest

SEED_VARIABLE: Final = "NODEWARD_TEST_SEED"
SHARE_VARIABLE: Final = "NODEWARD_SOAK"

#: On tests that call `rounds`: `make soak` runs these and no others.
soak: Final = pytest.mark.soak


def settle_seed() -> str:
    """Choose the seed of this run unless it is given, and hand it on to every worker through the environment."""
    return os.environ.setdefault(SEED_VARIABLE, str(secrets.randbelow(10**6)))


def seed_of(name: str) -> str:
    """Return the seed of one test in this run; another name gives another seed."""
    return f"{os.environ[SEED_VARIABLE]}-{name}"


def rounds(usual: int, full: int) -> int:
    """Return how many rounds to play: `usual` in an ordinary run, a share of `full` when soaking."""
    text = os.environ.get(SHARE_VARIABLE)
    if not text:
        return usual
    share = float(text)
    if not 0 < share <= 1:
        raise ValueError(f"{SHARE_VARIABLE}={text}: it is a share of the full rounds, above 0 and at most 1")
    return max(1, round(full * share))

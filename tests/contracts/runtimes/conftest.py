"""The grounds, as fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contracts.runtimes.ground import Ground
from tests.contracts.runtimes.grounds import GROUNDS, REAL_GROUNDS


@pytest.fixture(params=GROUNDS, ids=lambda kind: kind.kind)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    """Every runtime, simulated or not."""
    made: Ground = request.param(tmp_path)
    return made


@pytest.fixture(params=REAL_GROUNDS, ids=lambda kind: kind.kind)
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    """Every runtime that runs commands."""
    made: Ground = request.param(tmp_path)
    return made

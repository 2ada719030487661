"""The grounds, as fixtures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contracts.runtimes.cri_ground import CriGround
from tests.contracts.runtimes.ground import Ground
from tests.contracts.runtimes.grounds import GROUNDS, REAL_GROUNDS
from tests.kubelet.runtime.containerd import Containerd, running_containerd

# Every container is a second of a busy machine.
_CRI = pytest.param(CriGround, marks=pytest.mark.slow)


@pytest.fixture(scope="session")
def containerd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containerd]:
    """One for all tests; skips them where there can be none."""
    with running_containerd(tmp_path_factory.mktemp("containerd")) as each:
        yield each


@pytest.fixture(params=[*GROUNDS, _CRI], ids=lambda kind: kind.kind)
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    """Every runtime, simulated or not."""
    return _made(request, tmp_path)


@pytest.fixture(params=[*REAL_GROUNDS, _CRI], ids=lambda kind: kind.kind)
def real(request: pytest.FixtureRequest, tmp_path: Path) -> Ground:
    """Every runtime that runs commands."""
    return _made(request, tmp_path)


def _made(request: pytest.FixtureRequest, directory: Path) -> Ground:
    if request.param is CriGround:
        return CriGround(directory, request.getfixturevalue("containerd"))
    made: Ground = request.param(directory)
    return made

"""One cluster for all tests of a module that do not need their own, and a namespace for each test."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import STILL, Cluster, running_cluster
from tests.e2e.kubectl import Kubectl, check_version

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """`nodeward up` in which objects stay as they are made.

    Stopped at the end of the module, which must go well.
    """
    home = tmp_path_factory.mktemp("cluster") / "home"
    with running_cluster(home, *STILL) as running:
        yield running


@pytest.fixture(scope="session")
def right_kubectl() -> None:
    """Skips where there is none that is new enough."""
    check_version()


@pytest.fixture
def kubectl(right_kubectl: None, cluster: Cluster, tmp_path: Path) -> Kubectl:
    """kubectl in a namespace of its own, in which pods can be created."""
    chosen = Kubectl(cluster, f"test-{next(_NUMBERS)}", tmp_path)
    cluster.add_namespace(chosen.namespace)
    return chosen

"""The Python clients people use, unmodified, through the kubeconfig: create, read, change, apply, watch, delete."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.e2e.cluster import REPOSITORY, Cluster
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("program", ["official", "with_kr8s", "with_lightkube"])
def test_a_program_with_this_client_works(cluster: Cluster, program: str) -> None:
    namespace = program.replace("_", "-")
    cluster.add_namespace(namespace)
    ended = subprocess.run(
        [sys.executable, "-m", f"tests.e2e.clients.{program}", namespace],
        cwd=REPOSITORY,
        env=cluster.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout

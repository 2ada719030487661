"""The tour of the README, typed as it stands there."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.e2e.cluster import PATIENCE_SECONDS, Cluster
from tests.tidy.repository import read

pytestmark = pytest.mark.slow


def test_the_tour_works_as_it_is_written(right_kubectl: None, cluster: Cluster) -> None:
    (tour,) = re.findall(
        r"Then `kubectl` is used as always:\n\n```sh\n(.*?)```", read("README.md"), re.DOTALL
    )
    typed = [line for line in tour.splitlines() if "--watch" not in line]  # that one is left open
    assert len(typed) == len(tour.splitlines()) - 1
    ended = subprocess.run(
        ["bash", "-e", "-c", "\n".join(typed)],
        capture_output=True,
        env=cluster.environment(),
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    told = ended.stdout.splitlines()
    for line in (
        "deployment.apps/web serverside-applied",
        "deployment.apps/web scaled",
        "deployment.apps/web patched",
        'deployment.apps "web" deleted',
    ):
        assert line in [each.partition(" from ")[0] for each in told]
    assert re.search(r"^web +0/2 ", ended.stdout, re.MULTILINE), "and, so far, nobody makes its pods"

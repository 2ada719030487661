"""The tours of the README, typed as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.cluster import REPOSITORY, Cluster, running_cluster
from tests.tidy.repository import read

pytestmark = pytest.mark.slow

#: Longer than anything the tours wait for.
_PATIENCE_SECONDS = 240.0


def _blocks(heading: str) -> list[str]:
    """The shell blocks under a heading."""
    (part,) = re.findall(rf"## {heading}\n(.*?)\n## ", read("README.md"), re.DOTALL)
    return re.findall(r"```sh\n(.*?)```", part, re.DOTALL)


def _typed(cluster: Cluster, text: str, tmp_path: Path) -> str:
    """Type lines into a shell in which the first that fails ends it; the program is the one under test."""
    program = tmp_path / "nodeward"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m nodeward "$@"\n')
    program.chmod(0o755)
    ended = subprocess.run(
        ["bash", "-e", "-c", text.replace(".venv/bin/nodeward", str(program))],
        capture_output=True,
        cwd=REPOSITORY,
        env=cluster.environment(),
        text=True,
        timeout=_PATIENCE_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_the_short_tour_works_as_it_is_written(right_kubectl: None, tmp_path: Path) -> None:
    _, tour = _blocks("A short tour")
    # As `make up` does it: the directory is named from where one stands.
    with running_cluster(Path(os.path.relpath(tmp_path / "home", REPOSITORY))) as cluster:
        told = _typed(cluster, tour, tmp_path)
    for line in (
        'deployment "web" successfully rolled out',
        "deployment.apps/web rolled back",
        "pod/hello condition met",
        "and from inside",
        "node/sim-0 drained",
    ):
        assert line in told
    assert re.search(r"^hello from ", told, re.MULTILINE)
    assert re.search(r"^process-0 +Ready .* process://", told, re.MULTILINE)
    assert len(re.findall(r"^web-\S+ +1/1 +Running ", told, re.MULTILINE)) == 5


def test_the_tour_of_several_versions_works_as_it_is_written(right_kubectl: None, tmp_path: Path) -> None:
    start, upgrade, numbers = _blocks("Nodes of several versions")
    (flags,) = re.findall(r'make up ARGS="(.*)"', start)
    with running_cluster(tmp_path / "home", *flags.split()) as cluster:
        told = _typed(cluster, upgrade, tmp_path)
        assert "node(s) did not match node declared features: RestartAllContainersOnContainerExits" in told
        assert "pool old: 1.35 -> 1.36" in told
        assert "pod/needs-a-feature condition met" in told
        told = _typed(cluster, numbers, tmp_path)
        assert "node(s) had untolerated taint(s)" in told
        assert "node(s) had unsatisfied readiness gates: example.com/StorageReady" in told
        assert "pod/wants-a-good-node condition met" in told


def test_the_tour_of_exclusive_cpus_works_as_it_is_written(right_kubectl: None, tmp_path: Path) -> None:
    start, tour = _blocks("CPUs of their own")
    (flags,) = re.findall(r'make up ARGS="(.*)"', start)
    with running_cluster(tmp_path / "home", *flags.split()) as cluster:
        told = _typed(cluster, tour, tmp_path)
    # However slow the machine is, the file is read after the resize that it shows, and the last line after the delay.
    assert told.count("pod/exclusive-cpus condition met") == 3
    assert "1,9" in told.split("pod/exclusive-cpus patched")[-1]
    assert told.rindex("affinity list: 1,9") > told.rindex("condition met")
    assert "node numa-0: CPU manager policy static, full-pcpus-only=true, scale-delay-time=10s" in told
    assert re.search(r"ScaleDownDelayStarted.*keeps CPUs 1-2,9-10 for at least 10s, then it has 1,9", told)
    assert re.search(r"CPUSetApplied.*Container main runs on CPUs 1,9", told)

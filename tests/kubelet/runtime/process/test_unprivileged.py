"""The same promises for an agent that is not root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[4]
NOBODY = 65534
#: That it can be run once more is what supervisors need.
_TRIAL = (
    "import subprocess, sys, pytest, nodeward.kubelet.runtime.process.runtime;"
    "subprocess.run([sys.executable, '-c', ''], check=True)"
)
_DROP = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--bounding-set=-all")


def _environment() -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "PYTHONPATH": f"{REPOSITORY}:{sysconfig.get_paths()['purelib']}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _interpreter() -> str:
    """A Python that nobody in particular may run, the one of this run if possible."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed: cannot give up root")
    same = f"python3.{sys.version_info.minor}"
    for candidate in (sys.executable, shutil.which(same, path=os.defpath)):
        if candidate is None:
            continue
        tried = subprocess.run(
            [*_DROP, candidate, "-c", _TRIAL],
            cwd="/",
            env=_environment(),
            capture_output=True,
            check=False,
        )
        if tried.returncode == 0:
            return candidate
    pytest.skip(
        f"neither {sys.executable} nor {same} can be run by another user with what this run has installed"
    )


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="not root: the whole suite runs unprivileged already")
def test_the_contract_holds_without_privileges(tmp_path: Path) -> None:
    python = _interpreter()
    # Others can reach a directory of ours only if they may pass all those above it.
    home = Path(f"/tmp/nodeward-unprivileged-{os.getpid()}")
    home.mkdir(mode=0o700)
    os.chown(home, NOBODY, NOBODY)
    suites = [
        f"{REPOSITORY}/tests/contracts/runtimes/test_{name}.py" for name in ("real_containers", "recovering")
    ]
    try:
        done = subprocess.run(
            [*_DROP, python, "-m", "pytest", *suites, "-k", "process", f"--basetemp={home}/t", "-q", "-rs"],
            cwd=REPOSITORY,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        shutil.rmtree(home, ignore_errors=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout

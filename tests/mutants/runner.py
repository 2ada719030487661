"""`make mutants`: break one rule at a time in a copy of the tree, and see that a test named for it fails.

A mutant is killed when a test marked with one of its statements fails (or hangs past the limit), and survives when all
of them pass. Before that the same tests must pass on the unbroken copy, so that a failure means something. Each worker
has a copy of its own; compiled files are checked by the hash of their source, since two versions may be written
within the same second. Called by `__main__.py`; what a mutant is stands in `mutant.py`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.keps.ledger import ROOT
from tests.keps.proving import marked_files
from tests.mutants.mutant import Mutant, TableError

KILLED: Final = "killed"
SURVIVED: Final = "SURVIVED"
BROKEN: Final = "BROKEN"

_FAILED: Final = 1
_NO_TESTS: Final = 5
_TIMED_OUT: Final = -1


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one mutant, and by which test (or the end of pytest's output where none was named)."""

    mutant: Mutant
    word: str
    detail: str


def copied(root: Path, target: Path) -> None:
    """Copy every file that git knows or would know, and compile it with hashes."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
    ).stdout.decode()
    for name in filter(None, listed.split("\0")):
        source = root / name
        if source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target / name)
    # The tests start the command from the environment beside them.
    (target / ".venv").symlink_to(root / ".venv")
    hashed = ["--invalidation-mode", "checked-hash", "nodeward", "tests"]
    subprocess.run([sys.executable, "-m", "compileall", "-q", *hashed], cwd=target, check=True)


def files_marked(copy: Path, statements: Iterable[str]) -> list[str]:
    """Return the test files that mention one of these statements."""
    quoted = [f'"{each}"' for each in statements]
    return [
        str(path.relative_to(copy))
        for path in marked_files(copy / "tests")
        if any(each in path.read_text(encoding="utf-8") for each in quoted)
    ]


def run_tests(copy: Path, statements: Iterable[str], seconds: float) -> tuple[int, str]:
    """Run the tests marked with one of these statements until one fails; return pytest's exit code and output."""
    wanted = sorted(set(statements))
    files = files_marked(copy, wanted)
    if not files:
        return _NO_TESTS, f"no test is marked with {', '.join(wanted)}"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=line", "-p", "no:randomly"]
    command += ["-p", "tests.mutants.selecting", "--statements", ",".join(wanted), *files]
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "CI": "true"}
    process = subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return _TIMED_OUT, output
    return process.returncode, output


def try_mutant(copy: Path, mutant: Mutant, seconds: float) -> Result:
    """Break the rule in the copy, run its tests, and mend it again."""
    path = copy / mutant.file
    before = path.read_bytes()
    path.write_text(mutant.applied_to(copy), encoding="utf-8")
    try:
        code, output = run_tests(copy, mutant.statements, seconds)
    finally:
        path.write_bytes(before)
    if code == _FAILED:
        failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
        return Result(mutant, KILLED, failed[0] if failed else "")
    if code == _TIMED_OUT:
        return Result(mutant, KILLED, f"the tests hung for {seconds:g} s")
    if code == 0:
        return Result(mutant, SURVIVED, f"every test of {', '.join(mutant.statements)} passed")
    return Result(mutant, BROKEN, "\n".join(output.splitlines()[-15:]))


def run_all(
    mutants: list[Mutant], jobs: int, seconds: float, report: Callable[[Result], None], root: Path = ROOT
) -> list[Result]:
    """Run every mutant, several at a time. A row that does not fit, or a test that fails unbroken, is a TableError."""
    for mutant in mutants:
        mutant.applied_to(root)
    with tempfile.TemporaryDirectory(prefix="nodeward-mutants-") as directory:
        copies = [Path(directory) / f"copy-{n}" for n in range(max(1, min(jobs, len(mutants))))]
        for copy in copies:
            copied(root, copy)
        statements = {each for mutant in mutants for each in mutant.statements}
        code, output = run_tests(copies[0], statements, seconds * 10)
        if code != 0:
            raise TableError(f"the tests do not pass unbroken:\n{output[-3000:]}")
        free, lock = list(copies), threading.Lock()

        def one(mutant: Mutant) -> Result:
            with lock:
                copy = free.pop()
            try:
                result = try_mutant(copy, mutant, seconds)
            finally:
                with lock:
                    free.append(copy)
            report(result)
            return result

        with ThreadPoolExecutor(len(copies)) as pool:
            return list(pool.map(one, mutants))

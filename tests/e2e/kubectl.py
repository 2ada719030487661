"""The real kubectl, run as users run it: arguments in, exit code and visible text out."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import pytest

from tests.e2e.cluster import Cluster
from tests.patience import PATIENCE_SECONDS

#: Older ones send no protobuf, print some things differently, and are out of support.
OLDEST = (1, 32)


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Kubectl:
    """kubectl on one cluster, in one namespace unless a command names another."""

    cluster: Cluster
    namespace: str
    directory: Path

    def run(self, *arguments: str, stdin: str = "", editor: str = "") -> Ended:
        """Run it and take what comes."""
        ended = subprocess.run(
            self._command(*arguments),
            input=stdin,
            capture_output=True,
            text=True,
            env=self.cluster.environment()
            | {"KUBE_EDITOR": editor or "false", "TMPDIR": str(self.directory)},
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def __call__(self, *arguments: str, stdin: str = "", editor: str = "") -> str:
        """What it prints; it must succeed."""
        ended = self.run(*arguments, stdin=stdin, editor=editor)
        assert ended.code == 0, f"kubectl {' '.join(arguments)}: {ended}"
        return ended.out

    def refused(self, *arguments: str, stdin: str = "") -> str:
        """What it complains of; it must fail with 1."""
        ended = self.run(*arguments, stdin=stdin)
        assert ended.code == 1, f"kubectl {' '.join(arguments)}: {ended}"
        return ended.err

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def rows(self, *arguments: str) -> list[list[str]]:
        """A printed table, cell by cell; the first row is the header."""
        return [re.split(r" {2,}|\t", line.rstrip()) for line in self(*arguments).splitlines()]

    def file(self, name: str, text: str) -> str:
        path = self.directory / name
        path.write_text(text)
        return str(path)

    @contextmanager
    def running(self, *arguments: str) -> Iterator[IO[str]]:
        """A kubectl that goes on, such as a watch: what it prints, line by line. It gives up by itself in time."""
        process = subprocess.Popen(
            self._command(*arguments, f"--request-timeout={PATIENCE_SECONDS:.0f}s"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=self.cluster.environment(),
        )
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.kill()
            process.communicate()

    def _command(self, *arguments: str) -> list[str]:
        return [find(), f"--namespace={self.namespace}", *arguments]


def find() -> str:
    """Where kubectl is; what needs it is skipped, loudly, where there is none."""
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("NO KUBECTL HERE: nothing was tested with the real kubectl; install 1.32 or newer")
    return found


def check_version() -> None:
    said = subprocess.run(
        [find(), "version", "--client", "-o", "json"], capture_output=True, text=True, check=True
    )
    version = json.loads(said.stdout)["clientVersion"]
    if (int(version["major"]), int(re.sub(r"\D.*", "", version["minor"]))) < OLDEST:
        pytest.skip(
            f"KUBECTL IS TOO OLD: {version['gitVersion']}; nothing was tested with it, install 1.32 or newer"
        )

"""The real program, started as users start it: a process, a directory, a kubeconfig.

`running_cluster` starts `python -m nodeward up` (or `apiserver`) and yields once it says that it is ready. At the end
it is asked to stop as Ctrl-C does, and must end with 0 and without a traceback: every test that uses it shows that.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from tests.patience import PATIENCE_SECONDS

REPOSITORY = Path(__file__).parents[2]

#: Flags of a cluster in which objects stay as they are made: no nodes, and only the controllers namespaces need.
STILL = (
    "--nodes",
    "0",
    "--no-scheduler",
    "--controllers",
    "serviceaccount-controller,root-ca-certificate-publisher-controller,namespace-controller",
)

_READY = re.compile(r"nodeward (\w+): Kubernetes v(\S+) at (https://\S+), ready in (\d+\.\d\d) s")


@dataclass
class Cluster:
    """One running `nodeward` process."""

    directory: Path
    url: str
    kubeconfig: Path
    version: str
    process: subprocess.Popen[str]
    log: IO[str] = field(repr=False)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def connection(self) -> http.client.HTTPSConnection:
        """A connection as the administrator, with nothing of ours in between."""
        pki = self.directory / "pki"
        context = ssl.create_default_context(cafile=pki / "ca.crt")
        context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS, context=context)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request, its status and its answer."""
        with closing(self.connection()) as connection:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, json.loads(response.read())

    @contextmanager
    def watching(self, path: str) -> Iterator[Iterator[Any]]:
        """The events of a watch, one by one as they come."""
        with closing(self.connection()) as connection:
            connection.request("GET", path)
            response = connection.getresponse()
            assert response.status == 200, response.read()
            yield (json.loads(line) for line in response)

    def add_namespace(self, name: str) -> None:
        """A namespace in which pods can be created: its service account is there."""
        status, answer = self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        assert status == 201, answer
        accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
        with self.watching(
            f"{accounts}?watch=true&resourceVersion=0&fieldSelector=metadata.name=default"
        ) as events:
            assert next(events)["type"] == "ADDED"

    def environment(self) -> dict[str, str]:
        """For programs that find the cluster by KUBECONFIG; their own caches stay out of the user's home."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("KUBE")},
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.directory / "kubectl-cache"),
            "HOME": str(self.directory),
        }

    def errors(self) -> str:
        """What the process has written to standard error."""
        self.log.seek(0)
        return self.log.read()

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it as Ctrl-C does; it must end in good order."""
        self.process.send_signal(how)
        rest, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        written = self.errors()
        assert (self.process.returncode, rest, "Traceback" in written) == (0, "", False), written

    def kill(self) -> None:
        """Stop it as a power cut does."""
        self.process.kill()
        self.process.communicate(timeout=PATIENCE_SECONDS)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "nodeward", *arguments]


def start(directory: Path, *flags: str, subcommand: str = "up") -> Cluster:
    """Start it and read its two lines; whoever calls this stops it."""
    port_flag = "--port" if subcommand == "up" else "--secure-port"
    log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (lives as long as the process)
    process = subprocess.Popen(
        command(
            subcommand, "--dir", str(directory), *(() if port_flag in flags else (port_flag, "0")), *flags
        ),
        stdout=subprocess.PIPE,
        stderr=log,
        cwd=REPOSITORY,
        text=True,
    )
    assert process.stdout is not None
    ready = _READY.fullmatch(process.stdout.readline().rstrip("\n"))
    export = process.stdout.readline().rstrip("\n").partition("export KUBECONFIG=")[2]
    if ready is None or not export:
        process.kill()
        process.communicate()
        log.seek(0)
        with log:
            raise AssertionError(f"nodeward {subcommand} did not get ready: {log.read()}")
    return Cluster(directory, ready[3], Path(export), ready[2], process, log)


@contextmanager
def running_cluster(directory: Path, *flags: str, subcommand: str = "up") -> Iterator[Cluster]:
    """A cluster that is stopped in good order at the end, unless the test has stopped or killed it."""
    cluster = start(directory, *flags, subcommand=subcommand)
    try:
        yield cluster
        if cluster.process.returncode is None:
            cluster.stop()
    finally:
        if cluster.process.returncode is None:
            cluster.kill()
        cluster.log.close()


def refusal(directory: Path, *flags: str, subcommand: str = "up") -> str:
    """What a start that must fail says; it must end with 1 and one plain line."""
    ended = subprocess.run(
        command(subcommand, "--dir", str(directory), *flags),
        capture_output=True,
        cwd=REPOSITORY,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stdout, "Traceback" in ended.stderr) == (1, "", False), ended.stderr
    return ended.stderr

"""A real etcd for tests: one member on loopback, which can be killed and started again on its data."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class EtcdServer:
    """One etcd process and its directory. The election takes 0.1 s rather than 1 s: there is nobody to wait for."""

    def __init__(self, directory: Path) -> None:
        binary = shutil.which("etcd")
        if binary is None:
            pytest.skip(
                "NO ETCD HERE: nothing of the etcd store was tested; install etcd-server (3.4 or newer)"
            )
        self.endpoint = f"127.0.0.1:{free_port()}"
        peer = f"http://127.0.0.1:{free_port()}"
        client = f"http://{self.endpoint}"
        self._log = directory / "etcd.log"
        self._command = [
            binary,
            "--name=test",
            f"--data-dir={directory / 'data'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=test={peer}",
            "--heartbeat-interval=10",
            "--election-timeout=100",
            "--logger=zap",
            "--log-level=error",
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone, so that its ports are free again."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@contextmanager
def running_etcd(directory: Path) -> Iterator[EtcdServer]:
    server = EtcdServer(directory)
    server.start()
    try:
        yield server
    finally:
        server.kill()

"""A real etcd for tests: one member on loopback, which can be killed and started again on its data."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class EtcdServer:
    """One etcd process and its directory. Elections take 0.1 s rather than 1 s: everybody is on this machine."""

    def __init__(
        self,
        directory: Path,
        *,
        name: str = "test",
        peers: Mapping[str, str] | None = None,
        scheme: str = "http",
        options: Sequence[str] = (),
    ) -> None:
        binary = shutil.which("etcd")
        if binary is None:
            pytest.skip(
                "NO ETCD HERE: nothing of the etcd store was tested; install etcd-server (3.4 or newer)"
            )
        self.endpoint = f"127.0.0.1:{free_port()}"
        peers = peers or {name: f"http://127.0.0.1:{free_port()}"}
        client = f"{scheme}://{self.endpoint}"
        self._log = directory / f"{name}.log"
        self._command = [
            binary,
            f"--name={name}",
            f"--data-dir={directory / name}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peers[name]}",
            f"--initial-advertise-peer-urls={peers[name]}",
            f"--initial-cluster={','.join(f'{peer}={url}' for peer, url in peers.items())}",
            "--heartbeat-interval=10",
            "--election-timeout=100",
            "--logger=zap",
            "--log-level=error",
            *options,
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
def running(*servers: EtcdServer) -> Iterator[None]:
    try:
        for server in servers:
            server.start()
        yield
    finally:
        for server in servers:
            server.kill()


@contextmanager
def running_etcd(directory: Path) -> Iterator[EtcdServer]:
    server = EtcdServer(directory)
    with running(server):
        yield server


@contextmanager
def running_cluster(directory: Path, size: int) -> Iterator[list[EtcdServer]]:
    peers = {f"member-{number}": f"http://127.0.0.1:{free_port()}" for number in range(size)}
    servers = [EtcdServer(directory, name=name, peers=peers) for name in peers]
    with running(*servers):
        yield servers

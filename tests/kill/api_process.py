"""An API server in a process of its own, which can be killed and started again on its data."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_kubeconfig
from tests.contracts.store_etcd_server import free_port
from tests.patience import PATIENCE_SECONDS

#: In the environment of everything a server starts, but for the commands of containers: its directory.
MARK = "NODEWARD_KILL_TEST"


class ApiProcess:
    """`nodeward up`, or another command that serves the API, always on the same port."""

    def __init__(self, directory: Path, command: Sequence[str], port_flag: str) -> None:
        self._directory = directory
        self._command = [
            sys.executable,
            "-m",
            "nodeward",
            *command,
            "--dir",
            str(directory),
            port_flag,
            str(free_port()),
            "--disable-admission-plugins",
            "ServiceAccount",
        ]
        self._process: asyncio.subprocess.Process | None = None
        self.log = directory / "log"

    @property
    def kubeconfig(self) -> Path:
        return self._directory / "kubeconfig"

    async def start(self) -> None:
        """Start, and wait until it says it is ready."""
        await self.launch()
        process = self._process
        assert process is not None
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = await process.stdout.readline()
        assert b"ready in" in line, f"it does not start: {line!r} {self.log.read_text()}"

    async def launch(self) -> None:
        """Start, and wait for nothing."""
        self._directory.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**os.environ, MARK: str(self._directory)},
            )

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
            self._process = None

    async def stop(self) -> None:
        """As Ctrl-C does; it must end in good order."""
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        async with asyncio.timeout(PATIENCE_SECONDS):
            code = await self._process.wait()
        self._process = None
        assert code == 0, self.log.read_text()

    def client(self, clock: Clock) -> Client:
        config = load_kubeconfig([self.kubeconfig])
        return connect(config, clock=clock, environment={}, request_timeout=PATIENCE_SECONDS)


def with_environment(text: str) -> list[int]:
    """All living processes that were started with something in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                environ = file.read()
        except OSError:
            continue  # gone, or not ours
        if text.encode() in environ.split(b"\0"):
            found.append(int(name))
    return found

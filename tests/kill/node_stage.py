"""A node for tests that kill its kubelet: `nodeward kubelet`, its pods as the API shows them, and their processes."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import ContainerStatus
from nodeward.apiserver.pki import Pki, kubeconfig, write_private
from nodeward.kubelet.runtime.process import tree
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealClock
from nodeward.machinery.connecting import connect
from nodeward.machinery.kubeconfig import load_kubeconfig
from tests.contracts.store_etcd_server import free_port
from tests.e2e.cluster import Cluster
from tests.kill.api_process import MARK, with_environment
from tests.patience import PATIENCE_SECONDS, until

REPOSITORY = Path(__file__).parents[2]
CLOCK = RealClock()
#: In the environment of a pod's commands: the directory of its node.
POD_MARK = "BEATS_FOR"
#: Counts for ever: a beat that was lost, or came twice, shows.
BEATS = "i=0; while :; do i=$((i+1)); echo beat $i; sleep 0.05; done"
_BEAT = re.compile(r" beat (\d+)$", re.MULTILINE)


class Stage:
    """One node of a cluster, in a directory of its own."""

    def __init__(self, cluster: Cluster, directory: Path, name: str) -> None:
        self.root, self.name = directory / "node", name
        self.client: Client = _client(cluster.kubeconfig)
        self._kubeconfig = directory / "kubeconfig"
        pki = Pki(cluster.directory / "pki", CLOCK.now_ns())
        pair = pki.client_certificate(f"system:node:{name}", ("system:nodes",))
        write_private(self._kubeconfig, kubeconfig(cluster.url, pki.authority_certificate, pair).encode())
        self._port = free_port()
        self._process: asyncio.subprocess.Process | None = None

    # -- the kubelet

    async def launch(self) -> asyncio.subprocess.Process:
        """Start the kubelet, and wait for nothing."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "nodeward", "kubelet", "--node-name", self.name, "--runtime", "process"),
            *("--root-dir", str(self.root), "--kubeconfig", str(self._kubeconfig)),
            *("--port", str(self._port), "--healthz-port", "0"),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=REPOSITORY,
            env={**os.environ, MARK: str(self.root)},
        )
        return self._process

    async def start(self) -> None:
        process = await self.launch()
        assert process.stdout is not None
        assert process.stderr is not None
        async with CLOCK.timeout(PATIENCE_SECONDS):
            if not (await process.stdout.readline()).startswith(b"nodeward kubelet: node "):
                raise AssertionError((await process.stderr.read()).decode())

    async def refused(self) -> str:
        """What a kubelet says that must not start."""
        process = await self.launch()
        async with CLOCK.timeout(PATIENCE_SECONDS):
            _, said = await process.communicate()
        assert process.returncode == 1, said
        self._process = None
        return said.decode()

    async def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
            self._process = None

    async def end(self) -> None:
        """Nothing goes on after a test, whatever became of it."""
        await self.kill()
        tree.kill_all(self.processes())
        await self.client.aclose()

    def processes(self) -> list[int]:
        """The kubelet's, its supervisors', and those of containers."""
        return with_environment(f"{MARK}={self.root}") + with_environment(f"{POD_MARK}={self.root}")

    # -- pods

    async def run_pod(self, name: str, script: str, **spec: Any) -> None:
        container = {
            "name": "c",
            "image": "image",
            "command": ["sh", "-c", script],
            "env": [{"name": POD_MARK, "value": str(self.root)}],
        }
        tree_ = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "nodeName": self.name,
                "terminationGracePeriodSeconds": 1,
                "containers": [container],
                **spec,
            },
        }
        await self.client.create(from_tree(tree_, Pod))

    async def pod(self, name: str, holds: Callable[[Pod], bool]) -> Pod:
        """The pod, once something is true of it."""

        async def ask() -> Pod:
            return await self.client.get(Pod, name, "default")

        return await until(CLOCK, ask, holds, f"pod {name}")

    async def gone(self, *names: str) -> None:
        async def left() -> list[str]:
            found = (await self.client.list(Pod, "default")).items
            return [pod.metadata.name for pod in found if pod.metadata.name in names]

        await until(CLOCK, left, lambda found: not found, "the pods are gone")

    async def no_process_left(self) -> None:
        """But for the kubelet's own."""

        async def living() -> list[int]:
            return with_environment(f"{POD_MARK}={self.root}")

        await until(CLOCK, living, lambda found: not found, "the processes are gone")

    def process_of(self, pod: Pod) -> tuple[int, int]:
        return process_of(self.root, pod)

    def beats(self, pod: Pod) -> int:
        return beats_of(self.root, pod.metadata.name, pod.metadata.uid)

    async def beats_beyond(self, pod: Pod, number: int) -> int:
        """How far it has counted, once that is more than it was."""

        async def ask() -> int:
            return self.beats(pod)

        return await until(CLOCK, ask, lambda now: now > number, f"{pod.metadata.name} goes on")


def process_of(root: Path, pod: Pod) -> tuple[int, int]:
    """The number of the pod's process, on the node with this directory, and when it began; it must be alive."""
    _, _, container_id = status(pod).container_id.partition("://")
    directory = root / "containers" / "pods" / pod.metadata.uid / container_id
    pid = json.loads((directory / "started").read_text())["pid"]
    ticks = tree.start_ticks(pid)
    assert ticks, "the API says that it runs, and there is no process"
    return pid, ticks


def beats_of(root: Path, name: str, uid: str) -> int:
    """How far the pod's process has counted; its log must be without a gap."""
    log = root / "logs" / "pods" / f"default_{name}_{uid}" / "c" / "0.log"
    beats = [int(number) for number in _BEAT.findall(log.read_text())]
    assert beats == list(range(1, len(beats) + 1)), f"the log of {name} has a gap"
    return len(beats)


def status(pod: Pod) -> ContainerStatus:
    return pod.status.container_statuses[0]


def is_ready(pod: Pod) -> bool:
    return bool(pod.status.container_statuses) and status(pod).ready


def _client(path: Path) -> Client:
    return connect(load_kubeconfig([path]), clock=CLOCK, environment={}, request_timeout=PATIENCE_SECONDS)

"""Pods of one container, and a stage with one runtime, for tests of the process runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    ContainerRequest,
    ContainerStarted,
    ExecRequest,
    PodGone,
)
from nodeward.kubelet.runtime.process import tree
from nodeward.kubelet.runtime.process.runtime import ProcessRuntime
from nodeward.machinery.clock import RealChance, RealClock
from tests.contracts.runtimes.ground import LOOK, Heard
from tests.patience import PATIENCE_SECONDS

#: Says that it listens, and waits to be told to stop.
WAITS = "trap 'exit 0' TERM; echo ready; while :; do sleep 1 & wait $!; done"


def pod_of(uid: str, **fields: Any) -> Pod:
    container = Container(name="c", image="example.com/app", **fields)
    meta = ObjectMeta(name=f"pod-{uid}", namespace="default", uid=uid)
    return Pod(metadata=meta, spec=PodSpec(containers=[container]))


def request_of(pod: Pod, script: str = "", **fields: Any) -> ContainerRequest:
    command = ("sh", "-c", script) if script else ()
    return ContainerRequest(pod, pod.spec.containers[0], 0, **{"env": {}, "command": command, **fields})


class Stage:
    """One runtime over a directory."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.clock = RealClock()
        self.heard = Heard(self.clock)
        self.root = root
        self.runtime = ProcessRuntime(root / "runtime", self.clock, RealChance(), **options)
        self._count = 0

    async def run(
        self, script: str = "", pod: Pod | None = None, **fields: Any
    ) -> tuple[Pod, ContainerStarted]:
        """A container that started."""
        self._count += 1
        pod = pod or pod_of(f"u{self._count}")
        uid = pod.metadata.uid
        self.runtime.start_sandbox(pod)
        fields.setdefault("log_path", str(self.root / f"log-{uid}"))
        self.runtime.start_container(request_of(pod, script, **fields))
        started = await self.heard.wait_for(ContainerStarted, uid=uid)
        if "echo ready" in script:
            await self.until(lambda: "ready" in self.log(pod))
        return pod, started

    async def exited(self, pod: Pod) -> ContainerExited:
        return await self.heard.wait_for(ContainerExited, uid=pod.metadata.uid)

    async def shell(self, pod: Pod, script: str) -> str:
        """What a command in the container says."""
        request = ExecRequest(pod.metadata.uid, "c", ("sh", "-c", script))
        return (await self.runtime.exec_sync(request, PATIENCE_SECONDS)).output.decode()

    def log(self, pod: Pod) -> str:
        path = self.root / f"log-{pod.metadata.uid}"
        return path.read_text() if path.exists() else ""

    async def until(self, check: Callable[[], bool]) -> None:
        async with self.clock.timeout(PATIENCE_SECONDS):
            while not check():
                await self.clock.sleep(LOOK)

    async def gone(self, *ids: str) -> None:
        """Until no process of these containers is left."""
        await self.until(lambda: not any(tree.marked(each) for each in ids))

    async def another_agent(self) -> None:
        """The agent ends, and the next one finds what runs."""
        await self.runtime.stop()
        await self.runtime.start(self.heard)
        await self.runtime.recover()

    async def end(self) -> None:
        for pod in await self.runtime.recover():
            self.runtime.remove_pod(pod.uid)
            await self.heard.wait_for(PodGone, uid=pod.uid)
        await self.runtime.stop()


def on_stage(root: Path, play: Callable[[Stage], Awaitable[None]], **options: Any) -> None:
    """Play with a runtime, and clear up after."""

    async def main() -> None:
        stage = Stage(root, **options)
        await stage.runtime.start(stage.heard)
        await stage.runtime.recover()
        try:
            await play(stage)
        finally:
            await stage.end()

    asyncio.run(main())

"""The ground a runtime is tried on, and the scene a test plays there.

A `Ground` knows one kind of runtime: how to make it (again and again over the same containers, as agents come and
go), on which clock it lives, and what containers do there. A test plays on a `Scene`: one agent with its runtime,
everything it hears kept in order. When a scene ends its pods are removed and everything heard is audited: what has
to come once came once.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    ContainerFailed,
    ContainerRequest,
    ContainerStarted,
    FoundContainer,
    FoundPod,
    Mount,
    PodGone,
    Runtime,
    RuntimeEvent,
    SandboxStarted,
)
from nodeward.machinery.clock import Clock
from tests.patience import PATIENCE_SECONDS

#: Between two looks at a file another process writes.
LOOK = 0.02

E = TypeVar("E")


@dataclass(frozen=True)
class Act:
    """What a container does, told in both ways: to a simulated one and to a shell."""

    simulated: str = ""
    #: for `sh -c`; where it prints the line `ready`, a start waits for that
    script: str = ""
    #: instead of a script
    command: tuple[str, ...] = ()

    def argv(self) -> tuple[str, ...]:
        return self.command or ("sh", "-c", self.script)


_WAIT = "echo ready; while :; do sleep 1 & wait $!; done"
#: Runs until it is told to stop, and then ends well.
SERVES = Act("", f"trap 'exit 0' TERM; {_WAIT}")
#: Does not listen to SIGTERM.
DEAF = Act("stop-delay=100h", f"trap '' TERM; {_WAIT}")
#: Cannot be started.
BROKEN = Act("fails=RunContainerError", command=("/no/such/command",))


def ends(code: int) -> Act:
    """Ends by itself, at once."""
    return Act(f"run-time=0s,exit-code={code}", f"exit {code}")


class Heard:
    """Everything an agent was told, in order."""

    def __init__(self, clock: Clock) -> None:
        self.events: list[RuntimeEvent] = []
        self._clock = clock
        self._news = asyncio.Event()

    def __call__(self, event: RuntimeEvent) -> None:
        self.events.append(event)
        self._news.set()

    def of(self, kind: type[E], **fields: object) -> list[E]:
        return [
            event
            for event in self.events
            if isinstance(event, kind) and all(getattr(event, key) == value for key, value in fields.items())
        ]

    async def wait_for(self, kind: type[E], count: int = 1, **fields: object) -> E:
        """The `count`-th such event, now or soon."""
        try:
            async with self._clock.timeout(PATIENCE_SECONDS):
                while len(found := self.of(kind, **fields)) < count:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"no {kind.__name__} {fields}; heard: {self.events}") from None
        return found[count - 1]


class Ground(ABC):
    """One kind of runtime, with a directory for what its node keeps."""

    kind: str = ""
    #: commands run, files are seen, logs are written
    is_real: bool = True
    #: an image that can be had and holds `sh`, `cat`, `echo`, `sleep`, `env`, `stty`
    image: str = "example.com/shell:1"

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @abstractmethod
    def make(self, clock: Clock) -> Runtime:
        """A runtime, not started, over the containers that are there already."""

    @abstractmethod
    def run(self, play: Callable[[Clock], Awaitable[None]]) -> None:
        """Run on the clock the runtime lives on."""

    def play(self, test: Callable[[Scene], Awaitable[None]]) -> None:
        async def play(clock: Clock) -> None:
            scene = Scene(self, clock)
            await scene.open()
            try:
                await test(scene)
            finally:
                await scene.close()
            audit(scene.heard.events, scene.found)

        self.run(play)


@dataclass
class Scene:
    """An agent with its runtime."""

    ground: Ground
    clock: Clock
    heard: Heard = field(init=False)
    runtime: Runtime = field(init=False)
    #: exits and starts that agents found rather than heard of
    found: list[FoundContainer] = field(default_factory=list)
    _uids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.heard = Heard(self.clock)
        self.runtime = self.ground.make(self.clock)

    async def open(self) -> Sequence[FoundPod]:
        await self.runtime.start(self.heard)
        pods = await self.runtime.recover()
        self.found.extend(each for pod in pods for each in pod.containers)
        return pods

    async def close(self) -> None:
        for uid in self._uids:
            count = len(self.heard.of(PodGone, uid=uid))
            self.runtime.remove_pod(uid)
            await self.heard.wait_for(PodGone, count + 1, uid=uid)
        await self.runtime.stop()

    async def another_agent(
        self, meanwhile: Callable[[], Awaitable[None]] | None = None
    ) -> Sequence[FoundPod]:
        """The agent goes, something may happen, another one comes and looks what is there."""
        await self.runtime.stop()
        if meanwhile is not None:
            await meanwhile()
        self.runtime = self.ground.make(self.clock)
        return await self.open()

    # -- pods and containers

    def pod(self, *acts: Act, image: str = "", policy: str = "", **fields: Any) -> Pod:
        """A pod whose containers, c0, c1, ..., do these things."""
        uid = f"uid-{len(self._uids)}"
        self._uids.append(uid)
        annotations = {f"simulation.nodeward.dev/c{index}": act.simulated for index, act in enumerate(acts)}
        containers = [
            Container(
                name=f"c{index}",
                image=image or self.ground.image,
                command=list(act.argv()),
                image_pull_policy=policy,
                termination_message_path="/dev/termination-log",
                **fields,
            )
            for index, act in enumerate(acts)
        ]
        meta = ObjectMeta(name=f"pod-{uid}", namespace="default", uid=uid, annotations=annotations)
        return Pod(metadata=meta, spec=PodSpec(containers=containers))

    def request(
        self,
        pod: Pod,
        name: str = "c0",
        attempt: int = 0,
        *,
        args: tuple[str, ...] = (),
        env: Mapping[str, str] | None = None,
        mounts: tuple[Mount, ...] = (),
        cpuset: str = "",
    ) -> ContainerRequest:
        container = next(each for each in pod.spec.containers if each.name == name)
        place = self.ground.directory / pod.metadata.uid / f"{name}-{attempt}"
        place.mkdir(parents=True, exist_ok=True)
        return ContainerRequest(
            pod,
            container,
            attempt,
            env or {},
            tuple(container.command),
            args,
            mounts,
            cpuset,
            log_path=str(place / "log"),
            termination_log=str(place / "message"),
        )

    async def sandbox(self, pod: Pod) -> SandboxStarted:
        uid = pod.metadata.uid
        count = len(self.heard.of(SandboxStarted, uid=uid))
        self.runtime.start_sandbox(pod, str(self.ground.directory / uid))
        return await self.heard.wait_for(SandboxStarted, count + 1, uid=uid)

    async def started(self, pod: Pod, name: str = "c0", attempt: int = 0, **more: Any) -> ContainerStarted:
        """A container that runs, as far as saying that it is ready."""
        request = self.request(pod, name, attempt, **more)
        self.runtime.start_container(request)
        uid = pod.metadata.uid
        event = await self.heard.wait_for(ContainerStarted, uid=uid, container=name, attempt=attempt)
        if "echo ready" in " ".join(request.command):
            await self.log_holds(request, "ready")
        return event

    async def running(self, act: Act = SERVES, **more: Any) -> tuple[Pod, ContainerStarted]:
        """A pod with one container, which runs."""
        pod = self.pod(act)
        await self.sandbox(pod)
        return pod, await self.started(pod, **more)

    async def failed(self, request: ContainerRequest) -> ContainerFailed:
        self.runtime.start_container(request)
        uid = request.pod.metadata.uid
        return await self.heard.wait_for(ContainerFailed, uid=uid, container=request.container.name)

    async def exited(self, pod: Pod, name: str = "c0", count: int = 1) -> ContainerExited:
        return await self.heard.wait_for(ContainerExited, count, uid=pod.metadata.uid, container=name)

    async def log_holds(self, request: ContainerRequest, text: str) -> None:
        """Until a text is in the log; simulated containers have none."""
        if self.ground.is_real:
            await self.file_holds(Path(request.log_path), text)

    async def file_holds(self, path: Path, text: str) -> None:
        try:
            async with self.clock.timeout(PATIENCE_SECONDS):
                while text not in _text(path):
                    await self.clock.sleep(LOOK)
        except TimeoutError:
            raise AssertionError(f"{path} does not hold {text!r} but {_text(path)!r}") from None


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def audit(events: Sequence[RuntimeEvent], found: Sequence[FoundContainer]) -> None:
    """Whatever was played: every start has one end, no end is without a start, nothing comes twice."""
    started = [event.id for event in events if isinstance(event, ContainerStarted)]
    exited = [event.id for event in events if isinstance(event, ContainerExited)]
    assert len(set(started)) == len(started), "a start was told twice"
    assert len(set(exited)) == len(exited), "an exit was told twice"
    found_dead = {each.id for each in found if each.exited is not None}
    known = {*started, *(each.id for each in found)}
    assert set(exited) <= known, "an exit without a start"
    assert known <= {*exited, *found_dead}, "a start without an exit"
    gone: set[str] = set()
    for event in events:
        if isinstance(event, PodGone):
            gone.add(event.uid)
        elif isinstance(event, SandboxStarted):
            gone.discard(event.uid)
        elif isinstance(event, ContainerStarted | ContainerExited):
            assert event.uid not in gone, f"{event} after the pod was gone"

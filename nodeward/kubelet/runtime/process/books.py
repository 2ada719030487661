"""The agent's books of pods and containers that are processes, and what is told of them.

Plain records, changed by `runtime` alone; everything in them can be found again in the directories.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.runtime.interface import ContainerExited, FoundContainer, FoundPod
from nodeward.kubelet.runtime.process.execing import ProcessExec
from nodeward.kubelet.runtime.process.notes import Exited, Plan, Started
from nodeward.kubelet.runtime.process.waiting import ProcessWatch
from nodeward.kubelet.runtime.resources import ContainerResources
from nodeward.kubelet.runtime.termination import termination_message
from nodeward.machinery.clock import Timer

#: The network is the node's.
ADDRESS: Final = "127.0.0.1"


@dataclass(slots=True)
class BookedContainer:
    directory: str
    name: str
    id: str
    attempt: int
    image: str
    plan: Plan | None = None
    #: None until it runs
    started: Started | None = None
    exited: ContainerExited | None = None
    #: the CPUs it may run on, if they were changed after its start; then those that some threads may have as well
    cpusets: tuple[str, ...] = ()
    pinning: asyncio.Lock = field(default_factory=asyncio.Lock)
    watch: ProcessWatch | None = None
    #: when it will be killed (monotonic), once it is to stop
    kill_ns: int | None = None
    timer: Timer | None = None
    execs: list[ProcessExec] = field(default_factory=list)
    #: it has ended, or will never run
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def while_entering(self) -> AbstractAsyncContextManager[None]:
        """Return what is held while a command starts in it: without a cgroup it would keep CPUs from before a move."""
        has_cgroup = self.plan is not None and bool(self.plan.get("cgroup"))
        return nullcontext() if has_cgroup else self.pinning

    def signal(self, number: int) -> None:
        if self.watch is not None:
            self.watch.send(number)


@dataclass(slots=True)
class BookedPod:
    uid: str
    namespace: str
    name: str
    #: by id, in the order of their starts
    containers: dict[str, BookedContainer] = field(default_factory=dict)
    is_removing: bool = False

    def latest(self, name: str) -> BookedContainer | None:
        return next((each for each in reversed(self.containers.values()) if each.name == name), None)


def exit_of(uid: str, container: BookedContainer, exited: Exited) -> ContainerExited:
    """What is told of an end, with what the container left to say."""
    plan, started, code = container.plan, container.started, exited["code"]
    message = exited["message"]
    if plan is not None and not message:
        message = termination_message(plan["termination_log"], plan["log"], plan["termination_policy"], code)
    return ContainerExited(
        uid,
        container.name,
        container.id,
        code,
        exited["reason"] or ("Completed" if code == 0 else "Error"),
        exited["at_ns"],
        started["at_ns"] if started is not None else 0,
        message=message,
    )


def image_id_of(image: str) -> str:
    return f"process:{image}"


def resources_of(container: BookedContainer) -> ContainerResources:
    """What is in force: CPUs are all that is controlled."""
    return ContainerResources(cpuset=cpusets_of(container)[0])


def cpusets_of(container: BookedContainer) -> tuple[str, ...]:
    """The CPUs a container may run on, then those that some of its threads may have after a move that was cut short."""
    planned = container.plan["cpus"] if container.plan is not None else []
    return container.cpusets or (str(CPUSet(planned)),)


def found_pod(pod: BookedPod) -> FoundPod:
    containers = tuple(
        FoundContainer(
            each.name,
            each.id,
            each.attempt,
            each.image,
            image_id_of(each.image),
            each.started["at_ns"],
            each.exited,
            resources_of(each),
        )
        for each in pod.containers.values()
        if each.started is not None
    )
    return FoundPod(pod.uid, pod.namespace, pod.name, f"sandbox-{pod.uid}", (ADDRESS,), containers)

"""What the node agent asks of a container runtime, and what it is told.

Commands return at once and never fail: whatever comes of them is told as an event, later or (simulated) before the
command returns. So one agent with real containers and five thousand simulated ones run the same code, without a task
a container. What is interactive (exec, logs) is asynchronous and stands apart.

What must stay true, for every runtime (tests/contracts has the suite):

* a started sandbox is told once, `SandboxStarted` or `SandboxFailed`; a `start_container` ends in exactly one of
  `ContainerStarted` or `ContainerFailed`; every `ContainerStarted` is followed by exactly one `ContainerExited`, also
  when the agent was away meanwhile (`recover` tells what it missed);
* commands are idempotent: stopping what is not there, or is stopping, is no error (a shorter grace period counts);
* an `update_resources` ends in exactly one of `ResourcesApplied` (with what is in force) or `ResourcesRefused` (and
  everything stays as it was);
* `remove_pod` stops what still runs, releases everything, and ends in `PodGone`, also for a pod never heard of;
* a container survives the agent: after a restart `recover` finds it running, with the same id, start and resources.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.runtime.resources import ContainerResources


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory or file of the node that a container sees."""

    source: str
    target: str
    is_read_only: bool = False
    #: noexec, nodev, nosuid; only on runtimes with the ability MOUNT_OPTIONS
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerRequest:
    """One container to start: everything is worked out, nothing is left to look up."""

    pod: Pod
    container: Container
    #: 0 for the first start, then 1, 2, ...
    attempt: int
    env: Mapping[str, str]
    #: with $(NAME) expanded; empty: what the image says
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    #: CPUs it may run on, as a list like "0-3,8"; empty: all that are shared
    cpuset: str = ""
    #: where its output goes, as Kubernetes' log files; empty: nowhere
    log_path: str = ""
    #: where on the node the termination message is found; empty: nowhere
    termination_log: str = ""
    #: False if the CPUs are its own: then nothing but their number limits it
    has_cpu_quota: bool = True
    #: devices by their CDI ids, `vendor/class=name`; the runtime finds out what they are
    cdi_ids: tuple[str, ...] = ()


# -- events


@dataclass(frozen=True, slots=True)
class SandboxStarted:
    uid: str
    sandbox_id: str
    ips: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SandboxFailed:
    uid: str
    message: str


@dataclass(frozen=True, slots=True)
class ImagePulling:
    """Told for people; nothing waits for it."""

    uid: str
    container: str
    image: str


@dataclass(frozen=True, slots=True)
class ImagePulled:
    """`seconds` is 0 when the image was there already."""

    uid: str
    container: str
    image: str
    was_present: bool
    seconds: float = 0.0
    size: int = 0


@dataclass(frozen=True, slots=True)
class ContainerStarted:
    uid: str
    container: str
    id: str
    image: str
    image_id: str
    at_ns: int
    attempt: int = 0
    #: what is in force; None: what the request said
    resources: ContainerResources | None = None


@dataclass(frozen=True, slots=True)
class ContainerFailed:
    """It did not start. `reason` is one users know: ErrImagePull, ErrImageNeverPull, InvalidImageName,
    CreateContainerConfigError, CreateContainerError, RunContainerError."""

    uid: str
    container: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ContainerExited:
    uid: str
    container: str
    id: str
    exit_code: int
    #: Completed, Error, OOMKilled, ContainerStatusUnknown, StartError
    reason: str
    at_ns: int
    started_ns: int = 0
    signal: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class ResourcesApplied:
    """A running container uses other resources from now on: `resources` are all that are in force."""

    uid: str
    container: str
    id: str
    resources: ContainerResources


@dataclass(frozen=True, slots=True)
class ResourcesRefused:
    """The resources of a container stay as they are."""

    uid: str
    container: str
    reason: str


@dataclass(frozen=True, slots=True)
class PodGone:
    """Nothing of the pod is left in the runtime."""

    uid: str


RuntimeEvent: TypeAlias = (
    SandboxStarted
    | SandboxFailed
    | ImagePulling
    | ImagePulled
    | ContainerStarted
    | ContainerFailed
    | ContainerExited
    | ResourcesApplied
    | ResourcesRefused
    | PodGone
)
Listener: TypeAlias = Callable[[RuntimeEvent], None]


# -- what was there before


@dataclass(frozen=True, slots=True)
class FoundContainer:
    """One container the runtime still knows, running or not."""

    name: str
    id: str
    attempt: int
    image: str
    image_id: str
    started_ns: int
    #: None while it runs
    exited: ContainerExited | None = None
    #: what is in force, while it runs
    resources: ContainerResources | None = None


@dataclass(frozen=True, slots=True)
class FoundPod:
    """One pod the runtime still knows, from before the agent started."""

    uid: str
    namespace: str
    name: str
    sandbox_id: str
    ips: tuple[str, ...]
    containers: tuple[FoundContainer, ...] = ()


# -- interaction


@dataclass(frozen=True, slots=True)
class ExecRequest:
    """A command to run in a container that runs."""

    uid: str
    container: str
    command: tuple[str, ...]
    has_stdin: bool = False
    is_tty: bool = False


class ExecSession(Protocol):
    """A running command. Its output comes as (stream, bytes): 1 is stdout, 2 stderr (a terminal has only 1)."""

    def output(self) -> AsyncIterator[tuple[int, bytes]]: ...

    async def write(self, data: bytes) -> None:
        """To its standard input; waits while it does not read."""
        ...

    async def close_stdin(self) -> None: ...

    async def resize(self, width: int, height: int) -> None: ...

    async def wait(self) -> int:
        """Its exit code; after the output has ended."""
        ...

    async def kill(self) -> None:
        """The caller is gone."""
        ...


@dataclass(frozen=True, slots=True)
class ExecResult:
    exit_code: int
    output: bytes


class Runtime(Protocol):
    """What runs containers for one agent, or for a whole fleet of simulated nodes."""

    #: what nodes say in status.nodeInfo.containerRuntimeVersion, like "containerd://1.6.20"
    version: str
    #: what it can do, for declared features (`nodeward.features.declared.abilities`); known once it is started
    abilities: Mapping[str, str]

    async def start(self, listener: Listener) -> None:
        """Connect; from now on events are told. Raises a WorldError that says what is missing."""
        ...

    async def stop(self) -> None:
        """Let go; containers go on running."""
        ...

    async def recover(self) -> Sequence[FoundPod]:
        """What is there from an earlier agent. Exits that were missed are in it, and not told again."""
        ...

    def adopt(self, pod: Pod) -> FoundPod | None:
        """A pod that `recover` did not name and whose status says that it ran: None if it must start anew.

        Simulated containers live as long as their pod's status says so; real ones that are not there are gone.
        """
        ...

    # commands

    def start_sandbox(self, pod: Pod, log_directory: str = "") -> None: ...

    def start_container(self, request: ContainerRequest) -> None:
        """Pull the image as the policy says, create, start."""
        ...

    def stop_container(self, uid: str, container: str, grace_seconds: float) -> None:
        """SIGTERM (or the pod's stop signal), and SIGKILL after the grace period."""
        ...

    def remove_container(self, uid: str, container_id: str) -> None:
        """Forget a dead container: its file system, not its log."""
        ...

    def remove_pod(self, uid: str) -> None: ...

    def update_resources(self, uid: str, container: str, resources: ContainerResources) -> None:
        """Change what a running container may use; what is None stays as it is."""
        ...

    # answers

    async def exec(self, request: ExecRequest) -> ExecSession:
        """Run a command. Raises WorldError when the container does not run or cannot do it."""
        ...

    async def exec_sync(self, request: ExecRequest, timeout: float) -> ExecResult:
        """Run a command to its end and give its output, at most 16 KiB; TimeoutError when it takes longer."""
        ...

    def forward_address(self, pod: Pod) -> str:
        """Where ports of a running pod can be reached from this machine. Raises WorldError when nowhere."""
        ...

    def has_image(self, image: str) -> bool: ...

    def images(self) -> Mapping[str, int]:
        """Names and sizes, for status.images."""
        ...


@dataclass(frozen=True, slots=True)
class LogOptions:
    """What `kubectl logs` asks for."""

    follow: bool = False
    is_previous: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since_ns: int = 0
    has_timestamps: bool = False
    streams: frozenset[str] = field(default_factory=lambda: frozenset({"stdout", "stderr"}))

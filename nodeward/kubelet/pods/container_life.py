"""One container of a pod: where it is between waiting and exited, and what the status will say of it.

The pod's life moves it; here is what is known of it and the small questions everybody asks.

What must stay true: at most one instance lives (`STARTING` or `RUNNING`); `restart_count` never falls; `exit` is how
the latest instance ended, and is kept until the next one runs, since that is what users see meanwhile; who waits has
none.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeAlias

from nodeward.api.core_v1.container import Container, EphemeralContainer, ResourceRequirements
from nodeward.api.core_v1.pod_status import VolumeMountStatus
from nodeward.kubelet.runtime.interface import ContainerExited
from nodeward.kubelet.runtime.resources import ContainerResources, shown_resources

AnyContainer: TypeAlias = Container | EphemeralContainer

POST_START: Final = "postStart"
PRE_STOP: Final = "preStop"


class ContainerRole(IntEnum):
    """What a container is for the pod."""

    INIT = 0
    SIDECAR = 1
    MAIN = 2
    EPHEMERAL = 3


class State(IntEnum):
    """Where the latest instance is."""

    #: there is none (in this sandbox)
    WAITING = 0
    STARTING = 1
    RUNNING = 2
    EXITED = 3


class Stop(IntEnum):
    """How far the stopping of a running container is."""

    NOT = 0
    #: its preStop hook runs
    HOOK = 1
    #: it is others' turn to stop first
    TURN = 2
    #: the runtime was asked
    ASKED = 3


class ContainerLife:
    """One container of a pod."""

    __slots__ = (
        "allocated",
        "attempt",
        "crash_failures",
        "exit",
        "hook",
        "id",
        "image",
        "image_failures",
        "image_id",
        "image_update_ns",
        "in_force",
        "is_passed",
        "is_ready",
        "is_restart_due",
        "last_exit",
        "message",
        "mounts",
        "reason",
        "restart_count",
        "restart_update_ns",
        "retry_ns",
        "role",
        "show_ns",
        "spec",
        "started_ns",
        "state",
        "stop",
        "stop_ns",
    )

    def __init__(self, spec: AnyContainer, role: ContainerRole) -> None:
        self.spec = spec
        self.role = role
        self.state = State.WAITING
        # -- the latest instance
        self.id = ""
        self.image = ""
        self.image_id = ""
        self.started_ns = 0
        #: the number of the next instance
        self.attempt = 0
        self.restart_count = 0
        self.exit: ContainerExited | None = None
        self.last_exit: ContainerExited | None = None
        #: it passed its startup probe, or has none
        self.is_passed = False
        #: its readiness probe says so, or it has none
        self.is_ready = False
        #: the hook that runs now
        self.hook = ""
        self.stop = Stop.NOT
        #: when its grace period is over
        self.stop_ns = 0
        #: it was stopped to be started again, whatever its restart policy makes of the exit code
        self.is_restart_due = False
        # -- the next one
        #: why it does not run although it should, as users know it
        self.reason = ""
        self.message = ""
        #: not to be started before
        self.retry_ns = 0
        #: when to show that it waits for `retry_ns`; 0: shown already, or not at all
        self.show_ns = 0
        self.crash_failures = 0
        self.restart_update_ns = 0
        self.image_failures = 0
        self.image_update_ns = 0
        # -- for the status
        #: what the node has promised it
        self.allocated: ResourceRequirements = spec.resources
        #: what the runtime says is in force in the running instance; None: what was promised
        self.in_force: ContainerResources | None = None
        self.mounts: list[VolumeMountStatus] | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def resources(self) -> ResourceRequirements:
        """What a running container has, as far as the runtime says; otherwise what it was promised."""
        if self.in_force is None or self.state is not State.RUNNING:
            return self.allocated
        return shown_resources(self.allocated, self.in_force)

    @property
    def is_alive(self) -> bool:
        return self.state is State.RUNNING or self.state is State.STARTING

    @property
    def is_shown_running(self) -> bool:
        """A container counts as running once its postStart hook is done."""
        return self.state is State.RUNNING and self.hook != POST_START

    @property
    def shown_exit(self) -> ContainerExited | None:
        """The exit that the status shows as its state: none while it runs, or waits for a reason."""
        return None if self.reason or self.state is State.RUNNING else self.exit

    @property
    def shown_last_exit(self) -> ContainerExited | None:
        """The exit that the status shows as its last state."""
        return self.last_exit if self.shown_exit is not None else self.exit or self.last_exit

    @property
    def is_started(self) -> bool:
        return self.is_passed and self.is_shown_running

    @property
    def has_run(self) -> bool:
        return bool(self.id)

    def begin(self, id_: str, image: str, image_id: str, started_ns: int, attempt: int) -> None:
        """A new instance runs."""
        self.state = State.RUNNING
        self.id, self.image, self.image_id = id_, image, image_id
        self.started_ns = started_ns
        self.restart_count = max(self.restart_count, attempt)
        self.attempt = self.restart_count + 1
        if self.exit is not None:
            self.last_exit = self.exit
            self.exit = None
        self.is_passed = self.spec.startup_probe is None
        self.is_ready = self.spec.readiness_probe is None
        self.hook = self.reason = self.message = ""
        self.stop = Stop.NOT
        self.is_restart_due = False
        self.retry_ns = self.show_ns = self.image_failures = 0
        self.in_force = None

    def end(self, exited: ContainerExited) -> None:
        """The instance has ended."""
        self.state = State.EXITED
        self.exit = exited
        self.is_passed = self.is_ready = False
        self.hook = ""
        self.stop = Stop.NOT

    def wait(self, reason: str, message: str, retry_ns: int) -> None:
        """It does not run, and everybody may know why."""
        if self.state is State.STARTING:
            self.state = State.WAITING if self.exit is None else State.EXITED
        self.stop = Stop.NOT
        self.reason, self.message = reason, message
        self.retry_ns, self.show_ns = retry_ns, 0

    def forget(self) -> None:
        """What ran before counts no more: as if it had never run in this sandbox. Its counts and its past stay."""
        self.state = State.WAITING
        self.id = ""
        self.exit = None
        self.is_passed = self.is_ready = False
        self.hook = ""
        self.stop = Stop.NOT

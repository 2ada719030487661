"""What the life of a pod asks the agent to do. The agent hands these to the runtime, the recorder and the API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from nodeward.kubelet.runtime.resources import ContainerResources


@dataclass(frozen=True, slots=True)
class StartSandbox:
    """Make the pod's surroundings; volumes must be there first."""


@dataclass(frozen=True, slots=True)
class UnprepareResources:
    """Have drivers unprepare the pod's claims; tell the end with `unprepared` or `unprepare_failed`."""


@dataclass(frozen=True, slots=True)
class StartContainer:
    name: str
    #: how often it was started before
    attempt: int


@dataclass(frozen=True, slots=True)
class StopContainer:
    name: str
    grace_seconds: float


@dataclass(frozen=True, slots=True)
class RunHook:
    """Run what the container's spec says for `kind` ("postStart" or "preStop"); tell the end with `hook_done`.

    A hook that takes longer than `timeout_seconds` need not be told: the pod's life goes on without it."""

    name: str
    kind: str
    #: 0: as long as it takes
    timeout_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class UpdateResources:
    """Give a running container other resources; the runtime tells what came of it."""

    name: str
    resources: ContainerResources


@dataclass(frozen=True, slots=True)
class RemoveContainer:
    """A dead container nobody will ask about again."""

    id: str


@dataclass(frozen=True, slots=True)
class RemovePod:
    """Everything of it, from the runtime and the disk."""


@dataclass(frozen=True, slots=True)
class RecordEvent:
    """An event for people, about the pod or one of its containers."""

    type: str
    reason: str
    message: str
    container: str = ""


@dataclass(frozen=True, slots=True)
class DeleteFromApi:
    """All of it has ended: the object may go (grace period 0, with the uid as precondition)."""


Command: TypeAlias = (
    StartSandbox
    | UnprepareResources
    | StartContainer
    | StopContainer
    | RunHook
    | UpdateResources
    | RemoveContainer
    | RemovePod
    | RecordEvent
    | DeleteFromApi
)

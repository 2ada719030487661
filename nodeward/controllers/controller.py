"""What a controller is, and what it is given.

A controller listens to informers, puts keys into queues, and handles one key at a time: it looks at how things are,
and makes the API agree with how they should be. `ControllerContext` is everything it may use of the world; the runner
does the rest (workers, retries, shutdown).

What must stay true: a handler can be called at any time for any key, also for one that is gone or fine; whatever it
left half done, the next call completes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from nodeward.features import Gates
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.informer import InformerFactory
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.recorder import EventRecorder
from nodeward.machinery.workqueue import WorkQueue

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What one controller works with. The informers are shared by all; the client speaks in its own name."""

    client: Client
    clock: Clock
    chance: Chance
    informers: InformerFactory
    recorder: EventRecorder
    #: This component's own gates: a controller may be older or younger than the API server.
    gates: Gates
    metrics: Metrics
    #: The certificates by which pods know the API server, as PEM; None: nobody said.
    root_ca: str | None = None


@dataclass(frozen=True, slots=True)
class Work(Generic[K]):
    """One queue, and what is done with its keys by `workers` workers.

    `handle` returns None when the key is fine for now, or the seconds after which it wants another look; what it
    raises is logged and the key comes again, later each time.
    """

    queue: WorkQueue[K]
    handle: Callable[[K], Awaitable[float | None]]
    workers: int = 1


class Controller(Protocol):
    """Made with its `ControllerContext`, it registers with informers; from then on the runner drives its queues."""

    def work(self) -> Sequence[Work[Any]]:
        """Return its queues, the same at every call."""
        ...


class ControllerDescriptor(NamedTuple):
    """One line of the registry. `name` is also the service account in kube-system whose rights it has, or `account`."""

    name: str
    make: Callable[[ControllerContext], Controller | None]
    #: what its events call it; the same as `name` unless Kubernetes' users know another
    component: str = ""
    #: the service account, where several controllers share one
    account: str = ""

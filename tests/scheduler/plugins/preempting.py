"""A small cluster in which pods make room for others: the table, all plugins, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from nodeward.api.codec import from_tree
from nodeward.api.meta import KubeObject
from nodeward.api.policy_v1 import PodDisruptionBudget
from nodeward.features.declared import Version
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock, SeededChance, VirtualClock
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.recorder import EventRecorder
from nodeward.machinery.transport import Request, Response
from nodeward.scheduler.cache.classes import PodClasses
from nodeward.scheduler.cache.plugin_set import PluginSet
from nodeward.scheduler.framework.context import FrameworkHandle, PluginContext
from nodeward.scheduler.framework.listers import FixedListers
from nodeward.scheduler.framework.plugin import Plugin, PostFilterResult
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.plugins import REGISTRY
from nodeward.scheduler.plugins.default_preemption import DefaultPreemption
from nodeward.scheduler.queue.nominator import Nominator
from nodeward.scheduler.rejections import Rejections
from nodeward.scheduler.waiting_pods import WaitingPods
from tests.scheduler.cache.objects import new_table, node, pod
from tests.scheduler.plugins.profile import GATES, WEIGHTS


class Nowhere:
    """A transport for those who only decide."""

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        raise AssertionError(f"nobody should be told, but {request.method} {request.path} was sent")

    async def aclose(self) -> None:
        pass


@dataclass
class Cluster:
    """Nodes are called n0, n1, ... and have 4 CPUs each."""

    objects: Iterable[KubeObject] = ()
    client: Client | None = None
    arguments: dict[str, Any] = field(default_factory=dict)
    extra: tuple[Plugin, ...] = ()

    def __post_init__(self) -> None:
        clock: Clock = self.client.clock if self.client is not None else VirtualClock()
        client = self.client or Client(Nowhere(), clock=clock)
        self.table = new_table()
        self.listers = FixedListers(self.objects)
        self.nominator = Nominator()
        self.metrics = Metrics()
        self.waiting = WaitingPods(clock)
        self.activated: list[str] = []
        self.recorder = EventRecorder(client, SeededChance(1), component="default-scheduler")
        self.handle = FrameworkHandle(
            client,
            clock,
            SeededChance(2),
            self.recorder,
            self.nominator,
            self.metrics,
            lambda cycle, view, at: self.filters.filter_plain(cycle, view, at),
            lambda: self.filters,
            lambda view: self.activated.append(view.name),
            lambda _, work: work.close(),
            waiting=self.waiting,
        )
        self.plugins: list[Plugin] = [
            *(each(self.context(self.arguments.get(each.name))) for each in REGISTRY),
            *self.extra,
        ]
        self.filters = PluginSet(self.plugins, WEIGHTS)
        self.classes = PodClasses(self.table, self.plugins, WEIGHTS)
        self.preemption = next(each for each in self.plugins if isinstance(each, DefaultPreemption))

    def context(self, arguments: dict[str, Any] | None = None) -> PluginContext:
        return PluginContext(
            GATES, Version.parse("1.37"), arguments or {}, listers=self.listers, handle=self.handle
        )

    def nodes(self, count: int, **about: Any) -> None:
        for number in range(count):
            self.table.upsert_node(node(f"n{number}", **about))

    def run(self, name: str, at: str, cpu: str = "2", **spec: Any) -> PodView:
        """A pod that runs on a node."""
        view = pod(name, requests={"cpu": cpu}, nodeName=at, **spec)
        self.table.add_pod(view)
        return view

    def make_room(self, view: PodView) -> PostFilterResult:
        """What the scheduler would be told, if the pod fits nowhere."""
        said = self.classes.explain(view)
        assert not said.fitting, "the pod fits without anybody going"
        rejected = Rejections(self.classes, view, self.table, {})
        return self.preemption.post_filter(self.classes.cycle(view), view, self.table, rejected)


def budget(name: str, app: str, allowed: int, **status: Any) -> PodDisruptionBudget:
    return from_tree(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}}},
            "status": {"disruptionsAllowed": allowed, **status},
        },
        PodDisruptionBudget,
    )

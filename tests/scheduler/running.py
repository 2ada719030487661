"""A cluster for the scheduler: an API server in memory, virtual time, nodes and pods in the words of the API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from nodeward.api.codec import from_tree
from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import PodCondition
from nodeward.apiserver.auth.user import AUTHENTICATED, User
from nodeward.apiserver.server import ApiServer
from nodeward.features.declared import Version
from nodeward.features.gates import Gates
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.scheduler.framework.plugin import Plugin
from nodeward.scheduler.plugins import REGISTRY
from nodeward.scheduler.scheduler import Scheduler
from nodeward.scheduler.settings import PluginUse, ProfileSettings, SchedulerSettings, default_profile
from tests.apiserver.running import running, settings
from tests.controllers.cluster import Altered

KUBE_SCHEDULER = User("system:kube-scheduler", groups=(AUTHENTICATED,))
GATES = "NodeDeclaredFeatures=true,TaintTolerationComparisonOperators=true,NodeReadinessGates=true"


def node(name: str, **parts: Any) -> Node:
    """A node that takes pods; `parts` are its spec, except `labels`, `allocatable` and `status`."""
    status = {
        "allocatable": parts.pop("allocatable", {"cpu": "4", "memory": "8Gi", "pods": "110"}),
        "conditions": [{"type": "Ready", "status": "True"}],
        **parts.pop("status", {}),
    }
    metadata = {"name": name, "labels": parts.pop("labels", {})}
    return from_tree({"metadata": metadata, "spec": parts, "status": status}, Node)


def pod(name: str, cpu: str = "100m", **spec: Any) -> Pod:
    """A pod with one container."""
    metadata = {"name": name, "namespace": "default", **spec.pop("metadata", {})}
    container = {"name": "main", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    return from_tree({"metadata": metadata, "spec": {"containers": [container], **spec}}, Pod)


def one_profile(gates: Gates, *plugins: str, **others: Any) -> SchedulerSettings:
    """The default profile with further plugins, and nobody to elect."""
    whole = default_profile(gates)
    uses = (*whole.plugins, *(PluginUse(name) for name in plugins))
    return SchedulerSettings((ProfileSettings(whole.name, uses),), leader_elect=False, **others)


@dataclass(slots=True)
class Cluster:
    server: ApiServer
    client: Client
    clock: VirtualClock
    gates: Gates
    transport: Altered
    scheduler: Scheduler

    async def pass_time(self, seconds: float = 1.0) -> None:
        """Virtual seconds: everything that is due by then has happened."""
        await self.clock.sleep(seconds)

    async def add_nodes(self, *nodes: Node) -> None:
        for each in nodes:
            await self.client.create(each)
        await self.pass_time()

    async def add_pods(self, *pods: Pod) -> None:
        for each in pods:
            await self.client.create(each)
        await self.pass_time()

    async def where(self, name: str) -> str:
        """The node of a pod, or ""."""
        return (await self.client.get(Pod, name, "default")).spec.node_name

    async def places(self) -> dict[str, str]:
        listed = await self.client.list(Pod, "default")
        return {each.metadata.name: each.spec.node_name for each in listed.items}

    async def condition(self, name: str) -> PodCondition | None:
        found = await self.client.get(Pod, name, "default")
        return next((each for each in found.status.conditions if each.type == "PodScheduled"), None)

    async def events(self, name: str) -> list[tuple[str, str, str]]:
        """(type, reason, message) of what was told about a pod."""
        await self.scheduler._recorder.flush()
        listed = await self.client.list(Event, "default")
        return [
            (each.type, each.reason, each.message)
            for each in listed.items
            if each.involved_object.name == name
        ]

    async def patch_node(self, name: str, body: dict[str, Any], *, status: bool = False) -> None:
        await self.client.patch(
            Node, name, body, patch_type=PatchType.MERGE, subresource="status" if status else ""
        )
        await self.pass_time()

    def new_scheduler(
        self,
        chosen: SchedulerSettings | None = None,
        registry: Sequence[type[Plugin]] = REGISTRY,
        seed: int = 5,
        identity: str = "",
        version: str = "1.37",
    ) -> Scheduler:
        """Another one, through the same altered way into the server."""
        return Scheduler(
            Client(self.transport, clock=self.clock, component="kube-scheduler", retry=None),
            self.clock,
            SeededChance(seed),
            gates=self.gates,
            version=Version.parse(version),
            settings=chosen or one_profile(self.gates),
            registry=registry,
            identity=identity,
        )


@asynccontextmanager
async def cluster(
    clock: VirtualClock,
    *,
    gates: str = GATES,
    more: Sequence[type[Plugin]] = (),
    chosen: SchedulerSettings | None = None,
    starts: bool = True,
) -> AsyncIterator[Cluster]:
    """A cluster with a scheduler at work, with the rights it has in production; `more` are further plugins."""
    wanted = settings(gates=gates, disable_admission=("ServiceAccount", "TaintNodesByCondition"))
    async with running(wanted, clock=clock) as server:
        transport = Altered(server.client("kube-scheduler", KUBE_SCHEDULER).transport)
        found = Cluster(server, server.client("test"), clock, wanted.gates, transport, None)  # type: ignore[arg-type]
        profile = chosen or one_profile(wanted.gates, *(each.name for each in more))
        found.scheduler = found.new_scheduler(profile, (*REGISTRY, *more))
        if starts:
            await found.scheduler.start()
        try:
            yield found
        finally:
            await found.scheduler.stop()

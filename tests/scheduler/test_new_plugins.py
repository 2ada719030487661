"""A plugin is one class and one line in the registry: each of these is all there is of a plugin nobody has heard of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np
import pytest

from nodeward.api.coordination_v1 import Lease, LeaseSpec
from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import KubeObject, ObjectMeta
from nodeward.api.rbac_v1 import ClusterRole, PolicyRule
from nodeward.base.errors import ConfigError
from nodeward.machinery.client import PatchType
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.scheduler.cache.columns import NodeColumn
from nodeward.scheduler.framework.context import PluginContext, make_plugin
from nodeward.scheduler.framework.events import (
    Action,
    ClusterEvent,
    ClusterEventWithHint,
    QueueingHint,
    Resource,
)
from nodeward.scheduler.framework.plugin import (
    ColumnFilterPlugin,
    CycleState,
    EnqueueExtensions,
    FilterPlugin,
    Plugin,
    PreBindPlugin,
    PreFilterPlugin,
    RejectedRows,
    ReservePlugin,
    ScorePlugin,
    StatefulPlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from nodeward.scheduler.plugins import REGISTRY
from tests.scheduler.plugins.profile import context
from tests.scheduler.running import Cluster, cluster, node, pod

# -- one with a column, that reads of a pod what nobody else reads

OLD: Final = unresolvable("node(s) had too old a kernel")
KERNEL: Final = NodeColumn("kernel", np.int64, lambda node: _kernel(node.status.node_info))


def _kernel(info: Any) -> int:
    """The kernel's major version; 0 if the node does not say."""
    return int(info.kernel_version.partition(".")[0] or 0) if info is not None else 0


def _wanted(pod: PodView) -> int:
    return int(pod.pod.metadata.annotations.get("example.com/kernel", "0"))


class NodeKernel(PreFilterPlugin, ColumnFilterPlugin, EnqueueExtensions):
    """A pod goes only to nodes whose kernel is as new as its annotation asks for."""

    name: ClassVar[str] = "NodeKernel"
    pod_fields = (_wanted,)
    is_static: ClassVar[bool] = True

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (
            ClusterEventWithHint(
                ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_OTHER), self._after_node
            ),
        )

    def pre_filter(self, cycle: CycleState, pod: PodView, table: Any) -> Status:
        return SUCCESS if _wanted(pod) else SKIP

    def filter_rows(self, cycle: CycleState, table: Any, rows: Any) -> RejectedRows | None:
        is_old = table.column(KERNEL)[rows] < _wanted(cycle.pod)
        return RejectedRows(np.where(is_old, 0, -1), (OLD,)) if is_old.any() else None

    def filter(self, cycle: CycleState, pod: PodView, node: Any) -> Status:
        return OLD if _kernel(node.node.status.node_info) < _wanted(pod) else SUCCESS

    def _after_node(self, pod: PodView, old: Any, new: Any) -> QueueingHint:
        return QueueingHint.QUEUE if _kernel(new.status.node_info) >= _wanted(pod) else QueueingHint.SKIP


def running_kernel(name: str, version: str) -> Any:
    return node(name, status={"nodeInfo": {"kernelVersion": version}})


def asking(name: str, kernel: str = "") -> Pod:
    return pod(name, metadata={"annotations": {"example.com/kernel": kernel}} if kernel else {})


def test_a_plugin_with_a_column_of_its_own_is_one_class_and_one_line() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, more=(NodeKernel,)) as world:
            await world.add_nodes(*(running_kernel(f"old{n}", "5.15") for n in range(20)))
            # Equal in all that the shipped plugins read: only what the new one declares tells them apart.
            await world.add_pods(asking("any"), asking("new", "6"), asking("other"))
            assert (await world.where("any")).startswith("old")
            assert await world.where("new") == ""
            assert (await world.where("other")).startswith("old")
            text = (await world.events("new"))[0][2]
            assert text.startswith("0/20 nodes are available: 20 node(s) had too old a kernel.")
            # A node that comes later is a row of the column, whatever the table has to grow to.
            await world.add_nodes(running_kernel("recent", "6.8"))
            assert await world.where("new") == "recent"

    run_virtual(main)


def test_a_change_of_a_node_that_only_a_plugins_column_holds_wakes_the_pods_it_rejected() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, more=(NodeKernel,)) as world:
            await world.add_nodes(running_kernel("a", "5.15"))
            await world.add_pods(asking("new", "6"))
            await world.pass_time(20)
            assert await world.where("new") == ""
            await world.patch_node("a", {"status": {"nodeInfo": {"kernelVersion": "5.19"}}}, status=True)
            await world.pass_time(20)
            uid = (await world.client.get(Pod, "new", "default")).metadata.uid
            queued = world.scheduler.engine.queue.get(uid)
            assert queued is not None
            assert queued.attempts == 1, "a kernel that is still too old wakes nobody"
            await world.patch_node("a", {"status": {"nodeInfo": {"kernelVersion": "6.1"}}}, status=True)
            await world.pass_time(20)
            assert await world.where("new") == "a"

    run_virtual(main)


# -- a stateful one: a filter in Python, a reservation, a write before binding, and a kind that wakes pods

LICENCES: Final = "default"
SEAT: Final = "example.com/seat"
NO_SEAT: Final = unschedulable("node(s) had no seat left in the licence")


class LicenceSeats(
    PreFilterPlugin, FilterPlugin, StatefulPlugin, ReservePlugin, PreBindPlugin, EnqueueExtensions
):
    """A pod with a toleration for licences needs a seat: Leases named after nodes say how many a node has."""

    name: ClassVar[str] = "LicenceSeats"
    pod_fields = ()
    objects: ClassVar[tuple[type[KubeObject], ...]] = (Lease,)
    concerns_pods_with: ClassVar[str] = "spec.tolerations"
    log: ClassVar[list[str]] = []

    def __init__(self, context: PluginContext) -> None:
        self._listers, self._handle = context.listers, context.handle
        self._taken: dict[str, str] = {}

    def concerns(self, pod: PodView, table: Any = None) -> bool:
        return any(each.key == SEAT for each in pod.pod.spec.tolerations)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return (ClusterEventWithHint(ClusterEvent(Lease, Action.ADD | Action.UPDATE), _after_lease),)

    def pre_filter(self, cycle: CycleState, pod: PodView, table: Any) -> Status:
        self.log.append(f"pre_filter {pod.name}")
        return SUCCESS

    def filter(self, cycle: CycleState, pod: PodView, node: Any) -> Status:
        lease = self._listers.get(Lease, node.name, LICENCES)
        seats = (lease.spec.lease_duration_seconds or 0) if lease is not None else 0
        return SUCCESS if list(self._taken.values()).count(node.name) < seats else NO_SEAT

    def reserve(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        self.log.append(f"reserve {pod.name}")
        self._taken[pod.uid] = node
        return SUCCESS

    def unreserve(self, cycle: CycleState, pod: PodView, node: str) -> None:
        self._taken.pop(pod.uid, None)

    async def pre_bind(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        assert self._handle is not None
        self.log.append(f"pre_bind {pod.name}")
        body = {"metadata": {"annotations": {SEAT: pod.name}}}
        await self._handle.client.patch(Lease, node, body, namespace=LICENCES, patch_type=PatchType.MERGE)
        return SUCCESS


def _after_lease(pod: PodView, old: Lease | None, new: Lease) -> QueueingHint:
    return QueueingHint.QUEUE if new.metadata.namespace == LICENCES else QueueingHint.SKIP


def licensed(name: str) -> Pod:
    return pod(name, tolerations=[{"key": SEAT, "operator": "Exists"}])


async def give_seats(world: Cluster, at: str, seats: int) -> None:
    metadata = ObjectMeta(name=at, namespace=LICENCES)
    await world.client.create(Lease(metadata=metadata, spec=LeaseSpec(lease_duration_seconds=seats)))
    await world.pass_time(15)


async def allow_leases(world: Cluster) -> None:
    """The scheduler's role does not know the plugin: whoever adds one adds its rights."""
    role = await world.client.get(ClusterRole, "system:kube-scheduler")
    role.rules.append(
        PolicyRule(
            verbs=["get", "list", "watch", "patch"], api_groups=["coordination.k8s.io"], resources=["leases"]
        )
    )
    await world.client.update(role)


def test_a_stateful_plugin_with_a_kind_of_its_own_is_one_class_and_one_line() -> None:
    async def main(clock: VirtualClock) -> None:
        LicenceSeats.log.clear()
        async with cluster(clock, more=(LicenceSeats,), starts=False) as world:
            await allow_leases(world)
            await world.scheduler.start()
            await world.add_nodes(node("a"), node("b"))
            await world.add_pods(licensed("p"), licensed("q"), pod("plain"))
            assert await world.where("plain") != ""
            assert (await world.where("p"), await world.where("q")) == ("", "")
            await give_seats(world, "elsewhere", 1)
            assert (await world.where("p"), await world.where("q")) == ("", "")
            # An object of the plugin's own kind wakes the pods; a seat that one took is not there for the other.
            await give_seats(world, "b", 1)
            assert sorted([await world.where("p"), await world.where("q")]) == ["", "b"]
            await give_seats(world, "a", 1)
            assert sorted([await world.where("p"), await world.where("q")]) == ["a", "b"]
            lease = await world.client.get(Lease, "a", LICENCES)
            assert lease.metadata.annotations[SEAT] in ("p", "q")
        assert not [line for line in LicenceSeats.log if line.endswith("plain")]
        assert sum(line.startswith("reserve") for line in LicenceSeats.log) == 2
        assert sum(line.startswith("pre_bind") for line in LicenceSeats.log) == 2

    run_virtual(main)


def test_pods_a_stateful_plugin_does_not_concern_share_their_answers_and_are_only_bound() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock, more=(LicenceSeats,), starts=False) as world:
            await allow_leases(world)
            await world.scheduler.start()
            await world.add_nodes(node("a"), node("b"))
            other = {"key": "other", "operator": "Exists"}
            await world.add_pods(
                *(pod(f"p{n}") for n in range(8)), *(pod(f"t{n}", tolerations=[other]) for n in range(8))
            )
            assert "" not in (await world.places()).values()
            profile = world.scheduler.engine.profiles["default-scheduler"]
            assert len(profile.classes) == 2, "one class per kind of pod, whatever stateful plugins there are"
            assert profile.acting(frozenset()) is None
            acting = profile.acting(frozenset({"LicenceSeats"}))
            assert acting is not None
            assert [each.name for each in acting.reserves] == ["LicenceSeats"]

    run_virtual(main)


# -- what is not what it claims to be


class Misspelt(ColumnFilterPlugin):
    name: ClassVar[str] = "Misspelt"
    pod_fields = ()

    def filter(self, cycle: CycleState, pod: PodView, node: Any) -> Status:
        return SUCCESS

    def filter_row(self, cycle: CycleState, table: Any, rows: Any) -> RejectedRows | None:
        return None


class Unclaimed(FilterPlugin):
    name: ClassVar[str] = "Unclaimed"
    pod_fields = ()

    def filter(self, cycle: CycleState, pod: PodView, node: Any) -> Status:
        return SUCCESS

    def score(self, cycle: CycleState, pod: PodView, node: Any) -> int:
        return 0


class UnclaimedAndMisspelt(FilterPlugin):
    name: ClassVar[str] = "UnclaimedAndMisspelt"
    pod_fields = ()

    def filter(self, cycle: CycleState, pod: PodView, node: Any) -> Status:
        return SUCCESS

    def pre_filtre(self, cycle: CycleState, pod: PodView, table: Any) -> Status:
        return SUCCESS


class Undeclared(ScorePlugin):
    name: ClassVar[str] = "Undeclared"

    def score(self, cycle: CycleState, pod: PodView, node: Any) -> int:
        return 0


class Nameless(FilterPlugin):
    pod_fields = ()

    def filter(self, cycle: CycleState, pod: PodView, node: Any) -> Status:
        return SUCCESS


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            Misspelt,
            'claims ColumnFilterPlugin but has no method "filter_rows"; did you misspell it as "filter_row"?',
        ),
        (Unclaimed, 'has a method "score" but does not claim ScorePlugin'),
        (
            UnclaimedAndMisspelt,
            '"pre_filtre" belongs to no extension point; did you mean "pre_filter" of PreFilterPlugin?',
        ),
        (Undeclared, "does not declare in pod_fields what of a pod its answers depend on"),
        (Nameless, "has no name"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_plugin_that_is_not_what_it_claims_is_refused(kind: type[Plugin], text: str) -> None:
    with pytest.raises(ConfigError) as error:
        make_plugin(kind, context())
    assert str(error.value).startswith(f"scheduler plugin {kind.__name__}: ")
    assert text in str(error.value)


class Presumptuous(LicenceSeats):
    """Wants to be woken by a kind it does not declare."""

    name: ClassVar[str] = "Presumptuous"
    objects = ()


def test_events_of_a_kind_that_is_not_declared_are_refused() -> None:
    async def main(clock: VirtualClock) -> None:
        with pytest.raises(ConfigError, match="registers events of Lease, which is not in its `objects`"):
            async with cluster(clock, more=(Presumptuous,)):
                pass

    run_virtual(main)


def test_the_shipped_plugins_are_what_they_claim() -> None:
    for kind in REGISTRY:
        assert make_plugin(kind, context()).name == kind.name

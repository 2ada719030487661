"""A fleet that is changed through the API: a ConfigMap holds its file, and whoever edits it changes the nodes.

At the start the file that was asked for is written there, unless it was written before and somebody has edited it
since: the same command continues, another one starts over. From then on every edit is carried out; a new one while the
last is still under way takes its place. What cannot be read is told in an event and changes nothing.

What must stay true: the nodes of one map are run by one process, the holder of the Lease of the same name. Another
process writes nothing and runs nothing: it says who holds the map, and waits to take over. Whoever has no nodes to run
does not ask for the lease.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from typing import Final

from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.errors import ApiError
from nodeward.api.meta import ObjectMeta
from nodeward.base.errors import ConfigError
from nodeward.cluster.description import FleetPlan, Pool
from nodeward.cluster.fleet import Fleet
from nodeward.cluster.fleet_file import load_fleet
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import Chance
from nodeward.machinery.informer import Informer
from nodeward.machinery.leader import LeaderElector, LeadershipLost, LeaderTimes
from nodeward.machinery.recorder import NORMAL, WARNING, EventRecorder

LOG: Final = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
MAP_NAME: Final = "nodeward-fleet"
FILE: Final = "fleet.yaml"
#: What the command line asked for when the file was written, so that a restart can tell edits from another wish.
ASKED_ANNOTATION: Final = "nodeward.dev/fleet-asked-for"
COMPONENT: Final = "nodeward-fleet"
#: How long a process that is silent keeps the map, as the lease of a node does.
HOLDER_SECONDS: Final = 40.0
TIMES: Final = LeaderTimes(lease_duration=HOLDER_SECONDS, renew_deadline=30.0, retry_period=10.0)


class FleetControl:
    """Keeps a fleet as its ConfigMap says. `version` is that of nodes which do not say theirs."""

    def __init__(
        self,
        client: Client,
        fleet: Fleet,
        chance: Chance,
        *,
        version: str,
        name: str = MAP_NAME,
        identity: str = COMPONENT,
    ) -> None:
        """Prepare. `identity` names this process; a process that was started again may be known by the same."""
        self._client = client
        self._fleet = fleet
        self._version = version
        self._name = name
        self._shown = f"configmap {NAMESPACE}/{name}: {FILE}"
        self._recorder = EventRecorder(client, chance.child("events"), component=COMPONENT)
        self._informer = Informer(
            client,
            ConfigMap,
            chance.child("watch"),
            namespace=NAMESPACE,
            field_selector=f"metadata.name={name}",
        )
        self._informer.add_handler(
            on_add=self._saw,
            on_update=lambda _, new: self._saw(new),
            on_delete=lambda _: LOG.warning("%s is gone; the fleet goes on as it is", self._shown),
        )
        self._elector = LeaderElector(
            client,
            chance.child("holder"),
            name=name,
            namespace=NAMESPACE,
            identity=identity,
            times=TIMES,
            on_new_leader=self._on_new_holder,
        )
        self._asked: FleetPlan | None = None
        #: whether it is known who runs the nodes: this process, or `holder`
        self._is_decided = asyncio.Event()
        self.is_holder = False
        self._electing: asyncio.Task[None] | None = None
        self._text: str | None = None
        self._plan: FleetPlan | None = None
        self._watching: asyncio.Task[None] | None = None
        self._work: asyncio.Task[None] | None = None

    async def start(self, asked: FleetPlan | None) -> None:
        """Write what is asked for, start the nodes, and follow. Without anything asked for, follow what is there.

        Returns when the nodes are being started, or when another process is known to run them.
        """
        self._asked = asked
        if asked is not None and _has_nodes(asked):
            self._contend()
        elif await self._found() is None:
            await self._settle(asked)
        self._watching = asyncio.create_task(self._informer.run(), name="fleet control")
        await self._informer.wait_synced()
        if self._electing is not None:
            decided = asyncio.create_task(self._is_decided.wait())
            await asyncio.wait((decided, self._electing), return_when=asyncio.FIRST_COMPLETED)
            decided.cancel()
            if self._electing.done():
                self._electing.result()

    @property
    def holder(self) -> str:
        """Who runs the nodes of the map, as far as is known."""
        return self._elector.leader

    def _contend(self) -> None:
        if self._electing is None:
            self._electing = asyncio.create_task(self._elect(), name="hold the fleet")

    async def _elect(self) -> None:
        try:
            await self._elector.run(self._hold)
        except LeadershipLost as lost:
            # Another process may run the nodes now: two kubelets for one node are worse than none.
            LOG.error("%s: %s; its nodes are no longer run here, start this process again", self._shown, lost)
            await self._fleet.stop()
        finally:
            self.is_holder = False

    async def _hold(self) -> None:
        """Run the nodes until somebody else may."""
        self.is_holder = True
        found = await self._settle(self._asked)
        if found is not None:
            self._saw(found)
        if self._plan is None and self._asked is not None:
            self._begin(self._asked)  # what is there cannot be read, and that has been told
        self._is_decided.set()
        await asyncio.Event().wait()

    def _on_new_holder(self, holder: str) -> None:
        if holder and holder != self._elector.identity:
            LOG.warning("%s: %s runs these nodes; this process waits until it stops", self._shown, holder)
            self._is_decided.set()

    async def stop(self) -> None:
        for task in (self._watching, self._work, self._electing):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self._recorder.aclose()

    async def carried_out(self) -> None:
        """Wait until the fleet is what the file last said."""
        while self._work is not None and not self._work.done():
            await asyncio.wait((self._work,))

    async def _found(self) -> ConfigMap | None:
        try:
            return await self._client.get(ConfigMap, self._name, NAMESPACE)
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            return None

    async def _settle(self, asked: FleetPlan | None) -> ConfigMap | None:
        found = await self._found()
        if asked is None:
            return found
        mark = hashlib.sha256(asked.text.encode()).hexdigest()[:16]
        if found is None:
            metadata = ObjectMeta(name=self._name, namespace=NAMESPACE, annotations={ASKED_ANNOTATION: mark})
            return await self._client.create(ConfigMap(metadata=metadata, data={FILE: asked.text}))
        if found.metadata.annotations.get(ASKED_ANNOTATION) == mark:
            return found
        patch = {"metadata": {"annotations": {ASKED_ANNOTATION: mark}}, "data": {FILE: asked.text}}
        return await self._client.patch(
            ConfigMap, self._name, patch, namespace=NAMESPACE, patch_type=PatchType.MERGE
        )

    def _saw(self, found: ConfigMap) -> None:
        text = found.data.get(FILE, "")
        if not self.is_holder:
            if self._may_have_nodes(text):
                self._contend()
            return
        if text == self._text:
            return
        self._text = text
        try:
            plan = load_fleet(text.encode(), self._shown, self._version)
            for pool in plan.pools:
                if pool.runtime != "sim":
                    raise ConfigError(
                        f"{self._shown}: pool {pool.name!r}: runtime {pool.runtime!r}: only simulated nodes (sim) can "
                        "be changed here; run a real one with nodeward kubelet --node-name"
                    )
        except ConfigError as error:
            LOG.warning("%s; the fleet stays as it is", error)
            self._recorder.event(found, WARNING, "InvalidFleet", f"{error}; the fleet stays as it is")
            return
        before = self._plan
        self._begin(plan)
        if before is not None:
            for line in changes(before, plan):
                LOG.info("%s: %s", self._shown, line)
                self._recorder.event(found, NORMAL, "FleetChanged", line)

    def _may_have_nodes(self, text: str) -> bool:
        try:
            return _has_nodes(load_fleet(text.encode(), self._shown, self._version))
        except ConfigError:
            return True  # the holder tells what is wrong with it

    def _begin(self, plan: FleetPlan) -> None:
        self._plan = plan
        if self._work is not None:
            self._work.cancel()
        self._work = asyncio.create_task(self._carry_out(plan), name="change the fleet")

    async def _carry_out(self, plan: FleetPlan) -> None:
        fleet = self._fleet
        wanted = {pool.name for pool in plan.pools}
        for name in [name for name in fleet.pools if name not in wanted]:
            fleet.remove_pool(name)
        fleet.set_states(plan.nodes)
        async with asyncio.TaskGroup() as group:
            for pool in plan.pools:
                group.create_task(fleet.set_pool(pool), name=f"pool {pool.name}")


def _has_nodes(plan: FleetPlan) -> bool:
    return any(pool.nodes for pool in plan.pools)


def changes(before: FleetPlan, after: FleetPlan) -> list[str]:
    """What differs between two files, in words."""
    old, new = ({pool.name: pool for pool in plan.pools} for plan in (before, after))
    lines = [f"pool {name} is gone" for name in old if name not in new]
    for name, pool in new.items():
        was = old.get(name)
        lines.extend(
            [f"pool {name}: {pool.nodes} nodes of {pool.version}"]
            if was is None
            else _pool_changes(was, pool)
        )
    for name in sorted({*before.nodes, *after.nodes}):
        pool_name, _, number = name.rpartition("-")
        if pool_name not in new or int(number) >= new[pool_name].nodes:
            continue  # it is gone, whatever was the matter with it
        was_state, state = before.nodes.get(name), after.nodes.get(name)
        was_off, is_off = (bool(each and each.is_cut_off) for each in (was_state, state))
        if was_off != is_off:
            lines.append(f"node {name} is {'cut off' if is_off else 'connected again'}")
        if (was_state.boots if was_state else 0) != (state.boots if state else 0):
            lines.append(f"node {name} is rebooted")
    return lines


def _pool_changes(was: Pool, pool: Pool) -> list[str]:
    lines = []
    if was.nodes != pool.nodes:
        lines.append(f"pool {pool.name}: {was.nodes} -> {pool.nodes} nodes")
    if was.version != pool.version:
        lines.append(f"pool {pool.name}: {was.version} -> {pool.version}; its kubelets restart")
    elif not pool.has_same_kubelets(was):
        lines.append(f"pool {pool.name}: other gates or settings; its kubelets restart")
    return lines

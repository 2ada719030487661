"""The pools of a running cluster, one by one: stop the kubelets of a pool, start them, upgrade them.

`Cluster.pools` gives one of these per pool. Simulated nodes are those of the cluster's `Fleet`, real ones are made and
kept here. A pool that is stopped keeps its containers and its objects in the API: nobody renews its leases, as on
machines whose kubelets are down.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

from nodeward.cluster.description import Pool
from nodeward.cluster.fleet import Fleet
from nodeward.cluster.real_node import RealNode
from nodeward.features import Gates


class NodePool(ABC):
    """One pool. `gates` are as `--feature-gates` has them, or all of them; None: as before."""

    @property
    @abstractmethod
    def pool(self) -> Pool:
        """The pool as it is described now."""

    @property
    @abstractmethod
    def is_running(self) -> bool: ...

    @abstractmethod
    async def stop(self) -> None:
        """Stop the kubelets of all nodes at once. Containers go on running."""

    @abstractmethod
    async def change(self, pool: Pool) -> None:
        """Make the pool what it should be: start it, upgrade it some nodes at a time, add or take away nodes."""

    async def start(self, *, version: str = "", gates: Gates | str | None = None) -> None:
        """Start the kubelets of all nodes at once; returns when they have registered."""
        await self.change(self._changed(version, gates))

    async def restart(self, *, version: str = "", gates: Gates | str | None = None) -> None:
        """Stop all kubelets at once, and start them as another version or with other gates."""
        changed = self._changed(version, gates)
        await self.stop()
        await self.change(changed)

    async def upgrade(self, *, version: str = "", gates: Gates | str | None = None) -> None:
        """Restart the kubelets some at a time, as the pool's `at_once` and `pause_ns` say."""
        await self.change(self._changed(version, gates))

    def _changed(self, version: str, gates: Gates | str | None) -> Pool:
        text = gates.as_flag() if isinstance(gates, Gates) else gates
        changed = self.pool.upgraded(version, text)
        changed.kubelet_settings()  # refused before anything is stopped, if it makes no sense
        return changed


class SimulatedPool(NodePool):
    """Nodes of a fleet."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self._fleet = fleet
        self._name = name

    @property
    def pool(self) -> Pool:
        return self._fleet.pools[self._name].pool

    @property
    def is_running(self) -> bool:
        return not self._fleet.pools[self._name].is_stopped

    async def stop(self) -> None:
        self._fleet.stop_pool(self._name)

    async def change(self, pool: Pool) -> None:
        await self._fleet.set_pool(pool)


class RealPool(NodePool):
    """Nodes with real containers; `make` makes the one of a number."""

    def __init__(self, pool: Pool, make: Callable[[Pool, int], RealNode]) -> None:
        self._pool = pool
        self._make = make
        #: by name
        self.nodes: Final[dict[str, RealNode]] = {}

    @property
    def pool(self) -> Pool:
        return self._pool

    @property
    def is_running(self) -> bool:
        return bool(self.nodes)

    async def stop(self) -> None:
        while self.nodes:
            _, node = self.nodes.popitem()
            await node.stop()

    async def change(self, pool: Pool) -> None:
        """Real nodes are few, and restarted one after the other."""
        is_same = pool.has_same_kubelets(self._pool)
        self._pool = pool
        wanted = [self._make(pool, number) for number in range(pool.nodes)]
        names = {node.name for node in wanted}
        for name in [*self.nodes]:
            if name not in names:
                await self.nodes.pop(name).stop()
        for node in wanted:
            before = self.nodes.get(node.name)
            if before is not None:
                if is_same:
                    continue
                await self.nodes.pop(node.name).stop()
            self.nodes[node.name] = node
            await node.start()

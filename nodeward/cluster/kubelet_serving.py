"""The HTTPS server of a cluster's own kubelets: one socket on this machine stands for all of its nodes.

Nodes of a fleet have addresses that nobody listens on; the API server is told where their kubelets really are.
"""

from __future__ import annotations

import ssl
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.kubelet.server.application import KubeletServer
from nodeward.kubelet.server.finding import Hosts
from nodeward.machinery.clock import Clock
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.serving.listener import Listener

#: Where it listens, and what its certificate must be good for.
HOST: Final = "127.0.0.1"


class KubeletServing:
    """Start it, resolve nodes with it, stop it."""

    def __init__(self, hosts: Hosts, clock: Clock, metrics: Metrics) -> None:
        self._hosts = hosts
        self._server = KubeletServer(hosts, clock, metrics)
        self._listener = Listener(self._server.handle, clock)
        #: 0 until it listens
        self.port = 0

    async def start(self, tls: ssl.SSLContext) -> None:
        self.port = await self._listener.listen(HOST, 0, tls)

    async def stop(self) -> None:
        self.port = 0
        await self._server.aclose()
        await self._listener.stop()

    def resolve(self, node: Node) -> tuple[str, int] | None:
        """Where the kubelet of a node is, if it is one of ours and can be reached."""
        if not self.port:
            return None
        agents = [each.agent(node.metadata.name) for each in self._hosts()]
        is_here = any(agent is not None and not agent.is_cut_off for agent in agents)
        return (HOST, self.port) if is_here else None

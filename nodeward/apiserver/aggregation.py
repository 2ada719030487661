"""Aggregated ClusterRoles (admin, edit, view): their rules are the sum of the roles their labels select.

Upstream does this in a controller; here it belongs to the API server, so that the bootstrap roles have rules even when
no controller runs. Started by `server.py`; computes with `auth/rules.py` and writes through the API.
"""

from __future__ import annotations

import asyncio
import logging

from nodeward.api.errors import ApiError
from nodeward.api.rbac_v1 import ClusterRole
from nodeward.apiserver.auth.rules import aggregate
from nodeward.apiserver.cache import ChangeBatch
from nodeward.apiserver.environment import Environment
from nodeward.machinery.client import Client

LOG = logging.getLogger(__name__)


class Aggregation:
    """Keeps the rules of aggregated roles up to date."""

    def __init__(self, env: Environment, client: Client) -> None:
        self._env = env
        self._client = client
        self._news = asyncio.Event()
        self._stop = env.hub.cache(env.scheme.by_type(ClusterRole)).watch(self)

    def changed(self, batch: ChangeBatch) -> None:
        self._news.set()

    def relisted(self, batch: ChangeBatch) -> None:
        self._news.set()

    async def settle(self) -> None:
        """Write changed roles until no role changes any more."""
        while True:
            changed = aggregate(self._env.peek_all(ClusterRole))
            if not changed:
                return
            await asyncio.gather(*(self._write(role) for role in changed))

    async def _write(self, role: ClusterRole) -> None:
        try:
            await self._client.update(role)
        except ApiError as error:
            if error.reason not in ("Conflict", "NotFound"):  # the next look sees the newer role
                raise

    async def run(self) -> None:
        """Follow every change of a role, for as long as the server runs."""
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                try:
                    await self.settle()
                except ApiError as error:
                    LOG.warning("aggregated roles could not be updated: %s", error)
        finally:
            self._stop()

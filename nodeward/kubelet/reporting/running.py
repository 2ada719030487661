"""The reporter at work: check, write if there is something new, wait, and again.

An API server that cannot be reached, or a node that is not there yet, only delays: the newest finding is tried again,
with growing waits. Every other write it makes is a change. It ends when asked to, or (with that strategy) after its
first success was written.
"""

from __future__ import annotations

import logging
import ssl
from typing import Final, Protocol
from urllib.parse import urlsplit

from nodeward.api.core_v1.node import Node
from nodeward.api.errors import ApiError
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.kubelet.reporting.core import CheckResult, ReporterCore, patch_of
from nodeward.kubelet.reporting.settings import ReporterSettings
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock
from nodeward.machinery.http_transport import HttpTransport
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.transport import Request

LOG: Final = logging.getLogger(__name__)

CHECK_SECONDS: Final = 10.0
_FIRST_WAIT: Final = 1.0
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Check(Protocol):
    """Asks the endpoint once. Whatever happens is a result, never an error."""

    async def __call__(self) -> CheckResult: ...


class HttpCheck:
    """A GET of the endpoint."""

    def __init__(self, endpoint: str, clock: Clock) -> None:
        parts = urlsplit(endpoint)
        self._request = Request("GET", parts.path or "/", parts.query, {"accept": "*/*"})
        self._transport = HttpTransport(
            f"{parts.scheme}://{parts.netloc}",
            clock=clock,
            ssl_context=ssl.create_default_context() if parts.scheme == "https" else None,
            request_timeout=CHECK_SECONDS,
        )

    async def __call__(self) -> CheckResult:
        try:
            response = await self._transport.send(self._request)
        except (WorldError, OSError) as error:
            return CheckResult(error=str(error))
        return CheckResult(response.status)

    async def aclose(self) -> None:
        await self._transport.aclose()


class Reporter:
    """One reporter. `run` returns when it is done; cancelling it leaves the node as it was last told."""

    def __init__(self, settings: ReporterSettings, client: Client, check: Check, metrics: Metrics) -> None:
        self._settings = settings
        self._client = client
        self._check = check
        self._core = ReporterCore(settings)
        self._checks = metrics.counter(
            "node_readiness_reporter_checks_total", "Checks of the endpoint, by result.", ("result",)
        )
        self._writes = metrics.counter(
            "node_readiness_reporter_condition_writes_total",
            "Writes of the condition, by result.",
            ("result",),
        )
        self._seconds = metrics.histogram(
            "node_readiness_reporter_check_duration_seconds", "How long checks take.", _BUCKETS
        )

    async def run(self) -> None:
        clock = self._client.clock
        interval = self._settings.interval_ns / SECOND_NS
        wait = _FIRST_WAIT
        # Before anything is known: a condition left by somebody's former life must not count.
        await self._tell()
        while True:
            self._core.checked(await self._checked())
            is_told = await self._tell()
            if self._core.is_done:
                return
            await clock.sleep(interval if is_told else min(wait, interval))
            wait = _FIRST_WAIT if is_told else min(wait * 2, interval)

    async def _checked(self) -> CheckResult:
        clock = self._client.clock
        started = clock.monotonic_ns()
        result = await self._check()
        self._seconds.observe((clock.monotonic_ns() - started) / SECOND_NS)
        self._checks.inc("success" if result.is_success else "failure")
        return result

    async def _tell(self) -> bool:
        """Write what is new. False: it could not be written, and should be tried again soon."""
        name, clock = self._settings.node, self._client.clock
        try:
            if self._settings.is_off_node:
                await self._look()
            condition = self._core.to_write(clock.now_ns())
            if condition is None:
                return True
            await self._client.patch(Node, name, patch_of(condition), subresource="status")
        except (ApiError, WorldError) as error:
            self._writes.inc("error")
            LOG.warning(
                "cannot report %s of node %s, will try again: %s", self._settings.condition, name, error
            )
            return False
        self._core.written(condition, clock.now_ns())
        self._writes.inc("success")
        LOG.info("%s of node %s is %s: %s", condition.type, name, condition.status, condition.message)
        return True

    async def _look(self) -> None:
        """What is stored; without the right to read it, what was written last counts."""
        try:
            node = await self._client.get(Node, self._settings.node)
        except ApiError as error:
            if error.code != 403:
                raise
            return
        wanted = self._settings.condition
        self._core.seen(next((each for each in node.status.conditions if each.type == wanted), None))

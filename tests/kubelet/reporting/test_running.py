"""A reporter at work, against an API server in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from nodeward.api.core_v1.node import Node, NodeCondition
from nodeward.api.meta import ObjectMeta
from nodeward.apiserver.auth.user import AUTHENTICATED, User
from nodeward.apiserver.server import ApiServer
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.reporting.core import CheckResult
from nodeward.kubelet.reporting.running import Reporter
from nodeward.kubelet.reporting.settings import UNTIL_SUCCESS, ReporterSettings
from nodeward.machinery.client import Client
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.transport import ConnectionFailed, Request, Response, Transport
from nodeward.machinery.virtual_loop import run_virtual
from tests.apiserver.running import running, settings
from tests.keps.ledger import statement

AGENT = "example.com/Agent"
URL = "http://localhost:8080/healthz"
OK, DOWN = CheckResult(200), CheckResult(503)
AWAY = CheckResult(error="connection refused")


@dataclass
class Counting:
    """A way to the server that counts writes, and can be cut."""

    inner: Transport
    is_cut: bool = False
    patches: list[bytes] = field(default_factory=list)
    reads: int = 0

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        if self.is_cut:
            raise ConnectionFailed("nobody there")
        if request.method == "PATCH":
            self.patches.append(request.body)
        elif request.method == "GET":
            self.reads += 1
        return await self.inner.send(request, stream=stream)

    async def aclose(self) -> None:
        await self.inner.aclose()


class Scene:
    """A node, its reporter, and the endpoint as it answers now."""

    def __init__(
        self, server: ApiServer, clock: VirtualClock, user: User | None = None, **changes: Any
    ) -> None:
        self.clock = clock
        self.admin = server.client("test")
        self.way = Counting(server.transport(user) if user else server.transport())
        self.answer = OK
        self.check_seconds = 0.0
        self.metrics = Metrics()
        chosen = ReporterSettings("n1", AGENT, URL, 30 * SECOND_NS, **changes)
        client = Client(self.way, clock=clock, component="reporter", retry=None)
        self.reporter = Reporter(chosen, client, self._check, self.metrics)

    async def _check(self) -> CheckResult:
        await self.clock.sleep(self.check_seconds)
        return self.answer

    async def add_node(self) -> None:
        await self.admin.create(Node(metadata=ObjectMeta(name="n1")))

    async def stored(self) -> NodeCondition | None:
        node = await self.admin.get(Node, "n1")
        return next((each for each in node.status.conditions if each.type == AGENT), None)

    async def said(self) -> tuple[str, str]:
        found = await self.stored()
        return (found.status, found.reason) if found is not None else ("", "")


def play(act: Callable[[Scene], Awaitable[None]], **changes: Any) -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(settings(), clock=clock) as server:
            scene = Scene(server, clock, **changes)
            await scene.add_node()
            await act(scene)

    run_virtual(main, limit=100_000)


@statement("5233-R31")
def test_a_reporter_says_initializing_first_and_true_when_it_has_checked() -> None:
    async def act(scene: Scene) -> None:
        scene.answer = DOWN
        scene.check_seconds = 5.0
        before = []
        work = asyncio.create_task(scene.reporter.run())
        await scene.clock.sleep(2)
        before.append(await scene.said())
        await scene.clock.sleep(10)
        before.append(await scene.said())
        scene.answer = OK
        await scene.clock.sleep(60)
        before.append(await scene.said())
        work.cancel()
        assert before == [("False", "Initializing"), ("False", "EndpointNotReady"), ("True", "EndpointOK")]

    play(act)


def test_a_former_life_does_not_count() -> None:
    async def act(scene: Scene) -> None:
        scene.answer = AWAY
        old = {"type": AGENT, "status": "True", "reason": "EndpointOK"}
        await scene.admin.patch(Node, "n1", {"status": {"conditions": [old]}}, subresource="status")
        work = asyncio.create_task(scene.reporter.run())
        await scene.clock.sleep(5)
        assert await scene.said() == ("False", "EndpointConnectionError")
        work.cancel()

    play(act)


@statement("5233-R35")
def test_an_idle_reporter_writes_nothing() -> None:
    async def act(scene: Scene) -> None:
        work = asyncio.create_task(scene.reporter.run())
        await scene.clock.sleep(60)
        assert len(scene.way.patches) == 2
        first = await scene.stored()
        await scene.clock.sleep(3600)
        assert len(scene.way.patches) == 2
        assert scene.way.reads == 0
        scene.answer = DOWN
        await scene.clock.sleep(300)
        assert len(scene.way.patches) == 3
        assert await scene.said() == ("False", "EndpointNotReady")
        scene.answer = CheckResult(500)
        await scene.clock.sleep(300)
        later = await scene.stored()
        assert len(scene.way.patches) == 4, "another message is a change"
        assert first is not None
        assert later is not None
        assert later.last_transition_time != first.last_transition_time
        work.cancel()

    play(act)


def test_a_heartbeat_is_written_when_it_is_asked_for_and_moves_no_transition() -> None:
    async def act(scene: Scene) -> None:
        work = asyncio.create_task(scene.reporter.run())
        await scene.clock.sleep(60)
        first = await scene.stored()
        await scene.clock.sleep(3600)
        last = await scene.stored()
        work.cancel()
        assert first is not None
        assert last is not None
        assert last.last_transition_time == first.last_transition_time
        assert last.last_heartbeat_time != first.last_heartbeat_time
        assert 12 <= len(scene.way.patches) <= 15

    play(act, heartbeat_ns=300 * SECOND_NS)


@statement("5233-R34", part="cli")
def test_an_unreachable_server_only_delays_and_the_newest_finding_is_told() -> None:
    async def act(scene: Scene) -> None:
        scene.way.is_cut = True
        scene.answer = DOWN
        work = asyncio.create_task(scene.reporter.run())
        await scene.clock.sleep(600)
        assert await scene.said() == ("", "")
        scene.answer = OK
        scene.way.is_cut = False
        await scene.clock.sleep(31)
        assert await scene.said() == ("True", "EndpointOK")
        work.cancel()
        writes = scene.metrics.counter("node_readiness_reporter_condition_writes_total", "", ("result",))
        assert writes.value("error") > 10
        assert writes.value("success") == 1

    play(act)


@statement("5233-R34", part="cli")
def test_from_outside_an_unreachable_endpoint_is_unknown_and_what_a_reboot_wrote_is_answered() -> None:
    async def act(scene: Scene) -> None:
        work = asyncio.create_task(scene.reporter.run())
        await scene.clock.sleep(5)
        assert await scene.said() == ("True", "EndpointOK")
        scene.answer = AWAY
        await scene.clock.sleep(31)
        assert await scene.said() == ("Unknown", "EndpointConnectionError")
        scene.answer = OK
        await scene.clock.sleep(31)
        assert await scene.said() == ("True", "EndpointOK")
        rebooted = {"type": AGENT, "status": "Unknown", "reason": "NodeRestarted"}
        await scene.admin.patch(Node, "n1", {"status": {"conditions": [rebooted]}}, subresource="status")
        await scene.clock.sleep(31)
        assert await scene.said() == ("True", "EndpointOK")
        work.cancel()

    play(act, is_off_node=True)


def test_a_reporter_that_ends_with_success_ends_only_when_that_is_written() -> None:
    async def act(scene: Scene) -> None:
        scene.answer = DOWN
        work = asyncio.create_task(scene.reporter.run())
        await scene.clock.sleep(100)
        scene.answer = OK
        scene.way.is_cut = True
        await scene.clock.sleep(100)
        assert not work.done()
        scene.way.is_cut = False
        await scene.clock.sleep(100)
        assert work.done()
        assert await scene.said() == ("True", "EndpointOK")

    play(act, strategy=UNTIL_SUCCESS)


def test_a_node_that_comes_later_is_waited_for() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(settings(), clock=clock) as server:
            scene = Scene(server, clock)
            work = asyncio.create_task(scene.reporter.run())
            await clock.sleep(100)
            assert not work.done()
            await scene.add_node()
            await clock.sleep(31)
            assert await scene.said() == ("True", "EndpointOK")
            work.cancel()

    run_virtual(main, limit=10_000)


def test_who_may_do_nothing_is_told_and_goes_on_trying() -> None:
    async def main(clock: VirtualClock) -> None:
        async with running(settings(), clock=clock) as server:
            scene = Scene(server, clock, User("nobody", groups=(AUTHENTICATED,)))
            await scene.add_node()
            work = asyncio.create_task(scene.reporter.run())
            await clock.sleep(100)
            assert not work.done()
            assert await scene.said() == ("", "")
            work.cancel()

    run_virtual(main, limit=10_000)

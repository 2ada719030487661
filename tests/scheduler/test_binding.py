"""Between the decision and the binding: plugins that reserve, permit and bind, and everything that may fail there."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import ConnectionFailed, Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.scheduler.framework.context import FrameworkHandle, PluginContext
from nodeward.scheduler.framework.events import Action, ClusterEvent, ClusterEventWithHint, Resource
from nodeward.scheduler.framework.plugin import (
    BindPlugin,
    CycleState,
    EnqueueExtensions,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
)
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import SKIP, SUCCESS, Code, Status, failed, unschedulable
from tests.scheduler.plugins.given import given
from tests.scheduler.running import Cluster, cluster, node, pod

Send = Callable[[Request], Awaitable[Response]]


class Later(ReservePlugin, PermitPlugin, PreBindPlugin, BindPlugin, PostBindPlugin, EnqueueExtensions):
    """A plugin that takes part after the decision; what it answers can be set, what it was asked is kept."""

    name: ClassVar[str] = "Later"

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name  # type: ignore[misc]
        self.log = log
        self.answers: dict[str, Any] = {}
        self.context: PluginContext | None = None

    @property
    def shipped(self) -> type[Plugin]:
        return given(self)

    @property
    def handle(self) -> FrameworkHandle | None:
        return self.context.handle if self.context is not None else None

    def events_to_register(self) -> tuple[ClusterEventWithHint, ...]:
        return (ClusterEventWithHint(ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)),)

    def _answer(self, point: str, pod: PodView) -> Any:
        self.log.append(f"{self.name}.{point} {pod.name}")
        answer = self.answers.get(point, SUCCESS)
        if isinstance(answer, list):
            answer = answer.pop(0) if answer else SUCCESS
        if isinstance(answer, Exception):
            raise answer
        return answer

    def reserve(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        answer: Status = self._answer("reserve", pod)
        return answer

    def unreserve(self, cycle: CycleState, pod: PodView, node: str) -> None:
        self._answer("unreserve", pod)

    def permit(self, cycle: CycleState, pod: PodView, node: str) -> tuple[Status, float]:
        answer = self._answer("permit", pod)
        return answer if isinstance(answer, tuple) else (answer, 0.0)

    async def pre_bind(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        answer: Status = self._answer("pre_bind", pod)
        return answer

    async def bind(self, cycle: CycleState, pod: PodView, node: str) -> Status:
        self.answers.setdefault("bind", SKIP)
        answer: Status = self._answer("bind", pod)
        return answer

    def post_bind(self, cycle: CycleState, pod: PodView, node: str) -> None:
        self._answer("post_bind", pod)


def two(log: list[str]) -> tuple[Later, Later]:
    return Later("One", log), Later("Two", log)


def used(world: Cluster) -> dict[str, int]:
    return world.scheduler.engine.table.sizes()


def test_plugins_are_asked_in_order_up_to_the_binding() -> None:
    async def main(clock: VirtualClock) -> None:
        log: list[str] = []
        one, other = two(log)
        async with cluster(clock, more=(one.shipped, other.shipped)) as world:
            await world.add_nodes(node("a"))
            await world.add_pods(pod("p"))
            assert await world.where("p") == "a"
        points = ("reserve", "permit", "pre_bind", "post_bind")
        assert log == [f"{plugin}.{point} p" for point in points for plugin in ("One", "Two")], (
            "the default binder comes first and takes the pod"
        )

    run_virtual(main)


def test_a_failed_reservation_is_undone_in_reverse_and_the_pod_waits_for_its_event() -> None:
    async def main(clock: VirtualClock) -> None:
        log: list[str] = []
        one, other = two(log)
        other.answers["reserve"] = [unschedulable("no luck")]
        async with cluster(clock, more=(one.shipped, other.shipped)) as world:
            await world.add_nodes(node("a"))
            await world.add_pods(pod("p"))
            assert log == ["One.reserve p", "Two.reserve p", "Two.unreserve p", "One.unreserve p"]
            assert used(world)["pods"] == 0
            assert [text for *_, text in await world.events("p")] == ["0/1 nodes are available: 1 no luck."]
            await world.pass_time(60)
            assert await world.where("p") == ""
            await world.patch_node("a", {"metadata": {"labels": {"x": "y"}}})
            assert await world.where("p") == "a"

    run_virtual(main)


@pytest.mark.parametrize("point", ["reserve", "permit", "pre_bind", "bind"])
@pytest.mark.parametrize("problem", [failed("broken"), ValueError("a bug")], ids=["error", "exception"])
def test_a_plugin_that_fails_costs_one_attempt(point: str, problem: Any) -> None:
    async def main(clock: VirtualClock) -> None:
        log: list[str] = []
        one, other = two(log)
        other.answers[point] = [problem, SKIP if point == "bind" else SUCCESS]
        other.answers["unreserve"] = [RuntimeError("and cannot even undo it")]
        async with cluster(clock, more=(one.shipped, other.shipped)) as world:
            if point == "bind":
                # Ask it before the default binder.
                profile = world.scheduler.engine.profiles["default-scheduler"]
                object.__setattr__(profile, "binds", (other, *profile.binds))
            await world.add_nodes(node("a"))
            await world.add_pods(pod("p"))
            assert log[-2:] == ["Two.unreserve p", "One.unreserve p"], (
                "all are undone, whatever one of them does"
            )
            assert used(world)["pods"] == 0
            assert await world.where("p") == ""
            condition = await world.condition("p")
            assert condition is not None
            assert condition.reason == "SchedulerError"
            await world.pass_time(5)
            assert await world.where("p") == "a", "tried again after a while, though nothing happened"

    run_virtual(main)


def test_a_pod_waits_for_its_permit_and_holds_its_room_meanwhile() -> None:
    async def main(clock: VirtualClock) -> None:
        one = Later("One", [])
        one.answers["permit"] = [(Status(Code.WAIT), 100.0)]
        async with cluster(clock, more=(one.shipped,)) as world:
            await world.add_nodes(node("a", allocatable={"cpu": "1", "pods": "9"}))
            await world.add_pods(pod("p", "1"))
            await world.add_pods(pod("q", "1"))
            assert await world.places() == {"p": "", "q": ""}
            assert used(world)["assumed_pods"] == 1
            assert one.handle is not None
            assert one.handle.waiting is not None
            (waiting,) = one.handle.waiting
            assert (waiting.view.name, waiting.node, waiting.pending) == ("p", "a", ("One",))
            waiting.allow("One")
            await world.pass_time()
            assert await world.places() == {"p": "a", "q": ""}
            assert len(one.handle.waiting) == 0

    run_virtual(main)


def test_a_permit_that_does_not_come_in_time_is_a_rejection_and_lets_others_in() -> None:
    async def main(clock: VirtualClock) -> None:
        one = Later("One", [])
        one.answers["permit"] = [(Status(Code.WAIT), 30.0)]
        async with cluster(clock, more=(one.shipped,)) as world:
            await world.add_nodes(node("a", allocatable={"cpu": "1", "pods": "9"}))
            await world.add_pods(pod("p", "1"))
            await world.add_pods(pod("q", "1"))
            await world.pass_time(40)
            assert await world.places() == {"p": "", "q": "a"}
            texts = [text for *_, text in await world.events("p")]
            assert texts == [
                "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin One."
            ]

    run_virtual(main)


def test_what_happens_while_a_pod_waits_for_its_permit_is_not_lost() -> None:
    async def main(clock: VirtualClock) -> None:
        one = Later("One", [])
        one.answers["permit"] = [(Status(Code.WAIT), 30.0)]
        async with cluster(clock, more=(one.shipped,)) as world:
            await world.add_nodes(node("a"))
            await world.add_pods(pod("p"))
            await world.patch_node("a", {"metadata": {"labels": {"x": "y"}}})
            await world.pass_time(35)
            assert await world.where("p") == "a", "the label that would wake it came before it went back"

    run_virtual(main)


def test_a_waiting_pod_that_is_deleted_gives_its_room_back_at_once() -> None:
    async def main(clock: VirtualClock) -> None:
        one = Later("One", [])
        one.answers["permit"] = [(Status(Code.WAIT), 600.0)]
        async with cluster(clock, more=(one.shipped,)) as world:
            await world.add_nodes(node("a", allocatable={"cpu": "1", "pods": "9"}))
            await world.add_pods(pod("p", "1"))
            await world.add_pods(pod("q", "1"))
            await world.client.delete(Pod, "p", "default", grace_period=0)
            await world.pass_time(3)
            assert await world.places() == {"q": "a"}
            assert used(world) == {"nodes": 1, "pods": 1, "assumed_pods": 0}
            assert len(world.scheduler.engine.queue) == 0

    run_virtual(main)


def refusing(times: int, status: int, reason: str) -> Any:
    left = [times]

    async def alter(request: Request, send: Send) -> Response:
        if not request.path.endswith("/binding") or not left[0]:
            return await send(request)
        left[0] -= 1
        text = f'{{"kind":"Status","status":"Failure","reason":"{reason}","code":{status},"message":"no"}}'
        return Response(status, {"content-type": "application/json"}, text.encode())

    return alter


@pytest.mark.parametrize(
    ("status", "reason"), [(409, "Conflict"), (404, "NotFound"), (500, "InternalError")], ids=str
)
def test_a_refused_binding_is_tried_again_and_nothing_stays_booked(status: int, reason: str) -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            await world.add_nodes(node("a", allocatable={"cpu": "1", "pods": "9"}))
            world.transport.alter = refusing(1, status, reason)
            await world.add_pods(pod("p", "1"))
            assert await world.where("p") == ""
            assert used(world) == {"nodes": 1, "pods": 0, "assumed_pods": 0}
            (told,) = await world.events("p")
            assert told[:2] == ("Warning", "FailedScheduling")
            assert told[2].startswith('running Bind plugin "DefaultBinder": ')
            await world.pass_time(5)
            assert await world.where("p") == "a"

    run_virtual(main)


def test_a_binding_whose_answer_is_lost_is_found_out_by_its_event() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:

            async def lose(request: Request, send: Send) -> Response:
                answer = await send(request)
                if request.path.endswith("/binding"):
                    await clock.sleep(0.5)
                    raise ConnectionFailed("the answer was lost")
                return answer

            world.transport.alter = lose
            await world.add_nodes(node("a"))
            await world.add_pods(pod("p"))
            await world.pass_time(30)
            assert await world.where("p") == "a"
            assert used(world) == {"nodes": 1, "pods": 1, "assumed_pods": 0}
            assert len(world.scheduler.engine.queue) == 0

    run_virtual(main)


def test_somebody_else_may_bind_a_pod_elsewhere_meanwhile() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            first = asyncio.Event()

            async def overtake(request: Request, send: Send) -> Response:
                if request.path.endswith("/p/binding") and not first.is_set():
                    first.set()
                    await world.client.bind("p", "default", "other")
                return await send(request)

            world.transport.alter = overtake
            await world.add_nodes(node("a", allocatable={"cpu": "1", "pods": "9"}))
            await world.add_pods(pod("p", "1"))
            await world.add_pods(pod("q", "1"))
            await world.pass_time(5)
            assert await world.places() == {"p": "other", "q": "a"}

    run_virtual(main)


def test_many_bindings_are_under_way_at_once_but_not_all() -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster(clock) as world:
            now, most = [0], [0]

            async def slow(request: Request, send: Send) -> Response:
                if not request.path.endswith("/binding"):
                    return await send(request)
                now[0] += 1
                most[0] = max(most[0], now[0])
                await clock.sleep(1.0)
                now[0] -= 1
                return await send(request)

            world.transport.alter = slow
            await world.add_nodes(*(node(f"n{number}") for number in range(4)))
            await world.add_pods(*(pod(f"p{number}", "10m") for number in range(300)))
            await world.pass_time(10)
            assert most[0] == 256
            assert all((await world.places()).values())

    run_virtual(main)

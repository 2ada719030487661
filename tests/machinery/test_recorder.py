"""The event recorder against the fake API, in virtual time."""

from __future__ import annotations

import asyncio
import logging

import pytest

from nodeward.api import codec, errors
from nodeward.api.core_v1.cluster import Event
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.references import ObjectReference
from nodeward.api.meta import ObjectMeta
from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import InvariantBroken
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.recorder import NORMAL, WARNING, EventRecorder
from nodeward.machinery.transport import ConnectionFailed, Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.machinery.fake_api import FakeApi


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logging.getLogger("nodeward.machinery.recorder").setLevel(logging.CRITICAL)


class World:
    def __init__(self, clock: VirtualClock, queue_size: int = 1000, api: FakeApi | None = None) -> None:
        self.clock = clock
        self.api = api or FakeApi(clock)
        self.client = Client(self.api, clock=clock)
        self.recorder = EventRecorder(
            self.client, SeededChance(1), component="kubelet", host="node-1", queue_size=queue_size
        )

    async def events(self, namespace: str = "") -> list[Event]:
        return (await self.client.list(Event, namespace)).items


class LosesFirstAnswer(FakeApi):
    """The first request is carried out, but nobody hears of it."""

    async def send(self, request: Request, *, stream: bool = False) -> Response:
        response = await super().send(request, stream=stream)
        if len(self.log) == 1:
            raise ConnectionFailed("lost")
        return response


def pod(name: str = "web") -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="shop", uid="uid-1", resource_version="7"))


def test_an_event_says_who_saw_what_about_which_object_and_when() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        await clock.sleep(1)
        world.recorder.event(pod(), NORMAL, "Started", "Started container main", annotations={"a": "b"})
        assert world.api.log == []  # nothing is sent before the caller goes on
        await world.recorder.flush()
        (event,) = await world.events("shop")
        assert event.metadata.name == f"web.{clock.now_ns():x}"
        assert event.metadata.annotations == {"a": "b"}
        assert event.involved_object == ObjectReference(
            kind="Pod", api_version="v1", namespace="shop", name="web", uid="uid-1", resource_version="7"
        )
        assert (event.type, event.reason, event.message) == ("Normal", "Started", "Started container main")
        assert (event.source.component, event.source.host) == ("kubelet", "node-1")
        assert (event.reporting_component, event.reporting_instance) == ("kubelet", "node-1")
        assert event.first_timestamp == event.last_timestamp == "2026-01-01T00:00:01Z"
        assert event.count == 1

    run_virtual(program)


def test_events_about_things_without_namespace_live_in_default() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        world.recorder.event(Node(metadata=ObjectMeta(name="n1")), WARNING, "NodeNotReady", "gone")
        await world.recorder.flush()
        (event,) = await world.events("default")
        assert event.involved_object.kind == "Node"

    run_virtual(program)


def test_the_same_event_again_is_one_object_with_a_count() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        for _ in range(3):
            world.recorder.event(pod(), WARNING, "BackOff", "again")
            await clock.sleep(60)
        await world.recorder.flush()
        (event,) = await world.events()
        assert event.count == 3
        assert event.first_timestamp == "2026-01-01T00:00:00Z"
        assert event.last_timestamp == "2026-01-01T00:02:00Z"

    run_virtual(program)


def test_an_event_that_was_deleted_meanwhile_is_made_again_with_its_count() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        world.recorder.event(pod(), WARNING, "BackOff", "again")
        await world.recorder.flush()
        await world.client.delete_collection(Event, "shop")
        world.recorder.event(pod(), WARNING, "BackOff", "again")
        await world.recorder.flush()
        (event,) = await world.events()
        assert event.count == 2

    run_virtual(program)


def test_many_events_at_one_moment_keep_their_order_and_have_names_of_their_own() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        for number in range(8):
            world.recorder.event(pod(), NORMAL, f"Step{number}", "x")
        await world.recorder.flush()
        events = sorted(await world.events(), key=lambda event: int(event.metadata.resource_version))
        assert [event.reason for event in events] == [f"Step{number}" for number in range(8)]

    run_virtual(program)


def test_two_components_at_the_same_nanosecond_do_not_lose_or_mix_their_events() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        other = EventRecorder(world.client, SeededChance(2), component="scheduler")
        for _ in range(2):
            world.recorder.event(pod(), NORMAL, "Pulled", "from the kubelet")
            other.event(pod(), NORMAL, "Scheduled", "from the scheduler")
        await world.recorder.flush()
        await other.flush()
        found = sorted((e.source.component, e.reason, e.message, e.count) for e in await world.events())
        assert found == [
            ("kubelet", "Pulled", "from the kubelet", 2),
            ("scheduler", "Scheduled", "from the scheduler", 2),
        ]
        assert (world.recorder.dropped, other.dropped) == (0, 0)

    run_virtual(program)


def test_a_name_that_cannot_be_an_events_name_is_replaced() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        world.recorder.event(ObjectReference(kind="X", namespace="shop", name="Not_A:Name"), NORMAL, "R", "m")
        world.recorder.event(ObjectReference(kind="X", namespace="shop", name="x" * 250), NORMAL, "R", "m")
        await world.recorder.flush()
        assert all(len(event.metadata.name) == 36 for event in await world.events())
        assert len(await world.events()) == 2

    run_virtual(program)


def test_a_server_that_is_away_for_a_while_gets_the_event_later() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)

        def down(request: Request) -> Response | None:
            raise ConnectionFailed("down")

        world.api.fault = down
        world.recorder.event(pod(), NORMAL, "Started", "m")
        await clock.sleep(60)
        world.api.fault = None
        await clock.sleep(11)
        assert len(await world.events()) == 1
        assert world.recorder.dropped == 0

    run_virtual(program)


def test_an_answer_that_got_lost_does_not_double_the_event() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock, api=LosesFirstAnswer(clock))
        world.recorder.event(pod(), NORMAL, "Started", "m")
        await world.recorder.flush()
        assert len(await world.events()) == 1
        assert world.recorder.dropped == 0

    run_virtual(program)


def test_a_server_that_stays_away_costs_the_event_not_the_component() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        tries = 0

        def down(request: Request) -> Response | None:
            nonlocal tries
            tries += 1
            raise ConnectionFailed("down")

        world.api.fault = down
        world.recorder.event(pod(), NORMAL, "Started", "m")
        await world.recorder.flush()
        assert tries == 12
        assert 100 <= clock.elapsed_ns / SECOND_NS <= 110
        assert world.recorder.dropped == 1

    run_virtual(program)


def test_an_event_the_server_refuses_is_dropped_at_once() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)

        def refuse(request: Request) -> Response | None:
            error = errors.forbidden("", "events", "", "the namespace is being terminated")
            return Response(403, {}, codec.encode(error.status))

        world.api.fault = refuse
        world.recorder.event(pod(), NORMAL, "Started", "m")
        await world.recorder.flush()
        assert (len(world.api.log), world.recorder.dropped) == (1, 1)

    run_virtual(program)


def test_what_does_not_fit_in_the_queue_is_dropped_and_counted() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock, queue_size=10)
        for number in range(15):
            world.recorder.event(pod(f"p{number}"), NORMAL, "Started", "m")
        await world.recorder.flush()
        assert len(await world.events()) == 10
        assert world.recorder.dropped == 5

    run_virtual(program)


def test_closing_writes_what_is_left_and_then_takes_nothing_more() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        for number in range(20):
            world.recorder.event(pod(f"p{number}"), NORMAL, "Started", "m")
        await world.recorder.aclose()
        assert len(await world.events()) == 20
        world.recorder.event(pod("late"), NORMAL, "Started", "m")
        await world.recorder.aclose()
        assert len(await world.events()) == 20
        assert world.recorder.dropped == 1

    run_virtual(program)


def test_closing_does_not_wait_for_ever_for_a_server_that_is_gone() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)

        def down(request: Request) -> Response | None:
            raise ConnectionFailed("down")

        world.api.fault = down
        for number in range(20):
            world.recorder.event(pod(f"p{number}"), NORMAL, "Started", "m")
        await world.recorder.aclose(timeout=3.0)
        assert clock.elapsed_ns <= 3 * SECOND_NS
        assert world.recorder.dropped == 20
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(program)


def test_sources_can_share_one_writer() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        for number in range(3):
            world.recorder.on_behalf_of("kubelet", f"node-{number}").event(pod(), NORMAL, "Started", "m")
        await world.recorder.flush()
        assert sorted(event.source.host for event in await world.events()) == ["node-0", "node-1", "node-2"]

    run_virtual(program)


def test_only_the_two_known_types_are_told() -> None:
    async def program(clock: VirtualClock) -> None:
        with pytest.raises(InvariantBroken, match="Normal or Warning"):
            World(clock).recorder.event(pod(), "Error", "R", "m")

    run_virtual(program)

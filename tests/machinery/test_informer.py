"""Informers against the fake API, in virtual time: what they know, what they tell, and what they survive."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.api import codec, errors
from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.meta import ObjectMeta
from nodeward.api.scheme import SCHEME
from nodeward.base.duration import SECOND_NS
from nodeward.machinery.client import Client
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.informer import Informer, InformerFactory
from nodeward.machinery.reading import projection
from nodeward.machinery.transport import ConnectionFailed, Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.machinery.fake_api import FakeApi

#: Longer than any pause of a reflector.
A_WHILE = 200.0


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logging.getLogger("nodeward.machinery.reflector").setLevel(logging.CRITICAL)


class World:
    """A fake API, a client, and an informer of config maps with a diary of what it told."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.api = FakeApi(clock)
        self.client = Client(self.api, clock=clock)
        self.informer = Informer(self.client, ConfigMap, SeededChance(1), namespace="default")
        self.diary: list[str] = []
        self.informer.add_handler(
            lambda obj: self.diary.append(f"+{obj.metadata.name}"),
            lambda old, new: self.diary.append(
                f"{old.metadata.name}:{old.data.get('v')}>{new.data.get('v')}"
            ),
            lambda obj: self.diary.append(f"-{obj.metadata.name}"),
        )

    async def create(self, name: str, v: str = "1", **labels: str) -> ConfigMap:
        meta = ObjectMeta(name=name, namespace="default", labels=labels)
        return await self.client.create(ConfigMap(metadata=meta, data={"v": v}))

    async def change(self, name: str, v: str) -> None:
        obj = await self.client.get(ConfigMap, name, "default")
        obj.data = {"v": v}
        await self.client.update(obj)

    async def delete(self, name: str) -> None:
        await self.client.delete(ConfigMap, name, "default")

    async def settle(self) -> None:
        await self.clock.sleep(A_WHILE)

    def known(self) -> dict[str, str]:
        return {obj.metadata.name: obj.data["v"] for obj in self.informer.list()}

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.informer.run())
        try:
            await self.informer.wait_synced()
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def test_what_is_there_and_what_happens_is_known_and_told() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        await world.create("a")
        await world.create("b")
        assert not world.informer.has_synced()
        async with world.running():
            assert world.informer.has_synced()
            assert world.known() == {"a": "1", "b": "1"}
            await world.change("a", "2")
            await world.create("c")
            await world.delete("b")
            await world.settle()
            assert world.known() == {"a": "2", "c": "1"}
            assert world.diary == ["+a", "+b", "a:1>2", "+c", "-b"]
            found = world.informer.get("a", "default")
            assert found is world.informer.by_key("default/a")
            assert found is not None
            assert (found.kind, found.data) == ("ConfigMap", {"v": "2"})
            assert world.informer.get("b", "default") is None
            assert len(world.informer) == 2
            assert list(world.informer.keys()) == ["default/a", "default/c"]
            assert world.informer.list("elsewhere") == []

    run_virtual(program)


def test_a_lost_connection_is_resumed_without_gap_and_without_a_new_list() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        await world.create("a")
        async with world.running():
            await world.create("b")
            await clock.sleep(0)
            world.api.break_watches()
            await world.create("c")
            await world.delete("a")
            await world.settle()
            assert world.diary == ["+a", "+b", "+c", "-a"]
            lists = [line for line in world.api.log if line.startswith("GET") and "watch" not in line]
            assert len(lists) == 1

    run_virtual(program)


def test_a_watch_that_ran_its_time_is_renewed_where_it_ended() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        async with world.running():
            await world.create("a")
            await clock.sleep(400)
            world.api.end_watches()
            await world.create("b")
            await world.settle()
            assert world.diary == ["+a", "+b"]
            watches = [line for line in world.api.log if "watch=true" in line]
            assert "resourceVersion=2&" in watches[1]

    run_virtual(program)


def test_after_the_server_forgot_everything_is_listed_and_the_difference_told() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        await world.create("stays")
        await world.create("goes")
        await world.create("changes")
        async with world.running():
            world.diary.clear()
            await clock.sleep(1)
            world.api.break_watches()
            await world.delete("goes")
            await world.change("changes", "2")
            await world.create("comes")
            world.api.forget_history()
            await world.settle()
            assert world.known() == {"stays": "1", "changes": "2", "comes": "1"}
            assert sorted(world.diary) == ["+comes", "-goes", "changes:1>2"]
            lists = [line for line in world.api.log if line.startswith("GET") and "watch" not in line]
            # The first may come from a cache; the one after forgetting must be the newest.
            assert "resourceVersion=0" in lists[0]
            assert "resourceVersion" not in lists[-1]

    run_virtual(program)


def test_an_error_event_makes_it_start_over() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        await world.create("a")
        async with world.running():
            await clock.sleep(1)
            world.api.send_error(errors.expired("too old resource version"))
            await clock.sleep(0)
            assert world.api.open_watches == 0
            await world.create("b")
            await world.settle()
            assert world.known() == {"a": "1", "b": "1"}
            assert world.api.open_watches == 1

    run_virtual(program)


def test_a_bookmark_moves_the_place_where_a_watch_resumes() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        await world.create("a")
        async with world.running():
            await clock.sleep(1)
            for _ in range(5):
                world.api.advance()
            world.api.forget_history()
            world.api.send_bookmarks()
            await clock.sleep(1)
            world.api.break_watches()
            await world.settle()
            lists = [line for line in world.api.log if line.startswith("GET") and "watch" not in line]
            assert len(lists) == 1
            assert world.informer.reflector.version == "7"

    run_virtual(program)


def test_a_server_that_is_down_is_asked_less_and_less_often_until_it_is_back() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        tries: list[float] = []

        def down(request: Request) -> Response | None:
            tries.append(clock.elapsed_ns / SECOND_NS)
            raise ConnectionFailed("nobody there")

        world.api.fault = down
        task = asyncio.create_task(world.informer.run())
        await clock.sleep(600)
        assert not world.informer.has_synced()
        assert str(world.informer.reflector.last_error) == "nobody there"
        pauses = [later - earlier for earlier, later in itertools.pairwise(tries)]
        assert 0.8 <= pauses[0] <= 1.6
        assert all(30 <= pause <= 60 for pause in pauses[7:])
        assert len(pauses) > 12
        world.api.fault = None
        await clock.sleep(61)
        assert world.informer.has_synced()
        assert world.informer.reflector.last_error is None
        task.cancel()

    run_virtual(program)


def test_a_watch_that_ends_at_once_each_time_is_not_hammered() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)

        def hollow(request: Request) -> Response | None:
            if "watch=true" in request.query:
                clock.call_later(0, world.api.end_watches)
            return None

        world.api.fault = hollow
        async with world.running():
            await clock.sleep(300)
            assert 3 < len(world.api.log) < 25

    run_virtual(program)


def test_a_refusal_of_the_watch_leads_to_a_new_list_later() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)

        def refuse(request: Request) -> Response | None:
            if "watch=true" in request.query:
                error = errors.forbidden("", "configmaps", "", "not today")
                return Response(403, {}, codec.encode(error.status))
            return None

        world.api.fault = refuse
        async with world.running():
            await clock.sleep(30)
            await world.create("a")
            world.api.fault = None
            await world.settle()
            assert world.known() == {"a": "1"}

    run_virtual(program)


def test_an_object_that_cannot_be_read_is_never_skipped_silently() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        async with world.running():
            await clock.sleep(1)
            odd: dict[str, Any] = {"metadata": {"name": "odd", "namespace": "default"}, "data": "not a map"}
            await world.client.create(odd, kind=SCHEME.by_type(ConfigMap))
            await world.create("after")
            await world.settle()
            assert "after" not in world.known()
            assert "ConfigMap" in str(world.informer.reflector.last_error)
            await world.delete("odd")
            await world.settle()
            assert world.known() == {"after": "1"}

    run_virtual(program)


def test_an_index_finds_objects_by_what_they_are_now() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        world.informer.add_index("value", lambda obj: [obj.data["v"]])
        await world.create("a", "1")
        await world.create("b", "1")

        def names(index: str, value: str) -> list[str]:
            return [obj.metadata.name for obj in world.informer.by_index(index, value)]

        async with world.running():
            assert names("value", "1") == ["a", "b"]
            world.informer.add_index("late", lambda obj: [obj.data["v"], obj.metadata.name])
            await world.change("a", "2")
            await world.delete("b")
            await world.settle()
            for index in ("value", "late"):
                assert names(index, "1") == []
                assert names(index, "2") == ["a"]
            assert names("late", "a") == ["a"]
            assert list(world.informer.index_values("value")) == ["2"]
            assert world.informer.has_index("late")
            assert not world.informer.has_index("never")

    run_virtual(program)


def test_a_late_handler_hears_what_is_there_and_a_removed_one_nothing() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        await world.create("a")
        async with world.running():
            late: list[str] = []
            handler = world.informer.add_handler(on_add=lambda obj: late.append(obj.metadata.name))
            assert late == ["a"]
            await world.create("b")
            await world.settle()
            assert late == ["a", "b"]
            world.informer.remove_handler(handler)
            await world.create("c")
            await world.settle()
            assert late == ["a", "b"]
            assert world.diary == ["+a", "+b", "+c"]

    run_virtual(program)


def test_a_projection_keeps_only_what_it_makes() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)

        def value(body: bytes) -> str:
            return str(codec.parse_tree(body)["data"]["v"])

        informer = Informer(
            world.client,
            projection(value),
            SeededChance(2),
            kind=SCHEME.by_type(ConfigMap),
            namespace="default",
        )
        told: list[tuple[str, str]] = []
        informer.add_handler(on_update=lambda old, new: told.append((old, new)))
        await world.create("a", "1")
        task = asyncio.create_task(informer.run())
        await informer.wait_synced()
        await world.change("a", "2")
        world.api.send_bookmarks()
        await world.settle()
        assert informer.get("a", "default") == "2"
        assert told == [("1", "2")]
        task.cancel()

    run_virtual(program)


def test_a_factory_shares_one_informer_per_collection_and_starts_late_ones() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        await world.create("a", app="x")
        factory = InformerFactory(world.client, SeededChance(3))
        first = factory.informer(ConfigMap)
        assert factory.informer(ConfigMap) is first
        task = asyncio.create_task(factory.run())
        await factory.wait_synced()
        second = factory.informer(ConfigMap, label_selector="app=y")
        assert second is not first
        assert not factory.has_synced()
        await factory.wait_synced()
        assert factory.has_synced()
        assert (len(first), len(second)) == (1, 0)
        assert world.api.open_watches <= 2
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert world.api.open_watches == 0

    run_virtual(program)


def test_a_handler_that_fails_stops_the_factory_with_its_error() -> None:
    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        factory = InformerFactory(world.client, SeededChance(3))

        def fail(obj: ConfigMap) -> None:
            raise ZeroDivisionError(obj.metadata.name)

        factory.informer(ConfigMap).add_handler(on_add=fail)
        task = asyncio.create_task(factory.run())
        await world.create("a")
        with pytest.raises(ExceptionGroup) as caught:
            await task
        assert caught.group_contains(ZeroDivisionError, match="a")

    run_virtual(program)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete", "break", "end", "forget", "bookmark", "wait", "down", "up"]),
        st.sampled_from(["a", "b", "c"]),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 1000))
def test_whatever_happens_the_copy_and_the_told_story_end_up_like_the_server(
    steps: list[tuple[str, str]], seed: int
) -> None:
    def down(request: Request) -> Response | None:
        if request.method == "GET" and request.path.endswith("/configmaps"):
            raise ConnectionFailed("down")
        return None

    async def program(clock: VirtualClock) -> None:
        world = World(clock)
        world.informer = Informer(world.client, ConfigMap, SeededChance(seed), namespace="default")
        story: dict[str, str] = {}

        def add(obj: ConfigMap) -> None:
            assert obj.metadata.name not in story
            story[obj.metadata.name] = obj.data["v"]

        def update(old: ConfigMap, new: ConfigMap) -> None:
            assert story[old.metadata.name] == old.data["v"]
            story[new.metadata.name] = new.data["v"]

        def delete(obj: ConfigMap) -> None:
            del story[obj.metadata.name]

        world.informer.add_handler(add, update, delete)
        server: dict[str, str] = {}
        async with world.running():
            for number, (step, name) in enumerate(steps):
                if step == "put" and name in server:
                    await world.change(name, str(number))
                    server[name] = str(number)
                elif step == "put":
                    await world.create(name, str(number))
                    server[name] = str(number)
                elif step == "delete" and name in server:
                    await world.delete(name)
                    del server[name]
                elif step == "break":
                    world.api.break_watches()
                elif step == "end":
                    world.api.end_watches()
                elif step == "forget":
                    world.api.forget_history()
                elif step == "bookmark":
                    world.api.send_bookmarks()
                elif step == "wait":
                    await clock.sleep(5)
                elif step == "down":
                    world.api.fault = down
                elif step == "up":
                    world.api.fault = None
            world.api.fault = None
            await world.settle()
            assert world.known() == server
            assert story == server

    run_virtual(program)

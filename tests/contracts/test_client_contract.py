"""What a client can rely on, whatever lies between it and the server, and whatever clock it runs on."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.errors import ApiError
from nodeward.api.fields import KubeStruct
from nodeward.api.meta import ObjectMeta
from nodeward.api.scheme import SCHEME
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.reading import projection
from nodeward.machinery.watching import INITIAL_EVENTS_END, Watch, WatchEvent
from tests.contracts.clients import GROUNDS, ClientGround

CONFIG_MAP = SCHEME.by_type(ConfigMap)


@pytest.fixture(params=GROUNDS, ids=lambda ground: ground.name)
def ground(request: pytest.FixtureRequest) -> ClientGround:
    found: ClientGround = request.param
    return found


def config_map(name: str, data: dict[str, str] | None = None, **labels: str) -> ConfigMap:
    return ConfigMap(
        metadata=ObjectMeta(name=name, namespace="default", labels=labels), data=data or {"key": "value"}
    )


def pod(name: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodSpec(containers=[Container(name="main", image="registry.example/app:1")]),
    )


async def refused(work: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await work
    return caught.value


async def next_events(watch: Watch[ConfigMap], count: int) -> list[tuple[str, str]]:
    """The next `count` events that are no bookmarks, as (type, name)."""
    return [(event.type, event.object.metadata.name) for event in await real_events(watch, count)]


async def real_events(watch: Watch[ConfigMap], count: int) -> list[WatchEvent[ConfigMap]]:
    found: list[WatchEvent[ConfigMap]] = []
    while len(found) < count:
        event = await anext(watch)
        if event.type != "BOOKMARK":
            found.append(event)
    return found


def test_what_is_created_can_be_read_with_its_identity(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        created = await client.create(config_map("one", {"a": "1"}, app="x"))
        assert (created.kind, created.api_version) == ("ConfigMap", "v1")
        assert created.metadata.uid
        assert created.metadata.resource_version
        assert created.metadata.creation_timestamp
        found = await client.get(ConfigMap, "one", "default")
        assert found == created
        assert found.data == {"a": "1"}
        assert found.metadata.labels == {"app": "x"}

    ground.run(scenario)


def test_a_name_can_be_taken_only_once(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        await client.create(config_map("one", {"a": "1"}))
        error = await refused(client.create(config_map("one", {"a": "2"})))
        assert (error.code, error.reason) == (409, "AlreadyExists")
        assert str(error) == 'configmaps "one" already exists'
        assert (await client.get(ConfigMap, "one", "default")).data == {"a": "1"}

    ground.run(scenario)


def test_a_generated_name_starts_as_asked(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        wanted = ConfigMap(metadata=ObjectMeta(generate_name="many-", namespace="default"))
        first, second = await client.create(wanted), await client.create(wanted)
        assert first.metadata.name.startswith("many-")
        assert first.metadata.name != second.metadata.name

    ground.run(scenario)


def test_what_is_not_there_is_not_found_and_named(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        for work in (
            client.get(ConfigMap, "none", "default"),
            client.update(config_map("none")),
            client.patch(ConfigMap, "none", {"data": {}}, namespace="default", patch_type=PatchType.MERGE),
            client.delete(ConfigMap, "none", "default"),
        ):
            error = await refused(work)
            assert (error.code, error.reason, str(error)) == (404, "NotFound", 'configmaps "none" not found')
            assert error.status.details is not None
            assert (error.status.details.kind, error.status.details.name) == ("configmaps", "none")

    ground.run(scenario)


def test_an_update_based_on_old_knowledge_is_a_conflict_and_changes_nothing(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        old = await client.create(config_map("one", {"a": "1"}))
        old.data = {"a": "2"}
        new = await client.update(old)
        assert new.data == {"a": "2"}
        assert new.metadata.uid == old.metadata.uid
        assert new.metadata.resource_version != old.metadata.resource_version
        old.data = {"a": "3"}
        error = await refused(client.update(old))
        assert (error.code, error.reason) == (409, "Conflict")
        assert (await client.get(ConfigMap, "one", "default")).data == {"a": "2"}

    ground.run(scenario)


def test_an_update_that_changes_nothing_keeps_the_version(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        created = await client.create(config_map("one"))
        assert (await client.update(created)).metadata.resource_version == created.metadata.resource_version

    ground.run(scenario)


@pytest.mark.parametrize(
    ("patch_type", "body"),
    [
        (PatchType.MERGE, {"data": {"a": None, "b": "2"}}),
        (PatchType.STRATEGIC, {"data": {"a": None, "b": "2"}}),
        (
            PatchType.JSON,
            [{"op": "remove", "path": "/data/a"}, {"op": "add", "path": "/data/b", "value": "2"}],
        ),
        (PatchType.MERGE, b'{"data":{"a":null,"b":"2"}}'),
    ],
)
def test_a_patch_changes_what_it_names_and_leaves_the_rest(
    ground: ClientGround, patch_type: PatchType, body: Any
) -> None:
    async def scenario(client: Client) -> None:
        await client.create(config_map("one", {"a": "1", "c": "3"}))
        patched = await client.patch(ConfigMap, "one", body, namespace="default", patch_type=patch_type)
        assert patched.data == {"b": "2", "c": "3"}
        assert await client.get(ConfigMap, "one", "default") == patched

    ground.run(scenario)


def test_apply_creates_what_is_missing_and_changes_what_is_there(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        wanted: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "one", "namespace": "default"},
            "data": {"a": "1"},
        }
        created = await client.apply(wanted, field_manager="tester")
        assert created["data"] == {"a": "1"}
        wanted["data"] = {"a": "2"}
        changed = await client.apply(wanted, field_manager="tester")
        assert changed["data"] == {"a": "2"}
        assert changed["metadata"]["uid"] == created["metadata"]["uid"]

    ground.run(scenario)


def test_status_is_written_apart_from_the_rest(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        created = await client.create(pod("one"))
        created.status.message = "from status"
        created.metadata.labels = {"lost": "yes"}
        updated = await client.update(created, subresource="status")
        assert updated.status.message == "from status"
        updated.metadata.labels = {"kept": "yes"}
        updated.status.message = "not from here"
        updated = await client.update(updated)
        assert updated.status.message == "from status"
        assert updated.metadata.labels == {"kept": "yes"}

    ground.run(scenario)


def test_a_dry_run_answers_but_leaves_nothing(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        tried = await client.create(config_map("one", {"a": "1"}), dry_run=True)
        assert tried.data == {"a": "1"}
        assert (await refused(client.get(ConfigMap, "one", "default"))).code == 404
        await client.create(config_map("one", {"a": "1"}))
        await client.delete(ConfigMap, "one", "default", dry_run=True)
        assert (await client.get(ConfigMap, "one", "default")).data == {"a": "1"}

    ground.run(scenario)


def test_a_list_has_what_was_selected_and_says_kind_and_version_of_each(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        for name in ("b", "a", "c"):
            await client.create(config_map(name, app="mine"))
        await client.create(config_map("other", app="theirs"))
        listed = await client.list(ConfigMap, "default", label_selector="app=mine")
        assert [item.metadata.name for item in listed.items] == ["a", "b", "c"]
        assert {(item.kind, item.api_version) for item in listed.items} == {("ConfigMap", "v1")}
        assert int(listed.resource_version) >= max(int(i.metadata.resource_version) for i in listed.items)
        by_name = await client.list(ConfigMap, field_selector="metadata.name=other")
        assert [item.metadata.name for item in by_name.items] == ["other"]

    ground.run(scenario)


def test_pages_together_are_the_whole_list(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        names = [f"page-{number}" for number in range(7)]
        for name in names:
            await client.create(config_map(name, app="paged"))
        first = await client.list(ConfigMap, "default", label_selector="app=paged", limit=3)
        assert len(first.items) == 3
        assert first.continue_
        pages = [
            [item.metadata.name for item in page.items]
            async for page in client.list_pages(ConfigMap, "default", label_selector="app=paged", limit=3)
        ]
        assert pages == [names[:3], names[3:6], names[6:]]

    ground.run(scenario)


def test_what_is_deleted_is_gone_but_only_if_it_is_the_one_meant(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        created = await client.create(config_map("one"))
        error = await refused(client.delete(ConfigMap, "one", "default", uid="another"))
        assert (error.code, error.reason) == (409, "Conflict")
        error = await refused(client.delete(ConfigMap, "one", "default", resource_version="1"))
        assert (error.code, error.reason) == (409, "Conflict")
        await client.delete(
            ConfigMap,
            "one",
            "default",
            uid=created.metadata.uid,
            resource_version=created.metadata.resource_version,
        )
        assert (await refused(client.get(ConfigMap, "one", "default"))).code == 404

    ground.run(scenario)


def test_a_collection_is_deleted_by_selector(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        for name in ("a", "b"):
            await client.create(config_map(name, app="goes"))
        await client.create(config_map("stays", app="stays"))
        await client.delete_collection(ConfigMap, "default", label_selector="app=goes")
        left = await client.list(ConfigMap, "default", field_selector="metadata.name=stays")
        assert [item.metadata.name for item in left.items] == ["stays"]
        assert (await client.list(ConfigMap, "default", label_selector="app=goes")).items == []

    ground.run(scenario)


def test_a_watch_from_a_lists_version_misses_nothing_after_the_list(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        await client.create(config_map("before", app="w"))
        listed = await client.list(ConfigMap, "default", label_selector="app=w")
        created = await client.create(config_map("during", app="w"))
        async with client.watch(
            ConfigMap, "default", resource_version=listed.resource_version, label_selector="app=w"
        ) as watch:
            assert await next_events(watch, 1) == [("ADDED", "during")]
            created.data = {"a": "new"}
            await client.update(created)
            await client.create(config_map("unrelated", app="other"))
            await client.delete(ConfigMap, "during", "default")
            await client.delete(ConfigMap, "before", "default")
            events = await real_events(watch, 3)
            assert [(event.type, event.object.metadata.name) for event in events] == [
                ("MODIFIED", "during"),
                ("DELETED", "during"),
                ("DELETED", "before"),
            ]
            assert events[0].object.data == {"a": "new"}
            versions = [int(event.object.metadata.resource_version) for event in events]
            assert versions == sorted(set(versions))

    ground.run(scenario)


def test_a_watch_resumed_from_an_event_continues_right_behind_it(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        start = (await client.list(ConfigMap, "default")).resource_version
        for number in range(6):
            await client.create(config_map(f"c{number}"))
        async with client.watch(ConfigMap, "default", resource_version=start) as watch:
            seen = await real_events(watch, 3)
        resumed = seen[-1].object.metadata.resource_version
        async with client.watch(ConfigMap, "default", resource_version=resumed) as watch:
            seen += await real_events(watch, 3)
        assert [event.object.metadata.name for event in seen] == [f"c{number}" for number in range(6)]

    ground.run(scenario)


def test_initial_events_end_with_a_marked_bookmark(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        for name in ("a", "b"):
            await client.create(config_map(name, app="init"))
        async with client.watch(
            ConfigMap, "default", label_selector="app=init", send_initial_events=True
        ) as watch:
            assert await next_events(watch, 2) == [("ADDED", "a"), ("ADDED", "b")]
            mark = await anext(watch)
            assert mark.type == "BOOKMARK"
            assert mark.object.metadata.annotations == {INITIAL_EVENTS_END: "true"}
            assert int(mark.object.metadata.resource_version) > 0

    ground.run(scenario)


def test_a_watch_of_one_name_sees_only_that(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        start = (await client.list(ConfigMap, "default")).resource_version
        async with client.watch(ConfigMap, "default", name="mine", resource_version=start) as watch:
            await watch.open()
            await client.create(config_map("theirs"))
            await client.create(config_map("mine"))
            assert await next_events(watch, 1) == [("ADDED", "mine")]

    ground.run(scenario)


def test_a_closed_watch_has_ended(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        start = (await client.list(ConfigMap, "default")).resource_version
        watch = client.watch(ConfigMap, "default", resource_version=start)
        await watch.open()
        await watch.aclose()
        await watch.aclose()
        assert [event async for event in watch] == []

    ground.run(scenario)


def test_many_writers_at_once_all_get_their_own_version(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        created = await asyncio.gather(*(client.create(config_map(f"c{number}")) for number in range(20)))
        assert len({obj.metadata.resource_version for obj in created}) == 20
        assert len({obj.metadata.uid for obj in created}) == 20

    ground.run(scenario)


def test_a_pod_is_bound_once(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        created = await client.create(pod("one"))
        await client.bind("one", "default", "node-a", uid=created.metadata.uid)
        assert (await client.get(Pod, "one", "default")).spec.node_name == "node-a"
        assert (await refused(client.bind("one", "default", "node-b"))).code == 409
        assert (await client.get(Pod, "one", "default")).spec.node_name == "node-a"

    ground.run(scenario)


def test_a_pod_without_budget_can_be_evicted(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        await client.create(pod("one"))
        await client.evict("one", "default", grace_period=0)
        assert (await refused(client.get(Pod, "one", "default"))).code == 404

    ground.run(scenario)


class _Names(KubeStruct):
    """The part of a config map a caller might need."""

    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


def test_a_caller_may_read_only_what_it_needs_in_any_form(ground: ClientGround) -> None:
    async def scenario(client: Client) -> None:
        await client.create(config_map("one", {"a": "1"}, app="x"))
        part = await client.get(_Names, "one", "default", kind=CONFIG_MAP)
        assert (type(part), part.metadata.labels) == (_Names, {"app": "x"})
        tree = await client.get(dict, "one", "default", kind=CONFIG_MAP)
        assert tree["data"] == {"a": "1"}
        raw = await client.get(bytes, "one", "default", kind=CONFIG_MAP)
        assert raw.startswith(b"{")
        sizes = await client.list(projection(len), "default", kind=CONFIG_MAP, label_selector="app=x")
        assert len(sizes.items) == 1
        assert sizes.items[0] > 20

    ground.run(scenario)


@pytest.mark.parametrize("name", ["a/b", "..", "x?watch=true", "a%2Fb", "ä", "a b", "x#y"])
def test_no_name_reaches_beyond_its_place_in_the_path(ground: ClientGround, name: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create(config_map("b"))
        error = await refused(client.get(ConfigMap, name, "default"))
        assert error.code in (400, 404)

    ground.run(scenario)

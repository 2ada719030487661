"""After a create or an update, fields belong to whom a Kubernetes API server would give them."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.api.apply.field_set import decode, paths
from nodeward.api.apply.managed import update_managed
from nodeward.api.apply.managers import equal_but_for_times
from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.core_v1.node import Node
from nodeward.api.meta import ManagedFieldsEntry
from nodeward.api.schema import schema_of
from tests.api.apply.trees import POD, pod_tree

NOW, LATER = "2026-11-15T06:00:00Z", "2026-11-15T07:00:00Z"
CONFIG = schema_of(ConfigMap)
STATUS = (("status",),)
NOT_STATUS = (("spec",), ("metadata",))

CONTAINER = {
    "name": "c",
    "image": "pause:3.10",
    "resources": {"requests": {"cpu": "100m"}},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
SMALL_POD = {
    "kind": "Pod",
    "apiVersion": "v1",
    "metadata": {"name": "a", "namespace": "samples", "labels": {"app": "x"}},
    "spec": {
        "containers": [CONTAINER],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    },
    "status": {},
}
#: As a 1.37 API server answers.
SMALL_POD_FIELDS = {
    "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
    "f:spec": {
        "f:containers": {
            'k:{"name":"c"}': {
                ".": {},
                "f:image": {},
                "f:imagePullPolicy": {},
                "f:name": {},
                "f:resources": {".": {}, "f:requests": {".": {}, "f:cpu": {}}},
                "f:terminationMessagePath": {},
                "f:terminationMessagePolicy": {},
            }
        },
        "f:dnsPolicy": {},
        "f:enableServiceLinks": {},
        "f:restartPolicy": {},
        "f:schedulerName": {},
        "f:securityContext": {},
        "f:terminationGracePeriodSeconds": {},
    },
}


def fields(entry: ManagedFieldsEntry) -> dict[str, Any]:
    assert entry.fields_v1 is not None
    return decode(bytes(entry.fields_v1))


def update(
    new: dict[str, Any],
    old: dict[str, Any] | None,
    existing: list[ManagedFieldsEntry],
    manager: str = "m",
    **more: Any,
) -> list[ManagedFieldsEntry]:
    defaults: dict[str, Any] = {"api_version": "v1", "now": NOW, "existing": existing, "manager": manager}
    return update_managed(new, old, more.pop("schema", POD), **(defaults | more))


def config(**data: str) -> dict[str, Any]:
    tree: dict[str, Any] = {"metadata": {"name": "cm"}}
    return tree | {"data": data} if data else tree


def test_a_created_pod_has_one_owner_of_everything_it_says() -> None:
    [entry] = update(SMALL_POD, None, [], "sample", reset=STATUS)
    assert (entry.manager, entry.operation, entry.api_version, entry.time) == ("sample", "Update", "v1", NOW)
    assert fields(entry) == SMALL_POD_FIELDS
    assert list(fields(entry)) == list(SMALL_POD_FIELDS)


def test_a_label_added_later_belongs_to_who_added_it() -> None:
    existing = update(SMALL_POD, None, [], "sample")
    new = copy.deepcopy(SMALL_POD)
    new["metadata"]["labels"]["b"] = "c"  # type: ignore[index]
    first, second = update(new, SMALL_POD, existing, "curl")
    assert (first.manager, fields(first)) == ("curl", {"f:metadata": {"f:labels": {"f:b": {}}}})
    assert second is existing[0], "untouched entries are given back as they were"


def test_a_changed_value_changes_hands() -> None:
    existing = update(SMALL_POD, None, [], "sample")
    new = copy.deepcopy(SMALL_POD)
    new["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "200m"  # type: ignore[index]
    first, second = update(new, SMALL_POD, existing, "curl", subresource="resize")
    resources: dict[str, Any] = {"f:resources": {"f:requests": {"f:cpu": {}}}}
    assert fields(first) == {"f:spec": {"f:containers": {'k:{"name":"c"}': resources}}}
    assert first.subresource == "resize"
    left = fields(second)["f:spec"]["f:containers"]['k:{"name":"c"}']["f:resources"]
    assert left == {".": {}, "f:requests": {}}


def test_status_is_nobodys_through_the_main_resource_and_somebodys_through_its_own() -> None:
    schema = schema_of(Node)
    node = {
        "metadata": {"name": "n1", "labels": {"kubernetes.io/hostname": "n1"}},
        "spec": {},
        "status": {"capacity": {"cpu": "8"}},
    }
    existing = update(node, None, [], schema=schema, reset=STATUS)
    assert fields(existing[0]) == {"f:metadata": {"f:labels": {".": {}, "f:kubernetes.io/hostname": {}}}}
    new = copy.deepcopy(node)
    new["status"]["declaredFeatures"] = ["A", "B"]  # type: ignore[index]
    new["metadata"]["labels"]["x"] = "y"  # type: ignore[index]
    main, status = update(new, node, existing, schema=schema, subresource="status", reset=NOT_STATUS)
    assert main is existing[0]
    assert (status.subresource, fields(status)) == ("status", {"f:status": {"f:declaredFeatures": {}}})


def test_conditions_have_an_owner_each() -> None:
    old = copy.deepcopy(SMALL_POD)
    existing = update(old, None, [], "sample")
    ready = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": NOW}
    new = old | {"status": {"conditions": [ready]}}
    entries = update(new, old, existing, "kubelet", subresource="status")
    owned: dict[str, Any] = {"f:lastProbeTime": {}, "f:lastTransitionTime": {}, "f:status": {}, "f:type": {}}
    assert fields(entries[0]) == {
        "f:status": {"f:conditions": {".": {}, 'k:{"type":"Ready"}': {".": {}, **owned}}}
    }


def test_what_is_removed_belongs_to_nobody() -> None:
    existing = update(config(a="1", b="2"), None, [], schema=CONFIG)
    [entry] = update(config(b="2"), config(a="1", b="2"), existing, "other", schema=CONFIG, now=LATER)
    assert fields(entry) == {"f:data": {".": {}, "f:b": {}}}
    assert entry.time == NOW
    assert update(config(), config(b="2"), [entry], "other", schema=CONFIG) == []


def test_an_update_that_changes_nothing_keeps_the_entries() -> None:
    existing = update(config(a="1"), None, [], schema=CONFIG)
    changed = config(a="1")
    changed["metadata"] |= {"resourceVersion": "2", "generation": 3}
    assert update(changed, config(a="1"), existing, "other", schema=CONFIG, now=LATER) == existing


def test_the_same_manager_keeps_one_entry_with_the_time_of_its_last_change() -> None:
    existing = update(config(a="1"), None, [], schema=CONFIG)
    [entry] = update(config(a="1", b="2"), config(a="1"), existing, schema=CONFIG, now=LATER)
    assert fields(entry) == {"f:data": {".": {}, "f:a": {}, "f:b": {}}}
    assert entry.time == LATER


def test_nobody_is_called_unknown() -> None:
    assert update(config(a="1"), None, [], "", schema=CONFIG)[0].manager == "unknown"


@pytest.mark.parametrize("requested", [[], [ManagedFieldsEntry()]])
def test_entries_can_be_taken_away_and_stay_away(requested: list[ManagedFieldsEntry]) -> None:
    existing = update(config(a="1"), None, [], schema=CONFIG)
    assert update(config(a="1"), config(a="1"), existing, schema=CONFIG, requested=requested) == []
    assert update(config(a="2"), config(a="1"), [], schema=CONFIG) == []


def test_entries_cannot_be_taken_away_through_a_subresource() -> None:
    existing = update(config(a="1"), None, [], schema=CONFIG)
    kept = update(config(a="1"), config(a="1"), existing, schema=CONFIG, requested=[], subresource="status")
    assert kept == existing


@pytest.mark.parametrize(
    "broken",
    [
        {"operation": "Delete"},
        {"api_version": ""},
        {"fields_type": "FieldsV2"},
        {"fields_v1": msgspec.Raw(b"[]")},
    ],
)
def test_entries_that_make_no_sense_are_ignored(broken: dict[str, Any]) -> None:
    existing = update(config(a="1"), None, [], schema=CONFIG)
    requested = [msgspec.structs.replace(existing[0], **broken)]
    assert update(config(a="1"), config(a="1"), existing, schema=CONFIG, requested=requested) == existing


def test_a_client_may_rewrite_who_owns_what() -> None:
    existing = update(config(a="1", b="1"), None, [], schema=CONFIG)
    requested = [
        msgspec.structs.replace(
            existing[0], manager="new", fields_v1=msgspec.Raw(b'{"f:data":{"f:b":{}, "f:a":{}}}')
        )
    ]
    [entry] = update(config(a="1", b="1"), config(a="1", b="1"), existing, schema=CONFIG, requested=requested)
    assert entry.manager == "new"
    assert entry.fields_v1 == msgspec.Raw(b'{"f:data":{"f:a":{},"f:b":{}}}')


def test_of_too_many_updaters_the_oldest_become_one() -> None:
    tree, entries = config(), update({"metadata": {"labels": {"x": "y"}}}, None, [], "first", schema=CONFIG)
    for number in range(12):
        new = config(**(tree.get("data") or {}), **{f"k{number}": "1"})
        now = f"2026-11-15T06:{number:02}:00Z"
        entries = update(new, tree, entries, f"m{number:02}", schema=CONFIG, now=now)
        tree = new
    assert len(entries) == 10
    assert [entry.manager for entry in entries] == ["ancient-changes", *(f"m{n:02}" for n in range(3, 12))]
    assert {p[-1] for p in paths(fields(entries[0]))} == {"f:data", "f:k0", "f:k1", "f:k2", "f:labels", "f:x"}
    assert entries[0].time == "2026-11-15T06:02:00Z"


def test_entries_of_versions_that_are_not_served_are_dropped() -> None:
    existing = update(config(a="1"), None, [], schema=CONFIG)
    stale = msgspec.structs.replace(existing[0], api_version="v0")
    assert update(config(a="1"), config(a="1"), [stale, *existing], schema=CONFIG) == existing


def test_a_repeated_item_is_owned_without_what_is_inside() -> None:
    tree = copy.deepcopy(SMALL_POD)
    tree["spec"]["containers"] = [CONTAINER, CONTAINER]  # type: ignore[index]
    [entry] = update(tree, None, [])
    assert fields(entry)["f:spec"]["f:containers"] == {'k:{"name":"c"}': {}}
    later, first = update(SMALL_POD, tree, [entry], "fixer")
    assert fields(later)["f:spec"]["f:containers"]['k:{"name":"c"}']["f:image"] == {}
    assert "f:containers" not in fields(first)["f:spec"]


def test_only_some_paths_can_change_hands() -> None:
    existing = update(SMALL_POD, None, [], "sample")
    new = copy.deepcopy(SMALL_POD)
    new["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "200m"  # type: ignore[index]
    new["spec"]["containers"][0]["image"] = "other"  # type: ignore[index]
    only = (("spec", "containers", "*", "resources"),)
    first, second = update(new, SMALL_POD, existing, "curl", subresource="resize", only=only)
    assert list(fields(first)["f:spec"]["f:containers"]['k:{"name":"c"}']) == ["f:resources"]
    assert "f:image" in fields(second)["f:spec"]["f:containers"]['k:{"name":"c"}']


def test_times_can_be_looked_over() -> None:
    one = update(config(a="1"), None, [], schema=CONFIG)
    two = update(config(a="1"), None, [], schema=CONFIG, now=LATER)
    assert one != two
    assert equal_but_for_times(one, two)
    assert not equal_but_for_times(one, update(config(b="1"), None, [], schema=CONFIG))


_DATA = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=4)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["m", "n", "o"]), _DATA), min_size=1, max_size=6))
def test_every_field_has_exactly_one_updating_owner(writes: list[tuple[str, dict[str, str]]]) -> None:
    tree: dict[str, Any] | None = None
    entries: list[ManagedFieldsEntry] = []
    base = {"metadata": {"name": "cm", "labels": {"keep": "tracked"}}}
    for manager, data in writes:
        new = base | ({"data": data} if data else {})
        entries = update(new, tree, entries, manager, schema=CONFIG)
        tree = new
    assert tree is not None
    owned = [path for entry in entries for path in paths(fields(entry))]
    expected: set[tuple[str, ...]] = {("f:data", "f:" + name) for name in tree.get("data", {})}
    if tree.get("data"):
        expected.add(("f:data",))
    expected |= {("f:metadata", "f:labels"), ("f:metadata", "f:labels", "f:keep")}
    assert sorted(owned) == sorted(expected)


def test_a_large_pod_goes_through_updates_unharmed() -> None:
    tree = pod_tree()
    existing = update(tree, None, [])
    status = tree | {"status": {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}]}}
    entries = update(status, tree, existing, "kubelet", subresource="status")
    assert {entry.manager for entry in entries} == {"m", "kubelet"}
    assert existing[0] in entries

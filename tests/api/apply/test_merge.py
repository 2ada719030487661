"""Applying a configuration does to object and owners what a Kubernetes API server does."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeward.api.apply.field_set import decode
from nodeward.api.apply.last_applied import ANNOTATION
from nodeward.api.apply.managed import update_managed
from nodeward.api.apply.merge import apply
from nodeward.api.apps_v1 import Deployment
from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.errors import ApiError
from nodeward.api.meta import ManagedFieldsEntry
from nodeward.api.schema import Schema, schema_of
from tests.api.apply.trees import POD

NOW, LATER = "2026-11-15T06:00:00Z", "2026-11-15T07:00:00Z"
CONFIG = schema_of(ConfigMap)


class Live:
    """An object and its entries, as requests change them."""

    def __init__(self, schema: Schema = CONFIG, api_version: str = "v1") -> None:
        self.schema = schema
        self.api_version = api_version
        self.tree: dict[str, Any] | None = None
        self.entries: list[ManagedFieldsEntry] = []

    def apply(
        self, tree: dict[str, Any], manager: str = "one", *, force: bool = False, now: str = NOW
    ) -> None:
        given = {"apiVersion": self.api_version, "kind": self.schema.python_type.__name__} | tree
        before = copy.deepcopy((self.tree, given))
        merged = apply(
            self.tree,
            given,
            self.schema,
            manager=manager,
            force=force,
            api_version=self.api_version,
            now=now,
            existing=self.entries,
        )
        assert before == (self.tree, given)
        self.tree, self.entries = merged

    def update(self, tree: dict[str, Any], manager: str = "updater", subresource: str = "") -> None:
        tree = {"apiVersion": self.api_version, "kind": self.schema.python_type.__name__} | tree
        self.entries = update_managed(
            tree,
            self.tree,
            self.schema,
            manager=manager,
            api_version=self.api_version,
            now=NOW,
            existing=self.entries,
            subresource=subresource,
        )
        self.tree = tree

    def owned(self, manager: str) -> Any:
        found = [entry for entry in self.entries if entry.manager == manager]
        return decode(bytes(found[0].fields_v1 or b"{}")) if found else None

    @property
    def data(self) -> Any:
        assert self.tree is not None
        return self.tree.get("data")


def config(**data: str) -> dict[str, Any]:
    return {"metadata": {"name": "cm"}, "data": data}


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": list(containers)} | spec}


def refused(live: Live, tree: dict[str, Any], manager: str) -> ApiError:
    with pytest.raises(ApiError) as caught:
        live.apply(tree, manager)
    return caught.value


def test_applying_what_is_not_there_creates_it() -> None:
    live = Live()
    live.apply(config(a="1"))
    assert live.data == {"a": "1"}
    [entry] = live.entries
    assert (entry.manager, entry.operation, entry.api_version, entry.time) == ("one", "Apply", "v1", NOW)
    assert live.owned("one") == {"f:data": {"f:a": {}}}


def test_changing_what_another_applied_is_a_conflict() -> None:
    live = Live()
    live.apply(config(a="1"))
    error = refused(live, config(a="2"), "two")
    assert error.code == 409
    assert error.status.message == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    assert error.status.details is not None
    [cause] = error.status.details.causes
    assert (cause.reason, cause.message, cause.field) == (
        "FieldManagerConflict",
        'conflict with "one"',
        ".data.a",
    )


def test_several_conflicts_are_grouped_by_manager() -> None:
    live = Live(POD)
    live.apply(pod({"name": "c", "image": "1"}), "zoe")
    live.update(pod({"name": "c", "image": "1"}, hostname="h"), "kubectl-edit")
    status = {"phase": "Pending", "hostIP": "1.1.1.1"}
    live.update(pod({"name": "c", "image": "1"}, hostname="h") | {"status": status}, "kubelet", "status")
    changed = pod({"name": "c", "image": "2"}, hostname="i") | {"status": {"phase": "Running"}}
    error = refused(live, changed, "two")
    assert error.status.message == (
        "Apply failed with 3 conflicts: "
        'conflicts with "kubectl-edit" using v1:\n- .spec.hostname\n'
        'conflicts with "kubelet" with subresource "status" using v1:\n- .status.phase\n'
        'conflicts with "zoe":\n- .spec.containers[name="c"].image'
    )
    assert error.status.details is not None
    assert [cause.field for cause in error.status.details.causes] == [
        ".spec.hostname",
        ".status.phase",
        '.spec.containers[name="c"].image',
    ]


def test_saying_the_same_makes_one_an_owner_too() -> None:
    live = Live()
    live.apply(config(a="1"), "one")
    live.apply(config(a="1"), "two", now=LATER)
    assert live.owned("one") == live.owned("two") == {"f:data": {"f:a": {}}}


def test_force_takes_the_field_from_its_owner() -> None:
    live = Live()
    live.apply(config(a="1", b="1"), "one")
    live.apply(config(a="2"), "two", force=True, now=LATER)
    assert live.data == {"a": "2", "b": "1"}
    assert live.owned("one") == {"f:data": {"f:b": {}}}
    assert live.owned("two") == {"f:data": {"f:a": {}}}


def test_what_is_applied_no_longer_goes() -> None:
    live = Live()
    live.apply(config(a="1", b="2"))
    live.apply(config(a="1"), now=LATER)
    assert live.data == {"a": "1"}
    live.apply({"metadata": {"name": "cm"}})
    assert live.tree == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}}
    assert live.entries == []


def test_what_another_owns_too_stays() -> None:
    live = Live()
    live.apply(config(a="1", b="2"), "one")
    live.apply(config(b="2"), "two")
    live.apply(config(a="1"), "one")
    assert live.data == {"a": "1", "b": "2"}
    assert live.owned("one") == {"f:data": {"f:a": {}}}


def test_what_an_updater_owns_stays() -> None:
    live = Live(schema_of(Deployment), "apps/v1")
    live.apply({"metadata": {"name": "d"}, "spec": {"replicas": 1, "paused": True}}, "one")
    live.update({"metadata": {"name": "d"}, "spec": {"replicas": 5, "paused": True}}, "autoscaler")
    live.apply({"metadata": {"name": "d"}, "spec": {"paused": True}}, "one")
    assert live.tree is not None
    assert live.tree["spec"] == {"replicas": 5, "paused": True}


def test_an_item_goes_with_its_only_owner_and_what_it_got_by_default() -> None:
    live = Live(POD)
    live.apply(pod({"name": "a", "image": "1"}, {"name": "b", "image": "1"}))
    assert live.tree is not None
    for container in live.tree["spec"]["containers"]:
        container["imagePullPolicy"] = "Always"
    live.apply(pod({"name": "a", "image": "1"}))
    assert live.tree["spec"]["containers"] == [{"name": "a", "image": "1", "imagePullPolicy": "Always"}]


def test_an_item_with_a_second_owner_keeps_what_that_one_said() -> None:
    live = Live(POD)
    live.apply(pod({"name": "a", "image": "1", "workingDir": "/x"}), "one")
    live.apply(pod({"name": "a", "image": "1"}), "two")
    live.apply({"metadata": {"name": "p"}}, "one")
    assert live.tree is not None
    assert live.tree["spec"]["containers"] == [{"name": "a", "image": "1"}]


def test_ports_meet_by_number_and_protocol_even_if_the_protocol_goes_without_saying() -> None:
    live = Live(POD)
    live.apply(pod({"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}))
    live.apply(pod({"name": "a", "ports": [{"containerPort": 80, "name": "web"}]}))
    assert live.tree is not None
    [container] = live.tree["spec"]["containers"]
    assert container["ports"] == [{"containerPort": 80, "name": "web"}]
    owned = live.owned("one")["f:spec"]["f:containers"]['k:{"name":"a"}']["f:ports"]
    assert list(owned) == ['k:{"containerPort":80,"protocol":"TCP"}']


@pytest.mark.parametrize(
    ("live_names", "applied_names", "expected"),
    [
        ("abc", "ca", "bca"),
        ("abc", "abc", "abc"),
        ("abc", "cba", "cba"),
        ("abc", "xb", "axbc"),
        ("ab", "cd", "abcd"),
        ("", "ab", "ab"),
        ("abcd", "dxb", "acdxb"),
    ],
)
def test_merged_items_come_in_the_applied_order(live_names: str, applied_names: str, expected: str) -> None:
    live = Live(POD)
    live.update(pod(*({"name": name, "image": "1"} for name in live_names)))
    live.apply(pod(*({"name": name} for name in applied_names)))
    assert live.tree is not None
    assert "".join(c["name"] for c in live.tree["spec"]["containers"]) == expected


def test_atomic_values_are_replaced_whole() -> None:
    live = Live(POD)
    live.apply(pod({"name": "a"}, nodeSelector={"x": "1"}, tolerations=[{"key": "a"}]))
    live.apply(pod({"name": "a"}, nodeSelector={"y": "1"}, tolerations=[{"key": "b"}]))
    assert live.tree is not None
    assert live.tree["spec"]["nodeSelector"] == {"y": "1"}
    assert live.tree["spec"]["tolerations"] == [{"key": "b"}]


def test_what_was_never_tracked_gets_an_owner_before_the_first_apply() -> None:
    live = Live()
    live.tree = config(a="1")
    error = refused(live, config(a="2"), "one")
    assert error.status.message == (
        'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a'
    )
    live.apply(config(a="1", b="2"))
    assert live.owned("before-first-apply") == {"f:data": {".": {}, "f:a": {}}}


def test_a_changed_version_of_the_manager_is_the_same_applier() -> None:
    live = Live()
    live.apply(config(a="1"))
    live.entries = [msgspec.structs.replace(live.entries[0], api_version="v0")]
    live.apply(config(b="1"))
    assert live.data == {"a": "1", "b": "1"}, "what was owned in a version that is gone is not pruned"
    assert len(live.entries) == 1


def test_a_null_says_that_the_field_is_not_there() -> None:
    live = Live(POD)
    live.apply(pod({"name": "a"}, hostname="x"))
    live.apply(pod({"name": "a"}, hostname=None))
    assert live.tree is not None
    assert "hostname" not in live.tree["spec"]
    assert live.owned("one")["f:spec"]["f:hostname"] == {}


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (config() | {"kind": "Pod"}, "invalid object type: /v1, Kind=Pod"),
        (config() | {"apiVersion": "apps/v1"}, "invalid object type: apps/v1, Kind=ConfigMap"),
        ({"metadata": {"managedFields": []}}, "metadata.managedFields must be nil"),
    ],
)
def test_the_configuration_must_be_of_the_kind(tree: dict[str, Any], message: str) -> None:
    error = refused(Live(), tree, "one")
    assert (error.code, error.status.message) == (400, message)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"foo": 1}, ".spec.foo: field not declared in schema"),
        ({"containers": [{"name": "a"}, {"name": "a"}]},
         '.spec.containers: duplicate entries for key [name="a"]'),
        ({"containers": {}}, ".spec.containers: expected list, got "),
        ({"containers": ["x"]},
         ".spec.containers: element 0: associative list with keys may not have non-map elements"),
        ({"priority": "x"}, ".spec.priority: expected numeric (int or float), got string"),
        ({"hostNetwork": "x", "hostname": 3},
         'errors:\n  .spec.hostNetwork: expected boolean, got "x"\n  .spec.hostname: expected string, got 3'),
    ],
)  # fmt: skip
def test_the_configuration_must_have_the_form_of_its_kind(spec: dict[str, Any], message: str) -> None:
    error = refused(Live(POD), {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}, "one")
    assert error.code == 400
    assert error.status.message == f"failed to create typed patch object (ns/p; /v1, Kind=Pod): {message}"


def last_applied(tree: dict[str, Any], **data: str) -> dict[str, Any]:
    last = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": data}
    metadata = tree["metadata"] | {"annotations": {ANNOTATION: msgspec.json.encode(last).decode()}}
    return tree | {"metadata": metadata}


def test_kubectl_may_change_what_it_applied_on_its_own_side_before() -> None:
    live = Live()
    live.update(last_applied(config(a="1", b="1"), a="1"), "kubectl-client-side-apply")
    live.apply(config(a="2"), "kubectl", now=LATER)
    assert live.data == {"a": "2", "b": "1"}
    assert live.tree is not None
    annotation = live.tree["metadata"]["annotations"][ANNOTATION]
    assert annotation == '{"apiVersion":"v1","data":{"a":"2"},"kind":"ConfigMap","metadata":{"name":"cm"}}\n'


def test_kubectl_may_not_change_what_others_changed_since() -> None:
    live = Live()
    live.update(last_applied(config(a="1", b="1"), a="1", b="0"), "kubectl-client-side-apply")
    error = refused(live, config(a="2", b="2"), "kubectl")
    assert error.status.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using v1: .data.b'
    )
    other = refused(live, config(a="2"), "someone-else")
    assert other.status.message.endswith(": .data.a")


def test_an_annotation_that_grew_too_large_is_dropped() -> None:
    live = Live()
    live.update(last_applied(config(a="1"), a="1"), "kubectl-client-side-apply")
    live.apply(config(a="1", **{"k" * 1000 + str(n): "v" for n in range(300)}), "kubectl")
    assert live.tree is not None
    assert ANNOTATION not in live.tree["metadata"]["annotations"]


_DATA = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("12"), max_size=4)
_CONTAINERS = st.dictionaries(
    st.sampled_from("abc"),
    st.fixed_dictionaries(
        {},
        optional={
            "image": st.sampled_from("12"),
            "env": st.dictionaries(st.sampled_from("XY"), st.sampled_from("12")).map(
                lambda values: [{"name": name, "value": value} for name, value in values.items()]
            ),
            "args": st.lists(st.sampled_from("12"), max_size=2),
            "resources": st.dictionaries(
                st.just("limits"), st.dictionaries(st.sampled_from(["cpu"]), st.just("1"))
            ),
        },
    ),
    max_size=3,
).map(lambda found: [{"name": name} | rest for name, rest in found.items()])
_PODS = st.builds(
    lambda containers, labels: {
        "metadata": {"name": "p", "labels": labels},
        "spec": {"containers": containers},
    },
    _CONTAINERS,
    _DATA,
)


@settings(deadline=None)
@given(_PODS, _PODS)
def test_applying_twice_changes_nothing_more(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = Live(POD)
    live.apply(first, "one")
    live.apply(second, "two", force=True)
    tree, entries = live.tree, live.entries
    live.apply(second, "two", now=LATER)
    assert (live.tree, live.entries) == (tree, entries)


@settings(deadline=None)
@given(_PODS, _PODS)
def test_a_forced_apply_wins_everywhere(first: dict[str, Any], second: dict[str, Any]) -> None:
    live = Live(POD)
    live.update(first, "updater")
    live.apply(second, "two", force=True)
    assert live.tree is not None
    assert live.tree["metadata"]["labels"] == first["metadata"]["labels"] | second["metadata"]["labels"]
    result = {c["name"]: c for c in live.tree["spec"]["containers"]}
    for container in second["spec"]["containers"]:
        merged = result[container["name"]]
        assert merged.get("image", "") == container.get("image", merged.get("image", ""))
        if "args" in container:
            assert merged["args"] == container["args"]
        for variable in container.get("env", []):
            assert variable in merged["env"]


@settings(deadline=None)
@given(_DATA, _DATA)
def test_managers_of_different_fields_do_not_meet(one: dict[str, str], two: dict[str, str]) -> None:
    two = {"other-" + name: value for name, value in two.items()}
    forwards, backwards = Live(), Live()
    forwards.apply(config(**one), "one")
    forwards.apply(config(**two), "two")
    backwards.apply(config(**two), "two")
    backwards.apply(config(**one), "one")
    assert forwards.tree == backwards.tree
    assert [forwards.owned(m) for m in ("one", "two")] == [backwards.owned(m) for m in ("one", "two")]


@settings(deadline=None)
@given(_PODS, _PODS)
def test_the_only_owner_takes_its_fields_back(first: dict[str, Any], second: dict[str, Any]) -> None:
    live, fresh = Live(POD), Live(POD)
    live.apply(first)
    live.apply(second)
    fresh.apply(second)
    assert live.tree is not None
    assert fresh.tree is not None
    assert live.owned("one") == fresh.owned("one")
    assert _said(live.tree) == _said(fresh.tree)


def _said(tree: Any) -> Any:
    """The tree without empty values, which own nothing and so may be left behind, and without order."""
    if isinstance(tree, dict):
        found = {name: _said(value) for name, value in tree.items()}
        return {name: value for name, value in found.items() if value not in ({}, [])}
    if isinstance(tree, list):
        return sorted((_said(item) for item in tree), key=str)
    return tree

"""Tables and bare metadata as they travel."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from nodeward.api.autoscaling_v1 import Scale
from nodeward.api.core_v1.cluster import LimitRange
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject
from nodeward.api.printing import Include, parse_include, partial_metadata, partial_metadata_list, table
from nodeward.api.scheme import SCHEME, Kind
from nodeward.base.duration import SECOND_NS
from tests.api.printing.objects import CREATED, NOW, decode
from tests.api.recorded import recorded_body


def _kind(api_version: str, name: str) -> Kind:
    kind = SCHEME.by_name(api_version, name)
    assert kind is not None
    return kind


POD, NODE = _kind("v1", "Pod"), _kind("v1", "Node")


def _table(kind: Kind, *objects: tuple[KubeObject, bytes | None], **options: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(table(kind, objects, **({"now_ns": NOW} | options)))
    return answer


def _pod(name: str = "a", **metadata: Any) -> Pod:
    return decode(Pod, {"metadata": {"name": name, "creationTimestamp": CREATED, **metadata}})


def _without_descriptions(answer: dict[str, Any]) -> dict[str, Any]:
    columns = [
        {key: value for key, value in column.items() if key != "description"}
        for column in answer["columnDefinitions"]
    ]
    return answer | {"columnDefinitions": columns}


@pytest.mark.parametrize(
    ("sample", "kind", "spec"),
    [
        (
            "list pods as Table",
            POD,
            {"spec": {"containers": [{"name": "c"}]}, "status": {"phase": "Pending"}},
        ),
        ("nodes as Table", NODE, {}),
    ],
    ids=["pods", "nodes"],
)
def test_a_table_is_the_one_kubernetes_sends(sample: str, kind: Kind, spec: dict[str, Any]) -> None:
    expected = recorded_body(sample)
    metadata = expected["rows"][0]["object"]["metadata"]
    # The recording hides what differs from run to run.
    metadata["creationTimestamp"] = CREATED
    for entry in metadata["managedFields"]:
        entry["time"] = CREATED
    assert issubclass(kind.type, KubeObject)
    raw = json.dumps({"metadata": metadata, **spec}).encode()
    obj = msgspec.json.decode(raw, type=kind.type)
    created = obj.metadata.creation_timestamp
    assert created is not None
    now_ns = NOW - 10 * 60 * SECOND_NS
    answer = _table(kind, (obj, None), resource_version="<resourceVersion>", now_ns=now_ns)
    assert _without_descriptions(answer) == expected


def test_every_column_is_described() -> None:
    columns = _table(POD)["columnDefinitions"]
    assert [c["name"] for c in columns if not c["description"]] == []


def test_an_empty_list_has_columns_and_no_rows() -> None:
    answer = _table(POD)
    assert answer["rows"] == []
    assert len(answer["columnDefinitions"]) == 9


def test_list_metadata_says_where_to_continue() -> None:
    answer = _table(POD, (_pod(), None), resource_version="7", continue_="token", remaining=3)
    assert answer["metadata"] == {"resourceVersion": "7", "continue": "token", "remainingItemCount": 3}


def test_later_tables_of_a_watch_have_no_headers() -> None:
    answer = _table(POD, (_pod(), None), has_headers=False, is_list=False)
    assert answer["columnDefinitions"] is None
    assert answer["rows"][0]["cells"][0] == "a"


def test_rows_may_carry_the_whole_object_as_it_was_stored() -> None:
    stored = b'{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"},"unknown":1}'
    answer = _table(POD, (_pod(), stored), include="Object")
    assert answer["rows"][0]["object"] == json.loads(stored)


def test_rows_may_carry_the_whole_object_when_only_the_decoded_one_is_at_hand() -> None:
    node = decode(Node, {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "1500m"}}})
    answer = _table(NODE, (node, None), include="Object")
    assert answer["rows"][0]["object"]["status"]["capacity"] == {"cpu": "1500m"}


def test_rows_may_carry_nothing() -> None:
    assert _table(POD, (_pod(), None), include="None")["rows"][0]["object"] is None


def test_the_bookmark_that_ends_initial_events_always_carries_its_metadata() -> None:
    bookmark = _pod(annotations={"k8s.io/initial-events-end": "true"})
    row_object = _table(POD, (bookmark, None), include="None")["rows"][0]["object"]
    assert row_object["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_finished_pods_have_a_condition_on_their_row() -> None:
    pod = decode(Pod, {"status": {"phase": "Succeeded"}})
    assert [c["type"] for c in _table(POD, (pod, None))["rows"][0]["conditions"]] == ["Completed"]
    assert "conditions" not in _table(POD, (_pod(), None))["rows"][0]


def test_a_kind_without_columns_of_its_own_shows_when_it_was_created() -> None:
    obj = decode(LimitRange, {"metadata": {"name": "l", "creationTimestamp": CREATED}})
    answer = _table(_kind("v1", "LimitRange"), (obj, None))
    assert [(c["name"], c["type"]) for c in answer["columnDefinitions"]] == [
        ("Name", "string"),
        ("Created At", "date"),
    ]
    assert answer["rows"][0]["cells"] == ["l", CREATED]


def test_a_scale_has_a_table_though_it_is_not_stored() -> None:
    scale = decode(Scale, {"metadata": {"name": "s"}, "spec": {"replicas": 3}, "status": {"replicas": 2}})
    answer = json.loads(table(("autoscaling", "Scale"), [(scale, None)], now_ns=NOW, is_list=False))
    assert answer["rows"][0]["cells"] == ["s", 3, 2, "<unknown>"]


def test_the_older_version_of_tables_is_served() -> None:
    answer = _table(POD, (_pod(), None), version="v1beta1")
    assert answer["apiVersion"] == "meta.k8s.io/v1beta1"
    assert answer["rows"][0]["object"]["apiVersion"] == "meta.k8s.io/v1beta1"


@pytest.mark.parametrize(
    ("value", "include"), [("", "Metadata"), ("Metadata", "Metadata"), ("Object", "Object"), ("None", "None")]
)
def test_include_object_is_understood(value: str, include: Include) -> None:
    assert parse_include(value) == include


def test_an_unknown_include_object_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ApiError) as refused:
        parse_include("All")
    assert refused.value.code == 400
    assert refused.value.status.message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "All": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_bare_metadata_is_the_same_from_bytes_and_from_an_object() -> None:
    pod = _pod(labels={"a": "b"})
    raw = b'{"kind":"Pod","spec":{},"metadata":{"name":"a","creationTimestamp":"%s","labels":{"a":"b"}}}'
    from_bytes = json.loads(partial_metadata(raw % CREATED.encode()))
    assert from_bytes == json.loads(partial_metadata(pod))
    assert from_bytes == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"name": "a", "creationTimestamp": CREATED, "labels": {"a": "b"}},
    }


def test_a_list_of_bare_metadata_names_the_kind_of_each_item() -> None:
    answer = json.loads(partial_metadata_list([_pod("a"), _pod("b")], resource_version="5"))
    assert answer["kind"] == "PartialObjectMetadataList"
    assert answer["metadata"] == {"resourceVersion": "5"}
    assert [(i["kind"], i["metadata"]["name"]) for i in answer["items"]] == [
        ("PartialObjectMetadata", "a"),
        ("PartialObjectMetadata", "b"),
    ]

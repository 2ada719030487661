"""Metadata of any object, when it is made and when it is changed."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.pod import Pod
from nodeward.rules.names import dns_subdomain, path_segment_name
from nodeward.validation.meta.metadata import validate_metadata, validate_metadata_update
from tests.validation.pods import check_pod, stored_pods
from tests.validation.tables import DROP, Case, case, check, read

_NO_UNQUALIFIED = "name is neither a standard finalizer name nor is it fully qualified"
_OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u"}


@pytest.mark.parametrize(
    "one",
    [
        case("a name and a namespace are enough"),
        case(
            "a name is needed",
            {"metadata.name": DROP},
            "metadata.name: Required value: name or generateName is required",
        ),
        case(
            "a prefix may end in a dash but must be good otherwise",
            {"metadata.generateName": "A_b-"},
            'metadata.generateName: Invalid value: "A_b-": a lowercase RFC 1123 subdomain must consist of...',
        ),
        case("a prefix with a dash at the end is fine", {"metadata.generateName": "web-"}),
        case("a namespace is needed", {"metadata.namespace": DROP}, "metadata.namespace: Required value"),
        case(
            "a namespace is a label",
            {"metadata.namespace": "a.b"},
            'metadata.namespace: Invalid value: "a.b": must not contain dots',
        ),
        case(
            "a generation counts up from zero",
            {"metadata.generation": -1},
            "metadata.generation: Invalid value: -1: must be greater than or equal to 0",
        ),
        case(
            "label keys and values are checked, with the map as their path",
            {"metadata.labels": {"a b": "-"}},
            'metadata.labels: Invalid value: "a b": name part must consist...',
            'metadata.labels: Invalid value: "-": a valid label must be an empty string...',
        ),
        case("annotation keys may have capitals", {"metadata.annotations": {"Example.COM/Key": "any thing"}}),
        case(
            "annotations are 256 KiB together at most",
            {"metadata.annotations": {"a": "x" * (256 * 1024)}},
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        case(
            "an owner is named completely",
            {"metadata.ownerReferences": [{"apiVersion": "a/b/c"}]},
            'metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": must be <group>/<version> or <version>',
            "metadata.ownerReferences[0].kind: Required value: must not be empty",
            "metadata.ownerReferences[0].name: Required value: must not be empty",
            "metadata.ownerReferences[0].uid: Required value: must not be empty",
        ),
        case(
            "only one owner is the controller",
            {
                "metadata.ownerReferences": [
                    {**_OWNER, "controller": True},
                    {**_OWNER, "name": "s", "controller": True},
                ]
            },
            'metadata.ownerReferences: Invalid value: [{"apiVersion":"apps/v1"...',
        ),
        case(
            "events own nothing",
            {"metadata.ownerReferences": [{**_OWNER, "apiVersion": "v1", "kind": "Event"}]},
            "metadata.ownerReferences[0]: Invalid value: {...",
        ),
        case("finalizers have a domain", {"metadata.finalizers": ["example.com/hold", "orphan"]}),
        case(
            "finalizers without a domain are refused",
            {"metadata.finalizers": ["hold"]},
            f'metadata.finalizers[0]: Invalid value: "hold": {_NO_UNQUALIFIED}',
        ),
        case(
            "dependents are orphaned or deleted, not both",
            {"metadata.finalizers": ["orphan", "foregroundDeletion"]},
            'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: '
            "finalizer orphan and foregroundDeletion cannot be both set",
        ),
        case(
            "managed fields have an operation and a printable manager",
            {"metadata.managedFields": [{"manager": "a\x07"}, {"operation": "Merge", "fieldsType": "V2"}]},
            "metadata.managedFields[0].operation: Required value: must not be empty",
            'metadata.managedFields[0].manager: Invalid value: "a\\u0007": invalid character U+0007 (at position 1)',
            'metadata.managedFields[1].operation: Unsupported value: "Merge": supported values: "Apply", "Update"',
            'metadata.managedFields[1].fieldsType: Invalid value: "V2": must be `FieldsV1`',
        ),
    ],
    ids=str,
)
def test_new_metadata(one: Case) -> None:
    check_pod(one)


@pytest.mark.parametrize(
    "one",
    [
        case("labels may change", {"metadata.labels": {"a": "b"}}),
        case(
            "the revision must be given",
            {"metadata.resourceVersion": DROP},
            'metadata.resourceVersion: Invalid value: "": must be specified for an update',
        ),
        case(
            "names uids and times stay",
            {
                "metadata.name": "b",
                "metadata.namespace": "c",
                "metadata.uid": "other",
                "metadata.creationTimestamp": "2026-01-01T00:00:00Z",
            },
            'metadata.name: Invalid value: "b": field is immutable',
            'metadata.namespace: Invalid value: "c": field is immutable',
            'metadata.uid: Invalid value: "other": field is immutable',
            'metadata.creationTimestamp: Invalid value: "2026-01-01T00:00:00Z": field is immutable',
        ),
        case(
            "the generation only grows",
            {"metadata.generation": 1},
            "metadata.generation: Invalid value: 1: must not be decremented",
            before={"metadata.generation": 2},
        ),
        case(
            "an object on its way out gets no new finalizers",
            {"metadata.finalizers": ["x.io/b", "x.io/a"]},
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
            'found new finalizers []string{"x.io/a", "x.io/b"}',
            before={"metadata.deletionTimestamp": "2026-01-01T00:00:00Z"},
        ),
    ],
    ids=str,
)
def test_changed_metadata(one: Case) -> None:
    new, old = stored_pods(one)
    check(validate_metadata_update(new.metadata, old.metadata), one.errors)


def test_kinds_without_namespaces_refuse_one() -> None:
    pod = read(Pod, {"metadata": {"name": "a", "namespace": "b"}})
    check(
        validate_metadata(pod.metadata, dns_subdomain, namespaced=False),
        ("metadata.namespace: Forbidden: not allowed on this type",),
    )


def test_prefixes_of_path_segments_may_be_dots() -> None:
    pod = read(Pod, {"metadata": {"name": "..x", "generateName": ".."}})
    assert validate_metadata(pod.metadata, path_segment_name, namespaced=False) == []

"""What Google's library writes, we read: kind by kind, with everything that differs between protobuf and JSON."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.codec import encode, parse_tree
from nodeward.api.protobuf.leaves import BY_FORMAT
from nodeward.api.protobuf.reading import protobuf_to_json, read_envelope
from nodeward.api.protobuf.wire import ProtobufError
from tests.api.protobuf.go_messages import body, delimited, envelope, message, tag, varint


def _read(api_version: str, kind: str, content: dict[str, Any]) -> Any:
    tree = parse_tree(protobuf_to_json(body(api_version, kind, content)))
    assert (tree.pop("apiVersion"), tree.pop("kind")) == (api_version, kind)
    return tree


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_deployment() -> None:
    plain: dict[str, Any] = {
        "metadata": {"name": "web", "labels": {"app": "web", "empty": ""}},
        "spec": {
            "replicas": 2,
            "selector": {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]}],
            },
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "nginx", "image": "nginx"}]},
            },
            "paused": True,
        },
    }
    strategy = {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": {"type": 1, "strVal": "25%"}, "maxSurge": {"intVal": 1}},
    }
    sent = plain | {"spec": plain["spec"] | {"strategy": strategy}}
    read = _read("apps/v1", "Deployment", sent)
    assert read["spec"].pop("strategy") == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 1},
    }
    assert read == plain


def test_a_pod_with_everything_that_json_has_flat() -> None:
    sent = {
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {
            "volumes": [
                {
                    "name": "tmp",
                    "volumeSource": {"emptyDir": {"medium": "Memory", "sizeLimit": {"string": "64Mi"}}},
                },
                {
                    "name": "conf",
                    "volumeSource": {
                        "configMap": {
                            "localObjectReference": {"name": "conf"},
                            "items": [{"key": "k", "path": "p", "mode": 256}],
                            "defaultMode": 0,
                        }
                    },
                },
            ],
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "command": ["sh", ""],
                    "ports": [
                        {"name": "http", "containerPort": 80, "protocol": "TCP"},
                        {"containerPort": 81},
                    ],
                    "env": [
                        {"name": "A", "value": "1"},
                        {
                            "name": "B",
                            "valueFrom": {
                                "configMapKeyRef": {"localObjectReference": {"name": "conf"}, "key": "k"}
                            },
                        },
                    ],
                    "resources": {
                        "limits": {"cpu": {"string": "1"}, "memory": {"string": "1Gi"}},
                        "requests": {"cpu": {"string": "100m"}},
                    },
                    "volumeMounts": [{"name": "tmp", "readOnly": True, "mountPath": "/tmp"}],
                    "readinessProbe": {
                        "handler": {"httpGet": {"path": "/", "port": {"type": 1, "strVal": "http"}}},
                        "timeoutSeconds": 3,
                    },
                }
            ],
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"disk": "ssd"},
            "securityContext": {"runAsUser": 0, "runAsNonRoot": False, "supplementalGroups": [1, 2]},
            "priority": -7,
            "ephemeralContainers": [
                {"common": {"name": "debug", "image": "busybox"}, "targetContainerName": "c"}
            ],
        },
        "status": {"phase": "Running", "startTime": {"seconds": 1794725267}},
    }
    assert _read("v1", "Pod", sent) == {
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {
            "volumes": [
                {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "64Mi"}},
                {
                    "name": "conf",
                    "configMap": {
                        "name": "conf",
                        "items": [{"key": "k", "path": "p", "mode": 256}],
                        "defaultMode": 0,
                    },
                },
            ],
            "containers": [
                {
                    "name": "c",
                    "image": "i",
                    "command": ["sh", ""],
                    "ports": [
                        {"name": "http", "containerPort": 80, "protocol": "TCP"},
                        {"containerPort": 81},
                    ],
                    "env": [
                        {"name": "A", "value": "1"},
                        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "conf", "key": "k"}}},
                    ],
                    "resources": {
                        "limits": {"cpu": "1", "memory": "1Gi"},
                        "requests": {"cpu": "100m"},
                    },
                    "volumeMounts": [{"name": "tmp", "readOnly": True, "mountPath": "/tmp"}],
                    "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "timeoutSeconds": 3},
                }
            ],
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"disk": "ssd"},
            "securityContext": {"runAsUser": 0, "runAsNonRoot": False, "supplementalGroups": [1, 2]},
            "priority": -7,
            "ephemeralContainers": [{"name": "debug", "image": "busybox", "targetContainerName": "c"}],
        },
        "status": {"phase": "Running", "startTime": "2026-11-15T06:47:47Z"},
    }


@pytest.mark.parametrize(
    ("api_version", "kind", "content"),
    [
        ("v1", "Namespace", {"metadata": {"name": "x"}, "spec": {"finalizers": ["kubernetes"]}}),
        (
            "v1",
            "Secret",
            {
                "metadata": {},
                "data": {"a": _b64(b"\x00\xff\x80"), "b": ""},
                "stringData": {"c": "ü"},
                "type": "T",
            },
        ),
        ("v1", "ConfigMap", {"data": {"a": "b"}, "binaryData": {"c": _b64(bytes(range(256)))}}),
        (
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            {"spec": {"resourceAttributes": {"namespace": "n", "verb": "list", "resource": "pods"}}},
        ),
        (
            "policy/v1",
            "Eviction",
            {
                "metadata": {"name": "a"},
                "deleteOptions": {"gracePeriodSeconds": 5, "preconditions": {"uid": "u"}},
            },
        ),
        (
            "authentication.k8s.io/v1",
            "TokenRequest",
            {
                "spec": {
                    "audiences": ["api"],
                    "expirationSeconds": 3600,
                    "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "u"},
                }
            },
        ),
        ("autoscaling/v1", "Scale", {"metadata": {"name": "web"}, "spec": {"replicas": 3}}),
        ("policy/v1", "DeleteOptions", {"propagationPolicy": "Orphan", "dryRun": ["All"]}),
        ("apps/v1", "DeleteOptions", {"gracePeriodSeconds": 0}),
        ("resource.k8s.io/v1", "ResourceSlice", {"spec": {"driver": "d", "skipNodeOperations": ["Prepare"]}}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_looks_the_same_in_both_forms(api_version: str, kind: str, content: dict[str, Any]) -> None:
    assert _read(api_version, kind, content) == content


def test_lists_in_maps_have_a_message_of_their_own() -> None:
    extra = {"scopes": {"items": ["a", "b"]}, "none": {}}
    read = _read("authorization.k8s.io/v1", "SubjectAccessReview", {"spec": {"user": "u", "extra": extra}})
    assert read == {"spec": {"user": "u", "extra": {"scopes": ["a", "b"], "none": []}}}


def test_json_inside_an_object_is_carried_along_as_it_is() -> None:
    raw = b'{"spec": {"n": 123456789012345678901234567890, "x": 1.50}}'
    sent = body("apps/v1", "ControllerRevision", {"data": {"raw": _b64(raw)}, "revision": 3})
    assert raw in protobuf_to_json(sent)
    fields = {
        "manager": "m",
        "time": {"seconds": 1794725267},
        "fieldsV1": {"raw": _b64(b'{"f:spec":{}}')},
    }
    read = _read(
        "v1", "ConfigMap", {"metadata": {"managedFields": [fields, {"manager": "n", "fieldsV1": {}}]}}
    )
    assert read["metadata"]["managedFields"] == [
        {"manager": "m", "time": "2026-11-15T06:47:47Z", "fieldsV1": {"f:spec": {}}},
        {"manager": "n"},
    ]


def test_times_keep_what_json_keeps() -> None:
    now = {"seconds": 1794725267, "nanos": 123456789}
    lease = {"metadata": {"creationTimestamp": now}, "spec": {"acquireTime": {}, "renewTime": now}}
    assert _read("coordination.k8s.io/v1", "Lease", lease) == {
        "metadata": {"creationTimestamp": "2026-11-15T06:47:47Z"},
        "spec": {"renewTime": "2026-11-15T06:47:47.123456Z"},
    }


def test_a_time_that_is_not_set_is_absent() -> None:
    assert _read("v1", "Namespace", {"metadata": {"name": "x", "creationTimestamp": {}}}) == {
        "metadata": {"name": "x"}
    }


def test_a_quantity_that_is_not_set_is_zero() -> None:
    sent = {"spec": {"volumes": [{"name": "t", "volumeSource": {"emptyDir": {"sizeLimit": {}}}}]}}
    assert _read("v1", "Pod", sent)["spec"]["volumes"] == [{"name": "t", "emptyDir": {"sizeLimit": "0"}}]


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
def test_every_number_arrives(small: int, large: int, either: int) -> None:
    rolling = {"maxSurge": {"type": 0, "intVal": either}}
    sent = {
        "metadata": {"generation": large},
        "spec": {"replicas": small, "strategy": {"rollingUpdate": rolling}},
    }
    read = _read("apps/v1", "Deployment", sent)
    assert read["metadata"]["generation"] == large
    assert read["spec"] == {"replicas": small, "strategy": {"rollingUpdate": {"maxSurge": either}}}


@given(st.dictionaries(st.text(), st.text()), st.dictionaries(st.text(), st.binary().map(_b64)))
def test_every_text_and_all_bytes_arrive(data: dict[str, str], binary: dict[str, str]) -> None:
    read = _read("v1", "ConfigMap", {"data": data, "binaryData": binary})
    assert (read.get("data", {}), read.get("binaryData", {})) == (data, binary)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_lists_of_numbers_may_be_packed(groups: list[int]) -> None:
    one_by_one = message("PodSecurityContext", {"supplementalGroups": groups}).SerializeToString()
    numbers = b"".join(map(varint, groups))
    for context in (one_by_one, delimited(4, numbers)):
        pod = delimited(2, delimited(14, context))
        _, _, tree = read_envelope(envelope("v1", "Pod", pod))
        assert tree["spec"]["securityContext"]["supplementalGroups"] == groups


def test_a_message_that_comes_in_parts_is_put_together() -> None:
    parts = b"".join(
        message("Deployment", part).SerializeToString()
        for part in (
            {"metadata": {"name": "a", "labels": {"x": "1"}}, "spec": {"replicas": 1}},
            {"metadata": {"name": "b", "labels": {"y": "2"}}},
        )
    )
    _, _, tree = read_envelope(envelope("apps/v1", "Deployment", parts))
    assert tree["metadata"] == {"name": "b", "labels": {"x": "1", "y": "2"}}
    assert tree["spec"] == {"replicas": 1}


def test_fields_nobody_knows_are_passed_over() -> None:
    known = message("Namespace", {"metadata": {"name": "x"}}).SerializeToString()
    strange = (
        tag(1000, 0) + b"\x05" + tag(1001, 1) + bytes(8) + tag(1002, 5) + bytes(4) + delimited(1004, b"abc")
    )
    nested = tag(1003, 3) + tag(1, 3) + strange + tag(1, 4) + tag(1003, 4)
    _, _, tree = read_envelope(envelope("v1", "Namespace", strange + nested + known + strange))
    assert tree == {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}


def test_doubles_are_read_and_those_json_cannot_write_are_refused() -> None:
    double = BY_FORMAT["double"]
    assert double.read(bytes.fromhex("000000000000f83f")) == 1.5
    assert double.read(double.zero) == 0
    with pytest.raises(ProtobufError, match="nan cannot be written in JSON"):
        double.read(bytes.fromhex("000000000000f87f"))


def test_a_tree_is_plain_json() -> None:
    _, _, tree = read_envelope(body("v1", "Secret", {"data": {"a": _b64(b"\xff")}}))
    assert tree == {"apiVersion": "v1", "kind": "Secret", "data": {"a": "/w=="}}
    assert parse_tree(encode(tree)) == tree

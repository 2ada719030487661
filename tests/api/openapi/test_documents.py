"""OpenAPI documents: complete, consistent, and the same as those of a real server where they must be."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from nodeward.api.openapi import JSON, PROTOBUF_V2, OpenApi
from nodeward.api.scheme import SCHEME, Scheme
from tests.api.recorded import recorded_shapes

_OPEN_API = OpenApi(SCHEME, "1.37")
_PATHS = sorted(json.loads(_OPEN_API.index_v3.body)["paths"])

#: definition.property -> why it differs from the real one
_KNOWN_DIFFERENCES = {
    "ContainerStatus.stopSignal": "usual values are not listed",
    "Event.required": "metadata is never asked for",
    "HostPathVolumeSource.type": "the empty value is not listed",
    "Lifecycle.stopSignal": "usual values are not listed",
    "NodeSpec.readinessGates": "KEP-5233",
    "PersistentVolumeClaimSpec.accessModes": "usual values of items are not listed",
    "PersistentVolumeClaimStatus.accessModes": "usual values of items are not listed",
    "PersistentVolumeClaimStatus.allocatedResourceStatuses": "usual values of items are not listed",
    "PersistentVolumeSpec.accessModes": "usual values of items are not listed",
    "ResourceQuotaSpec.scopes": "usual values of items are not listed",
    "ServiceSpec.ipFamilies": "usual values of items are not listed",
    "DeviceRequestAllocationResult.skipNodeOperations": "KEP-5945: a boolean; the list is read too",
    "ResourceSliceSpec.skipNodeOperations": "KEP-5945: a boolean; the list is read too",
    "WorkloadPodGroupDisruptionMode.all": "an object without fields has no struct",
    "WorkloadPodGroupDisruptionMode.single": "an object without fields has no struct",
    "WorkloadPodGroupSchedulingPolicy.basic": "an object without fields has no struct",
}
#: definitions the recording does not have
_OURS_ALONE = {"NodeReadinessGate", "Scale", "ScaleSpec", "ScaleStatus"}
#: definitions that elsewhere belong to a custom resource
_CUSTOM = "io.x-k8s."
#: facts nobody reads here
_UNSAID = {"x-kubernetes-unions"}


def _without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_descriptions(item)
            for key, item in value.items()
            if key != "description" or not isinstance(item, str)
        }
    if isinstance(value, list):
        return [_without_descriptions(item) for item in value]
    return value


def _differences(ours: dict[str, Any], real: dict[str, Any]) -> Iterator[str]:
    own_fields, real_fields = ours.pop("properties", {}), real.pop("properties", {})
    for name in sorted({*own_fields, *real_fields}):
        if own_fields.get(name) != real_fields.get(name):
            yield name
    for name in sorted({*ours, *real} - _UNSAID):
        if ours.get(name) != real.get(name):
            yield name


def test_every_definition_is_that_of_a_real_server() -> None:
    real = recorded_shapes()
    ours = _without_descriptions(json.loads(_OPEN_API.v2.body)["definitions"])
    alone = {name.rpartition(".")[2] for name in ours if name not in real and not name.startswith(_CUSTOM)}
    assert alone == _OURS_ALONE
    # These two name every group and version, of which a real server has more.
    found = [
        f"{name.rpartition('.')[2]}.{difference}"
        for name, definition in ours.items()
        if name in real and not name.endswith((".DeleteOptions", ".WatchEvent"))
        for difference in _differences(definition, real[name])
    ]
    assert sorted(found) == sorted(_KNOWN_DIFFERENCES)


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "$ref":
                yield item
            else:
                yield from _refs(item)
    elif isinstance(value, list):
        for item in value:
            yield from _refs(item)


def _document(path: str) -> dict[str, Any]:
    found = _OPEN_API.v3(path)
    assert found is not None
    document: dict[str, Any] = json.loads(found.body)
    return document


@pytest.mark.parametrize("path", _PATHS)
def test_whatever_a_document_mentions_is_in_it(path: str) -> None:
    document = _document(path)
    schemas = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert schemas == set(_refs(document)) | {
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent"
    }


def test_whatever_the_old_document_mentions_is_in_it() -> None:
    document = json.loads(_OPEN_API.v2.body)
    assert set(_refs(document)) <= {f"#/definitions/{name}" for name in document["definitions"]}


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method != "parameters":
                yield path, method, operation


def test_operation_ids_are_unique() -> None:
    ids = [operation["operationId"] for _, _, operation in _operations(json.loads(_OPEN_API.v2.body))]
    assert len(ids) == len(set(ids))


def test_operations_are_called_as_upstream() -> None:
    found = {
        f"{method} {path}": (operation["operationId"], operation["x-kubernetes-action"])
        for document in ("api/v1", "apis/apps/v1", "apis/rbac.authorization.k8s.io/v1")
        for path, method, operation in _operations(_document(document))
    }
    expected = {
        "get /api/v1/nodes": ("listCoreV1Node", "list"),
        "get /api/v1/pods": ("listCoreV1PodForAllNamespaces", "list"),
        "put /api/v1/namespaces/{name}/finalize": ("replaceCoreV1NamespaceFinalize", "put"),
        "post /api/v1/namespaces/{namespace}/pods/{name}/eviction": (
            "createCoreV1NamespacedPodEviction",
            "post",
        ),
        "delete /apis/apps/v1/namespaces/{namespace}/deployments": (
            "deleteAppsV1CollectionNamespacedDeployment",
            "deletecollection",
        ),
        "get /apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale": (
            "readAppsV1NamespacedDeploymentScale",
            "get",
        ),
        "patch /apis/rbac.authorization.k8s.io/v1/clusterroles/{name}": (
            "patchRbacAuthorizationV1ClusterRole",
            "patch",
        ),
    }
    assert {key: found.get(key) for key in expected} == expected


@pytest.mark.parametrize("path", _PATHS)
def test_every_patch_takes_field_validation(path: str) -> None:
    """kubectl looks for this parameter to decide whether the server validates."""
    lacking = [
        operation["operationId"]
        for _, method, operation in _operations(_document(path))
        if method == "patch"
        and "fieldValidation" not in [parameter["name"] for parameter in operation["parameters"]]
    ]
    assert lacking == []


def test_subresources_that_speak_another_kind_say_so() -> None:
    item = _document("apis/apps/v1")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]
    assert item["get"]["x-kubernetes-group-version-kind"] == {
        "group": "autoscaling",
        "kind": "Scale",
        "version": "v1",
    }


def test_defaults_are_those_the_server_writes() -> None:
    schemas = _document("api/v1")["components"]["schemas"]
    port = schemas["io.k8s.api.core.v1.ContainerPort"]["properties"]
    assert port["containerPort"]["default"] == 0
    assert "default" not in port["hostPort"]
    pod = schemas["io.k8s.api.core.v1.Pod"]["properties"]
    assert _without_descriptions(pod["spec"]) == {
        "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}],
        "default": {},
    }
    assert "default" not in schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["affinity"]


def test_the_index_names_each_document_with_its_hash() -> None:
    index = json.loads(_OPEN_API.index_v3.body)["paths"]
    assert {"api/v1", "apis/apps/v1", "apis/resource.k8s.io/v1"} <= set(index)
    for path, entry in index.items():
        document = _OPEN_API.v3(path)
        assert document is not None
        expected = hashlib.sha512(document.body).hexdigest().upper()
        assert entry == {"serverRelativeURL": f"/openapi/v3/{path}?hash={expected}"}
        assert document.etag == f'"{expected}"'


def test_a_document_that_is_not_there_is_not_made_up() -> None:
    assert _OPEN_API.v3("apis/nope.example.com/v1") is None


def test_a_smaller_scheme_has_fewer_documents() -> None:
    scheme = Scheme.of(kind for kind in SCHEME.kinds if kind.group in ("", "apps"))
    index = json.loads(OpenApi(scheme, "1.34").index_v3.body)
    assert list(index["paths"]) == ["api/v1", "apis/apps/v1"]


def test_documents_are_the_same_every_time_and_made_once() -> None:
    again = OpenApi(SCHEME, "1.37")
    assert again.v2.body == _OPEN_API.v2.body
    assert again.v3("api/v1") is again.v3("api/v1")
    assert again.index_v3.hash == _OPEN_API.index_v3.hash


def test_compressed_documents_hold_the_same_bytes() -> None:
    document = _OPEN_API.v2
    assert gzip.decompress(document.gzipped) == document.body
    assert document.gzipped is document.gzipped
    assert document.content_type == JSON


def _wire(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """The fields of a protobuf message, in order."""
    position = 0

    def varint() -> int:
        nonlocal position
        result = shift = 0
        while True:
            byte = message[position]
            position += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result

    while position < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2
            length = varint()
            yield key >> 3, message[position : position + length]
            position += length


def _field(message: bytes, number: int) -> list[bytes]:
    return [content for found, content in _wire(message) if found == number and isinstance(content, bytes)]


def _named(entries: list[bytes]) -> dict[str, bytes]:
    return {_field(entry, 1)[0].decode(): _field(entry, 2)[0] for entry in entries}


def test_the_protobuf_form_holds_the_same_document() -> None:
    document, swagger = _OPEN_API.v2_protobuf, json.loads(_OPEN_API.v2.body)
    assert document.content_type == PROTOBUF_V2
    assert _field(document.body, 1) == [b"2.0"]
    [paths], [definitions] = _field(document.body, 8), _field(document.body, 9)
    assert set(_named(_field(paths, 2))) == set(swagger["paths"])
    schemas = _named(_field(definitions, 1))
    assert set(schemas) == set(swagger["definitions"])

    pod_spec = schemas["io.k8s.api.core.v1.PodSpec"]
    [properties] = _field(pod_spec, 25)
    assert _field(pod_spec, 19) == [b"containers"]
    containers = _named(_field(properties, 1))["containers"]
    extensions = {name: _field(value, 2)[0] for name, value in _named(_field(containers, 31)).items()}
    assert extensions == {
        "x-kubernetes-list-map-keys": b'["name"]',
        "x-kubernetes-list-type": b'"map"',
        "x-kubernetes-patch-merge-key": b'"name"',
        "x-kubernetes-patch-strategy": b'"merge"',
    }
    [item] = _field(_field(containers, 23)[0], 1)
    assert _field(item, 1) == [b"#/definitions/io.k8s.api.core.v1.Container"]

"""Bodies that are broken, enormous, too deep, or of the wrong types."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.hostile.wire import LIMITS, Server

PODS = "/api/v1/namespaces/default/pods"

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "hostile-", "labels": {"a": "b"}, "annotations": {"a": "b"}},
    "spec": {
        "nodeSelector": {"disk": "ssd"},
        "terminationGracePeriodSeconds": 5,
        "hostNetwork": False,
        "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoExecute"}],
        "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
        "containers": [
            {
                "name": "c",
                "image": "registry.example/c:1",
                "args": ["a"],
                "env": [{"name": "A", "value": "b"}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": True}],
                "readinessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5},
            }
        ],
    },
}


def test_the_pod_these_tests_break_is_a_good_one(server: Server) -> None:
    assert server.ask("POST", PODS, json.dumps(POD).encode()).status == 201


def test_truncated_json_is_a_bad_request_wherever_it_breaks_off(server: Server) -> None:
    whole = json.dumps(POD).encode()
    with server.connect() as conversation:
        for end in range(0, len(whole), 7):
            answer = conversation.request("POST", PODS, whole[:end])
            assert answer.is_status(400, "BadRequest"), (end, answer.body)


@pytest.mark.parametrize("size", [4 << 20, LIMITS.max_body + 1])
def test_a_body_above_the_limit_is_refused_before_it_is_read(server: Server, size: int) -> None:
    with server.connect() as conversation:
        conversation.send(request_head(f"content-length: {size}"))
        answer = conversation.answer()
        assert answer.is_status(413, "RequestEntityTooLarge")
        assert answer.headers["connection"] == "close"
        conversation.send_all_you_can(b" " * size)
        assert conversation.rest() == b""


def test_a_chunked_body_above_the_limit_is_refused_as_soon_as_it_is(server: Server) -> None:
    with server.connect() as conversation:
        conversation.send(request_head("transfer-encoding: chunked"))
        for _ in range(4):
            conversation.send_all_you_can(b"%x\r\n%b\r\n" % (1 << 20, b" " * (1 << 20)))
        assert conversation.answer().is_status(413, "RequestEntityTooLarge")


def test_a_body_at_the_limit_is_read(server: Server) -> None:
    body = json.dumps(POD).encode().ljust(LIMITS.max_body)
    assert server.ask("POST", PODS, body).status == 201


def test_a_body_in_chunks_of_one_byte_is_read(server: Server) -> None:
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in json.dumps(POD).encode())
    with server.connect() as conversation:
        conversation.send(request_head("transfer-encoding: chunked") + chunks + b"0\r\n\r\n")
        assert conversation.answer().status == 201


def test_an_object_too_large_to_store_is_refused(server: Server) -> None:
    data = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "large"},
        "data": {"a": "x" * (2 << 20)},
    }
    answer = server.ask("POST", "/api/v1/namespaces/default/configmaps", json.dumps(data).encode())
    assert answer.is_status(422, "Invalid")


def request_head(extra: str, method: str = "POST", target: str = PODS) -> bytes:
    return (
        f"{method} {target} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n{extra}\r\n\r\n".encode()
    )


@pytest.mark.parametrize("depth", [500, 990, 1000, 1200, 10_000, 200_000])
@pytest.mark.parametrize(
    ("opening", "closing"), [("[", "]"), ('{"a":', "}"), ('{"a":[', "]}")], ids=["lists", "objects", "both"]
)
@pytest.mark.parametrize("place", ["whole", "unknown", "metadata", "spec", "annotation", "raw"])
def test_deep_nesting_is_refused_or_passed_over(
    server: Server, depth: int, opening: str, closing: str, place: str
) -> None:
    deep = opening * depth + "1" + closing * depth
    name = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "d-"}}
    body = {
        "whole": deep,
        "unknown": json.dumps(POD)[:-1] + f',"unknown":{deep}}}',
        "metadata": json.dumps({**name, "metadata": 0}).replace("0", deep),
        "spec": json.dumps({**name, "spec": 0}).replace("0", deep),
        "annotation": json.dumps({**name, "metadata": {"annotations": {"a": 0}}}).replace("0", deep),
        "raw": '{"apiVersion":"apps/v1","kind":"ControllerRevision","metadata":{"generateName":"d-"},'
        f'"revision":1,"data":{{"a":{deep}}}}}',
    }[place]
    target = "/apis/apps/v1/namespaces/default/controllerrevisions" if place == "raw" else PODS
    for query in ("", "?fieldValidation=Strict", "?fieldValidation=Ignore"):
        answer = server.ask("POST", target + query, body.encode())
        assert answer.status in (201, 400, 422), answer.body
        if depth > 1000 and place not in ("unknown", "raw"):
            assert answer.is_status(400, "BadRequest"), answer.body


@pytest.mark.parametrize("depth", [400, 900, 990, 1000, 10_000])
@pytest.mark.parametrize(
    "kind", ["json-patch+json", "merge-patch+json", "strategic-merge-patch+json", "apply-patch+yaml"]
)
def test_deeply_nested_patches_are_answered(server: Server, kind: str, depth: int) -> None:
    target = "/apis/apps/v1/namespaces/default/controllerrevisions/deep"
    made = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "deep"},
        "revision": 1,
    }
    server.ask("POST", target.rpartition("/")[0], json.dumps({**made, "data": {"a": 1}}).encode())
    deep = '{"a":' * depth + "1" + "}" * depth
    if kind == "json-patch+json":
        body = f'[{{"op":"add","path":"/metadata/annotations","value":{deep}}}]'
    else:
        body = json.dumps({**made, "data": 0}).replace('"data": 0', f'"data": {deep}')
    answer = server.ask(
        "PATCH", f"{target}?fieldManager=me", body.encode(), content_type=f"application/{kind}"
    )
    assert answer.status in (200, 400, 409, 422), answer.body


def positions(tree: Any, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a tree, from the root down."""
    inner: list[tuple[str | int, Any]] = []
    if isinstance(tree, dict):
        inner = list(tree.items())
    elif isinstance(tree, list):
        inner = list(enumerate(tree))
    return [at, *(place for key, value in inner for place in positions(value, (*at, key)))]


def with_value(tree: Any, at: tuple[str | int, ...], value: Any) -> Any:
    if not at:
        return value
    copy = json.loads(json.dumps(tree))
    where = copy
    for key in at[:-1]:
        where = where[key]
    where[at[-1]] = value
    return copy


ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1.5,
    2**31,
    2**63,
    2**64,
    "",
    "text",
    "0",
    "\0",
    "é\U0001f600",
    [],
    {},
    [[]],
    [None],
    {"": None},
)


def test_the_wrong_type_in_any_position_of_a_pod_is_answered(server: Server) -> None:
    seen = set()
    with server.connect() as conversation:
        for at in positions(POD):
            for value in ODD:
                body = json.dumps(with_value(POD, at, value)).encode()
                answer = conversation.request("POST", f"{PODS}?dryRun=All", body)
                seen.add(answer.status)
                assert answer.status in (201, 400, 422), (at, value, answer.body)
                if answer.status != 201:
                    assert answer.json["kind"] == "Status"
    assert seen == {201, 400, 422}


@pytest.mark.parametrize(
    "number",
    [
        "1e400",
        "-1e400",
        "1" * 5000,
        "-" + "9" * 400,
        "1." + "0" * 5000,
        "1e-5000",
        "0x10",
        "01",
        "NaN",
        "Infinity",
        "-",
    ],
)
@pytest.mark.parametrize("field", ["terminationGracePeriodSeconds", "hostNetwork", "nodeName", "unknown"])
def test_huge_and_strange_numbers_are_answered(server: Server, number: str, field: str) -> None:
    body = json.dumps({**POD, "spec": {**POD["spec"], field: 12321}}).replace("12321", number)
    answer = server.ask("POST", f"{PODS}?dryRun=All", body.encode())
    assert answer.status in (400, 422) or (field == "unknown" and answer.status == 201), answer.body


def test_numbers_that_are_whole_but_written_as_decimals_do_not_hurt(server: Server) -> None:
    body = json.dumps(POD).replace(
        '"terminationGracePeriodSeconds": 5', '"terminationGracePeriodSeconds": 5.0'
    )
    assert server.ask("POST", f"{PODS}?dryRun=All", body.encode()).status in (201, 400)


@pytest.mark.parametrize(
    "bad",
    [
        b"\xff",
        b"\xc3\x28",
        b"\xed\xa0\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xc0\x80",
        b"\\ud800",
        b"\\u0000",
        b"\x00",
        b"\n",
    ],
)
@pytest.mark.parametrize("place", [b"hostile-", b"registry.example", b'"disk"', b"apiVersion", b"ssd"])
def test_bytes_that_are_not_text_are_answered(server: Server, bad: bytes, place: bytes) -> None:
    body = json.dumps(POD).encode().replace(place, place[:-1] + bad + place[-1:], 1)
    for query in ("", "&fieldValidation=Strict"):
        answer = server.ask("POST", f"{PODS}?dryRun=All{query}", body)
        assert answer.status in (201, 400, 422), answer.body
        json.loads(answer.body.decode("utf-8"))


def test_what_is_stored_and_listed_is_always_text(server: Server) -> None:
    """Kubernetes replaces what is no UTF-8; whatever we do, nobody may be handed bytes he cannot read."""
    for number, bad in enumerate((b"\xff", b"\\ud800", b"\xed\xa0\x80", b"\\udfff\\ud800")):
        body = b'{"metadata":{"name":"text-%d"},"data":{"a":"%b"}}' % (number, bad)
        answer = server.ask("POST", "/api/v1/namespaces/default/configmaps", body)
        assert answer.status in (201, 400), answer.body
    listed = server.ask("GET", "/api/v1/namespaces/default/configmaps")
    assert json.loads(listed.body.decode("utf-8"))["kind"] == "ConfigMapList"


def test_unknown_fields_are_refused_named_or_passed_over_as_the_client_wishes(server: Server) -> None:
    body = json.dumps({**POD, "spec": {**POD["spec"], "colour": "red"}, "size": 5}).encode()
    strict = server.ask("POST", f"{PODS}?dryRun=All&fieldValidation=Strict", body)
    assert strict.is_status(400, "BadRequest")
    assert 'unknown field "spec.colour"' in strict.json["message"]
    warned = server.ask("POST", f"{PODS}?dryRun=All", body)
    assert warned.status == 201
    assert 'unknown field \\"spec.colour\\"' in warned.headers["warning"]
    silent = server.ask("POST", f"{PODS}?dryRun=All&fieldValidation=Ignore", body)
    assert silent.status == 201
    assert "warning" not in silent.headers


def test_ninety_thousand_unknown_fields_make_a_short_answer(server: Server) -> None:
    body = json.dumps({**POD, **{f"unknown{number}": number for number in range(90_000)}}).encode()
    warned = server.ask("POST", f"{PODS}?dryRun=All", body)
    assert warned.status == 201
    assert len(warned.headers["warning"]) < 16 << 10
    strict = server.ask("POST", f"{PODS}?dryRun=All&fieldValidation=Strict", body)
    assert strict.is_status(400, "BadRequest")
    assert len(strict.body) < 16 << 10


def test_unknown_fields_cannot_write_headers(server: Server) -> None:
    body = json.dumps({**POD, "a\r\nset-cookie: b": 1, "€\u2028\0": 2}).encode()
    answer = server.ask("POST", f"{PODS}?dryRun=All", body)
    assert answer.status == 201
    assert "set-cookie" not in answer.headers
    assert "warning" in answer.headers


@pytest.mark.parametrize(
    "body",
    [
        b"a: &a [*a]",
        b"&a {b: *a}",
        b"a: !!python/object/apply:os.system [ls]",
        b"\x00",
        b"\xff\xfe",
        b"a: b: c",
        b"? [1]\n: 2",
        b"1: 2\n3: 4",
        b"2001-01-01: x\nb: 2001-01-01",
        b"- a\n- b",
        b"--- a\n--- b",
        b"a: " + b"[" * 5000,
        b"a: " + b"[" * 100_000 + b"]" * 100_000,
        b"- " * 100_000 + b"a",
        b"a: " + b"{a: " * 100_000 + b"}" * 100_000,
        b"!!binary x",
        b"a: .inf\nb: .nan",
    ],
)
@pytest.mark.parametrize("way", ["create", "apply", "delete"])
def test_strange_yaml_is_a_bad_request(server: Server, body: bytes, way: str) -> None:
    if way == "create":
        answer = server.ask("POST", PODS, body, content_type="application/yaml")
    elif way == "delete":
        answer = server.ask("DELETE", f"{PODS}/no-such-pod", body, content_type="application/yaml")
        if answer.status == 404:
            return  # nothing in it is an option, which is fine
    else:
        answer = server.ask(
            "PATCH", f"{PODS}/a?fieldManager=me", body, content_type="application/apply-patch+yaml"
        )
    assert answer.is_status(400, "BadRequest") or answer.is_status(422, "Invalid"), answer.body


def test_yaml_that_grows_without_end_is_refused_quickly(server: Server) -> None:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{number}: &a{number} [{','.join([f'*a{number - 1}'] * 10)}]" for number in range(1, 12)]
    answer = server.ask("POST", PODS, "\n".join(lines).encode(), content_type="application/yaml")
    assert answer.is_status(400, "BadRequest")


@pytest.mark.parametrize(
    "body", [b"k8s\0", b"k8s\0\x0a", b"k8s\0" + b"\xff" * 100, b"k8s\0\x0a\xff\xff\xff\xff\x0f", b"junk"]
)
def test_broken_protobuf_is_a_bad_request(server: Server, body: bytes) -> None:
    answer = server.ask("POST", PODS, body, content_type="application/vnd.kubernetes.protobuf")
    assert answer.is_status(400, "BadRequest")


@pytest.mark.parametrize(
    "patch",
    [
        [{"op": "add"}],
        [{"op": "frobnicate", "path": "/a"}],
        [{"op": "add", "path": "no-slash", "value": 1}],
        [{"op": "remove", "path": "/spec/containers/99999999999999999999"}],
        [{"op": "remove", "path": "/spec/containers/-1"}],
        [{"op": "add", "path": "", "value": 5}],
        [{"op": "remove", "path": ""}],
        [{"op": "move", "from": "/spec", "path": "/spec/containers/0"}],
        [{"op": "copy", "from": "/spec", "path": "/spec/containers/0/env"}],
        [{"op": "test", "path": "/metadata/name", "value": {"a": 1}}],
        [{"op": "add", "path": "/metadata/~2", "value": 1}],
        [{"op": "add", "path": "/metadata/labels/²", "value": "x"}],
        [{"op": "add", "path": "/spec/containers/²", "value": "x"}],
        [None],
        [[]],
        5,
        None,
        "text",
        {},
    ],
)
def test_strange_json_patches_are_answered(server: Server, patch: Any) -> None:
    server.ask("POST", PODS, json.dumps({**POD, "metadata": {"name": "patched"}}).encode())
    answer = server.ask(
        "PATCH", f"{PODS}/patched", json.dumps(patch).encode(), content_type="application/json-patch+json"
    )
    assert answer.status in (200, 400, 404, 409, 413, 422), answer.body


def test_a_json_patch_that_doubles_itself_does_not_fill_the_memory(server: Server) -> None:
    server.ask("POST", PODS, json.dumps({**POD, "metadata": {"name": "doubled"}}).encode())
    patch = [{"op": "add", "path": "/metadata/annotations", "value": {"a0": "x" * 1000}}]
    copies = [
        {"op": "copy", "from": "/metadata", "path": f"/metadata/annotations/a{number}"}
        for number in range(1, 60)
    ]
    answer = server.ask(
        "PATCH",
        f"{PODS}/doubled",
        json.dumps(patch + copies).encode(),
        content_type="application/json-patch+json",
    )
    assert answer.status in (400, 413, 422), answer.body


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    "target",
    [
        "metadata",
        "spec",
        "spec.containers",
        "$patch",
        "metadata.$deleteFromPrimitiveList/finalizers",
        "spec.$setElementOrder/containers",
        "spec.containers.$retainKeys",
    ],
)
def test_strange_strategic_patches_are_answered(server: Server, target: str, value: Any) -> None:
    server.ask("POST", PODS, json.dumps({**POD, "metadata": {"name": "strategic"}}).encode())
    patch = value
    for key in reversed(target.split(".")):
        patch = {key: patch}
    kind = "application/strategic-merge-patch+json"
    answer = server.ask(
        "PATCH", f"{PODS}/strategic?dryRun=All", json.dumps(patch).encode(), content_type=kind
    )
    assert answer.status in (200, 400, 422), answer.body

"""Paths, queries, methods and content types nobody should send."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from tests.hostile.wire import Server

PODS = "/api/v1/namespaces/default/pods"


@pytest.mark.parametrize(
    "path",
    [
        "//",
        "//api/v1/pods",
        "/api//v1/pods",
        "/api/v1//pods",
        "/api/v1/namespaces//pods",
        "/api/v1/namespaces/default//pods",
        "/api/v1/../v1/pods",
        "/api/v1/%2e%2e/pods",
        "/api/v2/pods",
        "/api/v1/frobnicators",
        "/api/v1/namespaces/default/frobnicators",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/nodes/a",
        "/apis/apps/v1/namespaces/default/pods",
        "/apis/apps/v2/deployments",
        "/apis/no.such.group/v1/things",
        "/api/v1/namespaces/default/pods/a/frobnicate",
        "/api/v1/namespaces/default/pods/a/status/b",
        "/api/v1/pods/a/b/c/d/e/f",
        "/API/v1/pods",
        "/api/v1/pods%00",
        "/apis/apps%2fv1/x",
        "/etc/passwd",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/openapi/v3/../../x",
        "/openapi/v3/api/v9",
        "/livez/no-such-check",
        "/%ff%fe",
        "/" + "a" * 30_000,
        "/api/v1/" + "a/" * 10_000,
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT"])
def test_a_path_that_leads_nowhere_is_not_found(server: Server, path: str, method: str) -> None:
    body = b"{}" if method in ("POST", "PUT") else None
    assert server.ask(method, path, body).status == 404


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        "%2e%2e",
        "%2E",
        "a%2525b",
        "%25",
        "a%2fb",
        "..%2fnodes",
        "%00",
        "a%00b",
        "%0d%0a",
        "%c3%a9",
        "%ff",
        "a" * 10_000,
    ],
)
@pytest.mark.parametrize("method", ["GET", "DELETE", "PATCH", "PUT"])
def test_a_name_that_no_object_can_have_is_refused_or_not_found(
    server: Server, name: str, method: str
) -> None:
    body = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}).encode()
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = server.ask(
        method,
        f"/api/v1/namespaces/default/configmaps/{name}",
        None if method == "GET" else body,
        content_type=kind,
    )
    assert answer.status in (400, 404), answer.body
    assert b"root:" not in answer.body


@pytest.mark.parametrize("name", ["..", "a%2525b"])
def test_a_name_that_is_a_path_is_refused_in_upstreams_words(server: Server, name: str) -> None:
    answer = server.ask("GET", f"{PODS}/{name}")
    assert answer.is_status(400, "BadRequest")
    assert answer.json["message"].startswith("Name parameter invalid: ")


@pytest.mark.parametrize("path", ["/api/v1/pods/%zz", "/%", "/api/v1/pods%2"])
def test_an_escape_that_is_none_is_a_bad_request(server: Server, path: str) -> None:
    assert server.ask("GET", path).is_status(400, "BadRequest")


def test_an_escaped_slash_is_a_slash(server: Server) -> None:
    whole = server.ask("GET", "/api/v1/namespaces/kube-system")
    assert server.ask("GET", "/api%2Fv1%2fnamespaces/kube-system").body == whole.body


def test_an_absolute_target_is_read_as_its_path(server: Server) -> None:
    assert server.ask("GET", "https://somewhere.example/livez").body == b"ok"


@pytest.mark.parametrize(
    "query",
    [
        "limit=abc",
        "limit=99999999999999999999",
        "limit=1_000",
        "limit=%C2%B2",
        "limit=" + "9" * 5000,
        "resourceVersion=abc",
        "resourceVersion=-1",
        "resourceVersion=1.5",
        "resourceVersion=%C2%B2",
        "resourceVersion=18446744073709551616",
        "resourceVersion=" + "9" * 5000,
        "continue=garbage",
        "continue=%FF",
        "continue=bnVsbA",
        "continue=W10",
        "continue=" + "A" * 10_000,
        "watch=true&timeoutSeconds=abc",
        "watch=true&timeoutSeconds=" + "9" * 5000,
        "watch=true&resourceVersion=abc",
        "labelSelector=%3D%3D",
        "labelSelector=a+in+(",
        "labelSelector=a+in+(b",
        "labelSelector=!!a",
        "labelSelector=a%00b=c",
        "labelSelector=" + "(" * 10_000,
        "fieldSelector=spec.colour%3Dred",
        "fieldSelector=%5C",
    ],
)
def test_a_parameter_that_cannot_be_read_is_a_bad_request(server: Server, query: str) -> None:
    assert server.ask("GET", f"{PODS}?{query}").is_status(400, "BadRequest")


@pytest.mark.parametrize(
    "query",
    [
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Never&resourceVersion=1",
        "resourceVersionMatch=Exact&resourceVersion=0",
        "sendInitialEvents=true",
        "watch=true&sendInitialEvents=true",
        "watch=true&resourceVersionMatch=Exact&resourceVersion=1",
    ],
)
def test_options_that_do_not_fit_together_are_invalid(server: Server, query: str) -> None:
    assert server.ask("GET", f"{PODS}?{query}").is_status(422, "Invalid")


@pytest.mark.parametrize(
    ("version", "start"),
    [(0, "a\0"), (1, ""), (1, "../x"), (10**30, "a"), (1, "a/../../b"), ("1", "a"), (1, 5), (None, None)],
)
def test_a_forged_continue_token_is_refused(server: Server, version: object, start: object) -> None:
    raw = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start}).encode()
    token = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    assert server.ask("GET", f"{PODS}?limit=1&continue={token}").is_status(400, "BadRequest")


@pytest.mark.parametrize("version", [2**62, 2**63 - 1])
@pytest.mark.parametrize("target", [PODS, f"{PODS}/a", f"{PODS}?watch=true", f"{PODS}?limit=5"])
def test_the_future_is_answered_with_a_timeout(server: Server, version: int, target: str) -> None:
    mark = "&" if "?" in target else "?"
    answer = server.ask("GET", f"{target}{mark}resourceVersion={version}")
    assert answer.is_status(504, "Timeout")
    assert answer.json["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_a_continue_token_of_the_future_is_answered(server: Server) -> None:
    raw = json.dumps({"v": "meta.k8s.io/v1", "rv": 2**62, "start": "a\0"}).encode()
    token = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    assert server.ask("GET", f"{PODS}?limit=1&continue={token}").is_status(504, "Timeout")


@pytest.mark.parametrize("start", ["\0", "\ufffe", "é\0x", "a" * 5000, "\U0010ffff"])
@pytest.mark.parametrize("version", [-1, 1])
def test_a_continue_token_may_start_anywhere(server: Server, start: str, version: int) -> None:
    raw = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start}).encode()
    token = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    answer = server.ask("GET", f"/api/v1/nodes?limit=1&continue={token}")
    assert answer.status in (200, 410)


@pytest.mark.parametrize(
    "query", ["limit=-1", "limit=0", "limit=9223372036854775807", "pretty=maybe", "=&&=&a", "%zz=%zz"]
)
def test_harmless_parameters_do_no_harm(server: Server, query: str) -> None:
    assert server.ask("GET", f"/api/v1/namespaces?{query}").json["kind"] == "NamespaceList"


@pytest.mark.parametrize("value", ["maybe", "", "TRUE", "1"])
def test_a_flag_that_is_neither_true_nor_false_is_true(server: Server, value: str) -> None:
    answer = server.ask("GET", f"/api/v1/namespaces?watch={value}&timeoutSeconds=1")
    assert json.loads(answer.body.splitlines()[0])["type"] == "ADDED"


@pytest.mark.parametrize("value", ["FALSE", "0", "false"])
def test_a_flag_can_be_false(server: Server, value: str) -> None:
    assert server.ask("GET", f"/api/v1/namespaces?watch={value}").json["kind"] == "NamespaceList"


@pytest.mark.parametrize("seconds", [-1, -(2**63), 1])
def test_a_watch_ends_when_its_time_is_up(server: Server, seconds: int) -> None:
    answer = server.ask("GET", f"/api/v1/namespaces?watch=true&timeoutSeconds={seconds}")
    assert answer.status == 200


def test_a_watch_may_ask_for_the_longest_time(server: Server) -> None:
    with server.connect() as conversation:
        conversation.send(
            b"GET /api/v1/pods?watch=1&timeoutSeconds=9223372036854775807 HTTP/1.1\r\nhost: a\r\n\r\n"
        )
        assert conversation.head().startswith("HTTP/1.1 200")


@pytest.mark.parametrize(
    "target",
    [
        "/api/v1/bindings",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/api/v1/namespaces/default/bindings",
    ],
)
@pytest.mark.parametrize("query", ["", "?watch=true"])
def test_what_cannot_be_listed_cannot_be_watched(server: Server, target: str, query: str) -> None:
    assert server.ask("GET", target + query).is_status(405, "MethodNotAllowed")


@pytest.mark.parametrize("method", ["FOO", "TRACE", "OPTIONS", "MKCOL", "CONNECT", "PURGE", "get"])
@pytest.mark.parametrize("target", [PODS, f"{PODS}/a", "/api/v1/nodes/a/status"])
def test_a_method_that_does_not_exist_is_not_allowed(server: Server, method: str, target: str) -> None:
    with server.connect() as conversation:
        conversation.send(f"{method} {target} HTTP/1.1\r\nhost: a\r\n\r\n".encode())
        assert conversation.answer().is_status(405, "MethodNotAllowed")


@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("PUT", PODS),
        ("PATCH", PODS),
        ("POST", f"{PODS}/a"),
        ("DELETE", "/api/v1/pods"),
        ("POST", "/livez"),
        ("DELETE", "/api"),
        ("POST", "/version"),
    ],
)
def test_a_method_in_the_wrong_place_is_not_allowed(server: Server, method: str, target: str) -> None:
    answer = server.ask(
        method,
        target,
        b"{}",
        content_type="application/merge-patch+json" if method == "PATCH" else "application/json",
    )
    assert answer.status == 405, answer.body


@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/cbor",
        "json",
        "application/json-patch+json",
    ],
)
def test_a_body_of_another_kind_is_not_supported(server: Server, kind: str) -> None:
    answer = server.ask("POST", PODS, b"{}", content_type=kind)
    assert answer.is_status(415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "text/plain",
        "application/strategic-merge-patch",
        "",
        "application/apply-patch+cbor",
    ],
)
def test_a_patch_of_another_kind_is_not_supported(server: Server, kind: str) -> None:
    answer = server.ask("PATCH", "/api/v1/namespaces/default", b"{}", content_type=kind)
    assert answer.is_status(415, "UnsupportedMediaType")


@pytest.mark.parametrize(
    "accept",
    [
        "text/html",
        "image/png",
        "application/xml",
        "application/json;as=Sofa;g=meta.k8s.io;v=v1",
        "application/json;stream=x",
    ],
)
@pytest.mark.parametrize("target", [PODS, "/api/v1/namespaces/default", f"{PODS}?watch=true"])
def test_an_answer_we_cannot_make_is_not_acceptable(server: Server, accept: str, target: str) -> None:
    assert server.ask("GET", target, accept=accept).is_status(406, "NotAcceptable")


@pytest.mark.parametrize(
    "accept",
    [
        ",,,",
        ";;;",
        "application/json;q=0.9,*/*",
        "*/*;q=x",
        "application/json;as=",
        "=;=,=",
        '"',
        "application/json;as=Table;v=v1;g=meta.k8s.io" + ",x/y" * 3000,
    ],
)
def test_a_strange_accept_header_is_answered(server: Server, accept: str) -> None:
    assert server.ask("GET", "/api/v1/namespaces", accept=accept).status in (200, 406)


def test_a_label_selector_of_many_terms_is_answered(server: Server) -> None:
    selector = quote(",".join(f"a{number}!=b" for number in range(1000)))
    assert server.ask("GET", f"/api/v1/namespaces?labelSelector={selector}").status == 200

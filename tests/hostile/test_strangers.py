"""Peers who are not who they say: certificates, tokens, impersonation, old TLS."""

from __future__ import annotations

import socket
import ssl
import warnings
from pathlib import Path

import pytest

from nodeward.apiserver.pki import KeyPair, Pki
from nodeward.base.duration import SECOND_NS
from tests.hostile.wire import TOKEN, Server, request
from tests.patience import PATIENCE_SECONDS

DAY_NS = 86_400 * SECOND_NS
PODS = "/api/v1/namespaces/default/pods"


def is_turned_away(server: Server, context: ssl.SSLContext) -> bool:
    """Whether the handshake fails; with TLS 1.3 the client hears of it when it first reads."""
    try:
        with server.connect(context) as conversation:
            conversation.send(request("GET", "/livez"))
            return conversation.socket.recv(1) == b""
    except (ssl.SSLError, ConnectionError):
        return True


def test_the_administrator_is_let_in(server: Server) -> None:
    assert not is_turned_away(server, server.admin)


def test_a_certificate_of_a_foreign_authority_is_turned_away(server: Server, tmp_path: Path) -> None:
    foreign = Pki(tmp_path, server.clock.now_ns())
    assert is_turned_away(
        server, server.client_context(foreign.client_certificate("admin", ["system:masters"]))
    )


def test_an_expired_certificate_is_turned_away(server: Server) -> None:
    past = Pki(server.pki.authority_path.parent, server.clock.now_ns() - 3 * 365 * DAY_NS)
    assert is_turned_away(server, server.client_context(past.client_certificate("admin", ["system:masters"])))


def test_a_certificate_that_is_not_valid_yet_is_turned_away(server: Server) -> None:
    future = Pki(server.pki.authority_path.parent, server.clock.now_ns() + 30 * DAY_NS)
    assert is_turned_away(
        server, server.client_context(future.client_certificate("admin", ["system:masters"]))
    )


def test_a_certificate_for_serving_is_no_identity(server: Server) -> None:
    serving = server.pki.serving("localhost")
    assert is_turned_away(server, server.client_context(KeyPair(serving.certificate, serving.key)))


def test_nobody_may_read_what_is_public_and_nothing_else(server: Server) -> None:
    with server.connect(server.client_context(None)) as conversation:
        assert conversation.request("GET", "/livez").body == b"ok"
        assert conversation.request("GET", "/version").status == 200
        for method, target in (
            ("GET", PODS),
            ("GET", "/metrics"),
            ("DELETE", PODS),
            ("GET", "/no/such/path"),
        ):
            answer = conversation.request(method, target)
            assert answer.is_status(403, "Forbidden")
            assert 'User "system:anonymous"' in answer.json["message"]


@pytest.mark.parametrize(
    "token",
    [
        "wrong",
        "x" * 10_000,
        "a.b.c",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
        "..",
        "\xff\xfe",
        TOKEN + "x",
        TOKEN[:-1],
    ],
)
def test_a_bad_bearer_token_is_unauthorized(server: Server, token: str) -> None:
    with server.connect(server.client_context(None)) as conversation:
        for target in ("/livez", PODS):
            answer = conversation.request("GET", target, authorization=f"Bearer {token}")
            assert answer.is_status(401, "Unauthorized")


def test_a_good_bearer_token_is_a_user(server: Server) -> None:
    with server.connect(server.client_context(None)) as conversation:
        answer = conversation.request("GET", PODS, authorization=f"Bearer {TOKEN}")
        assert answer.is_status(403, "Forbidden")
        assert 'User "somebody"' in answer.json["message"]


@pytest.mark.parametrize("header", ["", "Basic YWRtaW46YWRtaW4=", "Bearer", "Bearer ", "Digest x", "bearer"])
def test_other_credentials_make_nobody_of_a_peer(server: Server, header: str) -> None:
    with server.connect(server.client_context(None)) as conversation:
        answer = conversation.request("GET", PODS, authorization=header)
        assert answer.is_status(403, "Forbidden")
        assert 'User "system:anonymous"' in answer.json["message"]


@pytest.mark.parametrize(
    "headers",
    [
        {"impersonate_user": "kubernetes-admin"},
        {"impersonate_user": "a", "impersonate_group": "system:masters"},
        {"impersonate_user": "system:node:a"},
        {"impersonate_user": "system:serviceaccount:kube-system:default"},
        {"impersonate_user": "a", "impersonate_extra_scopes": "x"},
        {"impersonate_user": "a", "impersonate_uid": "5"},
    ],
)
def test_acting_as_somebody_else_needs_the_right_to(server: Server, headers: dict[str, str]) -> None:
    with server.connect(server.client_context(None)) as conversation:
        answer = conversation.request("GET", PODS, None, authorization=f"Bearer {TOKEN}", **headers)
        assert answer.is_status(403, "Forbidden")
        assert "impersonate" in answer.json["message"]


@pytest.mark.parametrize(
    "headers", [{"impersonate_group": "a"}, {"impersonate_uid": "a"}, {"impersonate_extra_a": "b"}]
)
def test_acting_as_nobody_in_particular_is_refused(server: Server, headers: dict[str, str]) -> None:
    answer = server.ask("GET", PODS, None, **headers)
    assert answer.is_status(400, "BadRequest"), answer.body


def test_strange_impersonation_headers_are_answered(server: Server) -> None:
    for name in ("\xff", "a" * 5000, "system:anonymous", "system:node:", "system:serviceaccount:::", ":"):
        assert server.ask("GET", PODS, impersonate_user=name).status in (200, 400, 403)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_old_tls_is_turned_away(server: Server, version: ssl.TLSVersion) -> None:
    context = server.client_context(server.pki.admin())
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version = context.maximum_version = version
    with pytest.raises((ssl.SSLError, ConnectionError)):
        server.connect(context)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_new_tls_is_let_in(server: Server, version: ssl.TLSVersion) -> None:
    context = server.client_context(server.pki.admin())
    context.minimum_version = context.maximum_version = version
    assert not is_turned_away(server, context)


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\nhost: a\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"\x00" * 500, b"\x80\x2e\x01\x00\x02"],
)
def test_a_peer_without_tls_is_closed(server: Server, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as raw:
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        while True:
            try:
                if not raw.recv(4096):
                    return
            except ConnectionError:
                return

"""Peers that do not speak HTTP as they should: floods, smuggling, half requests, silence."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Callable

import pytest

from tests.hostile.wire import LIMITS, Conversation, Server, request
from tests.patience import PATIENCE_SECONDS

LIVE = request("GET", "/livez")
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    "head",
    [
        b"GET /livez HTTP/1.1\r\nhost: a\r\n" + b"x: y\r\n" * 20_000,
        b"GET /livez HTTP/1.1\r\nhost: a\r\nx: " + b"y" * (LIMITS.max_head + 1),
        b"GET /livez HTTP/1.1\r\nhost: a\r\n" + b"y" * (LIMITS.max_head + 1),
        b"GET /" + b"a" * (LIMITS.max_head + 1),
        b"GET /" + b"a" * LIMITS.max_head + b" HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nhost: a\r\nx: " + b"y" * LIMITS.max_head + b"\r\n\r\n",
    ],
    ids=["many headers", "long value", "long name", "long path", "long whole path", "long whole value"],
)
def test_a_flood_of_headers_is_refused(server: Server, head: bytes) -> None:
    with server.connect() as conversation:
        conversation.send_all_you_can(head)
        answer = conversation.answer()
        assert answer.status == 431
        assert answer.headers["connection"] == "close"


def test_trailers_and_chunk_extensions_cannot_flood(server: Server) -> None:
    start = b"POST %b HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n" % MAPS.encode()
    for flood in (b"0\r\nx: " + b"y" * 200_000, b"1;x=" + b"y" * 200_000, b"0\r\n" + b"x: y\r\n" * 40_000):
        with server.connect() as conversation:
            conversation.send_all_you_can(start)
            for position in range(0, len(flood), 50_000):
                conversation.send_all_you_can(flood[position : position + 50_000])
            assert conversation.answer().status in (400, 431)
            assert conversation.rest() == b""


@pytest.mark.parametrize(
    "head",
    [
        b"content-length: 5\r\ntransfer-encoding: chunked\r\n",
        b"transfer-encoding: chunked\r\ncontent-length: 5\r\n",
        b"content-length: 5\r\ncontent-length: 6\r\n",
        b"content-length: 5\r\ncontent-length: 5\r\n",
        b"content-length: 5, 5\r\n",
        b"content-length: +5\r\n",
        b"content-length: -5\r\n",
        b"content-length: 0x5\r\n",
        b"content-length: 5 5\r\n",
        b"content-length : 5\r\n",
        b"content-length: 99999999999999999999999999\r\n",
        b"x: a\r\n folded\r\ncontent-length: 0\r\n",
        b"transfer-encoding: chunked, identity\r\n",
        b"x: a\x00b\r\n",
        b"x: a\rb: c\r\n",
        b"x\x00: a\r\n",
        b": a\r\n",
        b"host: b\r\n",
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_refused(server: Server, head: bytes) -> None:
    smuggled = b"GET /version HTTP/1.1\r\nhost: a\r\n\r\n"
    with server.connect() as conversation:
        conversation.send(b"POST /livez HTTP/1.1\r\nhost: a\r\n" + head + b"\r\n" + b"0\r\n\r\n" + smuggled)
        assert conversation.answer().is_status(400, "BadRequest")
        assert conversation.rest() == b"", "nothing after a broken request is a request"


@pytest.mark.parametrize("coding", [b"gzip, chunked", b"identity", b"gzip"])
def test_a_transfer_coding_we_do_not_know_is_refused(server: Server, coding: bytes) -> None:
    with server.connect() as conversation:
        conversation.send(
            b"POST /livez HTTP/1.1\r\nhost: a\r\ntransfer-encoding: %b\r\n\r\n0\r\n\r\n" % coding
        )
        assert conversation.answer().status in (400, 501)
        assert conversation.rest() == b""


@pytest.mark.parametrize(
    "line",
    [
        b"GET /a b HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET /livez HTTP/1.1\nhost: a\n\n",
        b"GET /livez HTTP/1.1\r\n\r\n",
        b"GET /livez FTP/1.1\r\nhost: a\r\n\r\n",
        b"POST /livez HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        b"POST /livez HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n",
        b"POST /livez HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_request_is_a_bad_request(server: Server, line: bytes) -> None:
    with server.connect() as conversation:
        conversation.send(line)
        assert conversation.answer().is_status(400, "BadRequest")
        assert conversation.rest() == b""


def test_garbage_instead_of_http_is_answered(server: Server) -> None:
    for garbage in (
        b"\x00" * 100,
        b"\xff" * 100,
        b"\r\n" * 50 + b"junk junk junk\r\n",
        b"SSH-2.0-OpenSSH_9\r\n",
    ):
        with server.connect() as conversation:
            conversation.send(garbage)
            assert conversation.answer().status in (400, 405)


def test_another_version_of_http_is_not_supported(server: Server) -> None:
    for version in (b"2.0", b"0.9"):
        with server.connect() as conversation:
            conversation.send(b"GET /livez HTTP/%b\r\nhost: a\r\n\r\n" % version)
            assert conversation.answer().status in (400, 505)
            assert conversation.rest() == b""


def test_a_request_without_a_version_is_refused(server: Server) -> None:
    with server.connect() as conversation:
        conversation.send(b"GET /livez\r\n\r\n" + LIVE)
        assert conversation.answer().status in (400, 505)
        assert conversation.rest() == b""


def test_trailers_do_not_become_headers(server: Server) -> None:
    anonymous = server.client_context(None)
    with server.connect(anonymous) as conversation:
        conversation.send(
            b"POST %b HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
            b"authorization: Bearer a-token-of-somebody\r\nimpersonate-user: admin\r\n\r\n" % MAPS.encode()
        )
        answer = conversation.answer()
        assert answer.is_status(403, "Forbidden")
        assert 'User "system:anonymous"' in answer.json["message"]


def test_of_a_repeated_header_the_first_counts(server: Server) -> None:
    anonymous = server.client_context(None)
    with server.connect(anonymous) as conversation:
        conversation.send(
            b"GET /version HTTP/1.1\r\nhost: a\r\nauthorization: Bearer wrong\r\n"
            b"authorization: Bearer a-token-of-somebody\r\n\r\n"
        )
        assert conversation.answer().is_status(401, "Unauthorized")


def test_pipelined_requests_are_answered_in_order(server: Server) -> None:
    with server.connect() as conversation:
        conversation.send(b"".join(request("GET", f"/api/v1/namespaces/n{number}") for number in range(200)))
        names = [conversation.answer().json["details"]["name"] for _ in range(200)]
        assert names == [f"n{number}" for number in range(200)]


def test_requests_before_a_broken_one_are_answered_first(server: Server) -> None:
    with server.connect() as conversation:
        conversation.send(LIVE * 5 + b"GET /a b c\r\n\r\n" + LIVE)
        assert [conversation.answer().status for _ in range(6)] == [200] * 5 + [400]
        assert conversation.rest() == b""


def test_broken_bytes_during_a_watch_end_it(server: Server) -> None:
    with server.connect() as conversation:
        conversation.send(request("GET", "/api/v1/nodes?watch=true"))
        assert conversation.head().startswith("HTTP/1.1 200")
        conversation.send(b"\x00\x00\x00\r\n\r\n")
        assert b"HTTP/1.1" not in conversation.rest()


def test_a_request_behind_a_watch_waits_for_its_end(server: Server) -> None:
    with server.connect() as conversation:
        conversation.send(request("GET", "/api/v1/nodes?watch=true&timeoutSeconds=1") + LIVE)
        assert conversation.answer().status == 200
        assert conversation.answer().body == b"ok"


def test_a_client_that_asks_first_is_told_to_continue(server: Server) -> None:
    body = json.dumps({"metadata": {"generateName": "expected-"}}).encode()
    whole = request("POST", MAPS, body, expect="100-continue")
    head, body = whole[: -len(body)], body
    with server.connect() as conversation:
        conversation.send(head)
        assert conversation.answer().status == 100
        conversation.send(body)
        assert conversation.answer().status == 201


def test_a_client_that_asks_first_hears_of_its_size_before_it_sends(server: Server) -> None:
    with server.connect() as conversation:
        conversation.send(
            b"POST %b HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4000000\r\n\r\n"
            % MAPS.encode()
        )
        assert conversation.answer().is_status(413, "RequestEntityTooLarge")


def test_an_expectation_we_do_not_know_fails(server: Server) -> None:
    with server.connect() as conversation:
        assert conversation.request("POST", MAPS, b"{}", expect="a-pony").status == 417


def test_http_1_0_is_answered_and_closed(server: Server) -> None:
    with server.connect() as conversation:
        conversation.send(b"GET /livez HTTP/1.0\r\n\r\n" + LIVE)
        answer = conversation.answer()
        assert (answer.body, answer.headers["connection"]) == (b"ok", "close")
        assert conversation.rest() == b""


def test_a_watch_over_http_1_0_has_no_chunks_and_ends_with_the_connection(server: Server) -> None:
    with server.connect() as conversation:
        conversation.send(b"GET /api/v1/namespaces?watch=true&timeoutSeconds=1 HTTP/1.0\r\n\r\n")
        answer = conversation.answer()
        assert "transfer-encoding" not in answer.headers
        assert all(json.loads(line)["type"] == "ADDED" for line in answer.body.splitlines())


def test_whoever_says_close_is_closed(server: Server) -> None:
    with server.connect() as conversation:
        assert conversation.request("GET", "/livez", connection="close").headers["connection"] == "close"
        assert conversation.rest() == b""


def test_head_has_no_body(server: Server) -> None:
    with server.connect() as conversation:
        for target in ("/livez", "/api/v1/namespaces", "/api/v1/namespaces/no-such-namespace"):
            assert conversation.request("HEAD", target).body == b""
        assert conversation.request("GET", "/livez").body == b"ok"


def test_a_head_of_a_watch_is_not_a_watch(server: Server) -> None:
    with server.connect() as conversation:
        assert conversation.request("HEAD", "/api/v1/namespaces?watch=true").status == 200
        assert conversation.rest() == b""


def test_an_upgrade_is_answered_as_if_nobody_had_asked(server: Server) -> None:
    with server.connect() as conversation:
        conversation.send(
            request("GET", "/livez", connection="upgrade", upgrade="h2c") + b"PRI * HTTP/2.0\r\n\r\n"
        )
        answer = conversation.answer()
        assert (answer.status, answer.body) == (200, b"ok")
        assert conversation.rest() == b""


@pytest.mark.parametrize(
    "beginning",
    [b"", b"GET /livez HT", b"GET /livez HTTP/1.1\r\nhost: a\r\nx: ", b"\r\n\r\n"],
    ids=["nothing", "half a line", "half a head", "empty lines"],
)
def test_a_client_that_never_finishes_its_head_is_closed(server: Server, beginning: bytes) -> None:
    with server.connect() as conversation:
        conversation.send(beginning)
        assert conversation.rest() == b""


def test_a_client_that_sends_its_head_byte_by_byte_is_closed(server: Server) -> None:
    with server.connect() as conversation:
        conversation.send(b"GET /livez HTTP/1.1\r\nhost: a\r\nx: ")
        conversation.socket.settimeout(0.1)
        for _ in range(200):
            try:
                conversation.send(b"y")
                assert conversation.socket.recv(1) == b""
                return
            except TimeoutError:
                continue
            except OSError:
                return
        raise AssertionError("a slow head was waited for much longer than the limit")


@pytest.mark.parametrize("start", [b"", LIVE], ids=["first request", "second request"])
def test_a_client_that_never_finishes_its_body_is_closed(server: Server, start: bytes) -> None:
    with server.connect() as conversation:
        conversation.send(start)
        if start:
            assert conversation.answer().status == 200
        conversation.send(b"POST %b HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{" % MAPS.encode())
        assert conversation.rest() == b""


def test_an_idle_connection_is_closed(server: Server) -> None:
    with server.connect() as conversation:
        assert conversation.request("GET", "/livez").status == 200
        assert conversation.rest() == b""


def _reset(conversation: Conversation) -> None:
    conversation.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conversation.socket.close()


@pytest.mark.parametrize("leave", [lambda c: c.socket.close(), _reset], ids=["close", "reset"])
@pytest.mark.parametrize(
    "sent",
    [
        b"GET /li",
        b"POST %b HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{" % MAPS.encode(),
        request("GET", "/api/v1/pods"),
        request("GET", "/api/v1/pods?watch=true"),
        request("GET", "/openapi/v2") * 10,
        request("POST", MAPS, b'{"metadata":{"generateName":"left-"}}') * 20,
    ],
    ids=["head", "body", "list", "watch", "large answers", "writes"],
)
def test_a_client_that_leaves_in_the_middle_does_no_harm(
    server: Server, sent: bytes, leave: Callable[[Conversation], None]
) -> None:
    for _ in range(10):
        conversation = server.connect()
        conversation.send(sent)
        leave(conversation)


def test_a_client_that_does_not_read_its_answers_is_cut_off(server: Server) -> None:
    with server.connect(receive_buffer=4096) as conversation:
        conversation.socket.settimeout(0.5)
        conversation.send_all_you_can(request("GET", "/openapi/v2") * 40)
        conversation.socket.settimeout(PATIENCE_SECONDS)
        server.wait_until(lambda: server.buffered() > 0)
        server.wait_until(lambda: server.buffered() == 0)


def test_a_large_answer_arrives_whole_however_slowly_it_is_read(server: Server) -> None:
    with server.connect(receive_buffer=4096) as conversation:
        answer = conversation.request("GET", "/openapi/v2")
        assert len(answer.body) > 700_000
        assert answer.json["swagger"] == "2.0"
        assert conversation.request("GET", "/livez").body == b"ok"


def test_thousands_of_idle_connections_leave_room_for_work(server: Server) -> None:
    context = server.admin
    crowd: list[socket.socket] = []
    try:
        for _ in range(2000):
            sock = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS)
            crowd.append(sock)  # silent: not even a handshake
        secured = [server.connect(context) for _ in range(100)]
        crowd.extend(conversation.socket for conversation in secured)
        for _ in range(20):
            assert server.ask("GET", "/livez").status == 200
        assert all(conversation.request("GET", "/livez").status == 200 for conversation in secured[-20:])
    finally:
        for sock in crowd:
            sock.close()

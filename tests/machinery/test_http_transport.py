"""The socket transport against a server that says exactly what the test wants."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from nodeward.base.errors import ConfigError
from nodeward.machinery.clock import RealClock
from nodeward.machinery.http_transport import HttpTransport
from nodeward.machinery.transport import ConnectionFailed, Request, Response, TransportTimeout
from tests.machinery.certificates import server_certificate
from tests.machinery.scripted_server import Connection, Script, plain_answer, scripted_server
from tests.patience import PATIENCE_SECONDS

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


@contextlib.asynccontextmanager
async def transport_to(script: Script, **options: Any) -> AsyncIterator[HttpTransport]:
    async with scripted_server(script) as server:
        transport = HttpTransport(server.url, clock=RealClock(), **options)
        try:
            yield transport
        finally:
            await transport.aclose()


def run(program: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run on both event loops: their transports differ in what they do when a connection ends."""

    async def guarded() -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await program()

    asyncio.run(guarded())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(guarded())


def get(path: str = "/x", **headers: str) -> Request:
    return Request("GET", path, headers=headers)


async def read_all(response: Response) -> bytes:
    assert response.stream is not None
    return b"".join([part async for part in response.stream])


def test_a_request_arrives_as_written_and_its_answer_comes_back() -> None:
    async def program() -> None:
        seen: list[bytes] = []

        async def script(connection: Connection) -> None:
            seen.append(await connection.request())
            await connection.answer(plain_answer(b'{"a":1}', "201 Created", "X-Thing: yes\r\n"))

        async with transport_to(script) as transport:
            response = await transport.send(
                Request("POST", "/api/v1/pods", "dryRun=All", {"user-agent": "me"}, b"body")
            )
            assert (response.status, response.body, response.stream) == (201, b'{"a":1}', None)
            assert response.headers["x-thing"] == "yes"
        head, _, body = seen[0].partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        assert lines[0] == b"POST /api/v1/pods?dryRun=All HTTP/1.1"
        assert lines[1].startswith(b"host: 127.0.0.1:")
        assert b"user-agent: me" in lines
        assert b"content-length: 4" in lines
        assert body == b"body"

    run(program)


def test_a_path_in_the_server_url_goes_before_every_path() -> None:
    async def program() -> None:
        seen: list[bytes] = []

        async def script(connection: Connection) -> None:
            seen.append(await connection.request())
            await connection.answer(plain_answer(b""))

        async with scripted_server(script) as server:
            transport = HttpTransport(f"{server.url}/clusters/c1/", clock=RealClock())
            await transport.send(get("/version"))
            await transport.aclose()
        assert seen[0].startswith(b"GET /clusters/c1/version HTTP/1.1\r\n")

    run(program)


def test_one_connection_serves_requests_that_follow_each_other() -> None:
    async def program() -> None:
        connections: list[int] = []

        async def script(connection: Connection) -> None:
            while True:
                await connection.request()
                connections.append(connection.number)
                await connection.answer(plain_answer(b"ok"))

        async with transport_to(script) as transport:
            for _ in range(5):
                assert (await transport.send(get())).body == b"ok"
        assert connections == [1] * 5

    run(program)


def test_requests_beyond_the_limit_wait_their_turn_and_all_are_answered() -> None:
    async def program() -> None:
        under_way = 0
        most = 0

        async def script(connection: Connection) -> None:
            nonlocal under_way, most
            while True:
                await connection.request()
                under_way += 1
                most = max(most, under_way)
                await asyncio.sleep(0)  # noqa: TID251 (the server is the outside world here)
                under_way -= 1
                await connection.answer(plain_answer(b"ok"))

        async with transport_to(script, max_connections=3) as transport:
            answers = await asyncio.gather(*(transport.send(get()) for _ in range(40)))
            assert [answer.body for answer in answers] == [b"ok"] * 40
        assert 1 <= most <= 3

    run(program)


def test_a_request_cancelled_in_line_gives_its_place_to_the_next() -> None:
    async def program() -> None:
        go = asyncio.Event()

        async def script(connection: Connection) -> None:
            while True:
                await connection.request()
                await go.wait()
                await connection.answer(plain_answer(b"ok"))

        async with transport_to(script, max_connections=1) as transport:
            tasks = [asyncio.create_task(transport.send(get())) for _ in range(3)]
            await asyncio.sleep(0)  # noqa: TID251
            tasks[1].cancel()
            go.set()
            assert (await tasks[0]).body == (await tasks[2]).body == b"ok"
            assert tasks[1].cancelled()
            assert (await transport.send(get())).body == b"ok"

    run(program)


def test_a_stream_brings_chunks_as_they_come_and_does_not_take_a_place() -> None:
    async def program() -> None:
        more = asyncio.Event()

        async def script(connection: Connection) -> None:
            request = await connection.request()
            if b"watch" in request:
                await connection.answer(CHUNKED + chunk(b"first\n"))
                await more.wait()
                await connection.answer(chunk(b"second\n") + b"0\r\n\r\n")
            else:
                await connection.answer(plain_answer(b"ok"))
            await connection.until_closed()

        async with transport_to(script, max_connections=1) as transport:
            response = await transport.send(get("/watch"), stream=True)
            assert response.stream is not None
            parts = aiter(response.stream)
            assert await anext(parts) == b"first\n"
            assert (await transport.send(get("/other"))).body == b"ok"
            more.set()
            assert await anext(parts) == b"second\n"
            with pytest.raises(StopAsyncIteration):
                await anext(parts)

    run(program)


def test_a_connection_serves_again_after_a_stream_read_to_its_end() -> None:
    async def program() -> None:
        connections: list[int] = []

        async def script(connection: Connection) -> None:
            while True:
                await connection.request()
                connections.append(connection.number)
                await connection.answer(CHUNKED + chunk(b"x") + b"0\r\n\r\n")

        async with transport_to(script) as transport:
            assert await read_all(await transport.send(get(), stream=True)) == b"x"
            assert (await transport.send(get())).body == b"x"
        assert connections == [1, 1]

    run(program)


def test_a_refused_stream_comes_with_its_whole_body() -> None:
    async def program() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(plain_answer(b"too old", "410 Gone"))

        async with transport_to(script) as transport:
            response = await transport.send(get(), stream=True)
            assert (response.status, response.body, response.stream) == (410, b"too old", None)

    run(program)


def test_a_slow_reader_stops_the_server_instead_of_filling_memory() -> None:
    async def program() -> None:
        sent = 0
        total = 64 << 20

        async def script(connection: Connection) -> None:
            nonlocal sent
            await connection.request()
            await connection.answer(CHUNKED)
            block = chunk(b"x" * 65536)
            while sent < total:
                await connection.answer(block)
                sent += 65536
            await connection.answer(b"0\r\n\r\n")

        async with transport_to(script) as transport:
            response = await transport.send(get(), stream=True)
            assert response.stream is not None
            stalled_at = -1
            while stalled_at != sent:  # until the sender makes no progress over many turns of the loop
                stalled_at = sent
                for _ in range(200):
                    await asyncio.sleep(0)  # noqa: TID251
            assert sent < total // 2
            assert len(await read_all(response)) == total

    run(program)


def test_closing_a_stream_closes_its_connection() -> None:
    async def program() -> None:
        closed = asyncio.Event()

        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(CHUNKED + chunk(b"x"))
            await connection.until_closed()
            closed.set()

        async with transport_to(script) as transport:
            response = await transport.send(get(), stream=True)
            assert response.stream is not None
            await response.stream.aclose()
            await response.stream.aclose()
            await closed.wait()
            assert [part async for part in response.stream] == []

    run(program)


def test_a_stream_that_breaks_off_says_so() -> None:
    async def program() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(CHUNKED + chunk(b"half"))

        async with transport_to(script) as transport:
            response = await transport.send(get(), stream=True)
            with pytest.raises(ConnectionFailed, match="before the answer was complete"):
                await read_all(response)

    run(program)


@pytest.mark.parametrize("size", [0, 5, 100_000])
def test_gzip_is_undone_in_bodies_and_streams(size: int) -> None:
    async def program() -> None:
        packed = gzip.compress(b"y" * size)

        async def script(connection: Connection) -> None:
            request = await connection.request()
            assert b"accept-encoding: gzip" in request
            await connection.answer(plain_answer(packed, headers="content-encoding: gzip\r\n"))
            await connection.request()
            head = CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Encoding: gzip\r\n\r\n")
            await connection.answer(head + b"".join(chunk(packed[i : i + 1]) for i in range(len(packed))))
            await connection.answer(b"0\r\n\r\n")
            await connection.until_closed()

        async with transport_to(script, accept_gzip=True) as transport:
            assert (await transport.send(get())).body == b"y" * size
            assert await read_all(await transport.send(get(), stream=True)) == b"y" * size

    run(program)


@pytest.mark.parametrize("stream", [False, True])
def test_broken_gzip_is_an_error_not_half_a_body(stream: bool) -> None:
    async def program() -> None:
        packed = gzip.compress(b"y" * 1000)[:-9]

        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(plain_answer(packed, headers="content-encoding: gzip\r\n"))

        async def fetch(transport: HttpTransport) -> None:
            await read_all(await transport.send(get(), stream=stream))

        async with transport_to(script) as transport:
            with pytest.raises(ConnectionFailed, match="gzip"):
                await fetch(transport)

    run(program)


def test_an_answer_without_length_ends_with_the_connection() -> None:
    async def program() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(b"HTTP/1.1 200 OK\r\n\r\nall of it")

        async with transport_to(script) as transport:
            assert (await transport.send(get())).body == b"all of it"
            assert await read_all(await transport.send(get(), stream=True)) == b"all of it"

    run(program)


def test_continue_is_passed_over_and_an_empty_answer_is_empty() -> None:
    async def program() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(b"HTTP/1.1 100 Continue\r\n\r\n" + plain_answer(b"ok"))
            await connection.request()
            await connection.answer(b"HTTP/1.1 204 No Content\r\n\r\n")
            await connection.until_closed()

        async with transport_to(script) as transport:
            assert (await transport.send(get())).body == b"ok"
            response = await transport.send(get())
            assert (response.status, response.body) == (204, b"")

    run(program)


def test_the_answer_to_head_has_no_body_whatever_its_length_says() -> None:
    async def program() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n")
            await connection.until_closed()

        async with transport_to(script) as transport:
            response = await transport.send(Request("HEAD", "/x"))
            assert (response.status, response.body) == (200, b"")
            assert response.headers["content-length"] == "7"

    run(program)


def test_a_dead_kept_connection_is_replaced_for_reads() -> None:
    async def program() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(plain_answer(b"%d" % connection.number))
            if connection.number == 1:
                await connection.request()  # then hang up without a word
                return
            await connection.until_closed()

        async with transport_to(script) as transport:
            assert (await transport.send(get())).body == b"1"
            assert (await transport.send(get())).body == b"2"

    run(program)


def test_a_write_on_a_dead_connection_is_not_sent_twice() -> None:
    async def program() -> None:
        requests: list[bytes] = []

        async def script(connection: Connection) -> None:
            requests.append(await connection.request())
            await connection.answer(plain_answer(b"ok"))
            requests.append(await connection.request())

        async with transport_to(script) as transport:
            await transport.send(get())
            with pytest.raises(ConnectionFailed):
                await transport.send(Request("POST", "/x", body=b"1"))
        assert [request.split()[0] for request in requests] == [b"GET", b"POST"]

    run(program)


def test_a_fresh_connection_that_dies_is_an_error_even_for_reads() -> None:
    async def program() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()

        async with transport_to(script) as transport:
            with pytest.raises(ConnectionFailed, match="closed the connection"):
                await transport.send(get())

    run(program)


def test_words_on_an_idle_connection_end_it() -> None:
    async def program() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(plain_answer(b"%d" % connection.number))
            await connection.answer(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
            await connection.until_closed()

        async with transport_to(script) as transport:
            assert (await transport.send(get())).body == b"1"
            assert (await transport.send(get())).body == b"2"

    run(program)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"SSH-2.0-OpenSSH_9.6\r\n", "not HTTP"),
        (
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
            "switched protocols",
        ),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", "before the answer was complete"),
    ],
)
def test_an_answer_that_cannot_be_right_is_the_worlds_error(answer: bytes, why: str) -> None:
    async def program() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(answer)

        async with transport_to(script) as transport:
            with pytest.raises(ConnectionFailed, match=why):
                await transport.send(get())

    run(program)


def test_a_silent_server_is_given_up_after_the_timeout() -> None:
    async def program() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.until_closed()

        async with transport_to(script, request_timeout=0.02) as transport:
            with pytest.raises(TransportTimeout, match=r"did not answer within 0\.02 s"):
                await transport.send(get())

    run(program)


def test_a_cancelled_request_leaves_no_answer_for_the_next() -> None:
    async def program() -> None:
        arrived = asyncio.Event()

        async def script(connection: Connection) -> None:
            await connection.request()
            if connection.number == 1:
                arrived.set()
                await connection.until_closed()
            await connection.answer(plain_answer(b"%d" % connection.number))

        async with transport_to(script) as transport:
            task = asyncio.create_task(transport.send(get("/first")))
            await arrived.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await transport.send(get("/second"))).body == b"2"

    run(program)


def test_nobody_there_is_said_with_the_address() -> None:
    async def program() -> None:
        transport = HttpTransport("http://127.0.0.1:1", clock=RealClock())
        with pytest.raises(ConnectionFailed, match=r"cannot connect to 127\.0\.0\.1:1: "):
            await transport.send(get())
        await transport.aclose()

    run(program)


def test_after_closing_everything_fails_and_open_streams_end() -> None:
    async def program() -> None:
        async def script(connection: Connection) -> None:
            await connection.request()
            await connection.answer(CHUNKED + chunk(b"x"))
            await connection.until_closed()

        async with scripted_server(script) as server:
            transport = HttpTransport(server.url, clock=RealClock())
            response = await transport.send(get(), stream=True)
            await transport.aclose()
            await transport.aclose()
            with pytest.raises(ConnectionFailed):
                await read_all(response)
            with pytest.raises(ConnectionFailed, match="was closed"):
                await transport.send(get())

    run(program)


@pytest.mark.parametrize("url", ["127.0.0.1:6443", "ftp://x", "https://", "http://x:notaport"])
def test_a_server_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(ConfigError, match="server"):
        HttpTransport(url, clock=RealClock())


@pytest.mark.parametrize(
    "request_",
    [
        Request("GET", "/a b"),
        Request("GET", "/a\r\nx: y"),
        Request("GET", "/ä"),
        Request("GET", "/a", headers={"x": "1\r\ny: 2"}),
        Request("GET", "/a", headers={"x y": "1"}),
    ],
)
def test_nothing_can_be_smuggled_into_a_request(request_: Request) -> None:
    async def program() -> None:
        transport = HttpTransport("http://127.0.0.1:1", clock=RealClock())
        with pytest.raises(ConfigError, match="cannot be a"):
            await transport.send(request_)

    run(program)


def test_tls_is_verified_against_the_given_authority(tmp_path: Path) -> None:
    authority, context = server_certificate(tmp_path)

    async def program() -> None:
        async def script(connection: Connection) -> None:
            while True:
                await connection.request()
                await connection.answer(plain_answer(b"secret"))

        async with scripted_server(script, context) as server:
            trusting = HttpTransport(
                server.url, clock=RealClock(), ssl_context=ssl.create_default_context(cafile=authority)
            )
            assert (await trusting.send(get())).body == b"secret"
            await trusting.aclose()
            stranger = HttpTransport(server.url, clock=RealClock())
            with pytest.raises(ConnectionFailed, match=r"certificate of 127.* cannot be verified"):
                await stranger.send(get())
            await stranger.aclose()
            misnamed = HttpTransport(
                server.url,
                clock=RealClock(),
                ssl_context=ssl.create_default_context(cafile=authority),
                server_name="elsewhere.example",
            )
            with pytest.raises(ConnectionFailed, match="cannot be verified"):
                await misnamed.send(get())
            await misnamed.aclose()

    run(program)

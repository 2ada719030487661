"""Commands in containers through the API server, over WebSocket, also with callers that flood, stall or vanish."""

from __future__ import annotations

import base64
import json
import os
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kubernetes import client as kubernetes
from kubernetes import config
from kubernetes.stream import stream
from websockets.frames import Opcode

from nodeward.machinery.http_upgrade import UpgradedConnection, upgrade
from nodeward.machinery.spdy.session import SpdySession
from nodeward.machinery.transport import Request, Response
from tests.kubelet.server.serving import Serving, context_of
from tests.machinery.test_websocket import Far
from tests.patience import PATIENCE_SECONDS

KEY = base64.b64encode(bytes(16)).decode()
V4, V5 = "v4.channel.k8s.io", "v5.channel.k8s.io"


@pytest.fixture(scope="module")
def shell(served: Serving) -> str:
    """A pod in which commands are run."""
    served.run_pod("shell", "sleep", "1000")
    return "shell"


async def connect(
    served: Serving,
    pod: str,
    command: tuple[str, ...],
    protocol: str = V5,
    streams: str = "stdin stdout stderr",
) -> Far:
    """A caller with nothing of a client library between it and the API server."""
    pairs = [("command", part) for part in command] + [(name, "true") for name in streams.split()]
    request = Request(
        "GET",
        f"/api/v1/namespaces/default/pods/{pod}/exec",
        urllib.parse.urlencode(pairs),
        {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": KEY,
            "sec-websocket-protocol": protocol,
        },
    )
    tls = context_of(served.pki, served.pki.admin())
    switched = await upgrade("127.0.0.1", served.port, tls, request, served.clock)
    assert isinstance(switched, UpgradedConnection), switched
    assert switched.headers["sec-websocket-protocol"] == protocol
    return Far(switched)


def gathered(frames: list[tuple[Any, bytes]]) -> tuple[bytes, bytes, Any]:
    """stdout, stderr and how it ended."""
    texts = {1: b"", 2: b"", 3: b""}
    for opcode, data in frames:
        if opcode is Opcode.BINARY and data[:1] in (b"\1", b"\2", b"\3"):
            texts[data[0]] += data[1:]
    return texts[1], texts[2], json.loads(texts[3] or b"null")


@pytest.mark.parametrize("protocol", [V4, V5])
def test_output_and_the_exit_code_arrive_in_full(served: Serving, shell: str, protocol: str) -> None:
    async def run() -> tuple[bytes, bytes, Any]:
        far = await connect(served, shell, ("sh", "-c", "seq 100000; echo oops >&2; exit 7"), protocol)
        try:
            return gathered(await far.rest())
        finally:
            far.wire.close()

    out, err, status = served.do(run())
    assert out.count(b"\n") == 100_000
    assert err == b"oops\n"
    assert status == {
        "metadata": {},
        "status": "Failure",
        "reason": "NonZeroExitCode",
        "message": "command terminated with non-zero exit code: exit status 7",
        "details": {"causes": [{"reason": "ExitCode", "message": "7"}]},
    }


def test_closing_the_input_lets_the_command_end(served: Serving, shell: str) -> None:
    async def run() -> tuple[bytes, bytes, Any]:
        far = await connect(served, shell, ("sort",))
        try:
            await far.send(b"\0b\n")
            await far.send(b"\0a\n")
            await far.send(b"\xff\0")
            return gathered(await far.rest())
        finally:
            far.wire.close()

    assert served.do(run()) == (b"a\nb\n", b"", {"metadata": {}, "status": "Success"})


def test_streams_that_were_not_asked_for_are_not_sent(served: Serving, shell: str) -> None:
    async def run() -> tuple[bytes, bytes, Any]:
        far = await connect(served, shell, ("sh", "-c", "cat; echo out; echo err >&2"), streams="stdout")
        try:
            await far.send(b"\0this is not heard")
            return gathered(await far.rest())
        finally:
            far.wire.close()

    assert served.do(run()) == (b"out\n", b"", {"metadata": {}, "status": "Success"})


def test_a_terminal_has_the_size_the_caller_says(served: Serving, shell: str) -> None:
    async def run() -> tuple[bytes, bytes, Any]:
        far = await connect(
            served, shell, ("sh", "-c", "read line; stty size; test -t 1"), streams="stdin stdout tty"
        )
        try:
            await far.send(b'\4{"Width":123,"Height":45}')
            await far.send(b"\4this is no size")
            await far.send(b"\0go\n")
            return gathered(await far.rest())
        finally:
            far.wire.close()

    out, _, status = served.do(run())
    assert b"45 123" in out
    assert status["status"] == "Success"


@contextmanager
def marked(served: Serving, name: str) -> Iterator[tuple[str, Any]]:
    """A file that a command says its number in; whether that process lives."""
    path = served.home / name

    def lives() -> bool:
        # On a busy machine it may not have come so far as to write its number.
        number = path.read_text() if path.exists() else ""
        try:
            if number:
                os.kill(int(number), 0)
        except ProcessLookupError:
            return False
        return bool(number)

    yield str(path), lives
    path.unlink(missing_ok=True)


@pytest.mark.parametrize("command", ["exec sleep 1000", "exec yes", "exec cat"])
def test_a_command_whose_caller_has_vanished_is_killed(served: Serving, shell: str, command: str) -> None:
    with marked(served, "vanished") as (path, lives):

        async def run() -> None:
            far = await connect(served, shell, ("sh", "-c", f"echo $$ > {path}; echo on >&2; {command}"))
            async for frame in far.frames():
                if bytes(frame.data).startswith(b"\2on"):
                    break
            far.wire.abort()

        served.do(run())
        _until(served, lambda: not lives())


def test_a_command_that_does_not_read_is_killed_when_its_flooding_caller_vanishes(
    served: Serving, shell: str
) -> None:
    with marked(served, "flooded") as (path, lives):

        async def run() -> None:
            far = await connect(served, shell, ("sh", "-c", f"echo $$ > {path}; exec sleep 1000"))
            for _ in range(400):
                far.protocol.send_binary(b"\0" + b"x" * 30_000)
                for data in far.protocol.data_to_send():
                    far.wire.write(data)
            await _come(served, lives)
            await served.clock.sleep(0.5)
            assert _held(served) < 8 << 20, "nobody keeps what is not read"
            far.wire.abort()

        served.do(run())
        _until(served, lambda: not lives())


def test_the_same_over_spdy(served: Serving, shell: str) -> None:
    with marked(served, "flooded-spdy") as (path, lives):
        command = urllib.parse.urlencode(
            [("command", part) for part in ("sh", "-c", f"echo $$ > {path}; sleep 999")]
        )
        request = Request(
            "POST",
            f"/api/v1/namespaces/default/pods/{shell}/exec",
            f"{command}&stdin=true&stdout=true",
            {"connection": "Upgrade", "upgrade": "SPDY/3.1", "x-stream-protocol-version": f"{V5}\n{V4}"},
        )

        async def run() -> None:
            tls = context_of(served.pki, served.pki.admin())
            wire = await upgrade("127.0.0.1", served.port, tls, request, served.clock)
            assert isinstance(wire, UpgradedConnection)
            assert wire.headers["x-stream-protocol-version"] == V4

            async def send(data: bytes) -> None:
                wire.write(data)

            session = SpdySession(send, is_server=False)
            for name in ("error", "stdout"):
                await session.open(streamtype=name)
            stdin = await session.open(streamtype="stdin")
            await stdin.write(b"x" * 12_000_000)
            await _come(served, lives)
            await served.clock.sleep(0.5)
            assert lives()
            assert _held(served) < 8 << 20
            wire.abort()

        served.do(run())
        _until(served, lambda: not lives())


def test_a_caller_that_does_not_read_holds_up_the_command_and_nobody_else(
    served: Serving, shell: str
) -> None:
    async def run() -> tuple[int, tuple[bytes, bytes, Any]]:
        slow = await connect(served, shell, ("sh", "-c", "head -c 50000000 /dev/zero"))
        await served.clock.sleep(0.5)
        held = _held(served)
        other = await connect(served, shell, ("echo", "meanwhile"))
        answer = gathered(await other.rest())
        other.wire.close()
        total = 0
        async for frame in slow.frames():
            total += len(frame.data) - 1 if bytes(frame.data[:1]) == b"\1" else 0
        slow.wire.close()
        assert total == 50_000_000
        return held, answer

    held, answer = served.do(run())
    assert answer == (b"meanwhile\n", b"", {"metadata": {}, "status": "Success"})
    assert held < 8 << 20


def _held(served: Serving) -> int:
    """Bytes that wait in the API server and the kubelet for somebody to take them."""
    connections = (*served.kubelets.connections, *served.api.connections)
    return sum(connection.buffered for connection in connections)


async def _come(served: Serving, is_so: Any) -> None:
    while not is_so():
        await served.clock.sleep(0.05)


def _until(served: Serving, is_so: Any) -> None:
    served.do(_come(served, is_so))


def test_a_huge_message_ends_the_connection_and_the_command(served: Serving, shell: str) -> None:
    with marked(served, "huge") as (path, lives):

        async def run() -> None:
            far = await connect(served, shell, ("sh", "-c", f"echo $$ > {path}; echo on; exec sleep 1000"))
            async for _ in far.frames():
                break
            far.wire.write(b"\x82\xff" + (1 << 60).to_bytes(8, "big") + b"mask" + b"x" * 100)
            frames = await far.rest()
            assert frames[-1][1][:2] == (1009).to_bytes(2, "big")
            far.wire.close()

        served.do(run())
        _until(served, lambda: not lives())


def test_the_official_client_runs_a_command(served: Serving, shell: str) -> None:
    loaded: Any = config
    api = kubernetes.CoreV1Api(loaded.new_client_from_config(str(served.kubeconfig())))
    answer = stream(
        api.connect_get_namespaced_pod_exec,
        shell,
        "default",
        command=["sh", "-c", "read x; echo got $x; exit 3"],
        stdin=True,
        stdout=True,
        stderr=True,
        tty=False,
        _preload_content=False,
    )
    answer.write_stdin("a line\n")
    answer.run_forever(timeout=PATIENCE_SECONDS)
    assert (answer.read_stdout(), answer.returncode) == ("got a line\n", 3)
    answer.close()
    answer.sock.shutdown()  # the client leaves it open when the server said good-bye first
    api.api_client.close()


def test_a_refusal_of_the_kubelet_reaches_the_caller(served: Serving) -> None:
    served.run_pod("over", "true", restart_policy="Never")
    served.wait("over", lambda pod: pod.status.phase == "Succeeded")
    request = Request(
        "GET",
        "/api/v1/namespaces/default/pods/over/exec",
        "command=ls&stdout=true",
        {
            "connection": "Upgrade",
            "upgrade": "websocket",
            "sec-websocket-version": "13",
            "sec-websocket-key": KEY,
            "sec-websocket-protocol": V5,
        },
    )
    tls = context_of(served.pki, served.pki.admin())
    refused = served.do(upgrade("127.0.0.1", served.port, tls, request, served.clock))
    assert isinstance(refused, Response)
    assert (refused.status, refused.body) == (500, b'container not found ("c0")')

"""An API server on a real TLS socket, in a thread of its own, and bytes to throw at it.

`Server` runs as it does in production (uvloop where there is one), with every limit short, so that tests need not wait.
`Conversation` is one connection: raw bytes out, parsed answers in.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeward.apiserver.auth.user import User
from nodeward.apiserver.large_bodies import BodyThread
from nodeward.apiserver.pki import KeyPair, Pki, server_context
from nodeward.apiserver.server import ApiServer
from nodeward.cli.up import loop_factory
from nodeward.machinery.clock import RealClock, SeededChance
from nodeward.machinery.loop_watchdog import LoopWatchdog
from nodeward.machinery.serving.limits import Limits
from nodeward.store.memory import MemoryStore
from tests.apiserver.running import settings
from tests.patience import PATIENCE_SECONDS

#: Short enough to wait for, long enough for a busy machine.
LIMITS = Limits(
    head_seconds=1.0,
    body_seconds=1.0,
    idle_seconds=3.0,
    stall_seconds=1.0,
    linger_seconds=0.2,
    max_connections_of_address=250,
)
TOKEN = "a-token-of-somebody"


@dataclass
class Answer:
    """One parsed HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def is_status(self, code: int, reason: str) -> bool:
        """Whether it is the `Status` object Kubernetes answers with."""
        said = self.json
        assert said["kind"] == "Status", said
        assert said["apiVersion"] == "v1", said
        assert said["status"] == "Failure", said
        return (self.status, said["code"], said["reason"]) == (code, code, reason)


class Conversation:
    """One connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._rest = b""

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_all_you_can(self, data: bytes) -> None:
        """Send to a peer that may hang up on us before we are done."""
        try:
            self.socket.sendall(data)
        except OSError:
            return

    def request(self, method: str, target: str, body: bytes | None = None, **headers: str) -> Answer:
        self.send(request(method, target, body, **headers))
        return self.answer(is_head=method == "HEAD")

    def answer(self, *, is_head: bool = False) -> Answer:
        head = self._until(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        if is_head or status == 100:
            return Answer(status, headers, b"")
        if headers.get("transfer-encoding") == "chunked":
            body = b"".join(iter(self.chunk, b""))
        elif "content-length" in headers:
            body = self._exactly(int(headers["content-length"]))
        else:
            body = self.rest()
        return Answer(status, headers, body)

    def head(self) -> str:
        """Only the head of an answer that goes on."""
        return self._until(b"\r\n\r\n").decode("latin-1")

    def chunk(self) -> bytes:
        """One chunk of a stream; empty at its end."""
        size = int(self._until(b"\r\n"), 16)
        data = self._exactly(size)
        self._exactly(2)
        return data

    def rest(self) -> bytes:
        """Everything until the server hangs up, in whatever manner."""
        parts = [self._rest]
        self._rest = b""
        while data := self._read():
            parts.append(data)
        return b"".join(parts)

    def _read(self) -> bytes:
        try:
            return self.socket.recv(1 << 16)
        except TimeoutError:
            raise AssertionError("the server neither answers nor hangs up") from None
        except OSError:
            return b""

    def _until(self, end: bytes) -> bytes:
        while end not in self._rest:
            data = self._read()
            assert data, f"the connection ended before {end!r}: {self._rest!r}"
            self._rest += data
        found, _, self._rest = self._rest.partition(end)
        return found

    def _exactly(self, size: int) -> bytes:
        while len(self._rest) < size:
            data = self._read()
            assert data, "the connection ended in the middle of an answer"
            self._rest += data
        found, self._rest = self._rest[:size], self._rest[size:]
        return found


def request(method: str, target: str, body: bytes | None = None, **headers: str) -> bytes:
    """A request as a well-behaved client writes it; `content_type=` becomes `content-type: `."""
    lines = [f"{method} {target} HTTP/1.1", "host: nodeward"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"content-length: {len(body)}")
        if "content_type" not in headers:
            lines.append("content-type: application/json")
    return "\r\n".join((*lines, "", "")).encode("latin-1") + (body or b"")


class Server:
    """A running server. Whoever makes it stops it."""

    def __init__(self, directory: Path) -> None:
        self.clock = RealClock()
        self.pki = Pki(directory / "pki", self.clock.now_ns())
        self._directory = directory
        self._identities = 0
        self.limits = LIMITS
        self.port = 0
        self.server: ApiServer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._is_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="server")
        self._thread.start()
        assert self._is_up.wait(PATIENCE_SECONDS), "the server does not start"
        self.admin = self.client_context(self.pki.admin())

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=loop_factory()) as runner:
                runner.run(self._serve())
        finally:
            self._is_up.set()

    async def _serve(self) -> None:
        static = {TOKEN: User("somebody", "", (), {})}
        chosen = settings(limits=LIMITS, static_tokens=static, make_worker=BodyThread)
        self.server = ApiServer(MemoryStore(), self.clock, SeededChance(7), chosen)
        await self.server.start()
        self.watchdog = LoopWatchdog(self.clock)
        self.watchdog.start()
        tls = server_context(self.pki.serving("localhost"), self.pki.authority_path)
        self.port = await self.server.listen("127.0.0.1", 0, tls)
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._is_up.set()
        await self._stop.wait()
        self.watchdog.stop()
        await self.server.stop()

    def stop(self) -> None:
        assert self._loop is not None
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive(), "the server does not stop"

    def held_seconds(self) -> float:
        """The longest time the event loop's thread has computed without a pause since the last call."""
        self.pause(0.2)
        found, self.watchdog.longest_held_seconds = self.watchdog.longest_held_seconds, 0.0
        return found

    def buffered(self) -> int:
        """Bytes the server holds for peers that have not taken them."""
        return self._on_loop(lambda server: sum(connection.buffered for connection in server.connections))

    def connections(self) -> int:
        return self._on_loop(lambda server: len(server.connections))

    def _on_loop(self, ask: Callable[[ApiServer], int]) -> int:
        async def asked() -> int:
            assert self.server is not None
            return ask(self.server)

        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(asked(), self._loop).result(PATIENCE_SECONDS)

    def pause(self, seconds: float) -> None:
        """Let the server's time pass."""

        async def passed() -> None:
            await self.clock.sleep(seconds)

        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(passed(), self._loop).result(PATIENCE_SECONDS)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Look again and again; what takes longer than anything should is a failure."""
        for _ in range(int(PATIENCE_SECONDS / 0.05)):
            if holds():
                return
            self.pause(0.05)
        raise AssertionError("what should happen does not")

    def client_context(
        self, identity: KeyPair | None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = version
        context.load_verify_locations(cadata=self.pki.authority_certificate.decode())
        if identity is not None:
            self._identities += 1
            file = self._directory / f"identity-{self._identities}.pem"
            file.write_bytes(identity.certificate + identity.key)
            context.load_cert_chain(file)
        return context

    def connect(self, context: ssl.SSLContext | None = None, *, receive_buffer: int = 0) -> Conversation:
        """A connection, as the administrator unless told otherwise."""
        raw = socket.socket()
        if receive_buffer:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        raw.settimeout(PATIENCE_SECONDS)
        try:
            raw.connect(("127.0.0.1", self.port))
            return Conversation((context or self.admin).wrap_socket(raw, server_hostname="127.0.0.1"))
        except BaseException:
            raw.close()
            raise

    def ask(self, method: str, target: str, body: bytes | None = None, **headers: str) -> Answer:
        """One request on a connection of its own."""
        with self.connect() as conversation:
            return conversation.request(method, target, body, **headers)

"""Whether an HTTP request is answered well: 200 to 399 is.

Redirects are followed on the same host, at most ten; one to another host ends the question, and counts as an answer.
Certificates are not looked at, as upstream does not. No connection outlives its question.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote as percent
from urllib.parse import urljoin, urlsplit

import httptools

from nodeward.api.core_v1.container import Container, EphemeralContainer, HTTPGetAction, HTTPHeader
from nodeward.kubelet.probing.answer import ProbeAnswer, dial_error, joined, port_number
from nodeward.machinery.clock import Clock
from nodeward.machinery.eager import own_task

#: As much of the body as is kept.
_MAX_BODY: Final = 10 * 1024
_MAX_HEAD: Final = 64 * 1024
_MAX_REDIRECTS: Final = 10
_SAFE: Final = "/:?&=+$,;@!*'()%~-._[]"
_REDIRECTS: Final = (301, 302, 303, 307, 308)


@dataclass
class _Reply:
    """Fed by the parser."""

    status: int = 0
    location: str = ""
    body: bytearray = field(default_factory=bytearray)
    is_complete: bool = False

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"location":
            self.location = value.decode("latin-1")

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.is_complete = True


class _Failed(Exception):
    """The request got no answer."""


def action_url(action: HTTPGetAction, container: Container | EphemeralContainer | None, host: str) -> str:
    """The address an action means; `host` is used where it names none. Raises `NoSuchPort`."""
    scheme = action.scheme.lower() or "http"
    port = port_number(action.port, container)
    path = percent(action.path, safe=_SAFE)
    if not path.startswith(("/", "?")):
        path = f"/{path}"
    return f"{scheme}://{joined(action.host or host, port)}{path}"


@own_task
async def ask_http(
    url: str, headers: Sequence[HTTPHeader], timeout: float, clock: Clock, agent: str = "kube-probe/1.37"
) -> ProbeAnswer:
    """Make the request, and judge what comes back."""
    sent = _headers(headers, agent)
    first, asked = urlsplit(url), url
    try:
        async with clock.timeout(timeout):
            for _ in range(_MAX_REDIRECTS):
                reply = await _get(asked, sent)
                if reply.status not in _REDIRECTS or not reply.location:
                    break
                onward = urljoin(asked, reply.location)
                if urlsplit(onward).hostname != first.hostname:
                    break
                asked = onward
            else:
                raise _Failed("stopped after 10 redirects")
    except TimeoutError:
        why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        return ProbeAnswer(False, f'Get "{asked}": {why}')
    except _Failed as error:
        return ProbeAnswer(False, f'Get "{asked}": {error}')
    text = bytes(reply.body[:_MAX_BODY]).decode("utf-8", "replace")
    if 200 <= reply.status < 300:
        return ProbeAnswer(True, text)
    if 300 <= reply.status < 400:
        return ProbeAnswer(True, f"Probe terminated redirects, Response body: {text}")
    # Not the body: events are read by more people than the container's own answers are for.
    return ProbeAnswer(False, f"HTTP probe failed with statuscode: {reply.status}")


def _headers(given: Sequence[HTTPHeader], agent: str) -> list[tuple[str, str]]:
    found = [(each.name, each.value) for each in given]
    names = {name.lower() for name, _ in found}
    if "user-agent" not in names:
        found.append(("User-Agent", agent))
    if "accept" not in names:
        found.append(("Accept", "*/*"))
    return [(name, value) for name, value in found if value or name.lower() not in ("accept", "user-agent")]


async def _get(url: str, headers: Sequence[tuple[str, str]]) -> _Reply:
    parts = urlsplit(url)
    is_secure = parts.scheme == "https"
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise _Failed(f'unsupported protocol scheme "{parts.scheme}"')
    port = parts.port or (443 if is_secure else 80)
    address = joined(parts.hostname, port)
    try:
        reader, writer = await asyncio.open_connection(
            parts.hostname, port, ssl=_trusting() if is_secure else None
        )
    except ssl.SSLError as error:
        raise _Failed(_tls_error(error)) from error
    except OSError as error:
        raise _Failed(dial_error(address, error)) from error
    try:
        writer.write(_request(parts.path or "/", parts.query, address, headers))
        return await _read(reader)
    except OSError as error:
        raise _Failed(f"read tcp {address}: {(error.strerror or str(error)).lower()}") from error
    finally:
        writer.transport.abort()


def _request(path: str, query: str, address: str, headers: Sequence[tuple[str, str]]) -> bytes:
    lines = [f"GET {path}{f'?{query}' if query else ''} HTTP/1.1"]
    if not any(name.lower() == "host" for name, _ in headers):
        lines.append(f"Host: {address}")
    lines += [f"{name}: {value}" for name, value in headers]
    lines += ["Connection: close", "", ""]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape")


async def _read(reader: asyncio.StreamReader) -> _Reply:
    reply = _Reply()
    parser = httptools.HttpResponseParser(reply)
    received = 0
    while not reply.is_complete and len(reply.body) < _MAX_BODY:
        data = await reader.read(_MAX_HEAD)
        if not data:
            # An answer without a length ends with its connection.
            if reply.status:
                break
            raise _Failed("EOF")
        received += len(data)
        try:
            parser.feed_data(data)
        except httptools.HttpParserError as error:
            raise _Failed(f"malformed HTTP response: {error}") from error
        reply.status = parser.get_status_code()
        if not reply.body and received > 16 * _MAX_HEAD:
            raise _Failed("net/http: server response headers exceeded 1048576 bytes; aborted")
    return reply


def _trusting() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _tls_error(error: ssl.SSLError) -> str:
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return "http: server gave HTTP response to HTTPS client"
    return f"remote error: tls: {(error.reason or str(error)).lower().replace('_', ' ')}"

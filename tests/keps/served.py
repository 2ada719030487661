"""An API server of some version and with some gates, spoken to over HTTP on a socket, as the version-skew tables ask.

`served` starts one on a store (a new one, or one that another server used before: that is an upgrade or a rollback)
and gives an `Api`. Answers keep status, object and warnings. `played` turns a coroutine into an ordinary test.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, ParamSpec

from nodeward.apiserver.auth.user import User
from nodeward.machinery.clock import RealClock
from nodeward.machinery.http_transport import HttpTransport
from nodeward.machinery.transport import Request
from nodeward.store.interface import Store
from tests.apiserver.running import running, settings

P = ParamSpec("P")
Tree = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

_ADMIN = User("admin", groups=("system:masters",))
_TOKENS = {"admin-token": _ADMIN}


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    body: Tree
    warnings: list[str] = field(default_factory=list)

    def ok(self) -> Tree:
        assert self.status in (200, 201), self.body
        return self.body

    def causes(self) -> list[tuple[str, str, str]]:
        """(field, reason, message) of each thing that was wrong, of an object that was refused as invalid."""
        assert self.status == 422, self.body
        assert self.body["reason"] == "Invalid"
        return [
            (each.get("field", ""), each["reason"], each["message"])
            for each in self.body["details"]["causes"]
        ]


class Api:
    """One caller of one server."""

    def __init__(self, transport: HttpTransport, token: str) -> None:
        self._transport = transport
        self._token = token

    def by(self, token: str) -> Api:
        """The same server, asked by somebody else."""
        return Api(self._transport, token)

    async def send(
        self, method: str, target: str, body: Any = None, media: str = "application/json"
    ) -> Answer:
        path, _, query = target.partition("?")
        headers = {
            "accept": "application/json",
            "authorization": f"Bearer {self._token}",
            "content-type": media,
        }
        data = b"" if body is None else json.dumps(body).encode()
        response = await self._transport.send(Request(method, path, query, headers, data))
        told = response.headers.get("warning", "")
        answer = json.loads(response.body or b"{}") if path.startswith("/api") else {"text": response.body}
        return Answer(response.status, answer, _warnings(told))

    async def get(self, target: str) -> Tree:
        return (await self.send("GET", target)).ok()

    async def create(self, target: str, body: Tree) -> Answer:
        return await self.send("POST", target, body)

    async def merge(self, target: str, body: Tree) -> Answer:
        return await self.send("PATCH", target, body, MERGE)

    async def text(self, target: str) -> str:
        answer = await self.send("GET", target)
        found: bytes = answer.body["text"]
        return found.decode()


def _warnings(header: str) -> list[str]:
    """The texts of `Warning: 299 - "text"` headers, which arrive joined."""
    found, rest = [], header
    while "299 - " in rest:
        rest = rest[rest.index("299 - ") + 6 :]
        text, end = json.JSONDecoder().raw_decode(rest)
        found.append(text)
        rest = rest[end:]
    return found


@asynccontextmanager
async def served(
    version: str = "1.37",
    gates: str = "",
    *,
    store: Store | None = None,
    users: dict[str, User] | None = None,
) -> AsyncIterator[Api]:
    """A server that listens on a port of its own; the caller is an administrator."""
    chosen = settings(version=version, gates=gates, static_tokens={**_TOKENS, **(users or {})})
    async with running(chosen, store=store) as server:
        port = await server.listen("127.0.0.1", 0, None)
        transport = HttpTransport(f"http://127.0.0.1:{port}", clock=RealClock())
        try:
            yield Api(transport, "admin-token")
        finally:
            await transport.aclose()


def played(scenario: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A coroutine as a test."""

    @functools.wraps(scenario)
    def test(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(scenario(*args, **kwargs))

    return test


def a_pod(name: str = "p", **spec: Any) -> Tree:
    containers = [{"name": "c", "image": "registry.example/pause:3.10"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def a_node(name: str = "n", status: Tree | None = None, **spec: Any) -> Tree:
    return {"metadata": {"name": name}, "spec": spec, "status": status or {}}


def a_slice(name: str = "s", **spec: Any) -> Tree:
    pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
    full = {"driver": "example.com", "pool": pool, "allNodes": True, "devices": [{"name": "d"}], **spec}
    return {"metadata": {"name": name}, "spec": full}


def a_claim(name: str = "c", **exactly: Any) -> Tree:
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", **exactly}}]
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": requests}}}


def an_allocation(**result: Any) -> Tree:
    """The status a scheduler writes."""
    one = {"request": "r", "driver": "example.com", "pool": "pool", "device": "d", **result}
    return {"allocation": {"devices": {"results": [one]}}}

"""What strangers can make the server keep: names of metrics, remembered answers, bodies, connections."""

from __future__ import annotations

import asyncio
import socket
import ssl
import tracemalloc

import pytest

from nodeward.api.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from nodeward.apiserver.auth.rbac import RbacAuthorizer
from nodeward.apiserver.auth.user import Attributes, User
from nodeward.rules.names import label_key_faults, label_value_faults
from tests.apiserver.running import Caller, running
from tests.hostile.wire import Server, request

MEBIBYTE = 1 << 20
PODS = "/api/v1/namespaces/default/pods"


def test_made_up_names_add_no_metrics() -> None:
    async def main() -> None:
        async with running() as server:
            anonymous = Caller.anonymous(server)

            async def lines() -> int:
                return len(bytes((await Caller.of(server).send("GET", "/metrics")).body or b"").splitlines())

            async def invent(word: str) -> None:
                for path in (
                    f"/api/v1/{word}",
                    f"/api/{word}/pods",
                    f"/apis/{word}/v1/pods",
                    f"{PODS}/p/{word}",
                    f"{PODS}/p/{word}/{word}",
                    f"/api/v1/nodes/n/{word}",
                    f"/{word}",
                ):
                    await anonymous.send("GET", path)
                await anonymous.send(word.upper(), PODS)

            await invent("first")
            await lines()  # the page counts itself
            before = await lines()
            for number in range(200):
                await invent(f"word{number}")
            assert await lines() == before

    asyncio.run(main())


def test_long_questions_are_not_remembered() -> None:
    rbac = RbacAuthorizer()
    rbac.upsert("ClusterRole", ClusterRole(rules=[PolicyRule(verbs=["get"], non_resource_urls=["/x*"])]))
    rbac.upsert(
        "ClusterRoleBinding",
        ClusterRoleBinding(role_ref=RoleRef(kind="ClusterRole"), subjects=[Subject(kind="User", name="u")]),
    )
    tracemalloc.start()
    try:
        for number in range(500):
            path = f"/{number}/" + "x" * 60_000
            rbac.authorize(Attributes(user=User("u"), verb="get", path=path, is_resource_request=False))
            question = Attributes(user=User("u"), verb="get", resource="pods", namespace=path)
            rbac.authorize(question)
        assert tracemalloc.get_traced_memory()[0] < MEBIBYTE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("faults", [label_key_faults, label_value_faults])
def test_long_names_are_not_remembered(faults: object) -> None:
    assert callable(faults)
    tracemalloc.start()
    try:
        for number in range(200):
            faults(f"{number}" + "x" * 100_000)
        assert tracemalloc.get_traced_memory()[0] < MEBIBYTE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("size", [b"content-length: 3000000", b"transfer-encoding: chunked"])
def test_the_body_of_somebody_who_may_not_write_is_not_read(server: Server, size: bytes) -> None:
    with server.connect(server.client_context(None)) as conversation:
        conversation.send(
            request("POST", PODS).rstrip(b"\r\n")
            + b"\r\ncontent-type: application/json\r\n"
            + size
            + b"\r\n\r\n"
        )
        answer = conversation.answer()  # before a byte of the body was sent
        assert answer.is_status(403, "Forbidden")
        assert answer.headers["connection"] == "close"


def test_one_address_has_only_so_many_connections(server: Server) -> None:
    limit = server.limits.max_connections_of_address
    context = server.client_context(None)
    crowd: list[socket.socket] = []
    try:
        crowd.extend(server.connect(context).socket for _ in range(limit))
        server.wait_until(lambda: server.connections() >= limit)
        with pytest.raises((ssl.SSLError, OSError, AssertionError)), server.connect(context) as one_too_many:
            one_too_many.request("GET", "/livez")
        crowd.pop().close()
        server.wait_until(lambda: server.connections() < limit)
        with server.connect(context) as conversation:
            assert conversation.request("GET", "/livez").status == 200
    finally:
        for each in crowd:
            each.close()
    server.wait_until(lambda: server.connections() < limit // 2)

"""A watcher that never reads is cut off; the others get everything, and the memory stays bounded."""

from __future__ import annotations

import json
import threading

from nodeward.apiserver.verbs.watch import UNREAD_BYTES
from tests.hostile.wire import Conversation, Server, request

MAPS = "/api/v1/namespaces/kube-public/configmaps"
SIZE = 200_000
COUNT = 60


def watch(server: Server, query: str = "", *, receive_buffer: int = 0) -> Conversation:
    conversation = server.connect(receive_buffer=receive_buffer)
    version = server.ask("GET", f"{MAPS}?limit=1").json["metadata"]["resourceVersion"]
    conversation.send(request("GET", f"{MAPS}?watch=true&resourceVersion={version}{query}"))
    assert conversation.head().startswith("HTTP/1.1 200")
    return conversation


def test_a_watcher_that_never_reads_is_cut_off_and_the_others_see_everything(server: Server) -> None:
    assert server.server is not None
    assert COUNT * SIZE > 2 * UNREAD_BYTES
    lazy = [watch(server, receive_buffer=4096) for _ in range(5)]
    lazy += [watch(server, "&labelSelector=a%21%3Db", receive_buffer=4096) for _ in range(2)]
    eager = [watch(server) for _ in range(3)]
    seen: list[list[str]] = [[] for _ in eager]

    def read(number: int) -> None:
        rest = b""
        while len(seen[number]) < COUNT:
            rest += eager[number].chunk()
            *lines, rest = rest.split(b"\n")
            seen[number].extend(json.loads(line)["object"]["metadata"]["name"] for line in lines)

    readers = [threading.Thread(target=read, args=(number,)) for number in range(len(eager))]
    for reader in readers:
        reader.start()
    buffered = 0
    with server.connect() as writer:
        for number in range(COUNT):
            body = json.dumps({"metadata": {"name": f"w{number}"}, "data": {"a": "x" * SIZE}}).encode()
            assert writer.request("POST", MAPS, body).status == 201
            buffered = max(buffered, server.buffered())
    for reader in readers:
        reader.join(20)
    assert seen == [[f"w{number}" for number in range(COUNT)]] * len(eager)
    # Each lazy watcher may hold its allowance and one event more, then it is gone.
    assert buffered < (len(lazy) + len(eager)) * (UNREAD_BYTES + 4 * SIZE)
    server.wait_until(lambda: server.buffered() == 0)
    for conversation in lazy:
        rest = conversation.rest()
        assert not rest.endswith(b"0\r\n\r\n"), "a watch that was cut off must not look complete"
        assert len(rest) < COUNT * SIZE
        conversation.socket.close()
    for conversation in eager:
        conversation.socket.close()
    assert server.ask("DELETE", MAPS).status == 200


def test_a_watcher_that_does_not_even_read_the_first_state_is_cut_off(server: Server) -> None:
    with server.connect() as writer:
        for number in range(30):
            body = json.dumps({"metadata": {"name": f"f{number}"}, "data": {"a": "x" * SIZE}}).encode()
            assert writer.request("POST", MAPS, body).status == 201
    with server.connect(receive_buffer=4096) as lazy:
        lazy.send(request("GET", f"{MAPS}?watch=true"))
        assert lazy.head().startswith("HTTP/1.1 200")
        server.wait_until(lambda: server.buffered() > 0)
        server.wait_until(lambda: server.buffered() == 0)
    assert server.ask("DELETE", MAPS).status == 200


def test_a_slow_watcher_that_reads_now_and_then_is_not_cut_off(server: Server) -> None:
    with watch(server, "&timeoutSeconds=4") as slow:
        for number in range(3):
            body = json.dumps({"metadata": {"name": f"s{number}"}, "data": {"a": "x" * SIZE}}).encode()
            assert server.ask("POST", MAPS, body).status == 201
        # Nothing is read for longer than any limit on the way to a request.
        server.pause(1.5)
        names: list[str] = []
        rest = b""
        while chunk := slow.chunk():
            rest += chunk
        names = [json.loads(line)["object"]["metadata"]["name"] for line in rest.splitlines()]
        assert names == ["s0", "s1", "s2"]
    assert server.ask("DELETE", MAPS).status == 200

"""HTTP probes over real sockets: what counts as well, what is sent, and what a failure says."""

from __future__ import annotations

import asyncio

import pytest

from nodeward.api.core_v1.container import Container, ContainerPort, HTTPGetAction, HTTPHeader
from nodeward.kubelet.probing.answer import NoSuchPort, ProbeAnswer
from nodeward.kubelet.probing.http import action_url, ask_http
from nodeward.machinery.clock import RealClock
from tests.kubelet.probing.servers import (
    Handler,
    Web,
    free_port,
    hang_up,
    reply,
    say_nothing,
    serving,
    speak_no_tls,
)
from tests.patience import PATIENCE_SECONDS

CLOCK = RealClock()


def asked(
    handler: Handler, path: str = "/x", *headers: HTTPHeader, timeout: float = PATIENCE_SECONDS
) -> ProbeAnswer:
    async def main() -> ProbeAnswer:
        async with serving(handler) as port:
            return await ask_http(f"http://127.0.0.1:{port}{path}", headers, timeout, CLOCK)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("status", "ok"), [(200, True), (204, True), (304, True), (399, True), (400, False), (500, False)]
)
def test_from_200_to_399_all_is_well(status: int, ok: bool) -> None:
    answer = asked(Web(x=reply(status)))
    assert answer.ok is ok
    if not ok:
        assert answer.text == f"HTTP probe failed with statuscode: {status}"


def test_the_body_is_told_only_when_all_is_well_and_is_cut_short() -> None:
    assert asked(Web(x=reply(200, b"fine"))) == ProbeAnswer(True, "fine")
    assert "secret" not in asked(Web(x=reply(500, b"secret"))).text
    assert len(asked(Web(x=reply(200, b"a" * 100_000))).text) == 10 * 1024


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    assert asked(Web(x=b"HTTP/1.0 200 OK\r\n\r\nold")) == ProbeAnswer(True, "old")


def test_headers_are_the_users_and_otherwise_upstreams() -> None:
    web = Web(x=reply(200))
    asked(web, "/x?a=b")
    head = web.asked[0].lower()
    assert head.startswith("get /x?a=b http/1.1\r\n")
    assert "user-agent: kube-probe/1.37\r\n" in head
    assert "accept: */*\r\n" in head
    web = Web(x=reply(200))
    given = [("Host", "example.com"), ("User-Agent", "me"), ("Accept", ""), ("X", "1"), ("X", "2")]
    asked(web, "/x", *(HTTPHeader(name=name, value=value) for name, value in given))
    assert web.asked[0].count("Host:") == 1
    assert "Host: example.com\r\n" in web.asked[0]
    assert "User-Agent: me\r\n" in web.asked[0]
    assert "Accept" not in web.asked[0]
    assert "X: 1\r\nX: 2\r\n" in web.asked[0]


def test_a_redirect_on_the_same_host_is_followed() -> None:
    web = Web(x=reply(302, b"", "Location: /y"), y=reply(200, b"there"))
    assert asked(web) == ProbeAnswer(True, "there")
    assert asked(Web(x=reply(302, b"", "Location: /y"), y=reply(500))).ok is False


def test_a_redirect_to_another_host_is_not_followed_and_counts_as_an_answer() -> None:
    answer = asked(Web(x=reply(302, b"gone", "Location: http://example.com/")))
    assert answer == ProbeAnswer(True, "Probe terminated redirects, Response body: gone")


def test_redirects_without_end_are_a_failure() -> None:
    answer = asked(Web(x=reply(302, b"", "Location: /x")))
    assert answer.ok is False
    assert answer.text.endswith("stopped after 10 redirects")


def test_silence_is_a_failure_after_the_timeout() -> None:
    answer = asked(say_nothing, timeout=0.5)
    assert answer.ok is False
    assert answer.text.startswith('Get "http://127.0.0.1:')
    assert answer.text.endswith(
        '/x": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    )


def test_a_connection_that_ends_without_an_answer_is_a_failure() -> None:
    answer = asked(hang_up)
    assert answer.ok is False
    assert answer.text.endswith('/x": EOF')


def test_what_is_not_http_is_a_failure() -> None:
    answer = asked(Web(x=b"SSH-2.0-OpenSSH\r\n\r\n"))
    assert answer.ok is False
    assert "malformed HTTP response" in answer.text


def test_nobody_listening_is_a_failure() -> None:
    port = free_port()
    answer = asyncio.run(ask_http(f"http://127.0.0.1:{port}/", (), PATIENCE_SECONDS, CLOCK))
    where = f"127.0.0.1:{port}"
    assert answer == ProbeAnswer(
        False, f'Get "http://{where}/": dial tcp {where}: connect: connection refused'
    )


def test_https_to_a_plain_server_says_so() -> None:
    async def main() -> ProbeAnswer:
        async with serving(speak_no_tls) as port:
            return await ask_http(f"https://127.0.0.1:{port}/", (), PATIENCE_SECONDS, CLOCK)

    answer = asyncio.run(main())
    assert answer.ok is False
    assert answer.text.endswith("http: server gave HTTP response to HTTPS client")


def test_the_address_is_that_of_the_action_or_the_pod() -> None:
    container = Container(name="c", ports=[ContainerPort(name="web", container_port=8080)])
    action = HTTPGetAction(path="healthz", port="web")
    assert action_url(action, container, "10.1.0.5") == "http://10.1.0.5:8080/healthz"
    assert action_url(action, container, "fd00::5") == "http://[fd00::5]:8080/healthz"
    action = HTTPGetAction(path="/a b?c=d", port=443, scheme="HTTPS", host="example.com")
    assert action_url(action, container, "10.1.0.5") == "https://example.com:443/a%20b?c=d"
    assert action_url(HTTPGetAction(port=80), None, "1.2.3.4") == "http://1.2.3.4:80/"


@pytest.mark.parametrize(
    ("port", "why"), [("no", 'port "no" not found'), (0, "invalid port number: 0"), (70000, "invalid port")]
)
def test_a_port_that_is_none_is_told(port: int | str, why: str) -> None:
    with pytest.raises(NoSuchPort) as caught:
        action_url(HTTPGetAction(port=port), Container(name="c"), "1.2.3.4")
    assert str(caught.value).startswith(why)

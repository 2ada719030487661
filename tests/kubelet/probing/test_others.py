"""TCP, gRPC and commands: real sockets and real processes, and what a failure says."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc.aio
import pytest

from nodeward.api.core_v1.container import ExecAction, GRPCAction, HTTPGetAction, Probe, TCPSocketAction
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.config.settings import GateProbe
from nodeward.kubelet.node.gate_probes import ProbeOutcome
from nodeward.kubelet.probing.answer import ProbeAnswer
from nodeward.kubelet.probing.command import ask_node
from nodeward.kubelet.probing.grpc import METHOD, ask_grpc, decode_answer, encode_request
from nodeward.kubelet.probing.prober import NetworkProber
from nodeward.kubelet.probing.tcp import ask_tcp
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.machinery.clock import RealClock, VirtualClock
from tests.kubelet.probing.servers import Web, free_port, reply, say_nothing, serving
from tests.patience import PATIENCE_SECONDS

CLOCK = RealClock()


def test_a_port_that_accepts_connections_is_well() -> None:
    async def main() -> ProbeAnswer:
        async with serving(say_nothing) as port:
            return await ask_tcp("127.0.0.1", port, PATIENCE_SECONDS, CLOCK)

    assert asyncio.run(main()) == ProbeAnswer(True)


def test_a_port_that_does_not_says_why() -> None:
    port = free_port()
    answer = asyncio.run(ask_tcp("127.0.0.1", port, PATIENCE_SECONDS, CLOCK))
    assert answer == ProbeAnswer(False, f"dial tcp 127.0.0.1:{port}: connect: connection refused")


# -- gRPC


@asynccontextmanager
async def health(states: dict[str, int], *, seconds: float = 0.0) -> AsyncIterator[int]:
    """A server with the health service, or with another one (no states)."""

    async def check(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        if seconds:
            await CLOCK.sleep(seconds)
        name = request[2:].decode()
        if name not in states:
            await context.abort(grpc.StatusCode.NOT_FOUND, "unknown service")
        return bytes((0x08, states[name])) if states[name] else b""

    service, _, method = METHOD.strip("/").partition("/")
    server = grpc.aio.server()
    if states:
        handlers = {method: grpc.unary_unary_rpc_method_handler(check)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


def asked(
    states: dict[str, int], service: str = "", *, seconds: float = 0.0, timeout: float = PATIENCE_SECONDS
) -> ProbeAnswer:
    async def main() -> ProbeAnswer:
        async with health(states, seconds=seconds) as port:
            return await ask_grpc("127.0.0.1", port, service, timeout, CLOCK)

    return asyncio.run(main())


def test_a_service_that_says_it_serves_is_well() -> None:
    assert asked({"": 1}) == ProbeAnswer(True, "service healthy")
    assert asked({"": 2, "mine": 1}, "mine") == ProbeAnswer(True, "service healthy")


def test_a_service_that_says_otherwise_is_not() -> None:
    assert asked({"": 2}) == ProbeAnswer(False, 'service unhealthy (responded with "NOT_SERVING")')
    assert asked({"": 0}) == ProbeAnswer(False, 'service unhealthy (responded with "UNKNOWN")')


def test_an_unknown_service_is_a_failure() -> None:
    answer = asked({"": 1}, "other")
    text = "error: health rpc probe failed: rpc error: code = NotFound desc = unknown service"
    assert answer == ProbeAnswer(False, text)


def test_a_server_without_the_health_service_says_so() -> None:
    answer = asked({})
    assert answer.ok is False
    assert answer.text.startswith(
        "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
    )


def test_a_service_that_takes_too_long_is_a_failure() -> None:
    answer = asked({"": 1}, seconds=30, timeout=1.5)
    assert answer == ProbeAnswer(False, "timeout: health rpc did not complete within 1.5s")


def test_a_server_that_is_not_there_is_a_failure() -> None:
    port = free_port()
    answer = asyncio.run(ask_grpc("127.0.0.1", port, "", 0.2, CLOCK))
    text = f'timeout: failed to connect service "127.0.0.1:{port}" within 0.2s: context deadline exceeded'
    assert answer == ProbeAnswer(False, text)


def test_the_messages_are_those_of_the_protocol() -> None:
    assert encode_request("") == b""
    assert encode_request("ab") == b"\x0a\x02ab"
    assert encode_request("x" * 200)[:3] == b"\x0a\xc8\x01"
    assert decode_answer(b"") == 0
    assert decode_answer(b"\x08\x02") == 2
    assert decode_answer(b"\x12\x03abc\x08\x01\x19" + bytes(8)) == 1


# -- commands on the node


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("print('fine', end='')", ProbeAnswer(True, "fine")),
        ("import sys; print('bad', file=sys.stderr, end=''); sys.exit(3)", ProbeAnswer(False, "bad")),
    ],
)
def test_a_command_is_judged_by_its_exit_code(code: str, answer: ProbeAnswer) -> None:
    assert asyncio.run(ask_node((sys.executable, "-c", code), 30.0, CLOCK)) == answer


def test_a_command_that_takes_too_long_is_killed() -> None:
    answer = asyncio.run(ask_node(("sleep", "1000"), 0.1, CLOCK))
    assert answer == ProbeAnswer(False, 'command timed out: "sleep 1000" timed out after 0.1s')


def test_a_command_that_talks_without_end_does_not_hang() -> None:
    answer = asyncio.run(ask_node((sys.executable, "-c", "print('x' * 1000000)"), 30.0, CLOCK))
    assert answer.ok
    assert len(answer.text) == 10 * 1024


def test_a_command_that_is_not_there_could_not_be_asked() -> None:
    answer = asyncio.run(ask_node(("/no/such/program",), 1.0, CLOCK))
    assert answer == ProbeAnswer(None, 'cannot run "/no/such/program": No such file or directory')


# -- gates of the node (KEP-5233)


def test_gates_are_probed_on_the_node_itself() -> None:
    prober = NetworkProber(SimRuntime(VirtualClock()), CLOCK)

    async def main() -> list[ProbeOutcome]:
        async with serving(Web(ok=reply(200, b"yes"))) as port:
            actions = (
                Probe(http_get=HTTPGetAction(path="/ok", port=port)),
                Probe(http_get=HTTPGetAction(path="/no", port=port)),
                Probe(tcp_socket=TCPSocketAction(port=port)),
                Probe(exec=ExecAction(command=["true"])),
                Probe(exec=ExecAction(command=["false"])),
            )
            gates = [GateProbe(each, timeout_ns=int(PATIENCE_SECONDS) * SECOND_NS) for each in actions]
            # Nobody answers there: this one waits as long as it may.
            nobody = Probe(grpc=GRPCAction(port=free_port()))
            gates.append(GateProbe(nobody, timeout_ns=SECOND_NS // 4))
            return [await prober.gate_probe(gate) for gate in gates]

    outcomes = asyncio.run(main())
    assert [each.is_success for each in outcomes] == [True, False, True, True, False, False]
    assert outcomes[1].message == "HTTP probe failed with statuscode: 404"

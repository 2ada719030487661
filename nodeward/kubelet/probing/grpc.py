"""Whether a gRPC service says that it is healthy (`grpc.health.v1.Health/Check`).

The two messages are small enough to be written by hand: a request is field 1 (text), an answer field 1 (a number).
The library is loaded when the first such probe is made: most nodes have none, and it is large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from nodeward.base.duration import SECOND_NS
from nodeward.base.fielderror import quote
from nodeward.kubelet.probing.answer import ProbeAnswer, joined, seconds_text
from nodeward.machinery.clock import Clock
from nodeward.machinery.eager import own_task

if TYPE_CHECKING:
    import grpc.aio

METHOD: Final = "/grpc.health.v1.Health/Check"
SERVING: Final = 1
_STATES: Final = {0: "UNKNOWN", 1: "SERVING", 2: "NOT_SERVING", 3: "SERVICE_UNKNOWN"}


@own_task
async def ask_grpc(host: str, port: int, service: str, timeout: float, clock: Clock) -> ProbeAnswer:
    """Ask for the health of a service; an empty name is the whole server."""
    import grpc.aio

    address, span = joined(host, port), seconds_text(timeout)
    options = (("grpc.primary_user_agent", "kube-probe/1.37"), ("grpc.enable_http_proxy", 0))
    channel = grpc.aio.insecure_channel(address, options)
    began_ns = clock.monotonic_ns()
    try:
        try:
            async with clock.timeout(timeout):
                await channel.channel_ready()
        except TimeoutError:
            text = f"timeout: failed to connect service {quote(address)} within {span}: context deadline exceeded"
            return ProbeAnswer(False, text)
        left = timeout - (clock.monotonic_ns() - began_ns) / SECOND_NS
        try:
            async with clock.timeout(left):
                state = await _check(channel, service)
        except TimeoutError:
            return ProbeAnswer(False, f"timeout: health rpc did not complete within {span}")
        except grpc.aio.AioRpcError as error:
            return ProbeAnswer(False, _told(error))
        if state != SERVING:
            shown = _STATES.get(state, str(state))
            return ProbeAnswer(False, f"service unhealthy (responded with {quote(shown)})")
        return ProbeAnswer(True, "service healthy")
    finally:
        await channel.close(None)


async def _check(channel: grpc.aio.Channel, service: str) -> int:
    call = channel.unary_unary(METHOD, request_serializer=encode_request, response_deserializer=decode_answer)
    state: int = await call(service)
    return state


def _told(error: grpc.aio.AioRpcError) -> str:
    import grpc

    details = error.details() or ""
    if error.code() is grpc.StatusCode.UNIMPLEMENTED:
        return (
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
            + details
        )
    code = "".join(part.capitalize() for part in error.code().name.split("_"))
    return f"error: health rpc probe failed: rpc error: code = {code} desc = {details}"


def encode_request(service: str) -> bytes:
    data = service.encode()
    return b"\x0a" + _varint(len(data)) + data if data else b""


def decode_answer(data: bytes) -> int:
    """The status of an answer; what else is in it is passed over."""
    state, at = 0, 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag & 7
        if kind == 0:
            number, at = _read_varint(data, at)
            state = number if tag >> 3 == 1 else state
        elif kind == 2:
            length, at = _read_varint(data, at)
            at += length
        else:
            at += 8 if kind == 1 else 4
    return state


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(data):
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            break
    return number, at

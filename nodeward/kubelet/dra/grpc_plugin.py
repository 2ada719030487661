"""Drivers over unix sockets: `RegistrationClient` asks a socket of the registry who it is, `GrpcPlugin` calls a driver.

`registered_drivers` makes both; it imports this module when the first socket appears, because gRPC is large. Answers
are decoded here rather than by gRPC, so that one that makes no sense is an error like any other.

What must stay true: every call has a timeout; whatever a driver sends, callers get an answer or a `DriverError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from nodeward.kubelet.dra.claim_info import PreparedDevice
from nodeward.kubelet.dra.driver_plugin import CALL_SECONDS, ClaimReference, DriverError, PrepareAnswer
from nodeward.kubelet.dra.skipping import PREPARE, UNPREPARE
from nodeward.machinery.dra_messages import DRA_SERVICES, REGISTRATION_SERVICE, dra_message
from nodeward.machinery.eager import own_task
from nodeward.machinery.unix_grpc import status_name, unix_channel

_INFO_SECONDS: Final = 1.0
_NOTIFY_SECONDS: Final = 5.0
_UNDECIDED: Final = (grpc.ChannelConnectivity.IDLE, grpc.ChannelConnectivity.CONNECTING)


@dataclass(frozen=True, slots=True)
class PluginInfo:
    """What a socket of the registry says of itself."""

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...]


class _Caller:
    """One channel to one socket."""

    def __init__(self, socket: str) -> None:
        self._channel = unix_channel(socket)

    async def call(self, service: str, method: str, request: Any, answer: str, seconds: float) -> Any:
        """One call; `answer` is the name of the message. Raises `DriverError`."""
        bound = self._channel.unary_unary(
            f"/{service}/{method}", request_serializer=bytes, response_deserializer=bytes
        )
        try:
            sent: bytes = await bound(request.SerializeToString(), timeout=seconds)
        except grpc.aio.AioRpcError as error:
            raise DriverError(status_name(error.code()), error.details() or error.code().name) from None
        try:
            return dra_message(answer).FromString(sent)
        except DecodeError as error:
            raise DriverError(
                "Internal", f"the driver's answer to {method} makes no sense: {error}"
            ) from None

    def is_connected(self) -> bool | None:
        """Tell whether somebody listens; None while that is being found out."""
        state = self._channel.get_state(try_to_connect=True)
        if state is grpc.ChannelConnectivity.READY:
            return True
        return None if state in _UNDECIDED else False

    async def aclose(self) -> None:
        await self._channel.close(None)


class RegistrationClient(_Caller):
    """A socket in the registry."""

    async def get_info(self) -> PluginInfo:
        """Ask who is there. Raises `DriverError`."""
        request = dra_message("InfoRequest")()
        info = await self.call(REGISTRATION_SERVICE, "GetInfo", request, "PluginInfo", _INFO_SECONDS)
        return PluginInfo(info.type, info.name, info.endpoint, tuple(info.supported_versions))

    async def notify(self, error: str) -> None:
        """Tell a plugin that it is registered (""), or why not. Raises `DriverError`."""
        status = dra_message("RegistrationStatus")(plugin_registered=not error, error=error)
        await self.call(
            REGISTRATION_SERVICE,
            "NotifyRegistrationStatus",
            status,
            "RegistrationStatusResponse",
            _NOTIFY_SECONDS,
        )


class GrpcPlugin(_Caller):
    """A driver that registered; `version` is the name of the service it offers, like v1.DRAPlugin."""

    def __init__(self, endpoint: str, version: str) -> None:
        super().__init__(endpoint)
        self.endpoint: Final = endpoint
        self.service: Final = DRA_SERVICES[version]

    @own_task
    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PrepareAnswer]:
        response = await self._claims(PREPARE, claims)
        return {
            entry.key: PrepareAnswer(tuple(map(_device, entry.value.devices)), entry.value.error)
            for entry in response.claims
        }

    @own_task
    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        response = await self._claims(UNPREPARE, claims)
        return {entry.key: entry.value.error for entry in response.claims}

    async def _claims(self, method: str, claims: Sequence[ClaimReference]) -> Any:
        request = dra_message(f"{method}Request")()
        for each in claims:
            request.claims.add(namespace=each.namespace, uid=each.uid, name=each.name)
        return await self.call(self.service, method, request, f"{method}Response", CALL_SECONDS)


def _device(device: Any) -> PreparedDevice:
    return PreparedDevice(
        device.pool_name,
        device.device_name,
        device.share_id if device.HasField("share_id") else None,
        tuple(device.request_names),
        tuple(device.cdi_device_ids),
    )

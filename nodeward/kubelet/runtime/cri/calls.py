"""Calling a container runtime over its unix socket: one channel, one method a call.

In: the name of a call and its fields. Out: the answer, or a `CriError` with the runtime's own words. The channel
connects again by itself; nothing is repeated here, because only the caller knows whether that is harmless.
"""

from __future__ import annotations

from typing import Any, Final

import grpc
import grpc.aio

from nodeward.base.errors import WorldError
from nodeward.kubelet.runtime.cri.messages import message
from nodeward.machinery.unix_grpc import status_name, unix_channel

_IMAGE_CALLS: Final = frozenset({"ListImages", "ImageStatus", "PullImage"})
_CALLS: Final = (
    "Version", "Status", "RuntimeConfig",
    "RunPodSandbox", "StopPodSandbox", "RemovePodSandbox", "PodSandboxStatus", "ListPodSandbox",
    "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "ListContainers", "ContainerStatus",
    "ContainerStats", "UpdateContainerResources", "ExecSync", "Exec",
    "ListImages", "ImageStatus", "PullImage",
)  # fmt: skip

#: How long a call may take unless the caller says otherwise; a runtime that is busy answers late rather than never.
CALL_SECONDS: Final = 120.0
#: A sandbox waits for its network.
SANDBOX_SECONDS: Final = 240.0
#: Big images over slow lines.
PULL_SECONDS: Final = 3600.0


class CriError(WorldError):
    """The runtime refused, or did not answer. `details` is what it said."""

    def __init__(self, call: str, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"rpc error: code = {status_name(code)} desc = {details}")
        self.call = call
        self.code = code
        self.details = details

    @property
    def is_not_found(self) -> bool:
        return self.code is grpc.StatusCode.NOT_FOUND

    @property
    def is_late(self) -> bool:
        return self.code is grpc.StatusCode.DEADLINE_EXCEEDED

    @property
    def is_absent(self) -> bool:
        """Nobody listens; when somebody does again, the same call may succeed."""
        return self.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED)


class Calls:
    """A runtime to call."""

    def __init__(self, socket: str) -> None:
        self._channel = unix_channel(socket)
        self._methods: dict[str, Any] = {}
        for name in _CALLS:
            service = "ImageService" if name in _IMAGE_CALLS else "RuntimeService"
            self._methods[name] = self._channel.unary_unary(
                f"/runtime.v1.{service}/{name}",
                request_serializer=message(f"{name}Request").SerializeToString,
                response_deserializer=message(f"{name}Response").FromString,
            )

    async def __call__(self, name: str, *, seconds: float = CALL_SECONDS, **fields: Any) -> Any:
        """One call. Raises `CriError`."""
        try:
            return await self._methods[name](message(f"{name}Request")(**fields), timeout=seconds)
        except grpc.aio.AioRpcError as error:
            raise CriError(name, error.code(), error.details() or error.code().name) from None

    async def close(self) -> None:
        await self._channel.close(None)

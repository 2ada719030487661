"""The node part of a driver: two unix sockets, one by which the kubelet finds it and one by which it is called.

`Driver` makes one. In: the claims of a call, one by one, to `prepare` and `unprepare`. Out: devices with their CDI ids,
or an error for that claim only (`TELLABLE`).

What must stay true: the sockets are where a kubelet looks for them, and the one that registers is there last, when the
other can be called; a handler that raises answers for its claim and costs no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import grpc
import grpc.aio

from nodeward.base.errors import ConfigError, NodewardError
from nodeward.machinery.dra_messages import (
    DRA_PLUGIN_TYPE,
    DRA_SERVICES,
    REGISTRATION_SERVICE,
    dra_message,
)

LOG: Final = logging.getLogger(__name__)

#: Longer paths of sockets are refused by Linux.
_LONGEST_PATH: Final = 107
#: What a driver may raise to answer for one claim; anything else is a mistake, and fails the whole call.
TELLABLE: Final = (NodewardError, OSError, RuntimeError, ValueError, LookupError)


class DriverClaim(NamedTuple):
    """A claim to be prepared or unprepared; the driver reads the rest from the API."""

    namespace: str
    uid: str
    name: str


@dataclass(frozen=True, slots=True)
class ClaimDevice:
    """One device of a prepared claim."""

    pool: str
    device: str
    cdi_ids: tuple[str, ...] = ()
    #: the requests of the claim it is for; () is all of them
    requests: tuple[str, ...] = ()
    share_id: str | None = None


Prepare = Callable[[DriverClaim], Awaitable[Sequence[ClaimDevice]]]
Unprepare = Callable[[DriverClaim], Awaitable[None]]


class NodeServer:
    """The sockets of one driver below `kubelet_root`, the kubelet's directory.

    `versions` are the services it offers, the best one first. `instance` tells two runs of a driver apart that follow
    each other without a gap.
    """

    def __init__(
        self,
        name: str,
        kubelet_root: Path,
        prepare: Prepare,
        unprepare: Unprepare,
        versions: Sequence[str] = tuple(DRA_SERVICES),
        instance: str = "",
    ) -> None:
        self.name: Final = name
        tail = f"-{instance}" if instance else ""
        self.registration_socket: Final = kubelet_root / "plugins_registry" / f"{name}{tail}-reg.sock"
        self.endpoint: Final = kubelet_root / "plugins" / name / f"dra{tail}.sock"
        self._versions = tuple(versions)
        self._prepare, self._unprepare = prepare, unprepare
        self._servers: list[grpc.aio.Server] = []
        #: set once the kubelet has said that the driver is registered; its error, if it has refused it
        self.registered: Final = asyncio.Event()
        self.refusal = ""
        for path in (self.registration_socket, self.endpoint):
            if len(str(path)) > _LONGEST_PATH:
                raise ConfigError(
                    f"{path}: a socket's path has at most {_LONGEST_PATH} characters; choose a shorter directory"
                )

    async def start(self) -> None:
        """Serve; the kubelet finds the driver within a second."""
        calls = {
            "NodePrepareResources": self._handler("NodePrepareResources", self._prepare_all),
            "NodeUnprepareResources": self._handler("NodeUnprepareResources", self._unprepare_all),
        }
        await self._serve(self.endpoint, {DRA_SERVICES[each]: calls for each in self._versions})
        registration = {
            "GetInfo": _method(self._get_info, "InfoRequest"),
            "NotifyRegistrationStatus": _method(self._notified, "RegistrationStatus"),
        }
        await self._serve(self.registration_socket, {REGISTRATION_SERVICE: registration})

    async def stop(self) -> None:
        """Leave the node: the kubelet sees the sockets go."""
        for path in (self.registration_socket, self.endpoint):
            _remove(path)
        for server in self._servers:
            await server.stop(grace=None)
        self._servers.clear()

    async def _serve(self, path: Path, services: dict[str, dict[str, Any]]) -> None:
        _make_place(path)
        server = grpc.aio.server()
        server.add_generic_rpc_handlers(
            tuple(grpc.method_handlers_generic_handler(name, methods) for name, methods in services.items())
        )
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        self._servers.append(server)

    def _handler(self, method: str, answer: Callable[[Sequence[DriverClaim]], Awaitable[Any]]) -> Any:
        async def handle(request: Any, context: object) -> Any:
            return await answer([DriverClaim(each.namespace, each.uid, each.name) for each in request.claims])

        return _method(handle, f"{method}Request")

    # -- registration

    async def _get_info(self, request: Any, context: object) -> Any:
        return dra_message("PluginInfo")(
            type=DRA_PLUGIN_TYPE,
            name=self.name,
            endpoint=str(self.endpoint),
            supported_versions=self._versions,
        )

    async def _notified(self, request: Any, context: object) -> Any:
        self.refusal = "" if request.plugin_registered else request.error or "refused"
        if request.plugin_registered:
            LOG.info("driver %s is registered with the kubelet", self.name)
            self.registered.set()
        else:
            LOG.error("driver %s is not registered: %s", self.name, self.refusal)
        return dra_message("RegistrationStatusResponse")()

    # -- claims

    async def _prepare_all(self, claims: Sequence[DriverClaim]) -> Any:
        response = dra_message("NodePrepareResourcesResponse")()
        for claim in claims:
            entry = response.claims.add(key=claim.uid)
            entry.value.SetInParent()
            try:
                devices = await self._prepare(claim)
            except TELLABLE as error:
                entry.value.error = _told("prepare", claim, error)
                continue
            for each in devices:
                device = entry.value.devices.add(
                    pool_name=each.pool,
                    device_name=each.device,
                    request_names=each.requests,
                    cdi_device_ids=each.cdi_ids,
                )
                if each.share_id is not None:
                    device.share_id = each.share_id
        return response

    async def _unprepare_all(self, claims: Sequence[DriverClaim]) -> Any:
        response = dra_message("NodeUnprepareResourcesResponse")()
        for claim in claims:
            entry = response.claims.add(key=claim.uid)
            entry.value.SetInParent()
            try:
                await self._unprepare(claim)
            except TELLABLE as error:
                entry.value.error = _told("unprepare", claim, error)
        return response


def _make_place(path: Path) -> None:
    """Make the directory of a socket, and remove the socket of a run that was killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _told(doing: str, claim: DriverClaim, error: Exception) -> str:
    LOG.warning("%s of claim %s/%s failed", doing, claim.namespace, claim.name, exc_info=error)
    return str(error) or type(error).__name__


def _method(handle: Callable[[Any, Any], Awaitable[Any]], request: str) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        handle,
        request_deserializer=dra_message(request).FromString,
        response_serializer=lambda answer: answer.SerializeToString(),
    )

"""What the DRA manager asks of drivers on a node: prepare claims and unprepare them.

`grpc_plugin.GrpcPlugin` is a driver that registered over a unix socket, `described_drivers.DescribedDriver` one of a
simulated node; `NodeDrivers` finds them by name. The suite in tests/contracts/drivers runs on both.

What must stay true: both calls are idempotent, and may be repeated after any failure; an answer has an entry for
every claim that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from nodeward.base.errors import WorldError
from nodeward.kubelet.dra.claim_info import PreparedDevice

OK: Final = "OK"
#: How long a driver may take for a call.
CALL_SECONDS: Final = 45.0


#: Who cannot be reached for so long does not come back: its devices are not offered any more.
GONE_SECONDS: Final = 30.0


class DriverError(WorldError):
    """A call to a driver failed as a whole; `code` is gRPC's name of the status."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(f"rpc error: code = {code} desc = {details}")
        self.code: Final = code


class ClaimReference(NamedTuple):
    """A claim as drivers are told of it."""

    namespace: str
    uid: str
    name: str


@dataclass(frozen=True, slots=True)
class PrepareAnswer:
    """What a driver says of one claim; with an error there are no devices."""

    devices: tuple[PreparedDevice, ...] = ()
    error: str = ""


class DriverPlugin(Protocol):
    """The part of a driver on one node."""

    @property
    def service(self) -> str:
        """The gRPC service that is called."""
        ...

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PrepareAnswer]:
        """Prepare claims; the answer is by uid. Raises `DriverError`."""
        ...

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        """Unprepare claims; the answer is an error or "" by uid. Raises `DriverError`."""
        ...


class NodeDrivers(Protocol):
    """The drivers of one node."""

    def start(self, registered: Callable[[str], None], gone: Callable[[str], None]) -> None:
        """Look for drivers from now on, and call `registered` with the name of each that can be called.

        `gone` is called with the name of one that could not be reached for `GONE_SECONDS`.
        """
        ...

    def find(self, name: str) -> DriverPlugin | None:
        """Return the driver of that name; None if it is not registered."""
        ...

    def stop(self) -> None:
        """The kubelet stops: look for no more drivers."""
        ...

    async def aclose(self) -> None:
        """Close all connections; drivers go on."""
        ...

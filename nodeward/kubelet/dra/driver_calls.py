"""Calls of drivers, their answers checked and their time measured.

The DRA manager hands in the claims of one driver; what comes back is complete, or a `DRAError` with Kubernetes' text.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Final, TypeVar

from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.dra.claim_info import PreparedDevice
from nodeward.kubelet.dra.claim_reading import DRAError
from nodeward.kubelet.dra.dra_metrics import DRAMetrics
from nodeward.kubelet.dra.driver_plugin import OK, ClaimReference, DriverError, DriverPlugin, NodeDrivers
from nodeward.kubelet.dra.skipping import PREPARE, UNPREPARE
from nodeward.machinery.clock import Clock

_T = TypeVar("_T")
_CANCELED: Final = "Canceled"


class DriverCalls:
    """Calls the drivers of one node."""

    __slots__ = ("_clock", "_drivers", "_metrics")

    def __init__(self, drivers: NodeDrivers, clock: Clock, metrics: DRAMetrics) -> None:
        self._drivers, self._clock, self._metrics = drivers, clock, metrics

    async def prepare(
        self, driver: str, claims: Mapping[str, ClaimReference]
    ) -> dict[str, tuple[PreparedDevice, ...]]:
        """Have a driver prepare claims (by uid); return the devices of each. Raises `DRAError`."""
        plugin = self._find(driver)
        answers = await self._measured(driver, plugin, PREPARE, plugin.prepare([*claims.values()]))
        _check(PREPARE, claims, {uid: answer.error for uid, answer in answers.items()})
        return {uid: answer.devices for uid, answer in answers.items()}

    async def unprepare(self, driver: str, claims: Mapping[str, ClaimReference]) -> None:
        """Have a driver unprepare claims (by uid). Raises `DRAError`."""
        plugin = self._find(driver)
        errors = await self._measured(driver, plugin, UNPREPARE, plugin.unprepare([*claims.values()]))
        _check(UNPREPARE, claims, errors)

    def _find(self, driver: str) -> DriverPlugin:
        plugin = self._drivers.find(driver)
        if plugin is None:
            raise DRAError(f"DRA driver {driver} is not registered")
        return plugin

    async def _measured(self, driver: str, plugin: DriverPlugin, method: str, call: Awaitable[_T]) -> _T:
        started_ns, code = self._clock.monotonic_ns(), _CANCELED
        try:
            answer = await call
            code = OK
            return answer
        except DriverError as error:
            code = error.code
            raise DRAError(f"{method}: {error}") from error
        finally:
            seconds = (self._clock.monotonic_ns() - started_ns) / SECOND_NS
            self._metrics.called(driver, f"/{plugin.service}/{method}", code, seconds)


def _check(method: str, claims: Mapping[str, ClaimReference], errors: Mapping[str, str]) -> None:
    """Raise `DRAError` unless the driver succeeded for all claims, and spoke of no others."""
    for uid, error in sorted(errors.items()):
        if uid not in claims:
            raise DRAError(f"{method} returned result for unknown claim UID {uid}")
        if error:
            raise DRAError(f"{method} failed for ResourceClaim {claims[uid].name}: {error}")
    missing = len(claims) - len(errors)
    if missing:
        raise DRAError(f"{method} skipped {missing} ResourceClaims")

"""One suite over drivers of simulated nodes and drivers that are called over gRPC, with either service."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from nodeward.dra.node_server import ClaimDevice, DriverClaim, NodeServer
from nodeward.kubelet.dra.claim_info import PreparedDevice
from nodeward.kubelet.dra.described_drivers import ALWAYS, DescribedDriver, DriverDescription
from nodeward.kubelet.dra.driver_plugin import ClaimReference, DriverPlugin, PrepareAnswer
from nodeward.kubelet.dra.grpc_plugin import GrpcPlugin
from nodeward.machinery.clock import RealClock

NAME = "gpu.example.com"
A, B = ClaimReference("default", "uid-a", "a"), ClaimReference("default", "uid-b", "b")


@asynccontextmanager
async def described(*, fails: bool) -> AsyncIterator[DriverPlugin]:
    failing = ALWAYS if fails else 0
    yield DescribedDriver(
        DriverDescription(name=NAME, failing_prepares=failing, failing_unprepares=failing), RealClock()
    )


async def _prepare(claim: DriverClaim) -> list[ClaimDevice]:
    return [ClaimDevice("", "", (f"{NAME}/device={claim.uid}",))]


async def _unprepare(claim: DriverClaim) -> None:
    pass


async def _fail(claim: DriverClaim) -> list[ClaimDevice]:
    raise RuntimeError("the simulated driver fails")


async def _fail_to_end(claim: DriverClaim) -> None:
    raise RuntimeError("the simulated driver fails")


def over_grpc(version: str) -> Callable[..., AbstractAsyncContextManager[DriverPlugin]]:
    @asynccontextmanager
    async def ground(*, fails: bool) -> AsyncIterator[DriverPlugin]:
        with tempfile.TemporaryDirectory() as root:
            server = NodeServer(
                NAME,
                Path(root),
                _fail if fails else _prepare,
                _fail_to_end if fails else _unprepare,
                [version],
            )
            await server.start()
            plugin = GrpcPlugin(str(server.endpoint), version)
            try:
                yield plugin
            finally:
                await plugin.aclose()
                await server.stop()

    return ground


GROUNDS: dict[str, Callable[..., AbstractAsyncContextManager[DriverPlugin]]] = {
    "described": described,
    "v1": over_grpc("v1.DRAPlugin"),
    "v1beta1": over_grpc("v1beta1.DRAPlugin"),
}


@pytest.fixture(params=GROUNDS)
def on_driver(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Runs a test on a driver of each kind, which works or fails."""

    def run(act: Callable[[DriverPlugin], Awaitable[None]], *, fails: bool = False) -> None:
        async def main() -> None:
            async with GROUNDS[request.param](fails=fails) as driver:
                await act(driver)

        asyncio.run(main())

    return run


def prepared(claim: ClaimReference) -> PrepareAnswer:
    return PrepareAnswer((PreparedDevice("", "", cdi_ids=(f"{NAME}/device={claim.uid}",)),))


def test_every_claim_gets_its_own_devices(on_driver: Callable[..., None]) -> None:
    async def act(driver: DriverPlugin) -> None:
        assert await driver.prepare([A, B]) == {A.uid: prepared(A), B.uid: prepared(B)}

    on_driver(act)


def test_both_calls_may_be_repeated(on_driver: Callable[..., None]) -> None:
    async def act(driver: DriverPlugin) -> None:
        assert await driver.prepare([A]) == await driver.prepare([A]) == {A.uid: prepared(A)}
        assert await driver.unprepare([A]) == await driver.unprepare([A]) == {A.uid: ""}

    on_driver(act)


def test_a_claim_that_was_never_prepared_can_be_unprepared(on_driver: Callable[..., None]) -> None:
    async def act(driver: DriverPlugin) -> None:
        assert await driver.unprepare([B]) == {B.uid: ""}

    on_driver(act)


def test_a_failure_is_told_for_the_claim(on_driver: Callable[..., None]) -> None:
    async def act(driver: DriverPlugin) -> None:
        text = "the simulated driver fails"
        assert await driver.prepare([A]) == {A.uid: PrepareAnswer(error=text)}
        assert await driver.unprepare([A]) == {A.uid: text}

    on_driver(act, fails=True)


def test_no_claims_are_no_work(on_driver: Callable[..., None]) -> None:
    async def act(driver: DriverPlugin) -> None:
        assert await driver.prepare([]) == {}
        assert driver.service.endswith(".DRAPlugin")

    on_driver(act)

"""Drivers register over sockets: who is taken, who is refused and told why, and who is gone."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from nodeward.base.duration import SECOND_NS
from nodeward.dra.node_server import ClaimDevice, DriverClaim, NodeServer
from nodeward.kubelet.dra.driver_plugin import ClaimReference, DriverError
from nodeward.kubelet.dra.registered_drivers import REGISTRY, RegisteredDrivers
from nodeward.machinery.clock import RealClock
from tests.patience import until

NAME = "gpu.example.com"
CLAIM = ClaimReference("default", "uid-a", "a")


@dataclass
class Registry:
    """A kubelet's directory and who registered there."""

    root: Path
    drivers: RegisteredDrivers
    heard: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def registered(self, name: str) -> None:
        self.heard.append(name)

    async def until(self, is_so: Callable[[], bool]) -> None:
        async def ask() -> bool:
            return is_so()

        await until(RealClock(), ask, bool, "the registry")


@asynccontextmanager
async def registry() -> AsyncIterator[Registry]:
    with tempfile.TemporaryDirectory() as root:
        drivers = RegisteredDrivers(Path(root), RealClock())
        made = Registry(Path(root), drivers)
        drivers.start(made.registered, made.gone.append)
        try:
            yield made
        finally:
            await drivers.aclose()


async def _prepare(claim: DriverClaim) -> Sequence[ClaimDevice]:
    return [ClaimDevice("p", "d", (f"x/y={claim.uid}",), share_id="s")]


async def _unprepare(claim: DriverClaim) -> None:
    pass


def server(root: Path, *versions: str, name: str = NAME) -> NodeServer:
    return NodeServer(name, root, _prepare, _unprepare, versions or ("v1.DRAPlugin",))


def play(act: Callable[[Registry], Awaitable[None]]) -> None:
    async def main() -> None:
        async with registry() as made:
            await act(made)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("versions", "service"),
    [
        (["v1.DRAPlugin", "v1beta1.DRAPlugin"], "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"),
        (["v1beta1.DRAPlugin", "v1.DRAPlugin"], "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin"),
    ],
)
def test_the_first_service_of_the_drivers_list_is_called(versions: list[str], service: str) -> None:
    async def act(made: Registry) -> None:
        driver = server(made.root, *versions)
        await driver.start()
        await made.until(lambda: NAME in made.heard)
        await driver.registered.wait()
        plugin = made.drivers.find(NAME)
        assert plugin is not None
        assert plugin.service == service
        answer = await plugin.prepare([CLAIM])
        [device] = answer[CLAIM.uid].devices
        assert (device.pool, device.cdi_ids, device.share_id) == ("p", ("x/y=uid-a",), "s")
        await driver.stop()
        await made.until(lambda: made.drivers.find(NAME) is None)

    play(act)


def test_a_driver_that_was_killed_and_comes_back_is_registered_anew() -> None:
    async def act(made: Registry) -> None:
        for count in (1, 2):
            driver = server(made.root)
            await driver.start()  # which finds the sockets of the run before
            await made.until(lambda count=count: made.heard == [NAME] * count)  # type: ignore[misc]
            plugin = made.drivers.find(NAME)
            assert plugin is not None
            assert CLAIM.uid in await plugin.prepare([CLAIM])
            for each in driver._servers:
                await each.stop(None)

    play(act)


def test_of_two_plugins_of_a_driver_the_one_that_came_last_is_called() -> None:
    async def act(made: Registry) -> None:
        first = server(made.root)
        second = NodeServer(NAME, made.root, _prepare, _unprepare, ["v1beta1.DRAPlugin"], "second")
        await first.start()
        await made.until(lambda: made.heard == [NAME])
        await second.start()
        await made.until(lambda: made.heard == [NAME] * 2)
        plugin = made.drivers.find(NAME)
        assert plugin is not None
        assert "v1beta1" in plugin.service
        await second.stop()
        await made.until(lambda: "v1beta1" not in getattr(made.drivers.find(NAME), "service", ""))
        await first.stop()

    play(act)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"supported_versions": []},
            "RegisterPlugin error -- plugin validation failed with err: invalid supported gRPC versions of DRA driver "
            "plugin gpu.example.com at endpoint {endpoint}: empty list of supported gRPC services (aka supported "
            "versions)",
        ),
        (
            {"supported_versions": ["v9.DRAPlugin", "x"]},
            "RegisterPlugin error -- plugin validation failed with err: invalid supported gRPC versions of DRA driver "
            'plugin gpu.example.com at endpoint {endpoint}: none of services supported by the plugin (["v9.DRAPlugin" '
            '"x"]) are supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])',
        ),
        (
            {"type": "CSIPlugin"},
            "RegisterPlugin error -- no handler registered for plugin type: CSIPlugin at socket {socket}",
        ),
    ],
)
def test_a_plugin_that_cannot_be_called_is_told_why(change: dict[str, Any], text: str) -> None:
    async def act(made: Registry) -> None:
        driver = Odd(made.root, change)
        await driver.start()
        await made.until(lambda: bool(driver.refusal))
        assert driver.refusal == text.format(endpoint=driver.endpoint, socket=driver.registration_socket)
        assert made.drivers.find(NAME) is None
        assert made.heard == []
        await driver.stop()

    play(act)


class Odd(NodeServer):
    """Says something else of itself."""

    def __init__(self, root: Path, change: dict[str, Any]) -> None:
        super().__init__(NAME, root, _prepare, _unprepare)
        self._change = change

    async def _get_info(self, request: Any, context: object) -> Any:
        info = await super()._get_info(request, context)
        for name, value in self._change.items():
            if isinstance(value, list):
                del info.supported_versions[:]
                info.supported_versions.extend(value)
            else:
                setattr(info, name, value)
        return info


def test_sockets_nobody_serves_and_files_that_are_no_sockets_harm_nobody() -> None:
    async def act(made: Registry) -> None:
        directory = made.root / REGISTRY
        (directory / "readme").write_text("no socket")
        (directory / ".hidden").mkdir()
        dead = socket.socket(socket.AF_UNIX)
        dead.bind(str(directory / "dead-reg.sock"))  # nobody listens
        driver = server(made.root)
        await driver.start()
        await made.until(lambda: made.heard == [NAME])
        dead.close()
        await driver.stop()

    play(act)


def test_a_driver_that_answers_nonsense_is_an_error() -> None:
    async def act(made: Registry) -> None:
        driver = server(made.root)

        async def nonsense(request: bytes, context: object) -> bytes:
            return b"\xff\xff\xff"

        await driver.start()
        await driver._servers.pop(0).stop(None)
        driver.endpoint.unlink(missing_ok=True)
        odd = grpc.aio.server()
        handlers = {"NodePrepareResources": grpc.unary_unary_rpc_method_handler(nonsense)}
        service = "k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin"
        odd.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        odd.add_insecure_port(f"unix:{driver.endpoint}")
        await odd.start()
        await made.until(lambda: made.heard == [NAME])
        plugin = made.drivers.find(NAME)
        assert plugin is not None
        with pytest.raises(
            DriverError, match="code = Internal desc = the driver's answer to NodePrepareResources"
        ):
            await plugin.prepare([CLAIM])
        with pytest.raises(DriverError, match="code = Unimplemented"):
            await plugin.unprepare([CLAIM])
        await odd.stop(None)
        with pytest.raises(DriverError, match="code = Unavailable"):
            await plugin.prepare([CLAIM])
        await driver.stop()

    play(act)


class Ahead(RealClock):
    """The real clock, which a test can put forward."""

    ahead_ns = 0

    def monotonic_ns(self) -> int:
        return super().monotonic_ns() + self.ahead_ns


@pytest.mark.parametrize("how", ["stopped", "killed", "comes back"])
def test_a_driver_that_cannot_be_reached_for_half_a_minute_is_told_of(how: str) -> None:
    async def main() -> None:
        clock = Ahead()
        with tempfile.TemporaryDirectory() as root:
            made = Registry(Path(root), RegisteredDrivers(Path(root), clock))
            made.drivers.start(made.registered, made.gone.append)
            driver = server(made.root)
            await driver.start()
            await made.until(lambda: made.heard == [NAME])
            if how == "stopped":
                await driver.stop()
            else:
                for each in driver._servers:  # the sockets stay
                    await each.stop(None)
            await made.until(lambda: made.drivers._lost_ns.get(NAME, 0) > 0)
            if how == "comes back":
                again = server(made.root)
                await again.start()
                await made.until(lambda: made.heard == [NAME, NAME])
                clock.ahead_ns = 31 * SECOND_NS
                await made.until(lambda: made.drivers._lost_ns == {NAME: 0})
                assert made.gone == []
                await again.stop()
            else:
                clock.ahead_ns = 31 * SECOND_NS
                await made.until(lambda: made.gone == [NAME])
            await made.drivers.aclose()

    asyncio.run(main())

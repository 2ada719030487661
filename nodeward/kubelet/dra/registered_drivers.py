"""The drivers of a real node: whoever puts a socket into `plugins_registry` below the kubelet's directory.

The kubelet looks there every second, asks a new socket who it is (`GetInfo`), takes the first service of the driver's
list that it knows, and tells the driver what came of it. A socket that is gone, or was made anew, is a driver that is
gone. Texts are those of Kubernetes. `LocalMachine` makes one for its node.

What must stay true: a driver is called only after it heard that it is registered; of several plugins of one driver the
one that registered last is called; nothing a socket does stops the kubelet or delays other sockets.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from nodeward.base.duration import SECOND_NS, quote
from nodeward.base.errors import WorldError
from nodeward.kubelet.dra.driver_plugin import GONE_SECONDS, DriverError, DriverPlugin
from nodeward.machinery.backoff import Curve
from nodeward.machinery.clock import Clock

if TYPE_CHECKING:
    from nodeward.kubelet.dra.grpc_plugin import GrpcPlugin, PluginInfo, RegistrationClient

LOG: Final = logging.getLogger(__name__)

REGISTRY: Final = "plugins_registry"
_EVERY_SECONDS: Final = 1.0
_RETRY: Final = Curve(initial=0.5, cap=120.0)
#: Sockets that are looked at, and directories below the registry; more are somebody's mistake.
_MOST_SOCKETS: Final = 256
_DEEPEST: Final = 4
_LONGEST_NAME: Final = 253

#: What tells a socket from one that was made anew under its name.
_Identity = tuple[int, int]


class NotRegistered(WorldError):
    """A plugin cannot be registered; it is told the text."""


@dataclass(slots=True)
class _Socket:
    """A socket in the registry."""

    identity: _Identity
    task: asyncio.Task[None] | None = None
    failures: int = 0
    retry_ns: int = 0
    driver: str = ""
    plugin: GrpcPlugin | None = None


class RegisteredDrivers:
    """The drivers that register below `root`, the kubelet's directory."""

    def __init__(self, root: Path, clock: Clock) -> None:
        self._registry = root / REGISTRY
        self._clock = clock
        self._sockets: dict[str, _Socket] = {}
        #: by name of the driver; the last one is called
        self._plugins: dict[str, list[GrpcPlugin]] = {}
        self._registered: Callable[[str], None] = lambda _: None
        self._gone: Callable[[str], None] = lambda _: None
        #: drivers that registered, and since when they cannot be reached; 0: they can (monotonic)
        self._lost_ns: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None
        #: tasks that end by themselves: registrations that were called off, connections being closed
        self._closing: set[asyncio.Task[None]] = set()

    def start(self, registered: Callable[[str], None], gone: Callable[[str], None]) -> None:
        self._registered, self._gone = registered, gone
        self._registry.mkdir(parents=True, exist_ok=True, mode=0o755)
        for driver in self._plugins:
            registered(driver)
        if self._task is None:
            self._task = asyncio.create_task(self._watch(), name="DRA plugin registry")

    def find(self, name: str) -> DriverPlugin | None:
        found = self._plugins.get(name)
        return found[-1] if found else None

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def aclose(self) -> None:
        self.stop()
        for path in [*self._sockets]:
            self._drop(path)
        await asyncio.gather(*self._closing, return_exceptions=True)

    # -- the registry

    async def _watch(self) -> None:
        while True:
            try:
                self._look()
            except OSError as error:
                LOG.warning("%s: %s", self._registry, error)
            await self._clock.sleep(_EVERY_SECONDS)

    def _look(self) -> None:
        """Compare the sockets there are with those that are known."""
        found = dict(_sockets(str(self._registry)))
        for path, known in [*self._sockets.items()]:
            if found.get(path) != known.identity:
                self._drop(path)
        now_ns = self._clock.monotonic_ns()
        for path, identity in found.items():
            known = self._sockets.setdefault(path, _Socket(identity))
            if known.plugin is None and known.task is None and now_ns >= known.retry_ns:
                known.task = asyncio.create_task(self._register(path, known), name=f"register {path}")
        self._notice_lost(now_ns)

    def _notice_lost(self, now_ns: int) -> None:
        """Tell of drivers that nobody could reach for too long."""
        for driver, since_ns in [*self._lost_ns.items()]:
            states = [each.is_connected() for each in self._plugins.get(driver, ())]
            if True in states:
                self._lost_ns[driver] = 0
            elif not since_ns:
                self._lost_ns[driver] = 0 if None in states else now_ns
            elif now_ns - since_ns >= GONE_SECONDS * SECOND_NS:
                del self._lost_ns[driver]
                LOG.warning("DRA driver %s could not be reached for %.0f s", driver, GONE_SECONDS)
                self._gone(driver)

    def _drop(self, path: str) -> None:
        """A socket is gone: so is its driver."""
        gone = self._sockets.pop(path)
        if gone.task is not None:
            gone.task.cancel()
            self._end(gone.task)
        if gone.plugin is not None:
            LOG.info("DRA driver %s at %s is gone", gone.driver, path)
            self._remove(gone.driver, gone.plugin)

    def _remove(self, driver: str, plugin: GrpcPlugin) -> None:
        left = [each for each in self._plugins.get(driver, ()) if each is not plugin]
        if left:
            self._plugins[driver] = left
        else:
            self._plugins.pop(driver, None)
        self._end(asyncio.create_task(plugin.aclose()))

    def _end(self, task: asyncio.Task[None]) -> None:
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    # -- one socket

    async def _register(self, path: str, socket: _Socket) -> None:
        from nodeward.kubelet.dra.grpc_plugin import RegistrationClient

        client = RegistrationClient(path)
        try:
            await self._introduce(client, path, socket)
        except (NotRegistered, DriverError, OSError) as error:
            LOG.warning("RegisterPlugin error -- %s", error)
            wait = _RETRY.wait(socket.failures)
            socket.failures += 1
            socket.retry_ns = self._clock.monotonic_ns() + int(wait * SECOND_NS)
        finally:
            socket.task = None
            await client.aclose()

    async def _introduce(self, client: RegistrationClient, path: str, socket: _Socket) -> None:
        from nodeward.kubelet.dra.grpc_plugin import GrpcPlugin

        try:
            info = await client.get_info()
        except DriverError as error:
            text = f"failed to get plugin info using RPC GetInfo at socket {path}, err: {error}"
            raise NotRegistered(text) from error
        endpoint = info.endpoint or path
        try:
            version = self._check(info, endpoint, path)
        except NotRegistered as error:
            await client.notify(f"RegisterPlugin error -- {error}")
            raise
        plugin = GrpcPlugin(endpoint, version)
        self._plugins.setdefault(info.name, []).append(plugin)
        is_told = False
        try:
            await client.notify("")
            is_told = True
        finally:
            if not is_told:
                self._remove(info.name, plugin)
        socket.driver, socket.plugin, socket.failures = info.name, plugin, 0
        self._lost_ns[info.name] = 0
        LOG.info("DRA driver %s at %s is registered with service %s", info.name, endpoint, version)
        self._registered(info.name)

    def _check(self, info: PluginInfo, endpoint: str, path: str) -> str:
        """Return the service to call. Raises `NotRegistered`."""
        from nodeward.machinery.dra_messages import DRA_PLUGIN_TYPE, DRA_SERVICES

        if info.type != DRA_PLUGIN_TYPE:
            raise NotRegistered(f"no handler registered for plugin type: {info.type} at socket {path}")
        fault = ""
        if not 0 < len(info.name) <= _LONGEST_NAME:
            fault = f"the name of a driver has 1 to {_LONGEST_NAME} characters, this one has {len(info.name)}"
        elif not info.versions:
            fault = "empty list of supported gRPC services (aka supported versions)"
        for version in () if fault else info.versions:
            if version in DRA_SERVICES:
                if any(each.endpoint == endpoint for each in self._plugins.get(info.name, ())):
                    raise NotRegistered(
                        f"plugin registration failed with err: endpoint {endpoint} already registered for DRA "
                        f"driver plugin {info.name}"
                    )
                return version
        if not fault:
            fault = (
                f"none of services supported by the plugin ({_quoted(info.versions)}) are supported by the kubelet "
                f"({_quoted(tuple(DRA_SERVICES))})"
            )
        raise NotRegistered(
            f"plugin validation failed with err: invalid supported gRPC versions of DRA driver plugin {info.name} "
            f"at endpoint {endpoint}: {fault}"
        )


def _quoted(names: tuple[str, ...]) -> str:
    """A list as Go's %q writes it."""
    return f"[{' '.join(map(quote, names))}]"


def _sockets(directory: str, depth: int = 0) -> Iterator[tuple[str, _Identity]]:
    """Return the sockets in a directory and below; names that begin with a dot do not count."""
    count = 0
    with os.scandir(directory) as entries:
        for entry in sorted(entries, key=lambda each: each.name)[:_MOST_SOCKETS]:
            if entry.name.startswith("."):
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # gone since
            if stat.S_ISSOCK(found.st_mode) and count < _MOST_SOCKETS:
                count += 1
                yield entry.path, (found.st_ino, found.st_mtime_ns)
            elif stat.S_ISDIR(found.st_mode) and depth < _DEEPEST:
                yield from _sockets(entry.path, depth + 1)

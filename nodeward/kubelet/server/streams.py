"""Requests that become connections: exec, attach and port-forward, over WebSocket or SPDY.

Everything that can be refused is refused before the protocol is switched, in words that kubectl shows (as long as there
is no colon in them: it would take them for YAML); what goes wrong later is told over the connection. Each connection is
a task here, ended with its connection.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.features.declared.extend_web_sockets import NAME as EXTEND_WEB_SOCKETS
from nodeward.kubelet.runtime.interface import ExecRequest, LogOptions
from nodeward.kubelet.server.channels import V4, V5, StreamOptions, Wire, run_command, show_output
from nodeward.kubelet.server.finding import Hosts, Refused, ServedPod, find_pod, has_container, log_attempt
from nodeward.kubelet.server.log_page import output
from nodeward.kubelet.server.port_forwarding import PROTOCOL, TUNNELLED, PortForwarding
from nodeward.kubelet.server.spdy_channels import SpdyChannels
from nodeward.machinery.clock import Clock
from nodeward.machinery.serving.answer import Answer
from nodeward.machinery.serving.raw_tunnel import RawTunnel
from nodeward.machinery.serving.websocket import accept, wants_websocket
from nodeward.machinery.spdy.frames import ping
from nodeward.machinery.transport import Request

LOG: Final = logging.getLogger(__name__)

SPDY: Final = "SPDY/3.1"
#: Servers ask with even numbers.
_OUR_PING: Final = 2
#: Talks to a caller until all is said; told whether the caller can close single streams.
Run: TypeAlias = Callable[[Wire, bool], Coroutine[Any, Any, None]]


class Streams:
    """The connections of one kubelet server."""

    def __init__(self, hosts: Hosts, clock: Clock) -> None:
        self._hosts = hosts
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def exec(
        self,
        request: Request,
        namespace: str,
        pod: str,
        container: str,
        command: tuple[str, ...],
        query: Mapping[str, str],
    ) -> Answer:
        options = StreamOptions.read(query)
        found = find_pod(self._hosts, namespace, pod)
        if not found.running_id(container, self._clock.now_ns()):
            raise Refused(500, f"container not found ({quote(container)})")
        if not command:
            raise Refused(400, "you must specify a command")
        wanted = ExecRequest(found.managed.uid, container, command, options.has_stdin, options.is_tty)
        runtime = found.host.runtime

        def run(wire: Wire, closes_streams: bool) -> Coroutine[Any, Any, None]:
            return run_command(wire, options, lambda: runtime.exec(wanted), closes_streams=closes_streams)

        return self._switch(request, found, options, run)

    def attach(
        self, request: Request, namespace: str, pod: str, container: str, query: Mapping[str, str]
    ) -> Answer:
        options = StreamOptions.read(query)
        found = find_pod(self._hosts, namespace, pod)
        now_ns = self._clock.now_ns()
        if not has_container(found, container) or not found.running_id(container, now_ns):
            raise Refused(500, f"container {container} not found in pod {pod}_{namespace}")
        if options.has_stdin:
            raise Refused(
                400,
                "the standard input of a running container cannot be attached to on this node; "
                "attach without --stdin, or run a command with kubectl exec -i",
            )
        attempt = log_attempt(found.status(now_ns), pod, container, previous=False)

        def run(wire: Wire, closes_streams: bool) -> Coroutine[Any, Any, None]:
            source = output(found, container, attempt, LogOptions(follow=True), self._clock, from_end=True)
            return show_output(wire, options, source, options.is_tty)

        return self._switch(request, found, options, run)

    def port_forward(self, request: Request, namespace: str, pod: str) -> Answer:
        found = find_pod(self._hosts, namespace, pod)
        status = found.status(self._clock.now_ns())
        if status.phase != "Running":
            raise Refused(500, f"pod not found ({quote(f'{pod}_{namespace}')})")
        host = found.host.runtime.forward_address(replace(found.managed.life.pod, status=status))
        if wants_websocket(request):
            protocols = (TUNNELLED,) if self._has_web_sockets(found) else ()
            answer, socket, _ = accept(request, protocols, self._clock)
            if socket is not None:
                self._spawn(PortForwarding(socket, host, pod, found.managed.uid, self._clock).run())
            return answer
        tunnel = RawTunnel(self._clock, ping(_OUR_PING))
        answer = _switched(request, (PROTOCOL,), tunnel)
        self._spawn(PortForwarding(tunnel, host, pod, found.managed.uid, self._clock).run())
        return answer

    # -- inside

    def _switch(self, request: Request, found: ServedPod, options: StreamOptions, run: Run) -> Answer:
        """Let `run` talk to the caller, in whatever protocol the caller knows."""
        if wants_websocket(request):
            protocols = (V5, V4) if self._has_web_sockets(found) else (V4,)
            answer, socket, protocol = accept(request, protocols, self._clock)
            if socket is not None:
                self._spawn(run(socket, protocol == V5))
            return answer
        tunnel = RawTunnel(self._clock, ping(_OUR_PING))
        answer = _switched(request, (V4,), tunnel)
        self._spawn(self._over_spdy(SpdyChannels(tunnel, options, self._clock), run))
        return answer

    @staticmethod
    async def _over_spdy(channels: SpdyChannels, run: Run) -> None:
        session = asyncio.create_task(channels.run())
        try:
            if await channels.opened():
                await run(channels, True)
                # The caller closes when it has read everything; what it says until then is of no interest.
                await asyncio.wait((session,))
        finally:
            session.cancel()
            await asyncio.gather(session, return_exceptions=True)
            channels.close()

    @staticmethod
    def _has_web_sockets(found: ServedPod) -> bool:
        """Whether the node declares KEP-4006: with that, the newest WebSocket protocols are spoken."""
        return EXTEND_WEB_SOCKETS in found.managed.agent.features.names

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._guard(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @staticmethod
    async def _guard(work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except WorldError as error:
            LOG.info("%s", error)


def _switched(request: Request, protocols: tuple[str, ...], tunnel: RawTunnel) -> Answer:
    """The answer to who wants to switch to SPDY."""
    headers = request.headers
    is_spdy = headers.get("upgrade", "").lower() == SPDY.lower()
    if not is_spdy or "upgrade" not in headers.get("connection", "").lower():
        raise Refused(400, "Upgrade request required")
    offered = re.split(r"[,\n]\s*", headers.get("x-stream-protocol-version", ""))
    agreed = next((name for name in protocols if name in offered), None)
    if agreed is None:
        known = " ".join(protocols)
        raise Refused(403, f"unable to upgrade: unable to negotiate protocol: server supports [{known}]")
    answered = {"Connection": "Upgrade", "Upgrade": SPDY, "X-Stream-Protocol-Version": agreed}
    return Answer(101, headers=answered, tunnel=tunnel)

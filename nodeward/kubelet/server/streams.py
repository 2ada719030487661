"""Requests that become connections: exec, attach and port-forward, over WebSocket or SPDY.

Everything that can be refused is refused before the protocol is switched, in words that kubectl shows; what goes wrong
later is told over the connection. Each connection is a task here, ended with its connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any, Final

from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.features.declared.extend_web_sockets import NAME as EXTEND_WEB_SOCKETS
from nodeward.kubelet.runtime.interface import ExecRequest, LogOptions
from nodeward.kubelet.server.channels import V4, V5, StreamOptions, Wire, run_command, show_output
from nodeward.kubelet.server.finding import Found, Hosts, Refused, find_pod, has_container, log_attempt
from nodeward.kubelet.server.log_page import SIMULATED, output
from nodeward.machinery.clock import Clock
from nodeward.machinery.serving.answer import Answer
from nodeward.machinery.serving.websocket import accept, wants_websocket
from nodeward.machinery.transport import Request

LOG: Final = logging.getLogger(__name__)


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
        wanted = ExecRequest(found.held.uid, container, command, options.has_stdin, options.is_tty)
        runtime = found.served.host.runtime

        def run(wire: Wire, closes_streams: bool) -> Coroutine[Any, Any, None]:
            return run_command(wire, options, lambda: runtime.exec(wanted), closes_streams=closes_streams)

        return self._switch(request, found, run)

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
                "the standard input of a running container cannot be attached to on this node: "
                "attach without --stdin, or run a command with kubectl exec -i",
            )
        attempt = log_attempt(found.status(now_ns), pod, container, previous=False)

        def run(wire: Wire, closes_streams: bool) -> Coroutine[Any, Any, None]:
            return show_output(wire, options, self._output(found, container, attempt), options.is_tty)

        return self._switch(request, found, run)

    def _output(self, found: Found, container: str, attempt: int) -> AsyncIterator[tuple[int, bytes]]:
        if found.is_real:
            return output(found, container, attempt, LogOptions(follow=True), self._clock, from_end=True)
        return self._simulated(found, container)

    async def _simulated(self, found: Found, container: str) -> AsyncIterator[tuple[int, bytes]]:
        yield 1, SIMULATED
        running = found.running_id(container, self._clock.now_ns())
        while found.running_id(container, self._clock.now_ns()) == running:
            await self._clock.sleep(1)

    def port_forward(self, request: Request, namespace: str, pod: str) -> Answer:
        raise Refused(501, "port forwarding is not there")

    def _switch(self, request: Request, found: Found, run: Any) -> Answer:
        if not wants_websocket(request):
            raise Refused(400, "Upgrade request required")
        has_v5 = EXTEND_WEB_SOCKETS in found.held.agent.features.names
        answer, socket, protocol = accept(request, (V5, V4) if has_v5 else (V4,), self._clock)
        if socket is not None:
            self._spawn(run(socket, protocol == V5))
        return answer

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

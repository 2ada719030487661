"""Lifecycle hooks: what a container asks for after its start and before its end, a command, a request, or a pause.

Pod workers call `HookRunner.run`. The text of a failure goes to the status only; its form is upstream's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from nodeward.api.core_v1.container import Container, EphemeralContainer, HTTPHeader, LifecycleHandler
from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import WorldError
from nodeward.base.fielderror import quote
from nodeward.kubelet.pods.container_life import POST_START
from nodeward.kubelet.probing.answer import NoSuchPort, ProbeAnswer
from nodeward.kubelet.probing.http import action_url, ask_http
from nodeward.kubelet.runtime.interface import ExecRequest, Runtime
from nodeward.machinery.clock import Clock

#: Sends a request: (URL, headers, seconds, clock, what the User-Agent header says).
AskHttp: TypeAlias = Callable[[str, Sequence[HTTPHeader], float, Clock, str], Awaitable[ProbeAnswer]]


class HookRunner:
    """Runs hooks. `version` (like "1.37") is how the node introduces itself, `ask` sends requests."""

    def __init__(
        self, runtime: Runtime, clock: Clock, version: str = "1.37", ask: AskHttp = ask_http
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._agent = f"kube-lifecycle/{version}"
        self._ask = ask

    async def run(
        self, pod: Pod, container: Container | EphemeralContainer, kind: str, seconds: float
    ) -> tuple[bool, str]:
        """Run one, for at most so long (0: as long as it takes); whether it went well, and what to say if not."""
        lifecycle = container.lifecycle
        if lifecycle is None:
            return True, ""
        handler = lifecycle.post_start if kind == POST_START else lifecycle.pre_stop
        if handler is None:
            return True, ""
        what, why = await self._handle(pod, container, handler, seconds)
        if not why:
            return True, ""
        meta = pod.metadata
        shown = quote(f"{meta.name}_{meta.namespace}({meta.uid})")
        return False, f"{what} for Container {quote(container.name)} in Pod {shown} failed - error: {why}"

    async def _handle(
        self, pod: Pod, container: Container | EphemeralContainer, handler: LifecycleHandler, seconds: float
    ) -> tuple[str, str]:
        if handler.exec is not None:
            what = f"Exec lifecycle hook ([{' '.join(handler.exec.command)}])"
            request = ExecRequest(pod.metadata.uid, container.name, tuple(handler.exec.command))
            return what, await self._exec(request, seconds)
        if handler.http_get is not None:
            action = handler.http_get
            what = f"HTTP lifecycle hook ({action.path})"
            try:
                url = action_url(action, container, pod.status.pod_ip)
            except NoSuchPort as error:
                return what, str(error)
            with self._clock.hold("a hook over the network"):
                answer = await self._ask(
                    url, action.http_headers, seconds or 3600.0, self._clock, self._agent
                )
            # Whatever the answer is, there was one: a hook is told, not asked.
            is_failed = not answer.ok and not answer.text.startswith("HTTP probe failed")
            return what, answer.text if is_failed else ""
        if handler.sleep is not None:
            wanted = float(handler.sleep.seconds)
            what = f"Sleep lifecycle hook ({handler.sleep.seconds})"
            await self._clock.sleep(min(wanted, seconds) if seconds else wanted)
            if seconds and wanted > seconds:
                return what, "container terminated before sleep hook finished"
            return what, ""
        return "lifecycle hook", "invalid handler: none of exec, httpGet and sleep is set"

    async def _exec(self, request: ExecRequest, seconds: float) -> str:
        try:
            result = await self._runtime.exec_sync(request, seconds or 3600.0)
        except TimeoutError:
            return f"context deadline exceeded, message: {quote('')}"
        except WorldError as error:
            return f"{error}, message: {quote('')}"
        if result.exit_code == 0:
            return ""
        said = result.output.decode("utf-8", "replace")
        command = " ".join(request.command)
        return f"command '{command}' exited with {result.exit_code}: {said}, message: {quote(said)}"

"""The prober of a machine: probes of containers, and of the node itself (KEP-5233's gates, decision 14).

Pod workers and the node manager call it; it asks by command, HTTP, TCP or gRPC, in the modules beside this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from nodeward.api.core_v1.container import Container, EphemeralContainer, Probe
from nodeward.api.core_v1.pod import Pod
from nodeward.base.duration import SECOND_NS
from nodeward.kubelet.config.settings import GateProbe
from nodeward.kubelet.container_request import container_of
from nodeward.kubelet.expansion import expand_all
from nodeward.kubelet.node.gate_probes import ProbeOutcome
from nodeward.kubelet.pods.probing import ProbePlan
from nodeward.kubelet.probing.answer import NoSuchPort, ProbeAnswer, port_number
from nodeward.kubelet.probing.command import ask_container, ask_node
from nodeward.kubelet.probing.grpc import ask_grpc
from nodeward.kubelet.probing.http import action_url, ask_http
from nodeward.kubelet.probing.tcp import ask_tcp
from nodeward.kubelet.runtime.interface import ExecRequest, Runtime
from nodeward.machinery.clock import Clock

_NODE: Final = "127.0.0.1"


class NetworkProber:
    """Asks for one node; `version` (like "1.37") is how it introduces itself."""

    def __init__(self, runtime: Runtime, clock: Clock, version: str = "1.37") -> None:
        self._runtime = runtime
        self._clock = clock
        self._agent = f"kube-probe/{version}"

    async def probe(self, pod: Pod, current: Callable[[], Pod], plan: ProbePlan) -> ProbeAnswer:
        return await self.ask(current(), container_of(pod, plan.container), plan.probe)

    async def ask(self, pod: Pod, container: Container | EphemeralContainer, probe: Probe) -> ProbeAnswer:
        """One probe of a container that runs."""
        timeout = float(max(1, probe.timeout_seconds))
        if probe.exec is not None:
            # Only what the spec itself says is put in: the probe does not know what the container was started with.
            known = {each.name: each.value for each in container.env if each.value_from is None}
            command = expand_all(probe.exec.command, known)
            request = ExecRequest(pod.metadata.uid, container.name, command)
            return await ask_container(self._runtime, request, timeout)
        return await self._ask_network(probe, container, pod.status.pod_ip, timeout)

    async def gate_probe(self, gate: GateProbe) -> ProbeOutcome:
        """One probe of the node. What cannot be asked has not been seen to hold."""
        timeout = gate.timeout_ns / SECOND_NS
        if gate.action.exec is not None:
            answer = await ask_node(gate.action.exec.command, timeout, self._clock)
        else:
            answer = await self._ask_network(gate.action, None, _NODE, timeout)
        return ProbeOutcome(answer.ok is True, answer.text)

    async def _ask_network(
        self, probe: Probe, container: Container | EphemeralContainer | None, host: str, timeout: float
    ) -> ProbeAnswer:
        clock = self._clock
        try:
            # What is outside the process cannot be seen by a virtual clock.
            with clock.hold("a probe over the network"):
                if probe.http_get is not None:
                    action = probe.http_get
                    url = action_url(action, container, host)
                    return await ask_http(url, action.http_headers, timeout, clock, self._agent)
                if probe.tcp_socket is not None:
                    port = port_number(probe.tcp_socket.port, container)
                    return await ask_tcp(probe.tcp_socket.host or host, port, timeout, clock)
                if probe.grpc is not None:
                    return await ask_grpc(host, probe.grpc.port, probe.grpc.service or "", timeout, clock)
        except NoSuchPort as error:
            return ProbeAnswer(None, str(error))
        return ProbeAnswer(None, "missing probe handler")

"""The sandboxes of pods: starting one, and what is there of a pod.

What must stay true: a pod has at most one sandbox that is ready; one that is there already is used, not doubled.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any, Final

from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.runtime.cri.calls import SANDBOX_SECONDS, Calls, CriError
from nodeward.kubelet.runtime.cri.endings import addresses, newest
from nodeward.kubelet.runtime.cri.labels import POD_UID
from nodeward.kubelet.runtime.cri.messages import SANDBOX_READY
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings, sandbox_config

LOG: Final = logging.getLogger(__name__)

#: `network` of the runtime
AUTO: Final = "auto"
HOST: Final = "host"
POD: Final = "pod"

#: How a sandbox in the node's network is known after a restart of the agent.
_ON_HOST: Final = "nodeward.dev/host-network"
_NETWORK_READY: Final = "NetworkReady"


@dataclass(slots=True)
class Sandbox:
    """A sandbox that is ready."""

    id: str
    is_on_host_network: bool
    ips: tuple[str, ...] = field(default=())


class Sandboxes:
    """Makes sandboxes. `host_ips`: the addresses of pods in the node's network."""

    def __init__(self, calls: Calls, settings: NodeSettings, network: str, host_ips: tuple[str, ...]) -> None:
        self._call = calls
        self._settings = settings
        self._network = network
        self._host_ips = host_ips
        self._has_warned = False

    async def run(self, pod: Pod, log_directory: str) -> Sandbox:
        """The pod's sandbox, a new one if there is none. Raises `CriError` or `Refusal`."""
        there = await self.of_pod(pod.metadata.uid)
        if there and (latest := newest(there)).state == SANDBOX_READY:
            return await self.known(latest)
        for old in there:
            # What still runs in it is in nobody's care; what is left of it goes with the pod.
            await self._call("StopPodSandbox", pod_sandbox_id=old.id)
        is_on_host = await self._is_on_host_network(pod)
        config = sandbox_config(
            pod,
            self._settings,
            attempt=1 + max((each.metadata.attempt for each in there), default=-1),
            log_directory=log_directory,
            is_on_host_network=is_on_host,
        )
        if is_on_host:
            config.annotations[_ON_HOST] = "true"
        answer = await self._call("RunPodSandbox", seconds=SANDBOX_SECONDS, config=config)
        return await self._sandbox(answer.pod_sandbox_id, is_on_host)

    async def of_pod(self, uid: str) -> list[Any]:
        """All sandboxes of a pod, whatever state they are in."""
        answer = await self._call("ListPodSandbox", filter={"label_selector": {POD_UID: uid}})
        return list(answer.items)

    async def known(self, listed: Any) -> Sandbox:
        """A sandbox from a list that is ready."""
        return await self._sandbox(listed.id, listed.annotations.get(_ON_HOST) == "true")

    async def _sandbox(self, sandbox_id: str, is_on_host: bool) -> Sandbox:
        if is_on_host:
            return Sandbox(sandbox_id, True, self._host_ips)
        status = (await self._call("PodSandboxStatus", pod_sandbox_id=sandbox_id)).status
        return Sandbox(sandbox_id, False, addresses(status))

    async def remove(self, sandbox_id: str) -> None:
        """All of it. Raises `CriError`; being gone already is none."""
        try:
            await self._call("RemovePodSandbox", pod_sandbox_id=sandbox_id)
        except CriError as error:
            if not error.is_not_found:
                raise

    async def _is_on_host_network(self, pod: Pod) -> bool:
        if pod.spec.host_network or self._network == HOST:
            return True
        if self._network == POD:
            return False
        status = (await self._call("Status")).status
        why = next((each for each in status.conditions if each.type == _NETWORK_READY), None)
        if why is None or why.status:
            return False
        if not self._has_warned:
            self._has_warned = True
            LOG.warning("the container runtime has no network, pods use the node's: %s", why.message)
        return True

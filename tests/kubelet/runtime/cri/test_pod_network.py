"""Pods with a network of their own, where the runtime has one set up (CNI)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeward.api.core_v1.container import Container
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.kubelet.runtime.cri.runtime import CriRuntime
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings
from nodeward.kubelet.runtime.interface import (
    ContainerRequest,
    ContainerStarted,
    ExecRequest,
    PodGone,
    SandboxStarted,
)
from nodeward.machinery.clock import RealClock
from tests.contracts.runtimes.ground import Heard
from tests.kubelet.runtime.containerd import IMAGE, NETWORK_PLUGINS, Containerd, running_containerd

pytestmark = pytest.mark.slow

#: Nobody routes it.
_SUBNET = "198.18.77.0/24"
_FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")


@pytest.fixture
def containerd(tmp_path: Path) -> Iterator[Containerd]:
    """With a network of cables between the node and each pod: nothing of it outlives the pods but a switch."""
    if not (NETWORK_PLUGINS / "ptp").exists():
        pytest.skip(
            "NO CNI PLUGINS HERE: pods with their own network were not tested; install containernetworking-plugins"
        )
    network = {
        "cniVersion": "0.4.0",
        "name": "test",
        "plugins": [
            {
                "type": "ptp",
                "ipam": {"type": "host-local", "subnet": _SUBNET, "dataDir": str(tmp_path / "addresses")},
            }
        ],
    }
    home = tmp_path / "c"
    (home / "cni" / "net.d").mkdir(parents=True)
    (home / "cni" / "net.d" / "test.conflist").write_text(json.dumps(network))
    before = _FORWARDING.read_text()
    try:
        with running_containerd(home) as each:
            yield each
    finally:
        _FORWARDING.write_text(before)


def test_a_pod_has_an_address_and_a_name_of_its_own_unless_it_wants_the_nodes(containerd: Containerd) -> None:
    async def main() -> None:
        clock = RealClock()
        heard = Heard(clock)
        settings = NodeSettings(cgroup_root=containerd.cgroup_root)
        runtime = CriRuntime(containerd.socket, clock, settings=settings, host_ips=("192.0.2.1",))
        await runtime.start(heard)
        own, nodes = _pod("own"), _pod("nodes")
        nodes.spec.host_network = True
        for each in (own, nodes):
            runtime.start_sandbox(each)
        ips = (await heard.wait_for(SandboxStarted, uid="own")).ips
        assert ips[0].startswith("198.18.77.")
        assert (await heard.wait_for(SandboxStarted, uid="nodes")).ips == ("192.0.2.1",)
        runtime.start_container(ContainerRequest(own, own.spec.containers[0], 0, {}))
        await heard.wait_for(ContainerStarted, uid="own")
        seen = await runtime.exec_sync(ExecRequest("own", "c", ("sh", "-c", "hostname; ip -4 addr")), 30)
        assert seen.output.startswith(b"own-name\n")
        assert ips[0].encode() in seen.output
        assert [each.ips for each in await runtime.recover() if each.uid == "own"] == [ips]
        for each in (own, nodes):
            runtime.remove_pod(each.metadata.uid)
            await heard.wait_for(PodGone, uid=each.metadata.uid)
        await runtime.stop()

    asyncio.run(main())


def _pod(uid: str) -> Pod:
    meta = ObjectMeta(name=f"{uid}-name", namespace="default", uid=uid)
    return Pod(metadata=meta, spec=PodSpec(containers=[Container(name="c", image=IMAGE)]))

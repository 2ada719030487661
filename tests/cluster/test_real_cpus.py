"""A container that really runs learns which CPUs it will lose, and loses them a delay later (KEP-6122).

A whole node under its own identity: the static CPU manager policy, real volumes, real processes or containers of
containerd, in real time. The container says what its file shows and which CPUs it may use, whenever one changes; as a
process it runs the program of examples/exclusive-cpus.yaml.

A node reserves one CPU, and the container has two: a machine of two CPUs is told that it has a third, which is the
reserved one. Nothing ever runs there; all CPUs that the container gets and loses are real.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeward.api import codec
from nodeward.api.core_v1.pod import Pod
from nodeward.apiserver.server import Settings
from nodeward.base.cpuset import CPUSet
from nodeward.base.duration import SECOND_NS
from nodeward.base.quantity import Quantity
from nodeward.base.timestamp import parse_rfc3339_micro
from nodeward.cluster.assembly import Cluster
from nodeward.cluster.description import ClusterDescription, Pool
from nodeward.cluster.identities import node_user
from nodeward.cluster.real_node import RealNode
from nodeward.features import Gates
from nodeward.kubelet.cpu.topology import MachineCore, discover
from nodeward.kubelet.node.machine import Machine, this_machine
from nodeward.kubelet.runtime.cri.runtime import CriRuntime
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings
from nodeward.kubelet.runtime.interface import Runtime
from nodeward.kubelet.runtime.process.runtime import ProcessRuntime
from nodeward.machinery.client import Client, PatchType
from nodeward.machinery.clock import RealChance, RealClock
from nodeward.store.memory import MemoryStore
from tests.kubelet.runtime.containerd import IMAGE, Containerd, running_containerd
from tests.patience import PATIENCE_SECONDS
from tests.tidy.repository import read

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs: one to keep and one to lose"
    ),
]

CLOCK = RealClock()
DELAY_SECONDS = 2
GATES = "CPUManagerPolicyAlphaOptions=true,InPlacePodVerticalScalingExclusiveCPUs=true"
NAME = "exclusive-cpus"
#: The program of the example for an image without Python.
WATCHES = (
    "allowed() { sed -n 's/^Cpus_allowed_list:[^0-9]*//p' /proc/self/status; }; "
    "while :; do cpus=$(allowed); file=$(cat /etc/podinfo/cpus); "
    '[ "$file" = "$seen_file" ] || echo "file $file"; [ "$cpus" = "$seen_cpus" ] || echo "cpus $cpus"; '
    "seen_file=$file; seen_cpus=$cpus; sleep 0.02; done"
)
_LINE = re.compile(r"(\S+) stdout F (file|cpus) (.*)")


@pytest.fixture(scope="module")
def containerd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containerd]:
    with running_containerd(tmp_path_factory.mktemp("containerd")) as each:
        yield each


def machine(root: Path) -> tuple[Machine, str]:
    """This machine with at least three CPUs, and the one that is reserved."""
    found = this_machine(root)
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) > 2:
        return found, str(cpus[0])
    cpus.append(cpus[-1] + 1)
    topology = discover({0: [MachineCore(0, (cpu,)) for cpu in cpus]}, cpu_count=len(cpus), socket_count=1)
    capacity = {**found.capacity, "cpu": Quantity.of_int(len(cpus))}
    return replace(found, capacity=capacity, cpus=topology), str(cpus[-1])


class Scene:
    """A node and somebody who may do anything."""

    def __init__(self, client: Client, root: Path) -> None:
        self.client, self.root = client, root

    async def start(self, **container: Any) -> Pod:
        """The pod of the example with one CPU; `container`: what its container does instead."""
        tree = yaml.safe_load(read("examples/exclusive-cpus.yaml"))
        tree["metadata"]["namespace"] = "default"
        tree["spec"] |= {"nodeName": "n1", "hostNetwork": True}
        tree["spec"]["containers"][0] |= container
        tree["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1"
        return await self.client.create(codec.from_tree(tree, Pod))

    async def resize(self, cpus: int) -> None:
        amount = {"cpu": str(cpus)}
        resources = {"limits": amount, "requests": amount}
        patch = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
        await self.client.patch(
            Pod, NAME, patch, namespace="default", patch_type=PatchType.STRATEGIC, subresource="resize"
        )

    def said(self, pod: Pod) -> list[tuple[int, str, str]]:
        """What the container said: when, of what, and the list of CPUs."""
        log = self.root / "logs" / "pods" / f"default_{NAME}_{pod.metadata.uid}" / "main" / "0.log"
        lines = log.read_text().splitlines() if log.exists() else []
        found = [_LINE.fullmatch(line) for line in lines]
        return [
            (_instant(match[1]), match[2], str(CPUSet.parse(match[3])))
            for match in found
            if match is not None
        ]

    def written_ns(self, pod: Pod) -> int:
        """When the file was written that the container reads now."""
        at = self.root / "pods" / pod.metadata.uid / "volumes" / "kubernetes.io~downward-api" / "info"
        return (at / "..data").lstat().st_mtime_ns

    async def until(self, holds: Callable[[], bool]) -> None:
        async with CLOCK.timeout(PATIENCE_SECONDS):
            while not holds():
                await CLOCK.sleep(0.02)


def _instant(text: str) -> int:
    """Log files have nanoseconds; microseconds will do."""
    whole, _, fraction = text.partition(".")
    zone = "Z" if text.endswith("Z") else fraction[-6:]
    return parse_rfc3339_micro(f"{whole}.{fraction.removesuffix(zone)[:6]:0<6}{zone}")


@asynccontextmanager
async def node(runtime: Runtime, root: Path) -> AsyncIterator[Scene]:
    """An API server and one node, as `nodeward kubelet` runs it."""
    gates = Gates.of("1.37", "DownwardAPIAssignedResources=true,InPlacePodVerticalScalingExclusiveCPUs=true")
    description = ClusterDescription(gates=gates, has_scheduler=False, has_controllers=False)
    settings = Settings(disable_admission=("ServiceAccount",), enable_admission=("NodeRestriction",))
    cluster = Cluster(description, MemoryStore(), CLOCK, RealChance(), settings)
    await cluster.start()
    here, reserved = machine(root)
    kubelet: dict[str, Any] = {
        "cpuManagerPolicy": "static",
        "cpuManagerPolicyOptions": {"scale-delay-time": f"{DELAY_SECONDS}s"},
        "cpuManagerReconcilePeriod": "1s",
        "reservedSystemCPUs": reserved,
    }
    chosen = Pool(name="n1", feature_gates=GATES, kubelet=kubelet)
    client = cluster.client("kubelet", node_user("n1"))
    real = RealNode(
        "n1",
        client,
        CLOCK,
        RealChance(),
        runtime,
        root,
        chosen.kubelet_settings(),
        version="1.37",
        machine=here,
    )
    try:
        await real.start()
        scene = Scene(cluster.client("test"), root)
        yield scene
        await scene.client.delete(Pod, NAME, "default", grace_period=0)
        await scene.until(lambda: not len(real.host.pods))
    finally:
        await real.stop()
        await cluster.stop()


async def told_first_and_taken_later(scene: Scene, **container: Any) -> None:
    pod = await scene.start(**container)
    await scene.until(lambda: len(scene.said(pod)) == 2)
    (_, one, own), (_, other, same) = scene.said(pod)
    assert {one, other} == {"file", "cpus"}
    assert own == same
    assert len(CPUSet.parse(own)) == 1
    await scene.resize(2)
    await scene.until(lambda: len(scene.said(pod)) == 4)
    both = scene.said(pod)[-1][2]
    assert {text for _, _, text in scene.said(pod)[2:]} == {both}
    assert len(CPUSet.parse(both)) == 2
    await scene.resize(1)
    await scene.until(lambda: len(scene.said(pod)) == 6)
    (seen_ns, first, shown), (lost_ns, second, left) = scene.said(pod)[4:]
    # The container reads its file, and at least the delay after that was written it has one CPU.
    assert (first, second) == ("file", "cpus")
    assert shown == left == own
    assert seen_ns <= lost_ns
    assert lost_ns - scene.written_ns(pod) >= DELAY_SECONDS * SECOND_NS


def play(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await work()

    asyncio.run(main())


@pytest.mark.parametrize("may_use_cgroups", [True, False], ids=["cgroups", "affinity"])
def test_a_process_reads_which_cpus_it_will_keep_before_it_loses_one(
    tmp_path: Path, may_use_cgroups: bool
) -> None:
    async def work() -> None:
        runtime = ProcessRuntime(
            tmp_path / "containers", CLOCK, RealChance(), may_use_cgroups=may_use_cgroups
        )
        async with node(runtime, tmp_path) as scene:
            await told_first_and_taken_later(scene)

    play(work)


def test_a_container_of_containerd_reads_which_cpus_it_will_keep_before_it_loses_one(
    tmp_path: Path, containerd: Containerd
) -> None:
    async def work() -> None:
        settings = NodeSettings(cgroup_root=containerd.cgroup_root)
        runtime = CriRuntime(containerd.socket, CLOCK, settings=settings, host_ips=("127.0.0.1",))
        async with node(runtime, tmp_path) as scene:
            await told_first_and_taken_later(scene, image=IMAGE, command=["sh", "-c", WATCHES])

    play(work)

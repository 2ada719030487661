"""KEP-6122 on the node: `assigned.cpuset` as a file of a volume, written by a real kubelet with its node's own rights.

The kubelet is the real `Host` with the static CPU manager policy and volumes on a disk; only the containers are
simulated. How the file and the CPUs follow each other in a resize is in test_kep6122_delay.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from nodeward.api import codec
from nodeward.api.core_v1.cluster import ConfigMap
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.volume import ConfigMapProjection, VolumeProjection
from nodeward.api.meta import ObjectMeta
from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.keps.ledger import statement
from tests.keps.node_identity import NodeWorld, node_world

EXCLUSIVE = "InPlacePodVerticalScalingExclusiveCPUs"
GATE = "DownwardAPIAssignedResources"
#: Two sockets of four cores with two threads each: 0 and 8 are one core.
MACHINE = CPUDescription(sockets=2, cores_per_numa=4, threads=2)
STATIC: dict[str, Any] = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,8"}
KNOWN_BEFORE = ("limits.cpu", "requests.cpu", "limits.memory", "requests.memory", "limits.ephemeral-storage")


def item(resource: str = "assigned.cpuset", container: str = "c") -> dict[str, Any]:
    path = resource.replace(".", "-") if container == "c" else f"{resource.replace('.', '-')}-{container}"
    return {"path": path, "resourceFieldRef": {"containerName": container, "resource": resource}}


def a_pod(name: str, *items: dict[str, Any], cpus: tuple[str, ...] = ("4",), projected: bool = False) -> Pod:
    """A pod on n1 whose containers c, c1, ... have these CPUs as request and limit, and a volume of these items."""
    source = {"items": list(items)}
    volume = {"projected": {"sources": [{"downwardAPI": source}]}} if projected else {"downwardAPI": source}
    containers = [
        {
            "name": f"c{number}" if number else "c",
            "image": "image",
            "resources": {"limits": {"cpu": cpu, "memory": "64Mi"}},
            "volumeMounts": [{"name": "info", "mountPath": "/etc/podinfo"}],
        }
        for number, cpu in enumerate(cpus)
    ]
    spec = {"nodeName": "n1", "volumes": [{"name": "info", **volume}], "containers": containers}
    return codec.from_tree({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Pod)


class Scene:
    """One kubelet, `n1`, with the static policy, and what its disk holds."""

    def __init__(self, world: NodeWorld) -> None:
        self.world = world

    @property
    def root(self) -> Path:
        return self.world.root / "n1"

    async def started(self, pod: Pod) -> Pod:
        await self.world.add(pod)
        found = await self.world.pod(pod.metadata.name)
        assert found.status.phase == "Running", found.status
        return found

    def files(self, pod: Pod) -> dict[str, str]:
        """What the container reads in its volume."""
        plugin = "projected" if pod.spec.volumes[0].projected is not None else "downward-api"
        at = self.root / "pods" / pod.metadata.uid / "volumes" / f"kubernetes.io~{plugin}" / "info"
        return {each.name: each.read_text() for each in at.iterdir() if not each.name.startswith("..")}

    def state(self) -> dict[str, Any]:
        """The CPU manager's state file."""
        found: dict[str, Any] = json.loads((self.root / "cpu_manager_state").read_text())
        return found


async def resize_to(world: NodeWorld, cpus: str) -> None:
    """Ask for other CPUs for the pod p."""
    resources = {"limits": {"cpu": cpus}, "requests": {"cpu": cpus}}
    await world.resize("p", {"containers": [{"name": "c", "resources": resources}]})


async def applied_cpus(world: NodeWorld) -> str | None:
    """The CPUs the node's only container runs on."""
    (found,) = await world.kubelets["n1"].runtime.recover()
    resources = found.containers[0].resources
    return resources.cpuset if resources is not None else None


def play(act: Callable[[Scene], Awaitable[None]], gates: str = f"{GATE}=true", **setup: Any) -> None:
    async def main(clock: VirtualClock) -> None:
        async with node_world(clock, gates=gates) as world:
            await world.start_kubelet(**{"config": STATIC, "cpus": MACHINE.topology(), **setup})
            await act(Scene(world))

    run_virtual(main)


@statement("6122-42", part="kubelet")
@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_resources_known_before_are_shown_as_before(version: str) -> None:
    async def act(scene: Scene) -> None:
        pod = await scene.started(a_pod("p", *(item(each) for each in KNOWN_BEFORE)))
        disk = (await scene.world.node("n1")).status.allocatable["ephemeral-storage"].value
        assert scene.files(pod) == {
            "limits-cpu": "4",
            "requests-cpu": "4",
            "limits-memory": str(64 << 20),
            "requests-memory": str(64 << 20),
            "limits-ephemeral-storage": str(disk),
        }

    play(act, version=version)


@statement("6122-46")
@statement("6122-68", part="kubelet")
@statement("6122-U3")
@pytest.mark.parametrize("projected", [False, True])
def test_the_file_holds_the_exclusive_cpus_of_the_cpu_managers_state(projected: bool) -> None:
    async def act(scene: Scene) -> None:
        items = (item(), item(container="c1"), item("limits.cpu"))
        pod = await scene.started(a_pod("p", *items, cpus=("4", "3"), projected=projected))
        files, entries = scene.files(pod), scene.state()["entries"][pod.metadata.uid]
        assert files == {
            "assigned-cpuset": entries["c"],
            "assigned-cpuset-c1": entries["c1"],
            "limits-cpu": "4",
        }
        # Whole cores where the fewest CPUs are free, then the next ones.
        assert (entries["c"], entries["c1"]) == ("1-2,9-10", "3-4,11")

    play(act)


@statement("6122-43")
def test_a_resize_that_had_to_wait_is_shown_as_soon_as_it_is_allocated() -> None:
    """The pod itself does not change then, and the next sync of its volumes is a minute away."""

    async def act(scene: Scene) -> None:
        world = scene.world
        await scene.started(a_pod("other", item(), cpus=("8",)))
        pod = await scene.started(a_pod("p", item()))
        before = scene.files(pod)["assigned-cpuset"]
        assert len(CPUSet.parse(before)) == 4
        await resize_to(world, "8")
        await world.pass_time(5)
        assert scene.files(pod) == {"assigned-cpuset": before}
        await world.client.delete(Pod, "other", "default", grace_period=0)
        await world.pass_time(5)
        shown = scene.files(pod)["assigned-cpuset"]
        assert len(CPUSet.parse(shown)) == 8
        assert shown == scene.state()["entries"][pod.metadata.uid]["c"]

    play(act, gates=f"{GATE}=true,{EXCLUSIVE}=true", feature_gates=f"{EXCLUSIVE}=true")


@statement("6122-47", "6122-60")
def test_a_file_beside_others_that_cannot_be_had_any_more_is_written_before_the_cpus_go() -> None:
    async def act(scene: Scene) -> None:
        world = scene.world
        metadata = ObjectMeta(name="settings", namespace="default")
        await world.add(ConfigMap(metadata=metadata, data={"colour": "red"}))
        wanted = a_pod("p", item(), cpus=("2",), projected=True)
        source = wanted.spec.volumes[0].projected
        assert source is not None
        source.sources.append(VolumeProjection(config_map=ConfigMapProjection(name="settings")))
        pod = await scene.started(wanted)
        await resize_to(world, "4")
        await world.pass_time(15)
        large = scene.files(pod)["assigned-cpuset"]
        await world.client.delete(ConfigMap, "settings", "default")
        await world.pass_time(65)
        await resize_to(world, "2")
        await world.pass_time(1)
        small = scene.files(pod)["assigned-cpuset"]
        assert len(CPUSet.parse(small)) == 2
        assert await applied_cpus(world) == large
        await world.pass_time(15)
        assert await applied_cpus(world) == small
        assert scene.files(pod) == {"assigned-cpuset": small, "colour": "red"}

    options = {"cpuManagerPolicyOptions": {"scale-delay-time": "5s"}}
    gates = f"{EXCLUSIVE}=true,CPUManagerPolicyAlphaOptions=true"
    play(act, gates=f"{GATE}=true,{EXCLUSIVE}=true", feature_gates=gates, config={**STATIC, **options})


@statement("6122-44")
@pytest.mark.parametrize(
    ("cpu", "config"), [("1500m", STATIC), ("2", {})], ids=["a part of a CPU", "policy none"]
)
def test_without_exclusive_cpus_the_file_is_there_and_empty(cpu: str, config: dict[str, Any]) -> None:
    async def act(scene: Scene) -> None:
        pod = await scene.started(a_pod("p", item(), cpus=(cpu,)))
        assert scene.files(pod) == {"assigned-cpuset": ""}

    play(act, config=config)


@statement("6122-65")
@pytest.mark.parametrize("policy", ["none", "single-numa-node"])
def test_the_file_shows_cpu_numbers_and_nothing_about_numa_nodes(policy: str) -> None:
    async def act(scene: Scene) -> None:
        for number, cpus in enumerate(("1", "2", "4")):
            pod = await scene.started(a_pod(f"p{number}", item(), cpus=(cpus,)))
            text = scene.files(pod)["assigned-cpuset"]
            assert re.fullmatch(r"[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*", text), text

    play(act, config={**STATIC, "topologyManagerPolicy": policy})


@statement("6122-53")
@pytest.mark.parametrize("server", ["true", "false"])
@pytest.mark.parametrize("kubelet", ["true", "false"])
def test_the_kubelet_serves_the_file_whatever_the_gate_says(server: str, kubelet: str) -> None:
    async def act(scene: Scene) -> None:
        pod = await scene.started(a_pod("p", item()))
        assert scene.files(pod) == {"assigned-cpuset": "1-2,9-10"}

    play(act, gates=f"{GATE}={server}", feature_gates=f"{GATE}={kubelet}")


@statement("6122-55", part="kubelet")
def test_switching_the_gate_off_leaves_pods_and_their_files_as_they_are() -> None:
    async def act(scene: Scene) -> None:
        world = scene.world
        pod = await scene.started(a_pod("p", item()))
        await world.cluster.api_server.restart(gates=f"{GATE}=false")
        await world.kubelets["n1"].restart(feature_gates=f"{GATE}=false", seconds=100)
        found = await world.pod("p")
        assert (found.status.phase, found.status.container_statuses[0].restart_count) == ("Running", 0)
        assert scene.files(pod) == {"assigned-cpuset": "1-2,9-10"}
        found.metadata.labels = {"changed": "yes"}
        await world.client.update(found)
        later = await scene.started(a_pod("later", item(), cpus=("2",)))
        assert scene.files(later) == {"assigned-cpuset": "3,11"}

    play(act)


@statement("6122-69")
@pytest.mark.parametrize("projected", [False, True])
def test_an_old_kubelet_cannot_set_up_the_volume_and_says_so(projected: bool) -> None:
    async def act(scene: Scene) -> None:
        await scene.world.add(a_pod("p", item(), projected=projected))
        await scene.world.pass_time(30)
        found = await scene.world.pod("p")
        assert found.status.phase == "Pending"
        assert found.status.container_statuses[0].state.running is None
        why = 'MountVolume.SetUp failed for volume "info" : unsupported container resource : assigned.cpuset'
        assert ("FailedMount", why) in await scene.world.events("p")
        # The upgrade is the remedy: the same pod starts.
        await scene.world.kubelets["n1"].restart(version="1.37", seconds=30)
        found = await scene.world.pod("p")
        assert found.status.phase == "Running"
        assert scene.files(found) == {"assigned-cpuset": "1-2,9-10"}

    play(act, version="1.36")

"""One real pod through the whole agent: API server, kubelet, volumes, containerd; from its creation to its deletion."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from nodeward.api import codec
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import ContainerStatus
from nodeward.apiserver.server import ApiServer
from nodeward.kubelet.host import Host
from nodeward.kubelet.local_services import LocalMachine
from nodeward.kubelet.node.specification import NodeModel, NodeSpecification
from nodeward.kubelet.runtime.cri.runtime import CriRuntime
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings
from nodeward.kubelet.runtime.interface import ExecRequest
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealChance, RealClock
from tests.apiserver.running import running, settings
from tests.kubelet.machine import KUBELET, NODE
from tests.kubelet.runtime.containerd import IMAGE, Containerd, running_containerd
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

CLOCK = RealClock()

POD = {
    "metadata": {"name": "p", "namespace": "default", "labels": {"app": "web", "tier": "front"}},
    "spec": {
        "nodeName": NODE,
        "terminationGracePeriodSeconds": 5,
        "volumes": [
            {
                "name": "about",
                "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]},
            },
            {"name": "shared", "emptyDir": {}},
        ],
        "initContainers": [
            {
                "name": "first",
                "image": IMAGE,
                "command": ["sh", "-c", "echo from the first > /shared/word"],
                "volumeMounts": [{"name": "shared", "mountPath": "/shared"}],
            }
        ],
        "containers": [
            {
                "name": "c",
                "image": IMAGE,
                "command": [
                    "sh",
                    "-c",
                    "trap 'echo bye > /dev/termination-log; exit 3' TERM; "
                    'echo "I am $NAME"; cat /about/labels /shared/word; echo; touch /shared/ready; '
                    "while :; do sleep 1 & wait $!; done",
                ],
                "env": [{"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "resources": {"requests": {"cpu": "50m"}, "limits": {"memory": "64Mi"}},
                "readinessProbe": {"exec": {"command": ["test", "-e", "/shared/ready"]}, "periodSeconds": 1},
                "volumeMounts": [
                    {"name": "about", "mountPath": "/about"},
                    {"name": "shared", "mountPath": "/shared"},
                ],
            }
        ],
    },
}


@asynccontextmanager
async def kubelet(server: ApiServer, containerd: Containerd, root: Path) -> AsyncIterator[Host]:
    """One run of a kubelet, with a node's own rights; its containers outlive it."""
    client, chance = server.client("kubelet", KUBELET), RealChance()
    node_settings = NodeSettings(cgroup_root=containerd.cgroup_root)
    runtime = CriRuntime(containerd.socket, CLOCK, settings=node_settings, host_ips=("127.0.0.1",))
    machine = LocalMachine(client, CLOCK, chance, runtime, root)
    host = Host(client, CLOCK, chance, runtime, machine, only_node=NODE)
    await host.start()
    try:
        model = NodeModel(runtime_version=runtime.version)
        node = NodeSpecification(NODE, model, addresses=("127.0.0.1",), boot_id="boot-1")
        host.add_node(node)
        yield host
    finally:
        await host.stop()


async def until(client: Client, holds: Callable[[Pod], bool]) -> Pod:
    """The pod, once something is true of it."""
    async with CLOCK.timeout(PATIENCE_SECONDS), client.watch(Pod, "default", name="p") as watch:
        async for event in watch:
            if holds(event.object):
                return event.object
    raise AssertionError("the watch has ended")


def is_ready(pod: Pod) -> bool:
    return bool(pod.status.container_statuses) and pod.status.container_statuses[0].ready


def is_over(pod: Pod) -> bool:
    return (
        bool(pod.status.container_statuses) and pod.status.container_statuses[0].state.terminated is not None
    )


def test_a_pod_starts_is_entered_logs_outlives_the_agent_and_goes(tmp_path: Path) -> None:
    root, home = tmp_path / "node", tmp_path / "containerd"
    home.mkdir()

    async def main(containerd: Containerd) -> None:
        async with running(settings(), clock=CLOCK) as server:
            client = server.client("test")
            async with kubelet(server, containerd, root) as host:
                made = await client.create(codec.from_tree(POD, Pod))
                uid = made.metadata.uid
                ready = await until(client, is_ready)
                first = ready.status.container_statuses[0]
                assert first.container_id.startswith("containerd://")
                init = ready.status.init_container_statuses[0].state.terminated
                assert init is not None
                assert (init.exit_code, init.reason) == (0, "Completed")
                node = await client.get(Node, NODE)
                assert node.status.node_info.container_runtime_version == host.runtime.version
                _check_log(root / "logs" / "pods" / f"default_p_{uid}" / "c" / "0.log")
                assert await _through_cat(host, uid, b"in and out") == b"in and out"
            async with kubelet(server, containerd, root):
                again = await until(client, is_ready)
                assert again.status.container_statuses[0].container_id == first.container_id
                assert again.status.container_statuses[0].restart_count == 0
                await client.delete(Pod, "p", "default")
                over = await until(client, is_over)
                ended = over.status.container_statuses[0].state.terminated
                assert ended is not None
                assert (ended.exit_code, ended.reason, ended.message) == (3, "Error", "bye\n")
                async with CLOCK.timeout(PATIENCE_SECONDS):
                    while (await client.list(Pod)).items or _leftovers(containerd, root, uid):
                        await CLOCK.sleep(0.05)

    with running_containerd(home) as each:
        asyncio.run(main(each))


def test_a_running_container_gets_another_size_in_its_cgroup(tmp_path: Path) -> None:
    root, home = tmp_path / "node", tmp_path / "containerd"
    home.mkdir()

    async def main(containerd: Containerd) -> None:
        async with running(settings(), clock=CLOCK) as server, kubelet(server, containerd, root):
            client = server.client("test")
            await client.create(codec.from_tree(POD, Pod))
            first = (await until(client, is_ready)).status.container_statuses[0]

            async def resize(cpu: str, memory: str) -> None:
                size = {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": memory}}
                patch = {"spec": {"containers": [{"name": "c", "resources": size}]}}
                await client.patch(Pod, "p", patch, namespace="default", subresource="resize")

            await resize("200m", "96Mi")
            done = await until(client, lambda pod: _memory(pod) == "96Mi" and not _resizing(pod))
            status = done.status.container_statuses[0]
            assert (status.container_id, status.restart_count) == (first.container_id, 0)
            assert _in_cgroups(status, "memory.limit_in_bytes", "memory.max") == {96 << 20}
            assert _in_cgroups(status, "cpu.shares") <= {204}
            # What the container uses is not taken from it; the resize is tried again, or replaced by another.
            await resize("200m", "16Ki")
            failed = await until(client, lambda pod: _resizing(pod) == ["Error"])
            text = next(each.message for each in failed.status.conditions if each.reason == "Error")
            assert 'attempting to set container "c" memory limit (16384) below current usage' in text
            assert _memory(failed) == "96Mi"
            await resize("100m", "80Mi")
            await until(client, lambda pod: _memory(pod) == "80Mi" and not _resizing(pod))
            assert _in_cgroups(status, "memory.limit_in_bytes", "memory.max") == {80 << 20}

    with running_containerd(home) as each:
        asyncio.run(main(each))


def _memory(pod: Pod) -> str:
    resources = pod.status.container_statuses[0].resources
    return str(resources.limits.get("memory", "")) if resources is not None else ""


def _resizing(pod: Pod) -> list[str]:
    return [each.reason for each in pod.status.conditions if each.type.startswith("PodResize")]


def _in_cgroups(status: ContainerStatus, *names: str) -> set[int]:
    """What the groups of a container say under these names, in whichever version of cgroups there is."""
    id_ = status.container_id.rpartition("/")[2]
    return {
        int(path.read_text()) for name in names for path in Path("/sys/fs/cgroup").glob(f"**/{id_}/{name}")
    }


def _check_log(path: Path) -> None:
    lines = [line.split(" ", 3) for line in path.read_text().splitlines()]
    assert {(stream, tag) for _, stream, tag, _ in lines} == {("stdout", "F")}
    said = [text for _, _, _, text in lines]
    assert said[:4] == ["I am p", 'app="web"', 'tier="front"from the first', ""]


async def _through_cat(host: Host, uid: str, data: bytes) -> bytes:
    """What comes out of a command after its input was closed."""
    session = await host.runtime.exec(ExecRequest(uid, "c", ("cat",), has_stdin=True))
    await session.write(data)
    await session.close_stdin()
    out = b"".join([piece async for _, piece in session.output()])
    assert await session.wait() == 0
    return out


def _leftovers(containerd: Containerd, root: Path, uid: str) -> list[str]:
    listed = containerd.ctr("containers", "ls", "-q").split()
    return [*listed, *(str(each) for each in root.glob(f"**/*{uid}*"))]

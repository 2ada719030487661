"""A whole node with real processes, volumes and probes, against an API server, with a node's own rights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from nodeward.api import codec
from nodeward.api.core_v1.cluster import ConfigMap, Event
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import ContainerStatus
from nodeward.api.meta import ObjectMeta
from nodeward.apiserver.server import ApiServer
from nodeward.kubelet.host import Host
from nodeward.kubelet.local_services import LocalMachine
from nodeward.kubelet.runtime.process.runtime import ProcessRuntime
from nodeward.kubelet.static_pods import StaticPods
from nodeward.machinery.client import Client
from nodeward.machinery.clock import RealChance, RealClock
from tests.apiserver.running import running, settings
from tests.kubelet.hosting import specification
from tests.kubelet.machine import KUBELET, NODE
from tests.patience import PATIENCE_SECONDS

CLOCK = RealClock()


@asynccontextmanager
async def kubelet(server: ApiServer, root: Path, manifests: Path | None = None) -> AsyncIterator[Host]:
    """One run of a kubelet; its containers outlive it."""
    chance = RealChance()
    client = server.client("kubelet", KUBELET)
    runtime = ProcessRuntime(root / "runtime", CLOCK, chance)
    host = Host(
        client, CLOCK, chance, runtime, LocalMachine(client, CLOCK, chance, runtime, root), only_node=NODE
    )
    await host.begin()
    try:
        agent = host.add_node(specification(NODE))
        if manifests is not None:
            StaticPods(manifests, agent, host.pods, CLOCK).look()
        await host.wait_heard()
        yield host
    finally:
        await host.stop()


def pod(name: str, container: dict[str, Any], **spec: Any) -> Pod:
    tree = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": NODE,
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "c", "image": "image", **container}],
            **spec,
        },
    }
    return codec.from_tree(tree, Pod)


async def until(client: Client, name: str, holds: Callable[[Pod], bool]) -> Pod:
    """The pod, once something is true of it."""
    async with CLOCK.timeout(PATIENCE_SECONDS), client.watch(Pod, "default", name=name) as watch:
        async for event in watch:
            if event.object.metadata.name == name and holds(event.object):
                return event.object
    raise AssertionError("the watch has ended")


async def until_gone(client: Client, name: str) -> None:
    async with CLOCK.timeout(PATIENCE_SECONDS), client.watch(Pod, "default", name=name) as watch:
        async for event in watch:
            if event.type == "DELETED":
                return


def is_ready(pod: Pod) -> bool:
    return bool(pod.status.container_statuses) and pod.status.container_statuses[0].ready


def status(pod: Pod) -> ContainerStatus:
    return pod.status.container_statuses[0]


async def ended(client: Client, *names: str) -> None:
    """Nothing is left to run after a test."""
    for name in names:
        await client.delete(Pod, name, "default")
    for name in names:
        await until_gone(client, name)


async def cleared(root: Path, uid: str) -> None:
    """Nothing of the pod is left on the disk. Nobody tells when: the kubelet is looked at until it is so."""

    def is_left() -> bool:
        return (root / "pods" / uid).exists() or any((root / "logs" / "pods").glob(f"*_{uid}"))

    async with CLOCK.timeout(PATIENCE_SECONDS):
        while is_left():
            await CLOCK.sleep(0.02)


def test_a_pod_runs_with_its_volumes_probes_and_hooks_and_outlives_the_kubelet(tmp_path: Path) -> None:
    script = (
        'while [ ! -e "$DATA/hooked" ]; do sleep 0.05; done; '
        'echo "$GREETING from $POD_NAME"; touch "$DATA/ready"; exec sleep 1000'
    )
    data = tmp_path / "data"
    container = {
        "command": ["sh", "-c", script],
        "env": [
            {"name": "DATA", "value": str(data)},
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "GREETING", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "greeting"}}},
        ],
        "readinessProbe": {
            "exec": {"command": ["test", "-e", f"{data}/ready"]},
            "periodSeconds": 1,
        },
        "lifecycle": {"postStart": {"exec": {"command": ["touch", f"{data}/hooked"]}}},
        "volumeMounts": [{"name": "cm", "mountPath": str(data / "cm")}],
    }

    async def main() -> None:
        data.mkdir()
        async with running(settings(), clock=CLOCK) as server:
            client = server.client("test")
            meta = ObjectMeta(name="cm", namespace="default")
            await client.create(ConfigMap(metadata=meta, data={"greeting": "hello"}))
            async with kubelet(server, tmp_path / "node"):
                volume = {"name": "cm", "configMap": {"name": "cm"}}
                made = await client.create(pod("p", container, volumes=[volume]))
                ready = await until(client, "p", is_ready)
                first = status(ready)
                assert ready.status.phase == "Running"
                logs = tmp_path / "node" / "logs" / "pods" / f"default_p_{made.metadata.uid}"
                assert "hello from p" in (logs / "c" / "0.log").read_text()
            async with kubelet(server, tmp_path / "node"):
                again = await until(client, "p", is_ready)
                assert status(again).container_id == first.container_id
                assert status(again).restart_count == 0
                await ended(client, "p")
                await cleared(tmp_path / "node", made.metadata.uid)

    asyncio.run(main())


def test_what_was_deleted_while_no_kubelet_was_there_is_ended_by_the_next(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(settings(), clock=CLOCK) as server:
            client = server.client("test")
            async with kubelet(server, tmp_path):
                made = await client.create(pod("p", {"command": ["sleep", "1000"]}))
                await until(client, "p", is_ready)
            await client.delete(Pod, "p", "default", grace_period=0)
            async with kubelet(server, tmp_path) as host:
                await cleared(tmp_path, made.metadata.uid)
                async with CLOCK.timeout(PATIENCE_SECONDS):
                    while host.pods.found:
                        await CLOCK.sleep(0.02)

    asyncio.run(main())


def test_a_container_that_lacks_its_config_waits_and_says_why(tmp_path: Path) -> None:
    container = {
        "command": ["sleep", "1000"],
        "envFrom": [{"configMapRef": {"name": "missing"}}],
    }

    def waits(pod: Pod) -> bool:
        waiting = status(pod).state.waiting if pod.status.container_statuses else None
        return waiting is not None and waiting.reason == "CreateContainerConfigError"

    async def main() -> None:
        async with running(settings(), clock=CLOCK) as server, kubelet(server, tmp_path):
            client = server.client("test")
            await client.create(pod("p", container))
            waiting = status(await until(client, "p", waits)).state.waiting
            assert waiting is not None
            assert waiting.message == 'configmap "missing" not found'
            await ended(client, "p")

    asyncio.run(main())


def test_a_volume_that_cannot_be_made_is_told_as_an_event(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(settings(), clock=CLOCK) as server, kubelet(server, tmp_path):
            client = server.client("test")
            volume = {"name": "v", "secret": {"secretName": "missing"}}
            await client.create(pod("p", {"command": ["sleep", "1000"]}, volumes=[volume]))
            async with CLOCK.timeout(PATIENCE_SECONDS), client.watch(Event, "default") as watch:
                async for event in watch:
                    if event.object.reason == "FailedMount":
                        break
            assert (
                event.object.message == 'MountVolume.SetUp failed for volume "v" : secret "missing" not found'
            )
            await ended(client, "p")

    asyncio.run(main())


def test_a_static_pod_starts_and_the_api_shows_it_with_a_nodes_own_rights(tmp_path: Path) -> None:
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "web.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  terminationGracePeriodSeconds: 1\n"
        "  containers:\n  - name: c\n    image: image\n    command: [sleep, '1000']\n"
    )

    async def main() -> None:
        async with running(settings(), clock=CLOCK) as server:
            client = server.client("test")
            async with kubelet(server, tmp_path / "node", manifests) as host:
                shown = await until(client, f"web-{NODE}", is_ready)
                held = host.find_pod("default", f"web-{NODE}")
                assert held is not None
                assert held.uid == shown.metadata.annotations["kubernetes.io/config.mirror"]
                host.pods.on_pod_deleted(held.uid)
                await until_gone(client, f"web-{NODE}")

    asyncio.run(main())

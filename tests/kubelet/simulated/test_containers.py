"""What a command in a simulated container finds, and that nothing is made before somebody looks."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from nodeward.api import codec
from nodeward.api.core_v1.cluster import ConfigMap, Event, Secret
from nodeward.api.core_v1.pod import Pod
from nodeward.api.meta import ObjectMeta
from nodeward.features.gates import Gates
from nodeward.kubelet.config.settings import KubeletSettings
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.kubelet.node.specification import NodeModel
from nodeward.kubelet.runtime.interface import ExecRequest
from nodeward.kubelet.runtime.resources import ContainerResources
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.transport import Request, Response
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.hosting import Hosted, hosted, specification

_TOKEN: dict[str, Any] = {
    "name": "kube-api-access",
    "projected": {
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
            {
                "downwardAPI": {
                    "items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]
                }
            },
        ]
    },
}


def play(act: Callable[[Hosted], Awaitable[None]]) -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            meta = ObjectMeta(name="settings", namespace="default")
            await each.client.create(ConfigMap(metadata=meta, data={"colour": "red", "deep": "sea"}))
            meta = ObjectMeta(name="login", namespace="default")
            await each.client.create(Secret(metadata=meta, data={"word": b"hidden"}))
            await act(each)

    run_virtual(main)


async def run(each: Hosted, name: str = "p", volumes: Any = (), **container: Any) -> Pod:
    """A pod that runs on the simulated node."""
    tree = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": "n1",
            "serviceAccountName": "default",
            "volumes": list(volumes),
            "containers": [{"name": "c", "image": "image", **container}],
        },
    }
    await each.client.create(codec.from_tree(tree, Pod))
    await each.clock.sleep(2)
    return await each.pod(name)


async def output(each: Hosted, pod: Pod, *command: str) -> tuple[int, str]:
    result = await each.runtime.exec_sync(ExecRequest(pod.metadata.uid, "c", command), 10)
    return result.exit_code, result.output.decode()


@pytest.mark.parametrize(
    ("command", "before", "after"),
    [
        (("cat", "/sys/fs/cgroup/cpuset.cpus.effective"), "0-39\n", "1-2,33\n"),
        (
            ("grep", "Cpus_allowed_list", "/proc/1/status"),
            "Cpus_allowed_list:\t0-39\n",
            "Cpus_allowed_list:\t1-2,33\n",
        ),
        (
            ("grep", "Cpus_allowed:", "/proc/self/status"),
            "Cpus_allowed:\tff,ffffffff\n",
            "Cpus_allowed:\t2,00000006\n",
        ),
        (
            ("taskset", "-cp", "1"),
            "pid 1's current affinity list: 0-39\n",
            "pid 1's current affinity list: 1-2,33\n",
        ),
        (
            ("taskset", "-p", "1"),
            "pid 1's current affinity mask: ffffffffff\n",
            "pid 1's current affinity mask: 200000006\n",
        ),
        (("nproc",), "40\n", "3\n"),
    ],
)
def test_a_command_sees_the_cpus_of_its_container(command: tuple[str, ...], before: str, after: str) -> None:
    async def main(clock: VirtualClock) -> None:
        topology = CPUDescription(sockets=2, cores_per_numa=20).topology()
        async with hosted(clock, specification("n1", NodeModel(cpus=topology))) as each:
            pod = await run(each)
            assert await output(each, pod, *command) == (0, before)
            each.runtime.update_resources(pod.metadata.uid, "c", ContainerResources(cpuset="33,1-2"))
            assert await output(each, pod, *command) == (0, after)
            # The node has 40: this one is refused, and nothing changes.
            each.runtime.update_resources(pod.metadata.uid, "c", ContainerResources(cpuset="1,40"))
            assert await output(each, pod, *command) == (0, after)

    run_virtual(main)


@pytest.mark.parametrize(("version", "phase"), [("1.36", "Pending"), ("1.37", "Running")])
def test_a_token_beside_it_does_not_hide_a_resource_the_kubelet_does_not_know(
    version: str, phase: str
) -> None:
    async def main(clock: VirtualClock) -> None:
        model = NodeModel(settings=KubeletSettings(gates=Gates.of(version)))
        async with hosted(clock, specification("n1", model)) as each:
            reference = {"containerName": "c", "resource": "assigned.cpuset"}
            item = {"path": "cpus", "resourceFieldRef": reference}
            sources = [*_TOKEN["projected"]["sources"], {"downwardAPI": {"items": [item]}}]
            volume = {"name": "all", "projected": {"sources": sources}}
            pod = await run(each, volumes=[volume])
            assert pod.status.phase == phase

    run_virtual(main)


def listened(each: Hosted) -> list[str]:
    """The paths the kubelet asks for, from now on."""
    asked: list[str] = []

    async def note(request: Request, send: Callable[[Request], Awaitable[Response]]) -> Response:
        asked.append(request.path)
        return await send(request)

    each.transport.alter = note
    return asked


MOUNTED: dict[str, Any] = {"volumes": [{"name": "v", "configMap": {"name": "settings"}}]}


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (("cat", "/conf/colour"), 0, "red"),
        (("cat", "/conf/..data/colour"), 0, "red"),
        (("cat", "conf/../conf/colour", "/conf/deep"), 0, "redsea"),
        (("cat", "/conf/none"), 1, "cat: /conf/none: No such file or directory\n"),
        (("cat", "/conf"), 1, "cat: /conf: Is a directory\n"),
        (("ls", "/conf"), 0, "colour\ndeep\n"),
        (("ls", "/"), 0, "conf\none\nscratch\n"),
        (("cat", "/one"), 0, "sea"),
        (("sh", "-c", "cat /conf/none || echo $WORD && false; echo end"), 0, "hidden\nend\n"),
        (("sh", "-c", "true && exit 7; echo no"), 7, ""),
        (("printenv", "WORD"), 0, "hidden\n"),
        (("printenv", "NONE"), 1, ""),
        (("test", "-d", "/conf"), 0, ""),
        (("test", "-f", "/conf"), 1, ""),
        (("test", "-e", "/conf/colour"), 0, ""),
        (("hostname",), 0, "p\n"),
        (("nginx", "-t"), 0, "simulated: nginx -t\n"),
    ],
)
def test_commands_find_volumes_and_variables(command: tuple[str, ...], code: int, text: str) -> None:
    async def act(each: Hosted) -> None:
        pod = await run(
            each,
            volumes=[{"name": "v", "configMap": {"name": "settings"}}, {"name": "e", "emptyDir": {}}],
            volumeMounts=[
                {"name": "v", "mountPath": "/conf"},
                {"name": "v", "mountPath": "/one", "subPath": "deep"},
                {"name": "e", "mountPath": "/scratch"},
            ],
            env=[{"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "login", "key": "word"}}}],
        )
        found = await output(each, pod, *command)
        assert (found[0], found[1][: len(text)]) == (code, text), found

    play(act)


def test_a_plain_pod_asks_for_no_token_until_its_file_is_read() -> None:
    async def act(each: Hosted) -> None:
        asked = listened(each)
        mounts = [{"name": "kube-api-access", "mountPath": "/var/run/secrets"}]
        pod = await run(each, volumes=[_TOKEN], volumeMounts=mounts, env=[{"name": "A", "value": "1"}])
        assert pod.status.phase == "Running"
        assert not [path for path in asked if "token" in path or "services" in path or "configmaps" in path]
        await output(each, pod, "cat", "/var/run/secrets/token")
        assert [path for path in asked if path.endswith("/token")]

    play(act)


def test_pods_that_start_together_share_one_request_for_an_object() -> None:
    async def act(each: Hosted) -> None:
        asked = listened(each)
        for number in range(20):
            tree = {
                "metadata": {"name": f"p{number}", "namespace": "default"},
                "spec": {
                    "nodeName": "n1",
                    "containers": [{"name": "c", "image": "image"}],
                    "volumes": [{"name": "v", "configMap": {"name": "settings"}}],
                },
            }
            await each.client.create(codec.from_tree(tree, Pod))
        await each.clock.sleep(2)
        assert (await each.pod("p19")).status.phase == "Running"
        assert len([path for path in asked if path.endswith("/configmaps/settings")]) == 1

    play(act)


def test_a_missing_secret_keeps_a_simulated_container_from_starting() -> None:
    async def act(each: Hosted) -> None:
        source = {"secretKeyRef": {"name": "absent", "key": "word"}}
        pod = await run(each, env=[{"name": "A", "valueFrom": source}])
        waiting = pod.status.container_statuses[0].state.waiting
        assert waiting is not None
        assert (waiting.reason, waiting.message) == (
            "CreateContainerConfigError",
            'secret "absent" not found',
        )

    play(act)


def test_variables_are_those_of_the_start() -> None:
    async def act(each: Hosted) -> None:
        source = {"secretKeyRef": {"name": "login", "key": "word"}}
        pod = await run(each, env=[{"name": "A", "valueFrom": source}])
        await each.client.patch(Secret, "login", {"stringData": {"word": "other"}}, namespace="default")
        await each.clock.sleep(90)
        assert await output(each, pod, "printenv", "A") == (0, "hidden\n")

    play(act)


def test_files_follow_the_api() -> None:
    async def act(each: Hosted) -> None:
        mounts = [{"name": "v", "mountPath": "/conf"}]
        pod = await run(each, volumeMounts=mounts, **MOUNTED)
        await each.client.patch(ConfigMap, "settings", {"data": {"colour": "blue"}}, namespace="default")
        await each.clock.sleep(90)
        assert await output(each, pod, "cat", "/conf/colour") == (0, "blue")

    play(act)


def test_what_is_written_into_a_volume_outlives_the_kubelet_and_not_the_pod() -> None:
    async def act(each: Hosted) -> None:
        mounts = [{"name": "e", "mountPath": "/data"}]
        pod = await run(each, volumes=[{"name": "e", "emptyDir": {}}], volumeMounts=mounts)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            entry = tarfile.TarInfo("note")
            entry.size = 5
            archive.addfile(entry, io.BytesIO(b"hello"))
        command = ("tar", "-xmf", "-", "-C", "/data")
        session = await each.runtime.exec(ExecRequest(pod.metadata.uid, "c", command, has_stdin=True))
        await session.write(packed.getvalue())
        await session.close_stdin()
        assert [data async for data in session.output()] == []
        assert await session.wait() == 0
        await each.host.restart_node(specification("n1"))
        await each.clock.sleep(2)
        assert await output(each, pod, "cat", "/data/note") == (0, "hello")
        await each.client.delete(Pod, "p", "default")
        await each.clock.sleep(40)
        assert not each.machines.disk("n1").below("pods")

    play(act)


def test_a_volume_takes_no_more_than_its_share_of_memory() -> None:
    async def act(each: Hosted) -> None:
        mounts = [{"name": "e", "mountPath": "/data"}]
        pod = await run(each, volumes=[{"name": "e", "emptyDir": {}}], volumeMounts=mounts)
        volumes = each.machines.services(specification("n1")).volumes
        await volumes.write(pod, "e", "half", bytes(600_000))
        with pytest.raises(Exception, match="No space left on device"):
            await volumes.write(pod, "e", "other", bytes(600_000))

    play(act)


def test_a_hook_that_sleeps_takes_its_time_and_no_longer_than_the_grace_period() -> None:
    async def act(each: Hosted) -> None:
        hook = {"preStop": {"exec": {"command": ["sleep", "10"]}}}
        await run(each, lifecycle=hook)
        await each.client.delete(Pod, "p", "default")
        await each.clock.sleep(8)
        assert len((await each.client.list(Pod)).items) == 1
        await each.clock.sleep(4)
        assert not (await each.client.list(Pod)).items

    play(act)


def test_a_hook_ends_as_its_pod_describes_it() -> None:
    async def act(each: Hosted) -> None:
        hook = {"postStart": {"httpGet": {"path": "/", "port": 80}}}
        tree = {
            "metadata": {
                "name": "p",
                "namespace": "default",
                "annotations": {"simulation.nodeward.dev/c": "post-start-code=3"},
            },
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "lifecycle": hook}]},
        }
        await each.client.create(codec.from_tree(tree, Pod))
        await each.clock.sleep(5)
        told = [each.reason for each in (await each.client.list(Event)).items]
        assert "FailedPostStartHook" in told

    play(act)

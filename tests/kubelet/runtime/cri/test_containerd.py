"""What only real containers can show: rights, namespaces, memory, CPUs, and a runtime that goes away and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeward.api.core_v1.container import Capabilities, Container, ResourceRequirements, SecurityContext
from nodeward.api.core_v1.pod import Pod
from nodeward.base.errors import WorldError
from nodeward.base.quantity import Quantity
from nodeward.kubelet.runtime.cri.calls import Calls
from nodeward.kubelet.runtime.cri.cgroup_driver import find_driver
from nodeward.kubelet.runtime.cri.runtime import CriRuntime
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    ExecRequest,
    PodGone,
    ResourcesApplied,
    ResourcesRefused,
    SandboxFailed,
)
from nodeward.kubelet.runtime.resources import ContainerResources
from nodeward.machinery.clock import RealClock
from tests.contracts.runtimes.cri_ground import CriGround
from tests.contracts.runtimes.ground import SERVES, Act, Scene
from tests.kubelet.runtime.containerd import USER_IMAGE, Containerd, running_containerd
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def containerd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containerd]:
    with running_containerd(tmp_path_factory.mktemp("containerd")) as each:
        yield each


@pytest.fixture
def ground(tmp_path: Path, containerd: Containerd) -> CriGround:
    return CriGround(tmp_path, containerd)


async def said(scene: Scene, pod: Pod, script: str, name: str = "c0") -> str:
    """What a shell in the container prints."""
    request = ExecRequest(pod.metadata.uid, name, ("sh", "-c", script))
    return (await scene.runtime.exec_sync(request, PATIENCE_SECONDS)).output.decode().strip()


def groups_of(containerd: Containerd, uid: str) -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob(f"**/{containerd.cgroup_root}/**/pod{uid}"))


def test_a_container_has_the_rights_its_spec_gives_and_no_more(ground: CriGround) -> None:
    rights = SecurityContext(
        run_as_user=1000,
        run_as_group=2000,
        read_only_root_filesystem=True,
        allow_privilege_escalation=False,
        capabilities=Capabilities(drop=["ALL"]),
    )

    async def play(scene: Scene) -> None:
        pod = scene.pod(SERVES, security_context=rights)
        await scene.sandbox(pod)
        await scene.started(pod)
        assert await said(scene, pod, "id -u; id -g") == "1000\n2000"
        assert "Read-only file system" in await said(scene, pod, "touch /tmp/x 2>&1")
        found = await said(scene, pod, "grep -e CapBnd -e NoNewPrivs /proc/1/status")
        assert found.split() == ["CapBnd:", "0000000000000000", "NoNewPrivs:", "1"]
        kernel = (await said(scene, pod, "grep ' /proc/sys ' /proc/mounts")).split()
        assert "ro" in kernel[3].split(",")

    ground.play(play)


def test_a_privileged_container_has_all_rights(ground: CriGround) -> None:
    status = Path("/proc/self/status").read_text().splitlines()
    ours = next(line.split()[1] for line in status if line.startswith("CapBnd"))

    async def play(scene: Scene) -> None:
        pod = scene.pod(SERVES, security_context=SecurityContext(privileged=True))
        await scene.sandbox(pod)
        await scene.started(pod)
        assert (await said(scene, pod, "grep CapBnd /proc/1/status")).split()[1] == ours

    ground.play(play)


@pytest.mark.parametrize(("is_shared", "seen"), [(True, "1"), (False, "0")])
def test_processes_are_shared_in_a_pod_if_it_says_so(ground: CriGround, is_shared: bool, seen: str) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(SERVES, Act(script="echo ready; exec sleep 7654"))
        pod.spec.share_process_namespace = is_shared
        await scene.sandbox(pod)
        for name in ("c0", "c1"):
            await scene.started(pod, name)
        assert await said(scene, pod, "ps | grep -c '[s]leep 7654'") == seen

    ground.play(play)


def test_a_container_that_must_not_be_root_is_not(ground: CriGround) -> None:
    careful = SecurityContext(run_as_non_root=True)

    async def play(scene: Scene) -> None:
        pod = scene.pod(SERVES, security_context=careful)
        await scene.sandbox(pod)
        failed = await scene.failed(scene.request(pod))
        assert failed.reason == "CreateContainerConfigError"
        assert failed.message.startswith("container has runAsNonRoot and image will run as root (pod: ")
        other = scene.pod(SERVES, image=USER_IMAGE, security_context=careful)
        await scene.sandbox(other)
        await scene.started(other)
        assert await said(scene, other, "id -u") == "65534"

    ground.play(play)


def test_too_much_memory_ends_a_container_and_is_told_as_that(ground: CriGround) -> None:
    limits = ResourceRequirements(limits={"memory": Quantity.parse("16Mi")})

    async def play(scene: Scene) -> None:
        pod = scene.pod(Act(script="exec tail /dev/zero"), resources=limits)
        await scene.sandbox(pod)
        await scene.started(pod)
        exited = await scene.exited(pod)
        assert (exited.exit_code, exited.reason) == (137, "OOMKilled")

    ground.play(play)


def test_a_running_container_moves_to_other_cpus(ground: CriGround) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(SERVES)
        await scene.sandbox(pod)
        await scene.started(pod, cpuset="0-1")
        uid, allowed = pod.metadata.uid, "grep Cpus_allowed_list /proc/1/status | cut -f2"
        assert await said(scene, pod, allowed) == "0-1"
        scene.runtime.update_resources(uid, "c0", ContainerResources(cpu_shares=512, cpuset="1"))
        await scene.heard.wait_for(ResourcesApplied)
        assert await said(scene, pod, allowed) == "1"
        # What the machine does not have is refused, and changes nothing.
        scene.runtime.update_resources(uid, "c0", ContainerResources(cpuset="4000"))
        await scene.heard.wait_for(ResourcesRefused)
        assert await said(scene, pod, allowed) == "1"

    ground.play(play)


def test_nothing_of_a_removed_pod_is_left(ground: CriGround, containerd: Containerd) -> None:
    async def play(scene: Scene) -> None:
        pod, started = await scene.running()
        uid = pod.metadata.uid
        assert groups_of(containerd, uid)
        scene.runtime.remove_pod(uid)
        await scene.heard.wait_for(PodGone, uid=uid)
        assert not groups_of(containerd, uid)
        assert started.id not in containerd.ctr("containers", "ls", "-q")
        assert not containerd.ctr("tasks", "ls", "-q").strip()

    ground.play(play)


def test_containers_outlive_their_runtime_and_are_followed_when_it_is_back(
    ground: CriGround, containerd: Containerd
) -> None:
    async def play(scene: Scene) -> None:
        pod, started = await scene.running()
        containerd.kill()
        try:
            # What must happen is tried until it has happened; what may fail, fails.
            scene.runtime.stop_container(pod.metadata.uid, "c0", 5)
            other = scene.pod(SERVES)
            scene.runtime.start_sandbox(other)
            failed = await scene.heard.wait_for(SandboxFailed, uid=other.metadata.uid)
            assert "Unavailable" in failed.message
            assert not scene.heard.of(ContainerExited)
        finally:
            containerd.start()
        exited = await scene.exited(pod)
        assert exited.id == started.id
        await scene.sandbox(other)

    ground.play(play)


def test_a_container_that_was_made_and_never_started_is_no_obstacle(ground: CriGround) -> None:
    async def play(scene: Scene) -> None:
        pod = scene.pod(SERVES)
        sandbox = await scene.sandbox(pod)
        request = scene.request(pod)
        await _only_create(ground, sandbox.sandbox_id, pod, request.container)
        await scene.started(pod)
        second = scene.pod(SERVES)
        sandbox = await scene.sandbox(second)
        await _only_create(ground, sandbox.sandbox_id, second, request.container)
        found = {each.uid: each for each in await scene.another_agent()}
        assert found[second.metadata.uid].containers == ()
        await scene.started(second)

    ground.play(play)


async def _only_create(ground: CriGround, sandbox_id: str, pod: Pod, container: Container) -> None:
    """As an agent that died on the way would leave it."""
    call, meta = Calls(ground.socket), pod.metadata
    await call(
        "CreateContainer",
        pod_sandbox_id=sandbox_id,
        config={
            "metadata": {"name": container.name},
            "image": {"image": container.image},
            "labels": {"io.kubernetes.pod.uid": meta.uid, "io.kubernetes.container.name": container.name},
            "linux": {},
        },
        sandbox_config={"metadata": {"name": meta.name, "uid": meta.uid, "namespace": meta.namespace}},
    )
    await call.close()


def test_what_cannot_be_given_is_refused_and_not_ignored(ground: CriGround) -> None:
    async def play(scene: Scene) -> None:
        pod, other = scene.pod(SERVES), scene.pod(SERVES)
        pod.spec.host_users = False
        other.spec.runtime_class_name = "gvisor"
        for each, word in ((pod, "hostUsers"), (other, "gvisor")):
            scene.runtime.start_sandbox(each)
            assert word in (await scene.heard.wait_for(SandboxFailed, uid=each.metadata.uid)).message

    ground.play(play)


def test_a_socket_nobody_listens_at_is_told_with_what_to_do(tmp_path: Path) -> None:
    async def main() -> None:
        runtime = CriRuntime(f"unix://{tmp_path}/none.sock", RealClock())
        with pytest.raises(WorldError, match=r"no container runtime answers CRI v1 at unix://.*none\.sock"):
            await runtime.start(lambda event: None)
        await runtime.stop()

    asyncio.run(main())


@pytest.mark.parametrize("has_systemd", [True, False])
def test_who_manages_groups_is_asked_of_the_runtime(tmp_path: Path, has_systemd: bool) -> None:
    async def main(socket: str) -> str:
        call = Calls(socket)
        try:
            return await find_driver(call)
        finally:
            await call.close()

    with running_containerd(tmp_path, has_systemd=has_systemd) as each:
        assert asyncio.run(main(each.socket)) == ("systemd" if has_systemd else "cgroupfs")

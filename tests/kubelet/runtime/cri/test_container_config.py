"""What a container is to be like, worked out from its request."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodeward.api import codec
from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.runtime.cri.container_config import container_config, target_of
from nodeward.kubelet.runtime.cri.linux_resources import changed, in_force, oom_score
from nodeward.kubelet.runtime.cri.messages import CONTAINER, NODE, POD, TARGET, message
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings
from nodeward.kubelet.runtime.interface import ContainerRequest, Mount
from nodeward.kubelet.runtime.resources import ContainerResources, cpu_quota_us, cpu_shares

SETTINGS = NodeSettings()


def pod(container: dict[str, Any] | None = None, **spec: Any) -> Pod:
    tree = {
        "metadata": {"name": "p", "namespace": "ns", "uid": "u1"},
        "spec": {"containers": [{"name": "c", "image": "image", **(container or {})}], **spec},
    }
    return codec.from_tree(tree, Pod)


def config(of: Pod, *, is_on_host: bool = False, target: str = "", **request: Any) -> Any:
    asked = ContainerRequest(of, of.spec.containers[0], request.pop("attempt", 0), {}, **request)
    return container_config(asked, SETTINGS, is_on_host_network=is_on_host, target_id=target)


def rights(container: dict[str, Any] | None = None, **spec: Any) -> Any:
    return config(pod(container, **spec)).linux.security_context


def test_a_request_is_followed_to_the_letter() -> None:
    of = pod({"workingDir": "/work", "tty": True, "stdin": True, "terminationMessagePath": "/dev/last"})
    request = ContainerRequest(
        of,
        of.spec.containers[0],
        2,
        {"A": "ä", "B": ""},
        ("run",),
        ("--fast",),
        (Mount("/node/data", "/data", True, ("noexec",)),),
        "0-1",
        "/logs/c/2.log",
        "/node/last",
    )
    made = container_config(request, SETTINGS, is_on_host_network=False)
    assert (made.metadata.name, made.metadata.attempt, made.image.image) == ("c", 2, "image")
    assert (list(made.command), list(made.args), made.working_dir) == (["run"], ["--fast"], "/work")
    assert [(each.key, each.value) for each in made.envs] == [("A", "ä".encode()), ("B", b"")]
    mounts = [(each.host_path, each.container_path, each.readonly) for each in made.mounts]
    assert mounts == [("/node/data", "/data", True), ("/node/last", "/dev/last", False)]
    assert [list(each.mount_options) for each in made.mounts] == [["noexec"], []]
    assert (made.log_path, made.tty, made.stdin) == ("2.log", True, True)
    assert made.linux.resources.cpuset_cpus == "0-1"
    assert made.labels["io.kubernetes.pod.uid"] == "u1"
    assert made.labels["io.kubernetes.container.name"] == "c"
    assert made.annotations["io.kubernetes.container.restartCount"] == "2"


def test_a_volume_where_the_last_words_go_is_not_mounted_over() -> None:
    of = pod({"terminationMessagePath": "/dev/last"})
    made = config(of, mounts=(Mount("/mine", "/dev/last"),), termination_log="/node/last")
    assert [each.host_path for each in made.mounts] == ["/mine"]


def test_rights_come_from_the_container_and_then_from_the_pod() -> None:
    whole = {"runAsUser": 1, "runAsGroup": 2, "supplementalGroups": [3, 4], "fsGroup": 5}
    own = rights({"securityContext": {"runAsUser": 0}}, securityContext=whole)
    assert (own.run_as_user.value, own.run_as_group.value) == (0, 2)
    assert own.HasField("run_as_user")
    assert list(own.supplemental_groups) == [3, 4, 5]
    assert not rights().HasField("run_as_user")


def test_the_kernels_files_are_hidden_unless_the_spec_says_otherwise() -> None:
    usual = rights()
    assert "/proc/kcore" in usual.masked_paths
    assert "/proc/sys" in usual.readonly_paths
    for context in ({"procMount": "Unmasked"}, {"privileged": True}):
        opened = rights({"securityContext": context})
        assert not opened.masked_paths
        assert not opened.readonly_paths


def test_profiles_are_passed_on_but_not_to_the_privileged() -> None:
    localhost = {"type": "Localhost", "localhostProfile": "strict.json"}
    made = rights(securityContext={"seccompProfile": localhost})
    assert (made.seccomp.profile_type, made.seccomp.localhost_ref) == (
        2,
        "/var/lib/kubelet/seccomp/strict.json",
    )
    assert rights({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}).seccomp.profile_type == 1
    assert not rights().HasField("seccomp")
    privileged = rights(
        {"securityContext": {"privileged": True}}, securityContext={"seccompProfile": localhost}
    )
    assert privileged.privileged
    assert not privileged.HasField("seccomp")


def test_what_is_shared_with_the_node_or_in_the_pod() -> None:
    def shared(is_on_host: bool = False, **spec: Any) -> tuple[int, int, int]:
        made = config(pod(**spec), is_on_host=is_on_host).linux.security_context.namespace_options
        return made.network, made.pid, made.ipc

    assert shared() == (POD, CONTAINER, POD)
    assert shared(shareProcessNamespace=True) == (POD, POD, POD)
    assert shared(True, hostPID=True, hostIPC=True) == (NODE, NODE, NODE)


def test_a_debugging_container_looks_at_its_target() -> None:
    of = pod(ephemeralContainers=[{"name": "debug", "image": "image", "targetContainerName": "c"}])
    assert (target_of(of, "debug"), target_of(of, "c")) == ("c", "")
    made = config(of, target="id-of-c").linux.security_context.namespace_options
    assert (made.pid, made.target_id) == (TARGET, "id-of-c")


def test_the_stop_signal_goes_by_cris_own_number() -> None:
    def number(signal: str) -> int:
        return int(config(pod({"lifecycle": {"stopSignal": signal}})).stop_signal)

    assert [number(each) for each in ("SIGABRT", "SIGTERM", "SIGUSR1", "SIGXFSZ")] == [1, 23, 29, 34]
    assert [number(each) for each in ("SIGRTMIN", "SIGRTMIN+15", "SIGRTMAX-14", "SIGRTMAX")] == [
        35,
        50,
        51,
        65,
    ]
    assert config(pod()).stop_signal == 0


def test_limits_and_requests_become_quota_weight_and_bytes() -> None:
    amounts = {"requests": {"cpu": "250m"}, "limits": {"cpu": "1500m", "memory": "64Mi"}}
    made = config(pod({"resources": amounts})).linux.resources
    assert (made.cpu_shares, made.cpu_quota, made.cpu_period) == (256, 150_000, 100_000)
    assert made.memory_limit_in_bytes == 64 << 20
    nothing = config(pod()).linux.resources
    assert (nothing.cpu_shares, nothing.cpu_quota, nothing.memory_limit_in_bytes) == (2, 0, 0)
    only_limit = config(pod({"resources": {"limits": {"cpu": "2"}}})).linux.resources
    assert only_limit.cpu_shares == 2048


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_more_cpu_never_weighs_less(one: int, other: int) -> None:
    low, high = sorted((one, other))
    assert 2 <= cpu_shares(low) <= cpu_shares(high) <= 262144
    assert cpu_quota_us(low) <= cpu_quota_us(high)
    assert cpu_quota_us(high) == 0 or cpu_quota_us(high) >= 1000


def test_who_is_killed_first_when_memory_runs_out() -> None:
    capacity = 8 << 30

    def score(container: dict[str, Any], **spec: Any) -> int:
        of = pod(container, **spec)
        return oom_score(of, of.spec.containers[0], capacity)

    same = {"cpu": "1", "memory": "1Gi"}
    assert score({"resources": {"requests": same, "limits": same}}) == -997
    assert score({}) == 1000
    assert score({}, priority=2_000_001_000) == -997
    assert score({"resources": {"requests": {"memory": "2Gi"}}}) == 750
    assert score({"resources": {"requests": {"memory": "8Gi"}}}) == 3
    assert score({"resources": {"requests": {"cpu": "1"}}}) == 999


def test_a_change_names_only_what_changes() -> None:
    made = changed(ContainerResources(cpu_quota_us=50_000, cpuset="3,2"))
    assert (made.cpuset_cpus, made.cpu_quota, made.memory_limit_in_bytes) == ("2-3", 50_000, 0)


def test_a_runtime_without_a_field_for_it_shows_its_specification() -> None:
    linux = {"cpu": {"shares": 512, "quota": 25000, "period": 50000, "cpus": "0"}, "memory": {"limit": 1024}}
    info = {"info": json.dumps({"runtimeSpec": {"linux": {"resources": linux}}})}
    assert in_force(message("ContainerStatusResponse")(info=info)) == ContainerResources(
        512, 50_000, 1024, "0"
    )
    assert in_force(message("ContainerStatusResponse")(info={"info": "?"})) is None
    said = {"resources": {"linux": {"cpu_shares": 2, "cpu_quota": -1, "cpuset_cpus": "0"}}}
    assert in_force(message("ContainerStatusResponse")(status=said)) == ContainerResources(2, 0, 0, "0")

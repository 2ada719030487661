"""An agent that comes back: what runs goes on, what is lost is known, and newer versions of a pod are taken over."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.container import Probe, ResourceRequirements, VolumeMount
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import PodCondition, PodStatus
from nodeward.base.duration import SECOND_NS
from nodeward.base.invariant import InvariantBroken
from nodeward.base.quantity import Quantity
from nodeward.features.gates import Gates
from nodeward.kubelet.pods.commands import UpdateResources
from nodeward.kubelet.pods.lifecycle_rules import LifecycleRules
from nodeward.kubelet.runtime.interface import (
    ContainerExited,
    FoundContainer,
    FoundPod,
    ResourcesApplied,
    ResourcesRefused,
)
from nodeward.kubelet.runtime.resources import ContainerResources
from tests.kubelet.pods.driver import BEGIN, RULES, UID, Node, a_pod, container, sidecar


def found(*containers: FoundContainer, sandbox: str = "s0") -> FoundPod:
    return FoundPod(UID, "shop", "web", sandbox, ("10.1.0.5",), containers)


def was(name: str, attempt: int = 0, code: int | None = None) -> FoundContainer:
    id_ = f"{name}-{attempt}"
    exited = None
    if code is not None:
        exited = ContainerExited(UID, name, id_, code, "Error" if code else "Completed", BEGIN - SECOND_NS)
    return FoundContainer(name, id_, attempt, f"{name}:1", "sha", BEGIN - 100 * SECOND_NS, exited)


def lived(pod: Pod) -> Pod:
    """The pod as the API shows it after it came up under an earlier agent."""
    node = Node(pod).start()
    for life in pod.spec.init_containers:
        if life.restart_policy != "Always":
            node.exit(life.name, 0)
    for one in (*pod.spec.init_containers, *pod.spec.containers):
        for kind in ("startup", "readiness"):
            node.do(node.life.probed(one.name, kind, True, "", node.now))
    pod.status = node.status()
    return pod


def test_what_runs_is_adopted_with_its_id_its_start_and_its_count() -> None:
    node = Node(a_pod(), found=found(was("c", 0, 1), was("c", 1))).start()
    assert node.flush() == []
    one = node.of()
    assert (one.container_id, one.restart_count, one.ready) == ("sim://c-1", 1, True)
    assert one.state.running is not None
    assert one.last_state.terminated is not None
    assert one.last_state.terminated.exit_code == 1
    assert node.status().pod_ip == "10.1.0.5"
    node.exit("c", 1)
    assert node.flush() == ["start c 2", "remove c-0"]


@pytest.mark.parametrize(("version", "is_kept"), [("1.37", True), ("1.34", False)])
def test_readiness_survives_a_restart_of_the_agent_since_1_35(version: str, is_kept: bool) -> None:
    pod = lived(a_pod(container(startup_probe=Probe(), readiness_probe=Probe())))
    rules = LifecycleRules(Gates.of(version), runtime_type="sim")
    node = Node(pod, rules, found(was("c"))).start()
    assert node.of().ready is is_kept
    assert node.of().started is is_kept
    kinds = [plan.kind for plan in node.life.probes()]
    assert kinds == (["readiness"] if is_kept else ["startup"])


def test_what_exited_while_nobody_looked_is_restarted_or_not_as_ever() -> None:
    again = Node(a_pod(), found=found(was("c", 0, 1))).start()
    assert again.flush() == ["start c 1"]
    over = Node(a_pod(policy="Never"), found=found(was("c", 0, 0))).start()
    assert over.flush() == []
    assert over.status().phase == "Succeeded"


def test_init_containers_that_passed_do_not_run_again() -> None:
    pod = lived(a_pod(inits=[container("i"), sidecar("s")]))
    node = Node(pod, found=found(was("s"), was("c"))).start()
    assert node.flush() == []
    assert node.of("i").ready
    assert node.status().phase == "Running"


def test_an_init_container_without_a_trace_is_taken_to_have_passed_if_the_rest_runs() -> None:
    node = Node(a_pod(inits=[container("i")]), found=found(was("c"))).start()
    assert node.flush() == []
    terminated = node.of("i").state.terminated
    assert terminated is not None
    assert terminated.message.startswith("Unable to get init container status")


def test_initialization_goes_on_where_it_was() -> None:
    pod = a_pod(inits=[container("i1"), sidecar("s"), container("i2")])
    node = Node(pod, found=found(was("i1", 0, 0), was("s"))).start()
    assert node.flush() == ["start i2 0"]


def test_after_a_reboot_everything_starts_again_from_the_first_init_container() -> None:
    pod = lived(a_pod(inits=[container("i"), sidecar("s")]))
    node = Node(pod).start()
    assert node.flush() == ["sandbox", "start i 1"]
    assert node.status().phase in ("Pending", "Running")
    node.exit("i", 0)
    assert node.flush() == ["start s 1", "start c 1"]
    last = node.of("c").last_state.terminated
    assert last is not None
    assert (last.reason, last.exit_code) == ("ContainerStatusUnknown", 137)
    assert node.of("c").restart_count == 1


def test_after_a_reboot_a_pod_that_never_restarts_has_failed() -> None:
    node = Node(lived(a_pod(policy="Never"))).start()
    assert node.flush() == []
    assert (node.status().phase, node.life.is_finished) == ("Failed", True)


def test_after_a_reboot_a_pod_that_was_waiting_for_its_first_start_starts() -> None:
    pod = a_pod()
    first = Node(pod)
    first.held = {"c"}
    pod.status = first.start().status()
    node = Node(pod).start()
    assert node.flush() == ["sandbox", "start c 0"]


def test_what_still_runs_of_a_pod_that_is_over_is_stopped() -> None:
    pod = a_pod(policy="Never")
    first = Node(pod).start()
    first.exit("c", 0)
    pod.status = first.status()
    node = Node(pod, found=found(was("c"))).start()
    assert node.flush() == ["stop c 30"]
    assert (node.status().phase, node.life.is_finished) == ("Succeeded", True)


def test_a_running_pod_refused_after_a_restart_stops_and_fails() -> None:
    node = Node(lived(a_pod()), found=found(was("c")))
    node.do(node.life.reject("PodFeatureUnsupported", "needs X", node.now))
    assert node.flush() == ["stop c 30"]
    assert (node.status().phase, node.status().reason) == ("Failed", "PodFeatureUnsupported")
    assert node.of().state.terminated is not None


def test_a_pod_deleted_while_the_agent_was_away_is_stopped_first_thing() -> None:
    pod = lived(a_pod())
    pod.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    pod.metadata.deletion_grace_period_seconds = 4
    node = Node(pod, found=found(was("c"))).start()
    assert node.flush() == ["stop c 4", "remove pod", "delete"]


# -- newer versions


def test_another_image_replaces_the_container_whatever_the_policy() -> None:
    node = Node(a_pod(policy="Never")).start()
    node.flush()
    node.do(node.life.update(a_pod(container(image="c:2"), policy="Never"), node.now))
    assert node.flush() == ["stop c 30", "start c 1"]
    assert "Killing: Container c definition changed, will be restarted" in node.events()


def test_another_image_ends_the_wait_for_the_old_one() -> None:
    node = Node(a_pod())
    node.failing = {"c": ("ErrImagePull", "no")}
    node.start()
    node.run_for(5)
    node.failing = {}
    node.do(node.life.update(a_pod(container(image="c:2")), node.now))
    assert "c" in node.running


def test_another_uid_is_another_pod() -> None:
    node = Node(a_pod()).start()
    other = a_pod()
    other.metadata.uid = "other"
    with pytest.raises(InvariantBroken, match="another uid"):
        node.life.update(other, node.now)


def test_conditions_of_others_are_passed_on_as_they_are() -> None:
    pod = a_pod()
    pod.status.conditions = [
        PodCondition(type="PodScheduled", status="True", last_transition_time="2026-01-01T00:00:00Z"),
        PodCondition(type="DisruptionTarget", status="True", reason="EvictionByEvictionAPI"),
        PodCondition(type="example.com/ready", status="Unknown"),
    ]
    node = Node(pod).start()
    listed = node.status().conditions
    assert listed[:2] == pod.status.conditions[1:]
    assert node.condition("PodScheduled").last_transition_time == "2026-01-01T00:00:00Z"


def test_the_status_shows_what_was_promised_until_the_node_promises_something_else() -> None:
    def asking(cpu: str) -> Pod:
        resources = ResourceRequirements(requests={"cpu": Quantity.parse(cpu)})
        return a_pod(container(resources=resources))

    node = Node(asking("1")).start()
    node.do(node.life.update(asking("2"), node.now))
    assert str(node.of().allocated_resources["cpu"]) == "1"
    assert node.of().resources == ResourceRequirements(requests={"cpu": Quantity.parse("1")})
    assert str(node.status().allocated_resources["cpu"]) == "1"
    out = node.life.accept_resize(asking("2"), node.now, is_shrinking=False)
    assert UpdateResources("c", ContainerResources(2048, 0)) in out
    assert str(node.of().allocated_resources["cpu"]) == "2"
    assert str(node.status().allocated_resources["cpu"]) == "2"
    # Promised is not in force: that is for the runtime to say.
    assert _cpu(node.of().resources) == "1"
    id_ = node.of().container_id.rpartition("/")[2]
    node.do(node.life.happened(ResourcesRefused("uid", "c", "no"), node.now))
    assert _cpu(node.of().resources) == "1"
    applied = ResourcesApplied("uid", "c", id_, ContainerResources(1536, 0, 0, ""))
    node.do(node.life.happened(applied, node.now))
    assert _cpu(node.of().resources) == "1500m"
    assert _cpu(node.status().resources) == "1500m"
    assert str(node.status().allocated_resources["cpu"]) == "2"


def _cpu(resources: ResourceRequirements | None) -> str:
    assert resources is not None
    return str(resources.requests["cpu"])


def test_a_pod_on_the_host_network_has_the_addresses_of_its_node() -> None:
    rules = LifecycleRules(Gates.of("1.37"), ("10.0.0.1", "fd00::1"))
    status = Node(a_pod(host_network=True), rules).status()
    assert [each.ip for each in status.pod_ips] == ["10.0.0.1", "fd00::1"]
    assert [each.ip for each in status.host_ips] == ["10.0.0.1", "fd00::1"]


def test_mounts_are_shown_with_whether_they_are_read_only_all_the_way_down() -> None:
    mounts = [VolumeMount(name="a", mount_path="/a", read_only=True), VolumeMount(name="b", mount_path="/b")]
    node = Node(a_pod(container(volume_mounts=mounts)), RULES)
    assert [(each.name, each.recursive_read_only) for each in node.of().volume_mounts] == [
        ("a", "Disabled"),
        ("b", None),
    ]


def test_the_echo_of_its_own_status_costs_a_pod_nothing() -> None:
    node = Node(a_pod(container(readiness_probe=Probe()))).start()
    status, plans = node.status(), node.life.probes()
    echo = a_pod(container(readiness_probe=Probe()))
    echo.status = status
    assert node.life.update(echo, node.now) == []
    assert node.life.pod is echo
    assert node.status() is status
    assert node.life.probes() is plans


def test_a_pod_that_somebody_else_ended_in_the_api_stops() -> None:
    node = Node(a_pod()).start()
    node.flush()
    newer = a_pod()
    newer.status = PodStatus(phase="Failed", reason="NodeLost", message="gone")
    node.do(node.life.update(newer, node.now))
    assert node.flush() == ["stop c 30"]
    assert (node.status().phase, node.status().reason) == ("Failed", "NodeLost")

"""What a pod asks for, all containers together."""

from __future__ import annotations

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.core_v1.pod_status import ContainerStatus, PodCondition, PodStatus
from nodeward.base.quantity import Quantity
from nodeward.rules.pod_resources import Amounts, has_pod_level, pod_limits, pod_requests


def cpu(amount: str) -> dict[str, Quantity]:
    return {"cpu": Quantity.parse(amount)}


def box(name: str, amount: str, restart: str | None = None) -> Container:
    return Container(
        name=name,
        restart_policy=restart,
        resources=ResourceRequirements(requests=cpu(amount), limits=cpu(amount)),
    )


def test_containers_add_up_and_the_hungriest_init_container_counts() -> None:
    spec = PodSpec(containers=[box("a", "1"), box("b", "2")], init_containers=[box("i", "5"), box("j", "4")])
    assert pod_requests(Pod(spec=spec)) == cpu("5")
    spec.containers.append(box("c", "3"))
    assert pod_limits(Pod(spec=spec)) == cpu("6")


def test_a_side_car_counts_beside_all_that_start_after_it() -> None:
    spec = PodSpec(
        containers=[box("a", "1")],
        init_containers=[box("early", "3"), box("car", "2", "Always"), box("late", "3")],
    )
    assert pod_requests(Pod(spec=spec)) == cpu("5")
    spec.init_containers.pop()
    assert pod_requests(Pod(spec=spec)) == cpu("3")


def test_resources_of_the_whole_pod_replace_the_sum() -> None:
    spec = PodSpec(containers=[box("a", "1")], resources=ResourceRequirements(requests=cpu("4")))
    assert has_pod_level(spec)
    assert pod_requests(Pod(spec=spec)) == cpu("4")
    assert pod_requests(Pod(spec=spec), with_pod_level=False) == cpu("1")
    assert pod_limits(Pod(spec=spec)) == cpu("1")


def test_overhead_is_added_to_requests_and_to_limits_that_exist() -> None:
    overhead = {"cpu": Quantity.parse("500m"), "memory": Quantity.parse("1Gi")}
    pod = Pod(spec=PodSpec(containers=[box("a", "1")], overhead=overhead))
    assert pod_requests(pod) == {"cpu": Quantity.parse("1500m"), "memory": Quantity.parse("1Gi")}
    assert pod_limits(pod) == cpu("1500m")
    assert pod_requests(pod, with_overhead=False) == cpu("1")


def test_during_a_resize_the_larger_size_counts_until_it_is_found_infeasible() -> None:
    status = ContainerStatus(
        name="a",
        allocated_resources=cpu("2"),
        resources=ResourceRequirements(requests=cpu("3"), limits=cpu("3")),
    )
    pod = Pod(spec=PodSpec(containers=[box("a", "1")]), status=PodStatus(container_statuses=[status]))
    assert pod_requests(pod) == cpu("1")
    assert pod_requests(pod, with_status=True) == cpu("3")
    assert pod_limits(pod, with_status=True) == cpu("3")
    pod.spec.containers = [box("a", "9")]
    assert pod_requests(pod, with_status=True) == cpu("9")
    pod.status.conditions = [PodCondition(type="PodResizePending", status="True", reason="Infeasible")]
    assert pod_requests(pod, with_status=True) == cpu("3")
    assert pod_limits(pod, with_status=True) == cpu("3")


def test_during_a_resize_of_the_whole_pod_the_larger_size_counts_where_its_status_does() -> None:
    whole = ResourceRequirements(requests=cpu("1"))
    status = PodStatus(allocated_resources=cpu("2"), resources=ResourceRequirements(requests=cpu("3")))
    pod = Pod(spec=PodSpec(containers=[box("a", "1")], resources=whole), status=status)

    def held() -> Amounts:
        return pod_requests(pod, with_status=True, with_pod_status=True)

    assert pod_requests(pod, with_status=True) == cpu("1"), "quotas count what it asks for"
    assert held() == cpu("3")
    pod.spec.resources = ResourceRequirements(requests=cpu("9"))
    assert held() == cpu("9")
    pod.status.conditions = [PodCondition(type="PodResizePending", status="True", reason="Infeasible")]
    assert held() == cpu("3")
    pod.status.conditions = []
    pod.status.resources = None
    assert held() == cpu("9"), "nothing is known of a node that does not say"

"""How an accepted resize is actuated, one change after the other, and what the status says meanwhile."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from nodeward.api.core_v1.container import Container, ContainerResizePolicy, ResourceRequirements
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import PodCondition
from nodeward.base.duration import SECOND_NS
from nodeward.base.quantity import Quantity
from nodeward.features.gates import Gates
from nodeward.kubelet.pods.lifecycle import PodLifecycle
from nodeward.kubelet.pods.lifecycle_rules import LifecycleRules
from nodeward.kubelet.pods.resource_info import PodResourceInfo, info_of, written_info
from nodeward.kubelet.runtime.interface import FoundContainer, FoundPod, ResourcesApplied, ResourcesRefused
from nodeward.kubelet.runtime.resources import ContainerResources
from tests.kubelet.pods.driver import BEGIN, RULES, UID, Node, a_pod, container, sidecar

MI = 1 << 20


def sized(
    cpu: str = "", memory: str = "", cpu_limit: str = "", memory_limit: str = ""
) -> ResourceRequirements:
    def amounts(**given: str) -> dict[str, Quantity]:
        return {key: Quantity.parse(value) for key, value in given.items() if value}

    return ResourceRequirements(
        requests=amounts(cpu=cpu, memory=memory), limits=amounts(cpu=cpu_limit, memory=memory_limit)
    )


def named(name: str, resources: ResourceRequirements, **policies: str) -> Container:
    listed = [
        ContainerResizePolicy(resource_name=key, restart_policy=value) for key, value in policies.items()
    ]
    return container(name, resources=resources, resize_policy=listed)


class Resized(Node):
    """A node on which every resize is accepted at once."""

    #: containers that have more CPUs than allocated
    holding: tuple[str, ...] = ()

    def resize(self, **wanted: ResourceRequirements) -> None:
        """Another version of the pod asks for other resources, and gets them."""

        def changed(each: Container) -> Container:
            return replace(each, resources=wanted.get(each.name, each.resources))

        spec = replace(
            self.pod.spec,
            containers=[changed(each) for each in self.pod.spec.containers],
            init_containers=[changed(each) for each in self.pod.spec.init_containers],
        )
        meta = replace(self.pod.metadata, generation=self.pod.metadata.generation + 1)
        self.pod = replace(self.pod, spec=spec, metadata=meta)
        self.do(self.life.update(self.pod, self.now))
        self.do(self.life.accept_resize(self.pod, self.now, is_shrinking=False))
        self.settle()

    def settle(self) -> None:
        self.do(self.life.settle_resize(self.holding, not self.holding, self.now))

    def cpu(self, name: str = "c") -> str:
        resources = self.of(name).resources
        assert resources is not None
        return str(resources.requests["cpu"])

    def reason(self) -> str | None:
        """The reason of PodResizeInProgress; None if there is no such condition."""
        found = [each.reason for each in self.status().conditions if each.type == "PodResizeInProgress"]
        return found[0] if found else None


def three(*sizes: ResourceRequirements) -> Pod:
    return a_pod(*(named(name, size) for name, size in zip("abc", sizes, strict=True)))


def test_memory_comes_before_cpu_and_what_is_given_back_before_what_is_taken() -> None:
    before = sized("1", "100Mi", "2", "100Mi")
    node = Resized(three(before, before, before)).start()
    node.flush()
    more, less = sized("2", "200Mi", "3", "200Mi"), sized("500m", "50Mi", "1", "50Mi")
    node.resize(a=more, b=less, c=less)
    assert node.flush() == [
        f"update c memory={50 * MI}",
        f"update b memory={50 * MI}",
        f"update a memory={200 * MI}",
        "update c shares=512 quota=100000",
        "update b shares=512 quota=100000",
        "update a shares=2048 quota=300000",
    ]
    node.settle()
    assert node.reason() is None
    assert [each.reason for each in node.told if each.reason.startswith("Resize")] == [
        "ResizeStarted",
        "ResizeCompleted",
    ]


def test_the_next_change_waits_for_the_answer_to_the_one_before() -> None:
    before = sized("1", "100Mi")
    node = Resized(three(before, before, before)).start()
    node.flush()
    node.held.add("update")
    node.resize(a=sized("2", "100Mi"), b=sized("2", "100Mi"))
    assert node.flush() == ["update a shares=2048 quota=0"]
    node.run_for(3600)
    assert node.flush() == [], "nothing is asked for twice"
    assert node.cpu("a") == node.cpu("b") == "1", "what is not in force is not shown"
    assert str(node.of("a").allocated_resources["cpu"]) == "2"
    node.settle()
    assert node.reason() == ""
    node.tell(ResourcesApplied(UID, "a", "a-0", ContainerResources(2048, 0, 0, "")))
    assert node.flush() == ["update b shares=2048 quota=0"]
    assert (node.cpu("a"), node.cpu("b")) == ("2", "1")
    node.tell(ResourcesApplied(UID, "b", "b-0", ContainerResources(2048, 0, 0, "")))
    node.settle()
    assert node.reason() is None


def test_a_change_of_cpus_by_the_cpu_manager_is_no_answer() -> None:
    node = Resized(a_pod(named("c", sized("1", "100Mi", "1", "100Mi")))).start()
    node.held.add("update")
    node.resize(c=sized("1", "200Mi", "1", "200Mi"))
    node.tell(ResourcesApplied(UID, "c", "c-0", ContainerResources(1024, 100_000, 100 * MI, "0-1")))
    node.settle()
    assert node.reason() == ""
    node.tell(ResourcesApplied(UID, "c", "c-0", ContainerResources(1024, 100_000, 200 * MI, "0-1")))
    node.settle()
    assert node.reason() is None


def test_what_the_runtime_refuses_is_an_error_and_tried_again_every_ten_seconds() -> None:
    node = Resized(a_pod(named("c", sized("1", "200Mi", "", "200Mi")))).start()
    node.flush()
    node.update_fails = "memory is in use"
    node.resize(c=sized("1", "100Mi", "", "100Mi"))
    node.settle()
    asked = f"update c memory={100 * MI}"
    assert (node.flush(), node.reason()) == ([asked], "Error")
    found = node.condition("PodResizeInProgress")
    assert (found.message, found.observed_generation) == ("memory is in use", 2)
    resources = node.of().resources
    assert resources is not None
    assert str(resources.limits["memory"]) == "200Mi"
    node.run_for(35)
    node.settle()
    assert node.flush() == [asked] * 3
    errors = [each.message for each in node.told if each.reason == "ResizeError"]
    assert len(errors) == 1, "the same error is told once"
    assert errors[0].startswith('Pod resize error: {"containers":[{"name":"c",')
    assert errors[0].endswith('"generation":2,"error":"memory is in use"}')
    assert node.condition("PodResizeInProgress").last_transition_time == found.last_transition_time
    node.update_fails = ""
    node.run_for(10)
    node.settle()
    assert (node.flush(), node.reason()) == ([asked], None)


def test_another_size_meanwhile_replaces_the_one_that_failed() -> None:
    node = Resized(a_pod(named("c", sized("1", "200Mi", "", "200Mi")))).start()
    node.update_fails = "memory is in use"
    node.resize(c=sized("1", "100Mi", "", "100Mi"))
    node.flush()
    node.update_fails = ""
    node.resize(c=sized("1", "300Mi", "", "300Mi"))
    node.settle()
    assert node.flush() == [f"update c memory={300 * MI}"]
    assert node.reason() is None
    assert [each.reason for each in node.told if "Completed" in each.reason] == ["ResizeCompleted"]


def test_a_size_that_is_taken_back_before_the_runtime_answered_is_put_right() -> None:
    node = Resized(a_pod(named("c", sized("1")))).start()
    node.flush()
    node.held.add("update")
    node.resize(c=sized("2"))
    node.resize(c=sized("1"))
    assert node.flush() == ["update c shares=2048 quota=0"]
    assert node.reason() == "", "the runtime may have done it by now"
    node.tell(ResourcesApplied(UID, "c", "c-0", ContainerResources(2048, 0, 0, "")))
    assert node.flush() == ["update c shares=1024 quota=0"]
    node.tell(ResourcesApplied(UID, "c", "c-0", ContainerResources(1024, 0, 0, "")))
    node.settle()
    assert node.reason() is None


def test_a_restart_is_made_only_for_the_resource_whose_policy_wants_it() -> None:
    made = named("c", sized("1", "100Mi"), cpu="NotRequired", memory="RestartContainer")
    node = Resized(a_pod(made)).start()
    node.flush()
    node.resize(c=sized("2", "100Mi"))
    assert node.flush() == ["update c shares=2048 quota=0"]
    node.stubborn.add("c")
    node.resize(c=sized("3", "200Mi"))
    assert node.flush() == ["stop c 30"]
    assert node.reason() == "", "it is in progress while the container stops"
    assert "Killing: Container c resize requires restart" in node.events()
    node.run_for(40)
    node.settle()
    assert node.of().restart_count == 1
    assert (node.reason(), node.cpu()) == (None, "3")


def test_a_container_that_restarts_by_itself_comes_back_with_its_new_size() -> None:
    node = Resized(a_pod(named("c", sized("1")))).start()
    node.held.add("update")
    node.resize(c=sized("2"))
    node.exit("c", 1)
    node.run_for(20)
    node.settle()
    assert (node.of().restart_count, node.cpu(), node.reason()) == (1, "2", None)
    node.tell(ResourcesRefused(UID, "c", "container does not run"))
    node.settle()
    assert node.reason() is None, "an answer about an instance that is gone"


def test_a_container_that_is_being_started_gets_its_new_size_once_it_runs() -> None:
    node = Resized(a_pod(named("c", sized("1"))))
    node.held.add("c")
    node.start()
    node.resize(c=sized("2"))
    assert node.reason() == ""
    node.flush()
    node.has_started("c")
    node.settle()
    assert (node.flush(), node.reason()) == (["update c shares=2048 quota=0"], None)


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_sidecars_are_resized_and_init_containers_where_their_gate_is_on(version: str) -> None:
    gates = "InPlacePodVerticalScalingInitContainers=false" if version == "1.36" else ""
    rules = LifecycleRules(Gates.of(version, gates), runtime_type="sim")
    inits = [sidecar("s", resources=sized("1")), container("i", resources=sized("1"))]
    node = Resized(a_pod(named("c", sized("1")), inits=inits), rules).start()
    node.flush()
    node.resize(s=sized("2"), i=sized("2"))
    node.settle()
    wanted = ["update s shares=2048 quota=0"]
    assert node.flush() == (wanted if gates else [*wanted, "update i shares=2048 quota=0"])
    assert node.reason() is None


def test_cpus_that_are_held_show_the_old_cpu_and_the_new_memory() -> None:
    node = Resized(a_pod(named("c", sized("4", "100Mi", "4", "100Mi")))).start()
    node.holding = ("c",)
    node.resize(c=sized("3", "200Mi", "3", "200Mi"))
    node.settle()
    resources = node.of().resources
    assert resources == sized("4", "200Mi", "4", "200Mi")
    assert str(node.of().allocated_resources["cpu"]) == "3"
    whole = node.status().resources
    assert whole is not None
    assert str(whole.requests["cpu"]) == "4"
    # A container that ends meanwhile holds them, too.
    node.held.add("c")
    node.exit("c", 1)
    assert (node.cpu(), node.of().state.running) == ("4", None)
    node.has_started("c", 1)
    assert node.cpu() == "4"
    # A second resize while CPUs are held: what was shown stays.
    node.resize(c=sized("2", "200Mi", "2", "200Mi"))
    node.settle()
    assert (node.cpu(), node.reason()) == ("4", "")
    node.holding = ()
    node.settle()
    assert node.of().resources == sized("2", "200Mi", "2", "200Mi")
    assert node.reason() is None


def _found(size: ResourceRequirements, status_of: Pod) -> PodLifecycle:
    """The pod's life under a kubelet that was started again; the container runs."""
    one = FoundContainer("c", "c-0", 0, "c:1", "sha", BEGIN)
    found = FoundPod(UID, "shop", "web", "s0", ("10.1.0.5",), (one,))
    before = PodResourceInfo({"c": size})
    return PodLifecycle(status_of, BEGIN, RULES, found, info_of(status_of), before)


def test_a_resize_in_progress_goes_on_after_a_restart_of_the_kubelet() -> None:
    node = Resized(a_pod(named("c", sized("1")))).start()
    node.held.add("update")
    node.resize(c=sized("2"))
    pod = replace(node.pod, status=node.status())
    again = Resized(pod)
    again.life = _found(sized("1"), pod)
    again.running["c"] = "c-0"
    again.start()
    assert again.flush() == ["update c shares=2048 quota=0"]
    again.settle()
    assert again.reason() is None
    assert [each.reason for each in again.told] == ["ResizeCompleted"]
    assert '"generation":2}' in again.told[0].message


def test_conditions_of_an_earlier_kubelet_keep_their_times() -> None:
    node = Resized(a_pod(named("c", sized("1")))).start()
    node.do(node.life.defer_resize(node.pod, "OutOfcpu", "no cpu", node.now))
    first = node.condition("PodResizePending")
    assert (first.reason, first.message) == ("Deferred", "no cpu")
    pod = replace(node.pod, status=node.status())
    again = Node(pod)
    again.now += 60 * SECOND_NS
    again.do(again.life.defer_resize(pod, "OutOfmemory", "no memory", again.now))
    second = again.condition("PodResizePending")
    assert (second.reason, second.message) == ("Deferred", "no memory")
    assert second.last_transition_time == first.last_transition_time
    assert again.told == [], "the same reason for the same generation is told once"
    again.do(again.life.defer_resize(pod, "Infeasible", "never", again.now))
    assert again.condition("PodResizePending").last_transition_time != first.last_transition_time
    assert [each.reason for each in again.told] == ["ResizeInfeasible"]


def test_a_pod_that_is_over_shows_no_resize() -> None:
    node = Resized(a_pod(named("c", sized("1")), policy="Never")).start()
    node.held.add("update")
    node.do(node.life.defer_resize(node.pod, "OutOfcpu", "no cpu", node.now))
    node.resize(c=sized("2"))
    node.exit("c", 0)
    assert not [each for each in node.status().conditions if each.type.startswith("PodResize")]


def test_what_was_allocated_to_a_pod_that_was_never_resized_is_in_its_status() -> None:
    pod = a_pod(named("c", sized("1", "100Mi", "1500m", "200Mi")))
    assert written_info(pod) is None, "nothing was written"
    pod = replace(pod, status=Node(pod).start().status())
    assert written_info(pod) is None, "what it asks for"
    asks = replace(pod.spec, containers=[named("c", sized("2", "100Mi", "2500m", "300Mi"))])
    resized = replace(pod, spec=asks, metadata=replace(pod.metadata, generation=2))
    found = written_info(resized)
    assert found is not None
    assert found.containers["c"] == sized("1", "100Mi", "1500m", "200Mi")
    # A version that was seen and is not pending was allocated, whatever a runtime makes of its amounts.
    seen = replace(resized, status=replace(resized.status, observed_generation=2))
    assert written_info(seen) is None
    pending = [PodCondition(type="PodResizePending", status="True", reason="Deferred")]
    assert written_info(replace(seen, status=replace(seen.status, conditions=pending))) is not None

"""What a node's pods were given: admitted once, counted until they have finished, changed by a resize that fits."""

from __future__ import annotations

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.base.quantity import Quantity
from nodeward.kubelet.allocation import Allocation
from nodeward.kubelet.node.specification import bare_node
from nodeward.machinery.clock import VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from tests.kubelet.hosting import hosted, specification


def pod(name: str, cpu: str) -> Pod:
    resources = ResourceRequirements(requests={"cpu": Quantity.parse(cpu)})
    spec = PodSpec(node_name="n1", containers=[Container(name="c", image="i", resources=resources)])
    return Pod(metadata=ObjectMeta(name=name, namespace="default", uid=f"uid-{name}"), spec=spec)


def test_a_resize_changes_what_others_may_have() -> None:
    async def main(clock: VirtualClock) -> None:
        async with hosted(clock, specification("n1")) as each:
            agent = each.host.agent("n1")
            assert agent is not None
            allocation = Allocation(
                agent.specification, agent.features, agent.services, agent.container_manager
            )
            node = bare_node(agent.specification)
            whole = node.status.allocatable["cpu"].milli_value
            for name in ("a", "b"):
                assert allocation.admit(pod(name, "1"), node) is None
                allocation.hold(pod(name, "1"))
            grown = pod("a", f"{whole - 1000}m")
            assert allocation.resize(grown, pod("a", "1"), node) is None
            assert allocation.capacity.used("cpu") == whole
            refused = allocation.resize(pod("b", "2"), pod("b", "1"), node)
            assert refused is not None
            assert (refused.is_infeasible, refused.reason) == (False, "OutOfcpu")
            assert refused.message == (
                f"Node didn't have enough resource: cpu, requested: 2000, used: {whole - 1000}, capacity: {whole}"
            )
            assert allocation.capacity.used("cpu") == whole, "a resize that does not fit changes nothing"
            refusal = allocation.admit(pod("c", "1m"), node)
            assert refusal is not None
            assert refusal.reason == "OutOfcpu"
            assert allocation.resize(pod("a", "1"), grown, node) is None
            assert allocation.admit(pod("c", "1m"), node) is None
            allocation.release("uid-a")
            assert allocation.capacity.used("cpu") == 1000
            assert "uid-a" not in agent.services.admitted

    run_virtual(main)

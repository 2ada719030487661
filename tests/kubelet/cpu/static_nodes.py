"""Nodes with the static CPU manager policy for tests, and pods with CPUs of their own."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod, PodSpec
from nodeward.api.meta import ObjectMeta
from nodeward.base.quantity import Quantity
from nodeward.kubelet.agent import Agent
from nodeward.kubelet.config.loading import load_tree
from nodeward.kubelet.cpu.static_cpus import StaticCPUs
from nodeward.kubelet.cpu.topology import CPUDescription
from nodeward.kubelet.node.specification import NodeModel, NodeSpecification
from tests.kubelet.hosting import Hosted, specification

EIGHT = CPUDescription(cores_per_numa=8)
RESIZE = "InPlacePodVerticalScalingExclusiveCPUs"
STATE_FILE = "cpu_manager_state"


def static_node(
    name: str = "n1", machine: CPUDescription | None = EIGHT, version: str = "1.37", **config: Any
) -> NodeSpecification:
    """A node with CPU 0 reserved; `config` are fields of its KubeletConfiguration."""
    fields: dict[str, Any] = {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0"} | config
    cpus = machine.topology() if machine is not None else None
    capacity = {
        "cpu": Quantity.of_int(cpus.cpu_count if cpus is not None else 4),
        "memory": Quantity.parse("8Gi"),
        "ephemeral-storage": Quantity.parse("100Gi"),
    }
    settings = load_tree(fields, "test", version)
    return specification(name, NodeModel(settings=settings, cpus=cpus, capacity=capacity))


def guaranteed(name: str, *cpus: str, node: str = "n1", uid: str = "", **spec: Any) -> Pod:
    """A Guaranteed pod whose containers c0, c1, ... ask for these CPUs."""
    containers = [
        Container(name=f"c{number}", image="image", resources=requirements(each))
        for number, each in enumerate(cpus)
    ]
    metadata = ObjectMeta(name=name, namespace="default", uid=uid)
    return Pod(metadata=metadata, spec=PodSpec(node_name=node, containers=containers, **spec))


def requirements(cpu: str, memory: str = "64Mi") -> ResourceRequirements:
    amounts = {"cpu": Quantity.parse(cpu), "memory": Quantity.parse(memory)}
    return ResourceRequirements(requests=amounts, limits=dict(amounts))


def agent_of(each: Hosted, name: str = "n1") -> Agent:
    agent = each.host.agent(name)
    assert agent is not None
    return agent


def static_cpus(each: Hosted, name: str = "n1") -> StaticCPUs:
    manager = agent_of(each, name).container_manager
    assert isinstance(manager, StaticCPUs)
    return manager


async def in_force(each: Hosted, name: str, container: str = "c0") -> str:
    """The CPUs a running container really has."""
    uid = (await each.pod(name)).metadata.uid
    for pod in await each.runtime.recover():
        if pod.uid == uid:
            for found in pod.containers:
                if found.name == container and found.resources is not None:
                    return found.resources.cpuset or ""
    return "not running"


def resizing_node(
    name: str = "n1",
    machine: CPUDescription | None = EIGHT,
    delay: str = "",
    gates: dict[str, bool] | None = None,
    **config: Any,
) -> NodeSpecification:
    """A static node whose exclusive CPUs can be resized, after a delay if one is given."""
    on = {RESIZE: True, "CPUManagerPolicyAlphaOptions": True} | (gates or {})
    options = config.pop("cpuManagerPolicyOptions", {}) | ({"scale-delay-time": delay} if delay else {})
    fields = {"featureGates": on} | ({"cpuManagerPolicyOptions": options} if options else {}) | config
    return static_node(name, machine, **fields)


def resized(pod: Pod, *cpus: str) -> Pod:
    """The pod with other CPUs asked for."""
    containers = [
        replace(each, resources=requirements(cpu))
        for each, cpu in zip(pod.spec.containers, cpus, strict=True)
    ]
    return replace(pod, spec=replace(pod.spec, containers=containers))


async def started(each: Hosted, name: str, *cpus: str, **spec: Any) -> Pod:
    """A pod of these CPUs that runs, as the API has it."""
    await each.client.create(guaranteed(name, *cpus, **spec))
    await each.clock.sleep(1)
    pod = await each.pod(name)
    assert pod.status.phase == "Running", pod.status.message
    return pod

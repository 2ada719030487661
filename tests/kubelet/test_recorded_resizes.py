"""Every recorded resize goes as under Kubernetes 1.37: what is allocated, deferred, infeasible, queued and told.

The cases were taken without actuation (a resize stays in progress) and without KEP-5554's rules for exclusive CPUs, so
the runtime here answers no update and the container manager lets every resize pass.
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from nodeward.api.core_v1.container import Container, ResourceRequirements
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_status import PodStatus
from nodeward.base.quantity import Quantity
from nodeward.kubelet.agent import Agent
from nodeward.kubelet.config.loading import load_tree
from nodeward.kubelet.container_manager import ContainerManager, ResizeRefusal
from nodeward.kubelet.host import Host
from nodeward.kubelet.node.specification import NodeModel
from nodeward.kubelet.pods.commands import RecordEvent
from nodeward.kubelet.resize_manager import POD_UPDATED
from nodeward.kubelet.runtime.resources import ContainerResources
from nodeward.kubelet.runtime.sim import SimRuntime
from nodeward.kubelet.simulated.machines import SimulatedMachines
from nodeward.machinery.clock import SeededChance, VirtualClock
from nodeward.machinery.virtual_loop import run_virtual
from nodeward.rules.qos import pod_qos
from tests.apiserver.running import running, settings
from tests.kubelet.cpu.recorded_cases import recorded_cases, recorded_pod, recorded_topologies
from tests.kubelet.hosting import specification

#: What goes into an operation, and what the CPU manager's own tests compare.
INPUTS = {"op", "pod", "uid", "c", "cpu", "state"}
#: The case in which an init container is resized that has ended: nothing is left to actuate, so the resize is complete
#: at once here, and at the pod's next sync under Kubernetes, which the cases leave out.
_ENDED = 39


class SilentRuntime(SimRuntime):
    """Answers no update of resources, so that resizes stay in progress."""

    def update_resources(self, uid: str, container: str, resources: ContainerResources) -> None:
        pass


class NoExclusiveResize:
    """A container manager that lets every resize pass and changes no CPUs for it."""

    def __init__(self, inner: ContainerManager) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def resize(self, pod: Pod) -> ResizeRefusal | None:
        return None


class Told:
    """What the kubelet records about pods."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def about_pod(self, agent: Agent, pod: Pod, tell: RecordEvent) -> None:
        if tell.reason.startswith("Resize"):
            self.texts.append(f"{tell.type} {tell.reason} {tell.message}")


class RecordedResizes:
    """One node of a case. `play` performs an operation and returns what it did, as the cases describe it."""

    def __init__(self, case: dict[str, Any], host: Host) -> None:
        self.case, self.host = case, host
        config: dict[str, Any] = {
            "cpuManagerPolicy": case["cpuPolicy"],
            "reservedSystemCPUs": case["reservedList"],
            "topologyManagerPolicy": case["tmPolicy"],
            "topologyManagerScope": case["tmScope"],
            "featureGates": dict.fromkeys(case.get("gates", ()), True),
        }
        if case.get("options"):
            config["cpuManagerPolicyOptions"] = dict.fromkeys(case["options"], "true")
        topology = recorded_topologies()[case["topo"]]
        capacity = {
            "cpu": Quantity.of_int(topology.cpu_count),
            "memory": Quantity.parse("64Gi"),
            "ephemeral-storage": Quantity.parse("100Gi"),
        }
        model = NodeModel(settings=load_tree(config, "case", "1.37"), cpus=topology, capacity=capacity)
        self.agent = host.add_node(specification(f"n{case['id']}", model))
        assert model.allocatable()["cpu"] == Quantity.parse(case["nodeCpu"])
        self.agent.allocation._container_manager = NoExclusiveResize(self.agent.container_manager)
        self.agent.container_manager.on_pods_known()
        self.told = host.pods._workers._events = Told()  # type: ignore[assignment]
        self.seen = self._state()

    def play(self, step: dict[str, Any]) -> dict[str, Any]:
        self.told.texts.clear()
        answer: dict[str, Any] = getattr(self, f"_{step['op']}")(step)
        before, self.seen = self.seen, self._state()
        for key in ("conditions", "allocated"):
            changed = {
                uid: each
                for uid, each in self.seen[key].items()
                if each != before[key].get(uid, [] if key == "conditions" else None)
            }
            if changed:
                answer[key] = changed
        if self.agent.pending_resizes:
            answer["queue"] = list(self.agent.pending_resizes)
        if self.told.texts:
            is_whole = self.case["id"] < 12
            answer["events"] = [
                each if is_whole else " ".join(each.split(" ")[:2]) for each in self.told.texts
            ]
        return answer

    def _add(self, step: dict[str, Any]) -> dict[str, Any]:
        pod = recorded_pod(step["pod"])
        pod.metadata.namespace, pod.metadata.generation = "default", 1
        pod.spec.node_name = self.agent.name
        for each in (*pod.spec.init_containers, *pod.spec.containers):
            each.image = "image"
        self.host.pods.admit_pod(self.agent, pod)
        answer: dict[str, Any] = {"qos": pod_qos(pod), "ok": True}
        managed = self.agent.pods[pod.metadata.uid]
        status = managed.life.status(0)
        if status.phase == "Failed":
            self.host.pods.on_pod_deleted(pod.metadata.uid)
            message = status.message.removeprefix("Pod was rejected: ")
            answer |= {"ok": False, "reason": status.reason, "msg": message}
        return answer

    def _resize(self, step: dict[str, Any]) -> dict[str, Any]:
        pod = self.agent.pods[step["uid"]].life.pod

        def resized(container: Container) -> Container:
            if container.name != step["c"]:
                return container
            requests, limits = dict(container.resources.requests), dict(container.resources.limits)
            wanted = Quantity.parse(step["cpu"])
            if "cpu" in limits:
                limits["cpu"] = limits["cpu"] + wanted - requests["cpu"]
            requests["cpu"] = wanted
            return replace(container, resources=ResourceRequirements(requests=requests, limits=limits))

        spec = replace(
            pod.spec,
            containers=[resized(each) for each in pod.spec.containers],
            init_containers=[resized(each) for each in pod.spec.init_containers],
        )
        generation = pod.metadata.generation + 1
        newer = replace(
            pod, spec=spec, metadata=replace(pod.metadata, generation=generation), status=PodStatus()
        )
        self.host.pods.on_pod_changed(self.agent, newer)
        resizes, managed = self.host.pods._workers.resizes, self.agent.pods[step["uid"]]
        if newer.spec == pod.spec and managed.life.allocated_pod() is not newer:
            # A generation without another size, which the API does not make: the cases try that, too.
            resizes.enqueue(managed)
            resizes.retry(self.agent, POD_UPDATED)
        return {"generation": generation, "qos": pod_qos(newer)}

    def _delete(self, step: dict[str, Any]) -> dict[str, Any]:
        self.host.pods.on_pod_deleted(step["uid"])
        return {}

    def _state(self) -> dict[str, Any]:
        conditions, allocated = {}, {}
        for uid, managed in self.agent.pods.items():
            life = managed.life
            resize = life.resize
            both = (resize.pending, resize.in_progress) if resize is not None else ()
            conditions[uid] = [
                {"type": each.type, "status": each.status}
                | ({"reason": each.reason} if each.reason else {})
                | ({"message": each.message} if each.message else {})
                | {"observedGeneration": each.observed_generation}
                for each in both
                if each is not None
            ]
            spec = life.allocated_pod().spec
            allocated[uid] = {
                each.name: str(each.resources.requests["cpu"])
                for each in (*spec.init_containers, *spec.containers)
            }
        return {"conditions": conditions, "allocated": allocated}


def _without_progress(answer: dict[str, Any]) -> dict[str, Any]:
    pending = {
        uid: [each for each in conditions if each["type"] == "PodResizePending"]
        for uid, conditions in answer.get("conditions", {}).items()
    }
    events = [each for each in answer.get("events", ()) if each != "Normal ResizeCompleted"]
    return answer | {"conditions": {uid: each for uid, each in pending.items() if each}, "events": events}


def test_every_recorded_resize_goes_as_recorded() -> None:
    cases = recorded_cases("resize.jsonl")

    async def main(clock: VirtualClock) -> list[str]:
        problems = []
        chosen = settings(disable_admission=("ServiceAccount",))
        async with running(chosen, clock=clock) as server:
            runtime = SilentRuntime(clock)
            client = server.client("kubelet")
            machines = SimulatedMachines(client, clock, SeededChance(2), runtime)
            host = Host(client, clock, SeededChance(1), runtime, machines)
            await host.start()
            for case in cases:
                node = RecordedResizes(case, host)
                for number, step in enumerate(case["ops"]):
                    answer = node.play(step)
                    expected = {key: each for key, each in step.items() if key not in INPUTS}
                    if case["id"] == _ENDED:
                        answer, expected = _without_progress(answer), _without_progress(expected)
                    if answer != expected:
                        problems.append(
                            f"case {case['id']} operation {number}: {answer} instead of {expected}"
                        )
                        break
                host.stop_node(node.agent.name)
            await host.stop()
        return problems

    problems = run_virtual(main)
    if problems:
        pytest.fail(f"{len(problems)} of {len(cases)} cases differ:\n" + "\n".join(problems))
    assert len(cases) == 100

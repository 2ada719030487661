"""A node that plays the recorded sequences: CPU manager, topology manager and state file, without a kubelet."""

from __future__ import annotations

import json
from typing import Any

from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.base.errors import ConfigError
from nodeward.base.quantity import Quantity
from nodeward.kubelet.cpu.cpu_manager import CPUManager
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.state_file import StateFileError, decode, encode
from nodeward.kubelet.cpu.static_policy import InvalidState, StaticPolicy
from nodeward.kubelet.topology_manager.hint_provider import AdmitOperation
from nodeward.kubelet.topology_manager.merging import TopologyPolicy
from nodeward.kubelet.topology_manager.topology_admission import TopologyManager
from nodeward.rules.pod_resources import is_sidecar
from nodeward.rules.qos import pod_qos
from tests.kubelet.cpu.recorded_cases import (
    recorded_distances,
    recorded_options,
    recorded_pod,
    recorded_topologies,
    shown_state,
)

Step = dict[str, Any]


class RecordedNode:
    """One node of a sequence. `play` performs an operation and returns what it did, as the cases describe it."""

    def __init__(self, case: Step) -> None:
        self._topology_name: str = case["topo"]
        self._conf: Step = case["conf"]
        self._described: dict[str, Step] = {}
        self._pods: dict[str, Pod] = {}
        #: Container ids by pod UID and container name; None once the container has ended.
        self._ids: dict[tuple[str, str], str | None] = {}
        self.file: str | None = None
        self.manager, self._topology_manager = self._boot(self._conf)
        self.manager.is_ready = True
        self._write()

    def play(self, step: Step) -> Step:
        before = shown_state(self.manager.state)
        answer: Step = getattr(self, f"_{step['op']}")(step)
        if step["op"] != "restart" and shown_state(self.manager.state) != before:
            self._write()
        return answer

    def sums(self) -> list[int]:
        written = json.loads(self.file or "{}")
        return [written["checksum"], written["dataChecksum"]]

    def _write(self) -> None:
        self.file = encode(self.manager.state, "static")

    def _boot(self, conf: Step) -> tuple[CPUManager, TopologyManager]:
        gates = conf.get("gates", ())
        keeps_baselines = "InPlacePodVerticalScalingExclusiveCPUs" in gates
        with_pod_level = "PodLevelResourceManagers" in gates
        topology = recorded_topologies()[self._topology_name]
        policy = StaticPolicy(
            topology,
            recorded_options([name for name, value in conf.get("options", {}).items() if value == "true"]),
            reserved_count=-(-Quantity.parse(conf["reservedCpu"]).milli_value // 1000),
            reserved=CPUSet.parse(conf.get("reservedList", "")),
            topology_policy=conf["tmPolicy"],
            with_pod_level=with_pod_level,
        )
        state = CPUState(keeps_baselines=keeps_baselines)
        if self.file is not None:
            state = decode(
                self.file, "static", keeps_baselines=keeps_baselines, with_pod_level=with_pod_level
            )
        manager = CPUManager(policy, state, self._pods.values)
        topology_policy = TopologyPolicy(
            conf["tmPolicy"],
            tuple(topology.numa_nodes),
            recorded_distances(self._topology_name),
            prefers_closest="prefer-closest-numa-nodes" in conf.get("tmOptions", {}),
        )
        return manager, TopologyManager(
            topology_policy, [manager], scope=conf.get("tmScope", ""), with_pod_level=with_pod_level
        )

    def _admit(self, uid: str, operation: AdmitOperation) -> Step:
        refusal = self._topology_manager.admit(self._pods[uid], operation)
        if refusal is None:
            return {"ok": True}
        return {"ok": False, "reason": refusal.reason, "msg": refusal.message}

    def _add(self, step: Step) -> Step:
        pod = recorded_pod(step["pod"])
        uid = pod.metadata.uid
        self._pods[uid], self._described[uid] = pod, step["pod"]
        answer: Step = {"qos": pod_qos(pod)} | self._admit(uid, AdmitOperation.ADD)
        if not answer["ok"]:
            del self._pods[uid]
        elif self._conf["tmPolicy"] != "none":
            chosen = self._topology_manager.affinity(uid)
            answer["affinity"] = {name: list(hint) for name, hint in chosen.items()}
        return answer

    def _run(self, step: Step) -> Step:
        uid = step["uid"]
        ended = {each.name for each in self._pods[uid].spec.init_containers if not is_sidecar(each)}
        for name, container_id in step["ids"]:
            self.manager.on_container_started(uid, name)
            self._ids[uid, name] = None if name in ended else container_id
        return {}

    def _start(self, step: Step) -> Step:
        self.manager.on_container_started(step["uid"], step["c"])
        self._ids[step["uid"], step["c"]] = step["id"]
        return {}

    def _stop(self, step: Step) -> Step:
        self._ids[step["uid"], step["c"]] = None
        return {}

    def _delete(self, step: Step) -> Step:
        del self._pods[step["uid"]]
        return {}

    def _reconcile(self, step: Step) -> Step:
        updates, bad = [], []
        for move in self.manager.reconcile(lambda uid, name: self._ids.get((uid, name))):
            updates.append([move.container_id, str(move.cpus)])
            if move.container_id in step.get("runtimeFails", ()):
                bad.append(f"{move.uid}/{move.container}")
            else:
                self.manager.on_applied(move.uid, move.container, move.cpus)
        answer: Step = {"updates": updates, "good": [], "bad": []}
        for uid, pod in self._pods.items():
            for container in (*pod.spec.init_containers, *pod.spec.containers):
                name = f"{uid}/{container.name}"
                if (uid, container.name) in self._ids and self._ids[uid, container.name] is None:
                    continue
                is_bad = (
                    name in bad
                    or (uid, container.name) not in self._ids
                    or not self.manager.state.assigned_or_default(uid, container.name)
                )
                answer["bad" if is_bad else "good"].append(name)
        return {key: each for key, each in answer.items() if each}

    def _resize(self, step: Step) -> Step:
        uid = step["uid"]
        for each in self._described[uid]["c"]:
            if each["n"] == step["c"]:
                each["cpu"] = step["cpu"]
                if each.get("lim", "none") != "none":
                    each["lim"] = step["cpu"]
        self._pods[uid] = recorded_pod(self._described[uid])
        return {"qos": pod_qos(self._pods[uid])} | self._admit(uid, AdmitOperation.RESIZE)

    def _restart(self, step: Step) -> Step:
        conf = step.get("conf", self._conf)
        try:
            self.manager, self._topology_manager = self._boot(conf)
        except (ConfigError, StateFileError, InvalidState) as error:
            return {"err": str(error)}
        self._conf = conf
        before = shown_state(self.manager.state)
        answer: Step = {"readmit": []}
        for uid in list(self._pods):
            admitted = self._admit(uid, AdmitOperation.ADD)
            answer["readmit"].append({"uid": uid} | admitted)
            if not admitted["ok"]:
                del self._pods[uid]
        self.manager.is_ready = True
        if shown_state(self.manager.state) != before:
            self._write()
        return answer

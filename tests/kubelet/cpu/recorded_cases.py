"""Cases of the CPU manager recorded from Kubernetes 1.37, kept next to the repository (not in it)."""

from __future__ import annotations

import json
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nodeward.api import codec
from nodeward.api.core_v1.pod import Pod
from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.config.cpu_options import (
    ACROSS_CORES,
    ACROSS_NUMA,
    ALIGN_BY_SOCKET,
    FULL_PCPUS_ONLY,
    STRICT_RESERVATION,
    UNCORE_CACHE,
    CpuManagerOptions,
)
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.topology import CPUTopology, MachineCore, discover

_CASES = Path(__file__).resolve().parents[4] / "shared" / "reference" / "cpu-cases"


def recorded_cases(file_name: str) -> list[dict[str, Any]]:
    """Return the cases of one file; skip the test, with a reason, where the file is missing."""
    path = _CASES / file_name
    if not path.exists():
        pytest.skip(
            f"NOT COMPARED with real Kubernetes: {file_name} is missing in ../shared/reference/cpu-cases"
        )
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def machine_topology(case: dict[str, Any]) -> CPUTopology:
    """Return the topology of the machine in a case. Raises `TopologyError`."""
    machine = {
        node["id"]: [MachineCore(socket, threads, caches) for _, socket, threads, caches in node["cores"]]
        for node in case["machine"]
    }
    return discover(machine, cpu_count=case["machineCPUs"], socket_count=case["machineSockets"])


@cache
def recorded_topologies() -> dict[str, CPUTopology]:
    """Return the named machines that all other cases use."""
    return {case["name"]: machine_topology(case) for case in recorded_cases("topologies.jsonl")}


@cache
def recorded_distances(topology: str) -> dict[int, list[int]]:
    """Return the distances of a named machine's NUMA nodes; a row is indexed by NUMA node."""
    case = next(case for case in recorded_cases("topologies.jsonl") if case["name"] == topology)
    return {node["id"]: node["distances"] for node in case["machine"]}


def recorded_pod(described: dict[str, Any]) -> Pod:
    """Return the pod that a case describes."""
    containers: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for each in described["c"]:
        memory = {} if each.get("noMem") else {"memory": "64Mi"}
        cpu = {} if each["cpu"] is None else {"cpu": each["cpu"]}
        limit = each.get("lim", each["cpu"])
        limits = {} if limit in (None, "none") else {"cpu": limit}
        container = {"name": each["n"], "resources": {"requests": cpu | memory, "limits": limits | memory}}
        if each["k"] == "sidecar":
            container["restartPolicy"] = "Always"
        containers[each["k"] == "app"].append(container)
    spec: dict[str, Any] = {"containers": containers[True], "initContainers": containers[False]}
    if "podCpu" in described:
        amounts = {"cpu": described["podCpu"], "memory": "1Gi"}
        spec["resources"] = {"requests": amounts, "limits": amounts}
    pod = {"metadata": {"name": described["uid"], "uid": described["uid"]}, "spec": spec}
    return codec.read(json.dumps(pod).encode(), Pod)


def recorded_options(names: Collection[str]) -> CpuManagerOptions:
    """Return the options of the static policy with these names switched on."""
    return CpuManagerOptions(
        full_pcpus_only=FULL_PCPUS_ONLY in names,
        distribute_across_numa=ACROSS_NUMA in names,
        align_by_socket=ALIGN_BY_SOCKET in names,
        distribute_across_cores=ACROSS_CORES in names,
        strict_reservation=STRICT_RESERVATION in names,
        prefer_align_by_uncore_cache=UNCORE_CACHE in names,
    )


def recorded_state(described: dict[str, Any], gates: Collection[str] = ()) -> CPUState:
    """Return the state that a case describes."""
    return CPUState(
        CPUSet.parse(described.get("default", "")),
        _parsed(described.get("entries", {})),
        _parsed(described.get("baselines", {})),
        {uid: CPUSet.parse(text) for uid, text in described.get("podEntries", {}).items()},
        keeps_baselines="InPlacePodVerticalScalingExclusiveCPUs" in gates,
    )


def shown_state(state: CPUState) -> dict[str, Any]:
    """Return a state as cases describe it."""
    shown: dict[str, Any] = {
        "entries": _shown(state.entries),
        "baselines": _shown(state.baselines),
        "podEntries": {uid: str(cpus) for uid, cpus in state.pod_entries.items()},
    }
    return {"default": str(state.default)} | {key: value for key, value in shown.items() if value}


def _parsed(described: dict[str, dict[str, str]]) -> dict[str, dict[str, CPUSet]]:
    return {uid: {name: CPUSet.parse(text) for name, text in each.items()} for uid, each in described.items()}


def _shown(entries: dict[str, dict[str, CPUSet]]) -> dict[str, dict[str, str]]:
    return {uid: {name: str(cpus) for name, cpus in each.items()} for uid, each in entries.items()}

"""Cases of the CPU manager recorded from Kubernetes 1.37, kept next to the repository (not in it)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

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

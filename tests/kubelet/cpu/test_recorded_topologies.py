"""Every recorded machine gives the topology that Kubernetes 1.37 read from it."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.kubelet.cpu.topology import TopologyError
from tests.kubelet.cpu.recorded_cases import machine_topology, recorded_cases

COUNTERS = (
    "numCPUs",
    "numCores",
    "numSockets",
    "numNUMA",
    "numUncore",
    "cpusPerCore",
    "cpusPerSocket",
    "cpusPerUncore",
)


def _answer(case: dict[str, Any]) -> dict[str, object]:
    try:
        topology = machine_topology(case)
    except TopologyError as error:
        return {"err": str(error)}
    counters = (
        topology.cpu_count,
        topology.core_count,
        topology.socket_count,
        len(topology.numa_nodes),
        len(topology.uncore_caches),
        topology.cpus_per_core,
        topology.cpus_per_socket,
        topology.cpus_per_uncore_cache,
    )
    answer: dict[str, object] = {
        name: number for name, number in zip(COUNTERS, counters, strict=True) if number
    }
    if topology.details:
        answer["cpus"] = {str(cpu): list(info) for cpu, info in topology.details.items()}
    return answer


@pytest.mark.parametrize(("file_name", "count"), [("topologies.jsonl", 26), ("discover.jsonl", 30)])
def test_every_recorded_machine_has_the_topology_upstream_found(file_name: str, count: int) -> None:
    cases = recorded_cases(file_name)
    inputs = {"name", "machine", "machineCPUs", "machineSockets"}
    wrong = [case for case in cases if _answer(case) != {key: case[key] for key in case if key not in inputs}]
    assert wrong == []
    assert len(cases) == count

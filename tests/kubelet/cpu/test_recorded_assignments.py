"""Every recorded assignment agrees with Kubernetes 1.37, except where its answer is a mistake of its own.

Two mistakes are known (see `assignment`): `overwrite` marks answers from an overwritten combination of NUMA nodes, and
some answers contain CPUs that were not free. There our answer must keep the promises that upstream's breaks.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.cpu.assignment import AssignmentError, take_distributed, take_packed
from tests.kubelet.cpu.recorded_cases import recorded_cases, recorded_topologies


def _take(case: dict[str, Any]) -> CPUSet:
    topology, free = recorded_topologies()[case["topo"]], CPUSet.parse(case["avail"])
    if case["mode"] == "packed":
        return take_packed(topology, free, case["n"], spread=case["spread"], align_by_uncore=case["uncore"])
    return take_distributed(
        topology,
        free,
        case["n"],
        group=case["group"],
        spread=case["spread"],
        align_by_socket=case["bySocket"],
    )


def _agrees(case: dict[str, Any]) -> bool:
    try:
        return str(_take(case)) == case.get("out", "") and "err" not in case
    except AssignmentError as error:
        return str(error) == case.get("err")


def _keeps_promises(case: dict[str, Any]) -> bool:
    taken = _take(case)
    return len(taken) == case["n"] and taken <= CPUSet.parse(case["avail"])


def test_every_recorded_assignment_agrees_unless_upstream_made_a_known_mistake() -> None:
    cases = recorded_cases("take.jsonl")
    differing = [case for case in cases if not _agrees(case)]
    mistakes = Counter(
        "overwritten combination"
        if case.get("overwrite")
        else "took CPUs that were not free"
        if not CPUSet.parse(case.get("out", "")) <= CPUSet.parse(case["avail"])
        else f"unexplained: {case}"
        for case in differing
    )
    assert len(cases) == 4000
    assert mistakes == {"overwritten combination": 16, "took CPUs that were not free": 39}
    assert [case for case in differing if not _keeps_promises(case)] == []


def test_every_request_on_which_upstream_hangs_is_answered() -> None:
    cases = recorded_cases("take-endless.jsonl")
    assert len(cases) == 14
    assert [case for case in cases if not _keeps_promises(case)] == []

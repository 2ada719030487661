"""Every recorded life of a node goes as under Kubernetes 1.37: admissions, restarts, reconciles, state files.

A sequence is played until upstream makes a mistake that is known (see `assignment`): it gave CPUs away that were
reserved or in use, or it overwrote a combination of NUMA nodes.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import pytest

from nodeward.base.cpuset import CPUSet
from tests.kubelet.cpu.recorded_cases import recorded_cases, shown_state
from tests.kubelet.cpu.recorded_node import RecordedNode

#: What goes into an operation; everything else in it is the answer.
INPUTS = {"op", "pod", "uid", "c", "cpu", "id", "ids", "runtimeFails", "conf", "state"}


def _without_sums(state: dict[str, Any]) -> dict[str, Any]:
    return {key: each for key, each in state.items() if key != "sums"}


def _is_shared_wrongly(state: dict[str, Any], pod: dict[str, Any], reserved: CPUSet) -> bool:
    """Tell whether a state has reserved CPUs or CPUs of another running container in an exclusive set."""
    ended = {each["n"] for each in pod["c"] if each["k"] == "init"}
    mine = {name: CPUSet.parse(cpus) for name, cpus in state["entries"].get(pod["uid"], {}).items()}
    running = [cpus for name, cpus in mine.items() if name not in ended]
    others = [
        CPUSet.parse(cpus)
        for uid, each in state["entries"].items()
        if uid != pod["uid"]
        for cpus in each.values()
    ]
    in_use = reserved.union(*others)
    return any(cpus & in_use for cpus in mine.values()) or any(a & b for a, b in combinations(running, 2))


def _play(case: dict[str, Any]) -> tuple[str, int]:
    """Play a sequence; return how it ended and how many operations agreed."""
    node, state = RecordedNode(case), _without_sums(case["state"])
    policy = node.manager.policy
    found = (str(policy.reserved), str(policy.reserved_physical), str(policy.allocatable))
    if found != (case["reserved"], case["reservedPhysical"], case.get("allocatable", "")):
        return f"sequence {case['id']}: other reservation: {found}", 0
    for number, step in enumerate(case["ops"]):
        answer = node.play(step)
        state = _without_sums(step.get("state", state))
        sums = step.get("state", {}).get("sums", node.sums())
        expected = {key: each for key, each in step.items() if key not in INPUTS}
        if (answer, shown_state(node.manager.state), node.sums()) == (expected, state, sums):
            continue
        if case.get("overwrite"):
            return "overwritten combination", number
        if "pod" in step and _is_shared_wrongly(state, step["pod"], node.manager.policy.reserved):
            return "took CPUs that were not free", number
        return (
            f"sequence {case['id']}, operation {number}: {answer}, {shown_state(node.manager.state)}",
            number,
        )
    return "agrees", len(case["ops"])


@pytest.mark.parametrize(
    ("file_name", "ends", "operations"),
    [
        (
            "sequences.jsonl",
            {"agrees": 288, "took CPUs that were not free": 11, "overwritten combination": 1},
            3528,
        ),
        ("sequences-podlevel.jsonl", {"agrees": 40}, 479),
    ],
)
def test_every_recorded_sequence_agrees_until_upstream_makes_a_known_mistake(
    file_name: str, ends: dict[str, int], operations: int
) -> None:
    played = [_play(case) for case in recorded_cases(file_name)]
    assert Counter(end for end, _ in played) == ends
    assert sum(count for _, count in played) == operations

"""Every recorded configuration of the CPU manager starts, or is refused, as under Kubernetes 1.37."""

from __future__ import annotations

from typing import Any

from nodeward.base.cpuset import CPUSet
from nodeward.base.errors import ConfigError
from nodeward.base.problems import Problems
from nodeward.base.quantity import Quantity
from nodeward.features.gates import Gates
from nodeward.kubelet.config.cpu_options import CPU_POLICIES, SCALE_DELAY, read_cpu_options
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.policy_setup import make_static_policy
from tests.kubelet.cpu.recorded_cases import recorded_cases, recorded_topologies


def _start(case: dict[str, Any]) -> dict[str, str] | list[str]:
    """Return the reserved sets of a node that starts, else all that is wrong with its configuration."""
    wrong: list[str] = []
    problems = Problems("options")
    gates = Gates.of_mapping("1.37", case.get("gates", {}))
    options = read_cpu_options(case["policy"], case.get("options", {}), gates, problems)
    try:
        problems.settle()
    except ConfigError as error:
        wrong.append(str(error))
    reservation = case.get("reservedCpu")
    try:
        policy = make_static_policy(
            recorded_topologies()[case["topo"]],
            options,
            None if reservation is None else Quantity.parse(reservation),
            reserved=CPUSet.parse(case.get("reservedList", "")),
            topology_policy=case["tmPolicy"],
        )
    except ConfigError as error:
        return [*wrong, str(error)]
    if wrong:
        return wrong
    state = CPUState()
    policy.start(state)
    sets = {
        "reserved": policy.reserved,
        "reservedPhysical": policy.reserved_physical,
        "allocatable": policy.allocatable,
        "default": state.default,
    }
    return {name: str(cpus) for name, cpus in sets.items()}


def _agrees(case: dict[str, Any]) -> bool:
    found = _start(case)
    if "err" not in case:
        return found == {
            name: case.get(name, "") for name in ("reserved", "reservedPhysical", "allocatable", "default")
        }
    # Options are read before the policy is made here, and the text goes on to say what would be right.
    text = case["err"].removeprefix("new static policy error: ")
    return isinstance(found, list) and any(text in each for each in found)


def test_every_recorded_configuration_of_the_static_policy_agrees() -> None:
    cases = [case for case in recorded_cases("config.jsonl") if case["kind"] == "cpu-manager"]
    static = [case for case in cases if case["policy"] == "static"]
    # scale-delay-time comes with KEP-6122: upstream does not know it, here it must be a duration.
    differing = [case for case in static if not _agrees(case)]
    assert [case["options"] for case in differing] == [{SCALE_DELAY: "true"}]
    assert len(static) == 253
    refused = [case for case in cases if case["policy"] not in CPU_POLICIES]
    assert {case["err"] for case in refused} == {f'unknown policy: "{case["policy"]}"' for case in refused}

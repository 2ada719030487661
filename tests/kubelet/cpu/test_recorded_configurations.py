"""Every recorded configuration of the CPU and topology managers starts, or is refused, as under Kubernetes 1.37."""

from __future__ import annotations

from typing import Any

from nodeward.base.cpuset import CPUSet
from nodeward.base.errors import ConfigError
from nodeward.base.problems import Problems
from nodeward.base.quantity import Quantity
from nodeward.features.gates import Gates
from nodeward.kubelet.config.cpu_options import (
    CPU_POLICIES,
    SCALE_DELAY,
    TOPOLOGY_POLICIES,
    TOPOLOGY_SCOPES,
    read_cpu_options,
)
from nodeward.kubelet.config.loading import load_tree
from nodeward.kubelet.cpu.cpu_state import CPUState
from nodeward.kubelet.cpu.policy_setup import make_static_policy, make_topology_manager
from nodeward.kubelet.cpu.topology import MachineCore, discover
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


def _topology_faults(case: dict[str, Any]) -> str:
    """All that is wrong with the topology manager of a kubelet; "" if it starts."""
    fields = {
        "topologyManagerPolicy": case["policy"],
        "topologyManagerPolicyOptions": case["options"],
        "topologyManagerScope": case["scope"],
    }
    cores = {node: [MachineCore(node, (node,))] for node in range(case["numaNodes"])}
    count = case["numaNodes"]
    distances = None if case.get("noDistances") else dict.fromkeys(cores, (10,) * count)
    topology = discover(cores, cpu_count=count, socket_count=count, distances=distances)
    try:
        make_topology_manager(load_tree(fields, "config", "1.37"), topology, [])
    except ConfigError as error:
        return str(error)
    return ""


def test_every_recorded_configuration_of_the_topology_manager_agrees() -> None:
    cases = [case for case in recorded_cases("config.jsonl") if case["kind"] == "topology-manager"]
    assert len(cases) == 90
    # In a file an empty or absent word means the default; the recorded function was called with it as it is.
    full = [case for case in cases if case["policy"] and case.get("scope")]
    known = [
        case for case in full if case["policy"] in TOPOLOGY_POLICIES and case["scope"] in TOPOLOGY_SCOPES
    ]
    # Policies and scopes that do not exist are refused when the file is read, whatever else is wrong.
    unknown = [case for case in full if case not in known and case["policy"] != "none"]
    assert all("err" in case and "must be one of" in _topology_faults(case) for case in unknown)
    # Unlike upstream: wrong options are refused also under policy none, which does not look at them.
    used = [case for case in known if case["policy"] != "none"]
    assert [case for case in used if case.get("err", "") not in _topology_faults(case)] == []
    assert [case for case in used if "err" not in case and _topology_faults(case)] == []
    assert (len(full), len(unknown), len(used)) == (69, 25, 34)

"""Every recorded topology hint of the static policy agrees with Kubernetes 1.37."""

from __future__ import annotations

from typing import Any

from nodeward.base.cpuset import CPUSet
from nodeward.kubelet.cpu.exclusive_requests import pod_cpus
from nodeward.kubelet.cpu.static_policy import StaticPolicy
from nodeward.kubelet.topology_manager.hints import Hints
from nodeward.rules.qos import pod_qos
from tests.kubelet.cpu.recorded_cases import (
    recorded_cases,
    recorded_options,
    recorded_pod,
    recorded_state,
    recorded_topologies,
)


def _shown(hints: Hints) -> list[list[int | bool | None]] | None:
    return None if hints is None else [list(hint) for hint in hints]


def _answer(case: dict[str, Any]) -> dict[str, Any]:
    gates = case.get("gates", ())
    with_pod_level = "PodLevelResourceManagers" in gates
    reserved = CPUSet.parse(case["reserved"])
    policy = StaticPolicy(
        recorded_topologies()[case["topo"]],
        recorded_options(case.get("options", ())),
        reserved_count=len(reserved),
        reserved=reserved,
        with_pod_level=with_pod_level,
    )
    pod, state = recorded_pod(case["pod"]), recorded_state(case, gates)
    policy.reuse(pod.metadata.uid, CPUSet.parse(case.get("reuse", "")))
    return {
        "qos": pod_qos(pod),
        "podCpus": pod_cpus(pod, with_pod_level=with_pod_level),
        "containerHints": {
            container.name: _shown(policy.hints(state, pod, container))
            for container in (*pod.spec.init_containers, *pod.spec.containers)
        },
        "podHints": _shown(policy.pod_hints(state, pod)),
    }


def test_every_recorded_hint_agrees() -> None:
    cases = recorded_cases("hints.jsonl")
    differing = [
        (case, answer) for case in cases if (answer := _answer(case)) != {key: case[key] for key in answer}
    ]
    assert differing == []
    assert len(cases) == 600

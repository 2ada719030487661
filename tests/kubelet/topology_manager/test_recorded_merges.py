"""Every recorded merge of topology hints agrees with Kubernetes 1.37."""

from __future__ import annotations

from typing import Any

from nodeward.kubelet.topology_manager.hints import TopologyHint
from nodeward.kubelet.topology_manager.merging import TopologyPolicy
from tests.kubelet.cpu.recorded_cases import recorded_cases


def _merge(case: dict[str, Any], policy: str) -> list[int | bool | None]:
    name, closest, _ = policy.partition("+closest")
    topology_policy = TopologyPolicy(
        name,
        tuple(case["numa"]),
        dict(zip(case["numa"], case.get("distances", ()), strict=False)),
        prefers_closest=bool(closest),
    )
    providers = [
        {
            resource: None if hints is None else [TopologyHint(*hint) for hint in hints]
            for resource, hints in (provider or {}).items()
        }
        for provider in case["providers"]
    ]
    merged = topology_policy.merge(providers)
    return [*merged.hint, merged.is_admitted]


def test_every_recorded_merge_agrees() -> None:
    cases = recorded_cases("merge.jsonl")
    results = [(case, policy, out) for case in cases for policy, out in case["out"].items()]
    assert [(case, policy) for case, policy, out in results if _merge(case, policy) != out] == []
    assert len(results) == 6760

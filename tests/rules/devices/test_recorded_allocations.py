"""1,500 allocation problems: the same devices, the same refusals and the same errors as Kubernetes 1.37."""

from __future__ import annotations

from nodeward.rules.devices.allocator_features import AllocatorFeatures
from tests.rules.devices.recorded_allocations import (
    FEATURES,
    answers,
    as_recorded,
    expected,
    recorded_allocations,
)


def test_every_problem_has_the_answer_kubernetes_gave() -> None:
    cases = recorded_allocations()
    assert len(cases) == 1500
    differing = []
    compared = 0
    for case in cases:
        for name, wanted in expected(case):
            found = answers(case, FEATURES[name])
            compared += len(wanted)
            differing += [
                f"{case['id']} with {name} on {node}: {found[node]} instead of {as_recorded(answer)}"
                for node, answer in wanted.items()
                if found[node] != as_recorded(answer)
            ]
    assert compared > 6000
    assert not differing, "\n".join(differing[:10])


def test_with_our_defaults_only_devices_that_skip_node_operations_are_judged_otherwise() -> None:
    """Where kube-scheduler 1.37 passes over the field, ours refuses such devices while its gate is off (KEP-5945)."""
    differing = {}
    for case in recorded_allocations():
        found = answers(case, AllocatorFeatures())
        wanted = dict(expected(case))["default"]
        if any(found[node] != as_recorded(answer) for node, answer in wanted.items()):
            differing[case["id"]] = [each["spec"].get("skipNodeOperations") for each in case["slices"]]
    assert differing
    assert all(any(said) for said in differing.values()), differing


def test_the_order_in_which_slices_become_known_does_not_matter() -> None:
    for case in recorded_allocations()[::10]:
        turned = {**case, "slices": case["slices"][::-1]}
        assert answers(turned, FEATURES["default"]) == answers(case, FEATURES["default"])

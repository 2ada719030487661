"""A kubelet that comes back to a node that is there already."""

from __future__ import annotations

from nodeward.api.core_v1.references import Taint
from nodeward.kubelet.node.registration import Reconciliation, reconcile, retry_after_seconds
from tests.kubelet.node.nodes import READINESS, Run, merged, settings, specification
from tests.rules.test_readiness import CNI, DISK, gate

TAINT = Taint(key="example.com/no-cni", effect="NoSchedule")


def test_a_node_as_it_would_be_registered_needs_nothing() -> None:
    assert reconcile(Run(specification()).node, specification()) == Reconciliation()


def test_well_known_labels_and_the_annotation_are_put_right_and_others_are_left() -> None:
    run = Run(specification(labels={"topology.kubernetes.io/zone": "b", "team": "x"}))
    run.others_write(
        {
            "metadata": {
                "labels": {"kubernetes.io/arch": "arm", "topology.kubernetes.io/zone": "a", "team": "y"},
                "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": None},
            }
        }
    )
    found = reconcile(run.node, run.specification)
    assert found.status_patch == {
        "metadata": {
            "labels": {"kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": "b"},
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        }
    }
    assert found.spec_patch is None


def test_configured_gates_are_merged_into_the_spec_and_those_of_others_stay() -> None:
    bypass = gate(CNI, "BypassWithWarning", seconds=60)
    run = Run(specification(settings(READINESS)))
    theirs = {"conditionType": DISK, "timeoutSeconds": 5, "failureAction": "BypassWithWarning"}
    stale = {"conditionType": CNI, "timeoutSeconds": 9, "readinessTaint": {"key": "k", "effect": "NoExecute"}}
    run.others_write({"spec": {"readinessGates": [theirs, stale]}})
    chosen = specification(settings(READINESS, bypass))
    found = reconcile(run.node, chosen)
    assert found.spec_patch is not None
    after = merged(run.node, found.spec_patch)
    assert {each.condition_type: each for each in after.spec.readiness_gates} == {
        DISK: gate(DISK, "BypassWithWarning", seconds=5),
        CNI: bypass,
    }
    assert reconcile(after, chosen) == Reconciliation()


def test_with_the_gate_off_gates_are_nobodys_business() -> None:
    run = Run(specification())
    chosen = specification(settings("", gate(CNI, "Taint", TAINT)))
    assert reconcile(run.node, chosen).spec_patch is None
    assert Run(chosen).node.spec.readiness_gates == []


def test_waits_between_attempts_grow_to_seven_seconds() -> None:
    waits = [retry_after_seconds(failures) for failures in (0, 1, 2, 3, 7, 8, 1000)]
    assert waits == [0.0, 0.1, 0.2, 0.4, 6.4, 7.0, 7.0]

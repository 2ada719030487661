"""KEP-5328 on the node: what a kubelet declares, when it writes that, and which pods it refuses.

The kubelet's cores alone, with the API server's own merging; more cases are in tests/kubelet/node.
"""

from __future__ import annotations

import logging

import pytest

from nodeward.features.declared import REGISTRY, Feature, Framework, NodeConfiguration, Requirements
from nodeward.kubelet.node.features import discover, publishable
from nodeward.kubelet.node.specification import NodeModel
from tests.keps.ledger import statement
from tests.kubelet.node.nodes import Run, settings, specification
from tests.kubelet.node.test_admission import RESTART_ALL, pod, refused, restarting_all

#: the framework off, and with it what needs it
OFF = ",".join(
    f"{name}=false"
    for name in (
        "NodeDeclaredFeatures",
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        RESTART_ALL,
    )
)


class Liar(Framework):
    """A framework that says what it is told to, as a bug could make it."""

    def __init__(self, *names: str) -> None:
        super().__init__(REGISTRY)
        self._lies = names

    def discover_node_features(self, config: NodeConfiguration) -> tuple[str, ...]:
        return self._lies


def declared(run: Run) -> list[str]:
    return run.node.status.declared_features


@statement("5328-D5", part="kubelet")
def test_the_list_is_found_once_and_another_gate_needs_a_restart() -> None:
    on = specification(settings(f"{RESTART_ALL}=true"))
    off = specification(settings(f"{RESTART_ALL}=false"))
    run = Run(on)
    first = declared(run)
    assert RESTART_ALL in first
    run.until(1000)
    assert declared(run) == first == declared(Run(on))
    after = run.restarted(off)
    assert declared(after) == first, "until its first status round"
    after.until(1010)
    assert declared(after) == [name for name in first if name != RESTART_ALL]


@statement("5328-D13")
def test_bad_and_repeated_names_are_dropped_and_each_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    lies = ("Zeta", "Alpha", "not-a-name", "Alpha", "Alpha/sub", "")
    with caplog.at_level(logging.ERROR):
        found = discover(NodeModel(), Liar(*lies))
    assert found.names == ("Alpha", "Alpha/sub", "Zeta")
    assert len(caplog.records) == 3
    caplog.clear()
    twice = Feature(name=REGISTRY[0].name, requirements=Requirements(("AllAlpha",)), direct_consumer="test")
    assert publishable(Framework((*REGISTRY, twice)).table.names) == tuple(
        sorted(each.name for each in REGISTRY)
    )
    assert len(caplog.records) == 1


@statement("5328-D14")
def test_the_list_goes_with_the_status_which_is_patched_on_a_change_or_when_the_period_is_over() -> None:
    run = Run(specification())
    assert declared(run), "it is there when the node is registered"
    run.until(120)
    assert run.patches == []
    run.others_write({"status": {"declaredFeatures": None}})
    run.until(130)
    (patch,) = run.patches
    assert patch["status"]["declaredFeatures"] == declared(run)
    run.until(120 + 7 * 300)
    reports = run.patches[1:]
    assert 5 <= len(reports) <= 7
    assert not any("declaredFeatures" in each["status"] for each in reports)


@statement("5328-D15")
@pytest.mark.parametrize("edit", [None, ["Stranger"], ["Alpha", "Zeta"]])
def test_what_others_write_into_the_list_is_put_right_in_the_next_round(edit: list[str] | None) -> None:
    run = Run(specification())
    wanted = declared(run)
    run.others_write({"status": {"declaredFeatures": edit}})
    assert declared(run) != wanted
    run.until(10)
    assert declared(run) == wanted


@statement("5328-D46", part="kubelet")
@statement("5328-D47", part="kubelet")
def test_off_clears_the_list_other_pods_still_run_and_on_again_fills_it_at_once() -> None:
    on, off = specification(settings(version="1.36")), specification(settings(OFF, version="1.36"))
    run = Run(on)
    wanted = declared(run)
    assert wanted
    without = run.restarted(off)
    without.look()
    assert declared(without) == []
    assert without.patches[0]["status"]["declaredFeatures"] is None
    assert refused(pod(), gates=OFF, version="1.36") is None
    again = without.restarted(on)
    again.look()
    assert declared(again) == wanted


def test_a_kubelet_older_than_the_field_declares_nothing_after_a_downgrade() -> None:
    run = Run(specification())
    old = run.restarted(specification(settings(version="1.34")))
    old.look()
    assert declared(old) == []


@statement("5328-D52")
def test_the_field_is_sent_with_the_gate_on_and_left_out_with_it_off() -> None:
    assert declared(Run(specification(settings(version="1.36"))))
    run = Run(specification(settings(OFF, version="1.36")))
    run.until(3600)
    assert declared(run) == []
    assert not any("declaredFeatures" in patch["status"] for patch in run.patches)


@statement("5328-D53")
def test_admission_refuses_a_pod_whose_feature_is_missing() -> None:
    found = refused(restarting_all(), gates=f"{RESTART_ALL}=false")
    assert found is not None
    assert found.reason == "PodFeatureUnsupported"
    assert RESTART_ALL in found.message
    assert refused(restarting_all(), gates=f"{RESTART_ALL}=true") is None

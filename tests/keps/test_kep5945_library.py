"""KEP-5945, the declared feature: which nodes have it and which pods need it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodeward.base.errors import ConfigError
from nodeward.features import CATALOGUE, FRAMEWORK, Framework, Gates, PodInfo, Version
from nodeward.features.declared.dra_optional_node_preparation import FEATURE, NAME
from tests.features.declared.objects import V137, allocated, config, info, node
from tests.keps.ledger import statement

GATE = "DRAOptionalNodePreparation"
SHIPPED = "DRAOptionalNodeOperations"


def needs(pod: PodInfo) -> tuple[str, ...]:
    return FRAMEWORK.infer_for_pod_scheduling(pod, V137).names()


@statement("5945-32")
@pytest.mark.parametrize(
    ("gates", "declared"),
    [
        ("", set()),
        (f"{GATE}=false", set()),
        (f"{GATE}=true", {NAME}),
        # The name Kubernetes 1.37 ships is accepted for the gate, and declared for those who look for it.
        (f"{SHIPPED}=true", {NAME, SHIPPED}),
        (f"{SHIPPED}=false", set()),
    ],
)
def test_the_feature_is_declared_exactly_when_the_gate_is_on(gates: str, declared: set[str]) -> None:
    found = FRAMEWORK.discover_node_features(config("1.37", gates))
    assert {NAME, SHIPPED} & {*found} == declared


@statement("5945-32")
@pytest.mark.parametrize("version", ["1.34", "1.35", "1.36"])
def test_an_older_kubelet_cannot_have_it(version: str) -> None:
    assert NAME not in FRAMEWORK.discover_node_features(config(version))
    with pytest.raises(ConfigError, match="feature is PreAlpha"):
        Gates.of(version, f"{GATE}=true")


@statement("5945-33")
def test_a_pod_needs_it_once_a_claim_is_allocated_with_a_result_that_says_true() -> None:
    assert needs(info()) == ()
    assert needs(info(allocated())) == ()
    assert needs(info(allocated(False), allocated(None))) == ()
    assert needs(info(allocated(False, True))) == (NAME,)
    assert needs(info(allocated(False), allocated(["*"]))) == (NAME,)


@statement("5945-34")
def test_the_need_ends_with_the_last_version() -> None:
    ending = Framework([replace(FEATURE, max_version=Version.parse("1.40"))])
    for target, needed in (("1.37", (NAME,)), ("1.40", (NAME,)), ("1.41", ())):
        found = ending.infer_for_pod_scheduling(info(allocated(True)), Version.parse(target))
        assert found.names() == needed


@statement("5945-56")
def test_the_gate_depends_on_node_declared_features() -> None:
    assert "NodeDeclaredFeatures" in CATALOGUE[GATE].needs
    assert GATE in FEATURE.requirements.gates


@statement("5945-U6")
def test_the_feature_from_discovery_to_match() -> None:
    required = FRAMEWORK.infer_for_pod_scheduling(info(allocated(True)), V137)
    able = node(*FRAMEWORK.discover_node_features(config("1.37", f"{GATE}=true")))
    unable = node(*FRAMEWORK.discover_node_features(config("1.37")))
    assert FRAMEWORK.match_node(required, able).is_match
    assert FRAMEWORK.match_node(required, unable).unsatisfied == (NAME,)
    assert FRAMEWORK.get_feature_requirements(NAME).gates == (GATE,)
    assert FRAMEWORK.infer_for_pod_update(info(), info(allocated(True)), V137).is_empty

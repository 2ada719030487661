"""Versions may differ as far as Kubernetes supports it, and no component knows what is younger than itself."""

from __future__ import annotations

import pytest

from nodeward.base.errors import ConfigError
from nodeward.features import CATALOGUE, NEWEST, OLDEST, Gates
from nodeward.features.catalogue import Stage
from nodeward.rules.skew import knows, minor, next_to_upgrade, skew_problems


@pytest.mark.parametrize(
    ("servers", "component", "version", "is_fine"),
    [
        (["1.37"], "kubelet", "1.37", True),
        (["1.37"], "kubelet", "1.34", True),
        (["1.38"], "kubelet", "1.34", False),
        (["1.37"], "kubelet", "1.38", False),
        (["1.36", "1.37"], "kubelet", "1.37", False),
        (["1.36", "1.37"], "kubelet", "1.34", True),
        (["1.37"], "kube-scheduler", "1.36", True),
        (["1.37"], "kube-scheduler", "1.35", False),
        (["1.36", "1.37"], "kube-controller-manager", "1.36", True),
        (["1.36", "1.37"], "kube-controller-manager", "1.37", False),
        (["1.36"], "kube-apiserver", "1.37", True),
        (["1.35"], "kube-apiserver", "1.37", False),
        (["1.37"], "kubectl", "1.38", True),
        (["1.36", "1.37"], "kubectl", "1.38", False),
        ([], "kubelet", "1.34", True),
    ],
)
def test_supported_skews(servers: list[str], component: str, version: str, is_fine: bool) -> None:
    problems = skew_problems(servers, component, version)
    assert (not problems) is is_fine
    assert all(f"1.{minor(version)}" in text or component == "kube-apiserver" for text in problems)


def test_a_problem_says_what_would_be_right() -> None:
    assert skew_problems(["1.38"], "kubelet", "v1.34.2") == [
        "kubelet 1.34 beside API server 1.38: it may be at most 3 older"
    ]
    with pytest.raises(ConfigError, match="no component is called"):
        skew_problems(["1.37"], "kubeles", "1.37")
    with pytest.raises(ConfigError, match=r"such as 1\.37"):
        minor("2.1")


def test_a_version_knows_exactly_the_gates_that_can_be_asked_for_in_it() -> None:
    for number in range(OLDEST, NEWEST + 1):
        stages = {name: stage for name, stage, _ in Gates.of(f"1.{number}")}
        for name in CATALOGUE:
            assert knows(f"1.{number}", name) is (stages.get(name, Stage.PRE_ALPHA.value) != "PRE-ALPHA")
    assert not knows("1.37", "NoSuchGate")


def test_upgrades_go_from_the_server_outwards() -> None:
    versions = {"kubelet": "1.35", "kube-apiserver": "1.37", "kube-scheduler": "1.36"}
    assert next_to_upgrade(versions, "1.37") == ["kube-scheduler", "kubelet"]

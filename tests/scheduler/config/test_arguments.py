"""Arguments of single plugins, asked without a file around them."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.base.errors import ConfigError
from nodeward.base.fieldpath import ROOT
from nodeward.base.problems import Problems
from nodeward.base.yaml_text import documents
from nodeward.features.gates import Gates
from nodeward.scheduler.config.arguments import READERS
from nodeward.scheduler.config.reading import ConfigFields

GATES = Gates.of("1.37")
CAPACITY_OFF = Gates.of("1.37", "StorageCapacityScoring=false")


def read(name: str, text: str, gates: Gates = GATES) -> dict[str, Any]:
    (document,) = documents(text.encode(), "args.yaml")
    problems = Problems(document)
    known, reader = READERS[name]
    found = reader(ConfigFields(document.tree, ROOT, problems, known), gates)
    problems.settle()
    return found


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("InterPodAffinity", {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False}),
        ("PodTopologySpread", {"defaultConstraints": [], "defaultingType": "System"}),
        (
            "VolumeBinding",
            {
                "bindTimeoutSeconds": 600,
                "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
            },
        ),
        ("DefaultPreemption", {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}),
        ("DynamicResources", {"filterTimeout": 10.0, "bindingTimeout": 600.0}),
        ("NodeAffinity", {}),
    ],
)
def test_the_defaults_are_those_of_kubernetes(name: str, wanted: object) -> None:
    assert read(name, "{}") == wanted


def test_without_scoring_by_capacity_volumes_have_no_shape() -> None:
    assert read("VolumeBinding", "{}", CAPACITY_OFF) == {"bindTimeoutSeconds": 600}
    with pytest.raises(ConfigError, match="turn on the feature gate StorageCapacityScoring"):
        read("VolumeBinding", "{shape: [{utilization: 0, score: 1}]}", CAPACITY_OFF)


def test_default_constraints_are_taken_over() -> None:
    constraint = "{maxSkew: 2, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}"
    assert read("PodTopologySpread", f"{{defaultingType: List, defaultConstraints: [{constraint}]}}") == {
        "defaultingType": "List",
        "defaultConstraints": [{"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    }


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("InterPodAffinity", "{hardPodAffinityWeight: 101}", r"101: not in valid range \[0, 100\]"),
        ("InterPodAffinity", "{ignorePreferredTermsOfExistingPods: 1}", "want true or false, got a number"),
        ("DefaultPreemption", "{minCandidateNodesPercentage: -1}", r"-1: not in valid range \[0, 100\]"),
        ("DefaultPreemption", "{minCandidateNodesAbsolute: -1}", r"-1: not in valid range \[0, inf\)"),
        (
            "DefaultPreemption",
            "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}",
            "cannot be zero at the same time as minCandidateNodesAbsolute",
        ),
        ("VolumeBinding", "{bindTimeoutSeconds: -1}", "-1: must not be negative"),
        ("DynamicResources", "{filterTimeout: -1s}", "must be zero or positive"),
        ("DynamicResources", "{bindingTimeout: 500ms}", "must be at least 1 second"),
        ("VolumeBinding", "{shape: [{utilization: 101, score: 1}]}", r"101: not in valid range \[0, 100\]"),
        ("PodTopologySpread", "{defaultingType: Own}", 'supported values: "System", "List"'),
        (
            "PodTopologySpread",
            "{defaultConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
            "when .defaultConstraints are not empty: want List",
        ),
        (
            "PodTopologySpread",
            "{defaultingType: List, defaultConstraints: [{maxSkew: 0, topologyKey: a, "
            "whenUnsatisfiable: DoNotSchedule}]}",
            r"maxSkew: Invalid value: 0: not in valid range \(0, inf\)",
        ),
        (
            "PodTopologySpread",
            "{defaultingType: List, defaultConstraints: [{maxSkew: 1, whenUnsatisfiable: Maybe}]}",
            "(?s)topologyKey: Required value: can not be empty.*"
            'whenUnsatisfiable: Unsupported value: "Maybe"',
        ),
        (
            "PodTopologySpread",
            "{defaultingType: List, defaultConstraints: [{maxSkew: 1, topologyKey: a, "
            "whenUnsatisfiable: DoNotSchedule, labelSelector: {}}]}",
            "labelSelector: Forbidden",
        ),
        (
            "PodTopologySpread",
            "{defaultingType: List, defaultConstraints: ["
            "{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule}, "
            "{maxSkew: 2, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]}",
            r'defaultConstraints\[1\]: Duplicate value: "{a, DoNotSchedule}"',
        ),
    ],
)
def test_what_is_out_of_range_is_told(name: str, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        read(name, text)

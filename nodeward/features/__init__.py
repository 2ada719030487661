"""Feature gates as values, and what nodes declare and pods need (KEP-5328), for us and for programs outside.

Gates say what is on in which version of Kubernetes; declared features are found, inferred and matched by `FRAMEWORK`.
"""

from nodeward.features.catalogue import CATALOGUE, NEWEST, OLDEST, FeatureSpec, Gate, Stage
from nodeward.features.declared import (
    FRAMEWORK,
    Feature,
    FeatureError,
    FeatureSet,
    Framework,
    MatchResult,
    NodeConfiguration,
    PodInfo,
    Requirements,
    Version,
)
from nodeward.features.gates import Gates, describe, parse

__all__ = [
    "CATALOGUE",
    "FRAMEWORK",
    "NEWEST",
    "OLDEST",
    "Feature",
    "FeatureError",
    "FeatureSet",
    "FeatureSpec",
    "Framework",
    "Gate",
    "Gates",
    "MatchResult",
    "NodeConfiguration",
    "PodInfo",
    "Requirements",
    "Stage",
    "Version",
    "describe",
    "parse",
]

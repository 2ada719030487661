"""Declared features (KEP-5328): what nodes say they can do, and what pods need of them. Usable as a plain library.

`REGISTRY` names every feature, one file each; a new feature is a file and a line here. `FRAMEWORK` answers for all of
them; a program with features of its own makes its own `Framework`. `docs/declared-features.md` has an example.
"""

from typing import Final

from nodeward.features.declared import (
    dra_node_allocatable_resources,
    dra_optional_node_operations,
    dra_optional_node_preparation,
    extend_web_sockets,
    init_containers_resize,
    memory_volumes_resize,
    pod_level_resize,
    restart_all_containers,
    user_namespaces_host_network,
    volume_bind_mount_options,
)
from nodeward.features.declared.columns import feature_matrix, match_column
from nodeward.features.declared.errors import FeatureError
from nodeward.features.declared.feature import Feature, NodeConfiguration, PodInfo, Requirements, name_fault
from nodeward.features.declared.feature_set import FeatureSet, FeatureTable
from nodeward.features.declared.framework import Framework, MatchResult
from nodeward.features.declared.version import Version

#: A name that is added here is a change of the API. InPlacePodVerticalScalingExclusiveCPUs is left out on purpose: it
#: matters only where the CPU manager's policy is static, and would forbid resizes that work everywhere else.
REGISTRY: Final = (
    dra_node_allocatable_resources.FEATURE,
    dra_optional_node_operations.FEATURE,
    dra_optional_node_preparation.FEATURE,
    extend_web_sockets.FEATURE,
    init_containers_resize.FEATURE,
    memory_volumes_resize.FEATURE,
    pod_level_resize.FEATURE,
    restart_all_containers.FEATURE,
    user_namespaces_host_network.FEATURE,
    volume_bind_mount_options.FEATURE,
)

FRAMEWORK: Final = Framework(REGISTRY)

__all__ = [
    "FRAMEWORK",
    "REGISTRY",
    "Feature",
    "FeatureError",
    "FeatureSet",
    "FeatureTable",
    "Framework",
    "MatchResult",
    "NodeConfiguration",
    "PodInfo",
    "Requirements",
    "Version",
    "feature_matrix",
    "match_column",
    "name_fault",
]

"""What a scheduler is told to be: its profiles with their plugins, its backoff, and how it elects a leader.

Values only, built from a configuration file or from the defaults; whoever builds them has checked them. A profile names
every plugin that takes part anywhere, in the order they are asked in; a plugin switched off at single extension points
stays in the list, with those points in `disabled_points`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from nodeward.features.gates import Gates
from nodeward.scheduler.framework.plugin import Plugin
from nodeward.scheduler.plugins import REGISTRY

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"


@dataclass(frozen=True, slots=True)
class PluginUse:
    """One plugin in a profile. `weight` is that of its score; 0: it does not score."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """One scheduler name, and the plugins that decide for it."""

    name: str = DEFAULT_SCHEDULER_NAME
    #: everything that takes part at any extension point, in order
    plugins: tuple[PluginUse, ...] = ()
    #: plugin name -> extension points at which it is switched off
    disabled_points: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: plugin name -> its arguments
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """A whole scheduler; the defaults are Kubernetes'."""

    profiles: tuple[ProfileSettings, ...]
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    leader_elect: bool = True
    lease_duration_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"
    #: accepted for compatibility: all nodes are always looked at, in columns
    parallelism: int = 16
    percentage_of_nodes_to_score: int = 0
    #: how to reach the cluster, unless a flag says so
    kubeconfig: str = ""

    @property
    def plugin_names(self) -> frozenset[str]:
        """The plugins of all profiles."""
        return frozenset(use.name for profile in self.profiles for use in profile.plugins)


def default_profile(
    gates: Gates, name: str = DEFAULT_SCHEDULER_NAME, registry: Sequence[type[Plugin]] = REGISTRY
) -> ProfileSettings:
    """Every plugin of the registry whose gate is on."""
    plugins = tuple(
        PluginUse(each.name, each.default_weight)
        for each in registry
        if not each.gate or gates.enabled(each.gate)
    )
    return ProfileSettings(name, plugins)

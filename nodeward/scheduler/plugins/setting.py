"""What a plugin is made from: gates, the version it lives in, and the arguments of its entry in the configuration.

Arguments are those of `KubeSchedulerConfiguration` as plain values, already checked by whoever read the file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from nodeward.api.meta import KubeObject
from nodeward.features.declared import FRAMEWORK, Framework, Version
from nodeward.features.gates import Gates
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Clock
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.recorder import EventRecorder
from nodeward.scheduler.cache.node import NodeView
from nodeward.scheduler.cache.plugin_set import PluginSet
from nodeward.scheduler.framework.listers import FixedListers, Listers
from nodeward.scheduler.framework.plugin import Cycle, Plugin
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Status
from nodeward.scheduler.queue.nominator import Nominator
from nodeward.scheduler.waiting_pods import WaitingPods


@dataclass(frozen=True, slots=True)
class Handle:
    """The scheduler, as far as plugins may reach into it."""

    client: Client
    clock: Clock
    recorder: EventRecorder
    nominator: Nominator
    metrics: Metrics
    #: (cycle, pod, node) -> the first rejection of all filters in plain form
    filter_plain: Callable[[Cycle, PodView, NodeView], Status]
    #: all filters of the profile, for what-if questions; asked for late, since plugins are made before there is a set
    filters: Callable[[], PluginSet]
    #: the pod is to be tried again at once (as the queue's `activate`): nothing else will wake it
    activate: Callable[[PodView], None]
    #: pods that wait for a Permit plugin, to be allowed or rejected; None where nothing is bound
    waiting: WaitingPods | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """All that may shape a plugin."""

    gates: Gates
    version: Version
    arguments: Mapping[str, Any] = field(default_factory=dict)
    features: Framework = FRAMEWORK
    #: objects of the kinds its line of the registry names
    listers: Listers = field(default_factory=FixedListers)
    #: what a plugin that acts (rather than judges) may use; None where nothing can be done, as in explanations
    handle: Handle | None = None


Make: TypeAlias = Callable[[Setting], Plugin]


@dataclass(frozen=True, slots=True)
class Shipped:
    """One line of the registry. A plugin whose gate is off does not exist."""

    name: str
    make: Make
    #: of its score, unless the configuration says otherwise; 0: it does not score
    weight: int = 0
    gate: str = ""
    #: kinds beside nodes and pods it looks up through `Setting.listers`
    kinds: tuple[type[KubeObject], ...] = ()

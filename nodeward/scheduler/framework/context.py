"""What a plugin is made from: gates, version, arguments, listers and, if it acts, a handle to the scheduler.

`profile.py` and `explanation.py` make plugins with `make_plugin`, one `PluginContext` each. Arguments are those of
`KubeSchedulerConfiguration` as plain values, already checked by whoever read the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from nodeward.api.meta import KubeObject
from nodeward.base.errors import ConfigError
from nodeward.features.declared import FRAMEWORK, Framework, Version
from nodeward.features.gates import Gates
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.metrics import Metrics
from nodeward.machinery.recorder import EventRecorder
from nodeward.scheduler.cache.node import NodeView
from nodeward.scheduler.cache.plugin_set import PluginSet
from nodeward.scheduler.framework.checks import check_plugin
from nodeward.scheduler.framework.listers import FixedListers, Listers
from nodeward.scheduler.framework.plugin import CycleState, Plugin
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Status
from nodeward.scheduler.queue.nominator import Nominator
from nodeward.scheduler.waiting_pods import WaitingPods


@dataclass(frozen=True, slots=True)
class FrameworkHandle:
    """The parts of the scheduler that a plugin may use, as upstream's `framework.Handle`."""

    client: Client
    clock: Clock
    chance: Chance
    recorder: EventRecorder
    nominator: Nominator
    metrics: Metrics
    #: (cycle, pod, node) -> the first rejection of all filters in plain form
    filter_plain: Callable[[CycleState, PodView, NodeView], Status]
    #: all filters of the profile, for what-if questions; asked for late, since plugins are made before there is a set
    filters: Callable[[], PluginSet]
    #: the pod is to be tried again at once (as the queue's `activate`): nothing else will wake it
    activate: Callable[[PodView], None]
    #: (pod, work): run work that a pod leaves behind beside the scheduling loop; a failure is logged
    spawn: Callable[[PodView, Coroutine[Any, Any, None]], None]
    #: entered by a PreBind plugin that waits for something outside: other pods are bound meanwhile
    set_aside: Callable[[], AbstractContextManager[None]] = nullcontext
    #: pods that wait for a Permit plugin, to be allowed or rejected; None where nothing is bound
    waiting: WaitingPods | None = None


@dataclass(frozen=True, slots=True)
class PluginContext:
    """Everything a plugin is made from."""

    gates: Gates
    version: Version
    arguments: Mapping[str, Any] = field(default_factory=dict)
    features: Framework = FRAMEWORK
    #: objects of the kinds it declares in `objects`
    listers: Listers = field(default_factory=FixedListers)
    #: what a plugin that acts (rather than judges) may use; None where nothing can be done, as in explanations
    handle: FrameworkHandle | None = None
    #: what plugins of all profiles have in common, by name: a device that one profile gave away is taken in all
    shared: dict[str, Any] = field(default_factory=dict)


def make_plugin(kind: type[Plugin], context: PluginContext) -> Plugin:
    """Make a plugin for one profile. ConfigError: the class is not what it claims to be."""
    check_plugin(kind)
    return kind(context)


def named(registry: Iterable[type[Plugin]]) -> dict[str, type[Plugin]]:
    """The plugins of a registry by name, in its order."""
    found: dict[str, type[Plugin]] = {}
    for each in registry:
        if found.setdefault(each.name, each) is not each:
            raise ConfigError(f"there are two scheduler plugins named {each.name}")
    return found


def looked_up(registry: Iterable[type[Plugin]], names: Collection[str]) -> list[type[KubeObject]]:
    """The kinds beside nodes and pods that the plugins of these names look up, each once."""
    return list(dict.fromkeys(kind for each in registry if each.name in names for kind in each.objects))

"""Builds an engine from settings: table, queue and profiles.

Called by `Scheduler`, which feeds the engine from the API, and by benchmarks. Plugins that act reach into the scheduler
through a `FrameworkHandle`, made by the caller from a `SchedulerAccess`; without one (explanations, benchmarks of
decisions) nothing is bound and nothing is preempted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import ConfigError
from nodeward.features.declared import FRAMEWORK, Framework, Version
from nodeward.features.gates import Gates
from nodeward.machinery.clock import Clock
from nodeward.machinery.metrics import Metrics
from nodeward.scheduler.cache.plugin_set import PluginSet
from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.cycle import Engine
from nodeward.scheduler.framework.context import FrameworkHandle, PluginContext
from nodeward.scheduler.framework.listers import FixedListers, Listers
from nodeward.scheduler.framework.plugin import Plugin
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.metrics import SchedulerMetrics
from nodeward.scheduler.plugins import REGISTRY
from nodeward.scheduler.profile import Profile, make_profile
from nodeward.scheduler.queue.backoff import BackoffRule
from nodeward.scheduler.queue.nominator import Nominator
from nodeward.scheduler.queue.scheduling_queue import QueueSettings, SchedulingQueue
from nodeward.scheduler.settings import ProfileSettings, SchedulerSettings, default_profile
from nodeward.scheduler.waiting_pods import WaitingPods


@dataclass(frozen=True, slots=True)
class SchedulerAccess:
    """The parts of the scheduler that a profile's `FrameworkHandle` is made from."""

    nominator: Nominator
    waiting: WaitingPods
    filters: Callable[[], PluginSet]
    activate: Callable[[PodView], None]


def build_engine(
    settings: SchedulerSettings,
    *,
    gates: Gates,
    version: Version,
    clock: Clock,
    metrics: Metrics | None = None,
    listers: Listers | None = None,
    handle_of: Callable[[SchedulerAccess], FrameworkHandle] | None = None,
    registry: Sequence[type[Plugin]] = REGISTRY,
    offset: int = 0,
    features: Framework = FRAMEWORK,
) -> Engine:
    """Build an engine with an empty table and an empty queue."""
    if not settings.profiles:
        raise ConfigError("a scheduler needs at least one profile")
    table = NodeTable()
    nominator, waiting = Nominator(), WaitingPods(clock)
    profiles: dict[str, Profile] = {}
    engines: list[Engine] = []
    shared: dict[str, Any] = {}
    known = listers if listers is not None else FixedListers()

    def activate(pod: PodView) -> None:
        engines[0].queue.activate([pod], clock.monotonic_ns())

    def build(wanted: ProfileSettings) -> Profile:
        def filters() -> PluginSet:
            return profiles[wanted.name].classes.plugins

        handle = (
            handle_of(SchedulerAccess(nominator, waiting, filters, activate))
            if handle_of is not None
            else None
        )

        def context_of(arguments: Mapping[str, Any]) -> PluginContext:
            return PluginContext(
                gates,
                version,
                arguments,
                features,
                known,
                handle,
                shared,
            )

        return make_profile(wanted, context_of, table, registry)

    for wanted in settings.profiles:
        if wanted.name in profiles:
            raise ConfigError(f'there are two profiles with schedulerName "{wanted.name}"')
        profiles[wanted.name] = build(wanted)
    rule = BackoffRule(
        settings.pod_initial_backoff_seconds * SECOND_NS,
        settings.pod_max_backoff_seconds * SECOND_NS,
        gates.enabled("SchedulerPopFromBackoffQ"),
    )
    queue = SchedulingQueue(
        {name: profile.hints for name, profile in profiles.items()},
        {name: profile.pre_enqueues for name, profile in profiles.items()},
        next(iter(profiles.values())).sort,
        QueueSettings(rule),
        nominator,
    )
    counted = SchedulerMetrics(metrics if metrics is not None else Metrics())
    engines.append(Engine(table, queue, profiles, clock, counted, waiting, offset=offset))
    return engines[0]


def alone(
    gates: Gates,
    version: Version,
    clock: Clock,
    *,
    leaving_out: Sequence[str] = (),
    features: Framework = FRAMEWORK,
) -> Engine:
    """Build an engine of the default profile without an API, for benchmarks of decisions. It never preempts."""
    whole = default_profile(gates)
    plugins = tuple(use for use in whole.plugins if use.name not in leaving_out)
    off = {use.name: frozenset({"postFilter"}) for use in plugins}
    settings = SchedulerSettings((ProfileSettings(whole.name, plugins, off),))
    return build_engine(settings, gates=gates, version=version, clock=clock, features=features)

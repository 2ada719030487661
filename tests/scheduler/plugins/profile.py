"""The default profile, all gates on, and what it amounts to when every plugin is asked in plain form."""

from __future__ import annotations

from typing import Any

import numpy as np

from nodeward.features.declared import Version
from nodeward.features.gates import Gates
from nodeward.scheduler.cache.table import NodeTable
from nodeward.scheduler.framework.context import PluginContext
from nodeward.scheduler.framework.plugin import CycleState, Plugin
from nodeward.scheduler.framework.pod import PodView
from nodeward.scheduler.framework.status import Code, Status
from nodeward.scheduler.plugins import REGISTRY

GATES = Gates.of(
    "1.37", "NodeDeclaredFeatures=true,TaintTolerationComparisonOperators=true,NodeReadinessGates=true"
)
WEIGHTS = {each.name: each.default_weight for each in REGISTRY}


def context(arguments: dict[str, Any] | None = None, gates: Gates = GATES) -> PluginContext:
    return PluginContext(gates, Version.parse("1.37"), arguments or {})


def plugins(arguments: dict[str, dict[str, Any]] | None = None) -> list[Plugin]:
    """All shipped plugins, with arguments by name."""
    return [each(context((arguments or {}).get(each.name))) for each in REGISTRY]


class Plain:
    """A scheduler as slow and obvious as can be: node by node, plugin by plugin, nothing remembered."""

    def __init__(self, profile: list[Any]) -> None:
        self.profile = profile

    def judge(self, pod: PodView, table: NodeTable) -> tuple[dict[str, Status], dict[str, int]]:
        """Per node that does not fit the first plugin's answer; per node that does, its score."""
        cycle = CycleState(pod)
        names = [table.name_of(row) for row in table.rows().tolist()]
        skipped: set[str] = set()
        only: dict[str, set[str]] = {}
        for plugin in self.profile:
            if not hasattr(plugin, "pre_filter"):
                continue
            status = plugin.pre_filter(cycle, pod, table)
            if status.is_rejected:
                return dict.fromkeys(names, status.of(plugin.name)), {}
            if status.is_skip:
                skipped.add(plugin.name)
            allowed = plugin.only_nodes(cycle, pod) if hasattr(plugin, "only_nodes") else None
            if allowed is not None:
                only[plugin.name] = set(allowed)
        if only and not set.intersection(*only.values()):
            text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(only))}] simultaneously"
            return dict.fromkeys(names, Status(Code.UNRESOLVABLE, (text,), min(only))), {}
        rejected: dict[str, Status] = {}
        rows: list[int] = []
        for row in table.rows().tolist():
            view = table.view(row)
            if any(view.name not in allowed for allowed in only.values()):
                text = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(only))}]"
                rejected[view.name] = Status(Code.UNRESOLVABLE, (text,), min(only))
                continue
            for plugin in self.profile:
                if hasattr(plugin, "filter") and plugin.name not in skipped:
                    status = plugin.filter(cycle, pod, view)
                    if not status.is_success:
                        rejected[view.name] = status.of(plugin.name)
                        break
            else:
                rows.append(row)
        return rejected, self._scores(cycle, pod, table, rows)

    def _scores(self, cycle: CycleState, pod: PodView, table: NodeTable, rows: list[int]) -> dict[str, int]:
        total = np.zeros(len(rows), np.int64)
        views = [table.view(row) for row in rows]
        for plugin in self.profile:
            if not hasattr(plugin, "score") or not WEIGHTS[plugin.name]:
                continue
            # How even a spread is depends on the nodes that fit.
            feasible = (np.array(rows, np.int64),) if plugin.name == "PodTopologySpread" else ()
            if hasattr(plugin, "pre_score") and plugin.pre_score(cycle, pod, table, *feasible).is_skip:
                continue
            raw = np.array([plugin.score(cycle, pod, view) for view in views], np.int64)
            if hasattr(plugin, "normalize"):
                raw = plugin.normalize(cycle, raw)
            assert not len(raw) or (raw.min() >= 0 and raw.max() <= 100)
            total += raw * WEIGHTS[plugin.name]
        return {table.name_of(row): int(score) for row, score in zip(rows, total.tolist(), strict=True)}

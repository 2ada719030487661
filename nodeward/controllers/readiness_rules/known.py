"""The rules there are, ready to be asked, and what is known of their nodes.

Fed by the informer of rules; what has to be done about the news is the controller's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from nodeward.api.core_v1.node import Node
from nodeward.api.readiness_v1alpha1 import NodeReadinessRule
from nodeward.controllers.readiness_rules.record import ABSENT, PRESENT, RuleRecord
from nodeward.machinery.informer import Informer
from nodeward.rules.readiness_rules import Rule, compiled, has_taint
from nodeward.rules.selectors import SelectorError


class KnownRules:
    def __init__(self, nodes: Informer[Node]) -> None:
        self._nodes = nodes
        self._rules: dict[str, Rule] = {}
        self.records: Final[dict[str, RuleRecord]] = {}

    def all(self) -> Iterable[Rule]:
        return self._rules.values()

    def get(self, name: str) -> Rule | None:
        return self._rules.get(name)

    def on_rule_changed(self, rule: NodeReadinessRule) -> Rule | None:
        """Take in a rule's new state; return the rule, or None if nothing that matters to nodes has changed."""
        name = rule.metadata.name
        try:
            mine = compiled(rule)
        except SelectorError:
            return None  # validation refuses it; nobody knows which nodes it means
        record = self.records.get(name)
        if record is None or record.uid != mine.uid:
            self.records[name] = RuleRecord.of(rule)
        before = self._rules.get(name)
        self._rules[name] = mine
        return None if mine == before else mine

    def forget(self, name: str) -> None:
        self._rules.pop(name, None)
        self.records.pop(name, None)

    def manages(self, rule: Rule, node: str) -> bool:
        """Tell whether the rule is known to look after the taint on this node."""
        record = self.records.get(rule.name)
        return record is not None and record.manages(node)

    def knows(self, rule: Rule, node: str) -> bool:
        """Tell whether anything is recorded of the node."""
        record = self.records.get(rule.name)
        return record is not None and record.knows(node)

    # -- for metrics, when somebody looks

    def count(self) -> Mapping[tuple[str, ...], float]:
        return {(): len(self._rules)}

    def held_and_released(self) -> Mapping[tuple[str, ...], float]:
        counts: dict[tuple[str, ...], float] = {}
        for rule in self._rules.values():
            if not rule.is_dry_run:
                held = [has_taint(rule, node) for node in self._nodes.list() if rule.selects(node)]
                counts[rule.name, "held"] = sum(held)
                counts[rule.name, "released"] = len(held) - sum(held)
        return counts

    def by_state(self) -> Mapping[tuple[str, ...], float]:
        counts: dict[tuple[str, ...], float] = {}
        for rule in self._rules.values():
            record = self.records[rule.name]
            waiting = record.count(PRESENT)
            counts[rule.name, "ready"] = record.count(ABSENT)
            counts[rule.name, "not_ready"] = 0 if rule.is_bootstrap else waiting
            counts[rule.name, "bootstrapping"] = waiting if rule.is_bootstrap else 0
        return counts

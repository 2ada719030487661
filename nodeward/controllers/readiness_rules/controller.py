"""Readiness rules: nodes carry a rule's taint until they report what it asks for, as node-readiness-controller does it.

Whatever may matter to a rule (a rule itself; a node's condition statuses, taints, labels) puts nodes into a queue that
many workers empty: each looks at what the informers have, works out one patch for each rule (`rules.readiness_rules`)
and sends it. No node is read from the API. A second queue holds rules: finalizer, dry runs, and a status that is
written at most once a second however many nodes changed.

What must stay true: a rule touches no node before its finalizer is there, and loses the finalizer only when no node
has its taint any more; a dry run touches nothing; a rule that fails on a node does not keep others from it. A cluster
that does not serve rules (a real one without the CustomResourceDefinition) is asked again from time to time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.errors import ApiError
from nodeward.api.readiness_v1alpha1 import NodeReadinessRule
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import parse_rfc3339, rfc3339
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.readiness_rules.events import record_rule_event
from nodeward.controllers.readiness_rules.known import KnownRules
from nodeward.controllers.readiness_rules.metrics import ReadinessRuleMetrics
from nodeward.controllers.readiness_rules.record import RuleRecord, is_told
from nodeward.machinery.client import PatchType
from nodeward.machinery.informer import Informer
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.readiness_preview import forecast
from nodeward.rules.readiness_rules import (
    FINALIZER,
    Rule,
    RuleAction,
    RuleDecision,
    completes,
    decide,
    has_taint,
    patch_for,
)

WORKERS: Final = 64
#: Somebody else wrote the node: their version arrives soon.
CONFLICT_SECONDS: Final = 0.05
#: News of nodes come in crowds, and one status tells of all of them.
STATUS_SECONDS: Final = 1.0
#: For every so many nodes the status is written less often, by as much again: it is as large as they are many.
STATUS_NODES: Final = 1000
DRY_RUN_SECONDS: Final = 2.0
LEAVING_SECONDS: Final = 1.0
NOT_SERVED_SECONDS: Final = 30.0


class ReadinessRuleController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorder = context.recorder
        self._informers = context.informers
        self._numeric = context.gates.enabled("TaintTolerationComparisonOperators")
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="readiness_rule_nodes")
        self._rule_queue: WorkQueue[str] = WorkQueue(context.clock, name="readiness_rules")
        self._starts: WorkQueue[str] = WorkQueue(context.clock, name="readiness_rules_start")
        self._starts.add("rules")
        self._nodes = context.informers.informer(Node)
        self._pods = context.informers.informer(Pod)
        self._rules: Informer[NodeReadinessRule] | None = None
        self._known = known = KnownRules(self._nodes)
        self._metrics = ReadinessRuleMetrics(
            context.metrics, known.count, known.held_and_released, known.by_state
        )

    def work(self) -> Sequence[Work[Any]]:
        return (
            Work(self._starts, self._start),
            Work(self._queue, self._reconcile, workers=WORKERS),
            Work(self._rule_queue, self._tend, workers=4),
        )

    async def _start(self, _: str) -> float | None:
        """Listen, if there are rules to listen to. Informers of kinds that are not served would never be ready."""
        if self._rules is None:
            try:
                await self._client.list(NodeReadinessRule, limit=1)
            except ApiError as error:
                if error.code != 404:
                    raise
                return NOT_SERVED_SECONDS
            self._rules = self._informers.informer(NodeReadinessRule)
            self._rules.add_handler(self._rule_seen, lambda _, new: self._rule_seen(new), self._rule_gone)
            await self._rules.wait_synced()
            self._nodes.add_handler(self._node_seen, self._node_changed, self._node_gone)
            self._pods.add_handler(self._pod_seen, self._pod_changed, self._pod_seen)
        return None

    # -- what is seen

    def _rule_seen(self, rule: NodeReadinessRule) -> None:
        mine = self._known.on_rule_changed(rule)
        if mine is not None:
            self._rule_queue.add(mine.name)
            for node in self._nodes.list():
                if mine.selects(node):
                    self._queue.add(node.metadata.name)

    def _rule_gone(self, rule: NodeReadinessRule) -> None:
        self._known.forget(rule.metadata.name)
        self._metrics.forget(rule.metadata.name)

    def _node_seen(self, node: Node) -> None:
        name = node.metadata.name
        for rule in self._known.all():
            if rule.selects(node) or self._known.knows(rule, name):
                self._queue.add(name)
                if rule.is_dry_run:
                    self._rule_queue.add_after(rule.name, DRY_RUN_SECONDS)

    def _node_changed(self, old: Node, new: Node) -> None:
        if (
            old.metadata.uid != new.metadata.uid
            or old.metadata.labels != new.metadata.labels
            or old.spec.taints != new.spec.taints
            or old.metadata.annotations != new.metadata.annotations
            or _statuses(old) != _statuses(new)
        ):
            for rule in self._known.all():
                if rule.selects(old) and not rule.selects(new):
                    self._queue.add(new.metadata.name)
            self._node_seen(new)

    def _node_gone(self, node: Node) -> None:
        for name, record in self._known.records.items():
            if record.drop(node.metadata.name):
                self._tell_status(name)

    def _pod_seen(self, pod: Pod) -> None:
        for rule in self._known.all():
            if rule.is_dry_run:
                self._rule_queue.add_after(rule.name, DRY_RUN_SECONDS)

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if old.spec != new.spec or old.status.phase != new.status.phase:
            self._pod_seen(new)

    # -- one node

    async def _reconcile(self, name: str) -> float | None:
        node = self._nodes.get(name)
        if node is None:
            return None
        self._let_leave(node)
        failed: ApiError | None = None
        decisions = decide(self._known.all(), node, lambda rule: self._known.manages(rule, name))
        patches = sum(each.action is not RuleAction.NOTHING for each in decisions)
        for decision in decisions:
            began_ns = self._clock.monotonic_ns()
            patches -= decision.action is not RuleAction.NOTHING
            try:
                node = await self._carry_out(decision, node, is_last=not patches)
            except ApiError as error:
                if error.code == 409:
                    return CONFLICT_SECONDS
                if error.code == 404:
                    return None
                self._fail(decision, name, error)
                failed = error
            self._metrics.evaluation.observe(
                (self._clock.monotonic_ns() - began_ns) / SECOND_NS, decision.rule.name
            )
        if failed is not None:
            raise failed
        return None

    def _let_leave(self, node: Node) -> None:
        """Drop the node from the status of a rule that has neither a taint there nor the node any more."""
        name = node.metadata.name
        for rule in self._known.all():
            if not rule.selects(node) and not self._known.manages(rule, name):
                record = self._known.records.get(rule.name)
                if record is not None and record.drop(name):
                    self._tell_status(rule.name)

    async def _carry_out(self, decision: RuleDecision, node: Node, *, is_last: bool) -> Node:
        """Change the node, and note what it is like. Gives back the node that the next patch is worked out from."""
        rule, name = decision.rule, node.metadata.name
        record = self._known.records.get(rule.name)
        if record is None:
            return node  # the rule went while another was carried out
        now = rfc3339(self._clock.now_ns())
        is_first = name not in record.evaluations
        if decision.action is not RuleAction.NOTHING:
            patch = patch_for(decision, node, now)
            # The next rule's patch needs the version that this one makes; to read a node for nothing is dear.
            wanted: type[Any] = bytes if is_last else Node
            answer = await self._client.patch(
                wanted, name, patch, kind=self._nodes.kind, patch_type=PatchType.MERGE
            )
            self._done(decision, node)
            node = node if is_last else answer
        if decision.finding is None or rule.is_leaving:
            is_news = record.drop(name)
        else:
            tainted = decision.action is RuleAction.ADD or (
                decision.finding.has_taint and decision.action is not RuleAction.REMOVE
            )
            for each in decision.finding.unsatisfied:
                self._metrics.unsatisfied.inc(rule.name, each)
            if is_first and tainted and decision.action is RuleAction.NOTHING:
                record_rule_event(self._recorder, node, rule, RuleAction.NOTHING)
            is_news = record.record_evaluation(name, decision.finding, now, has_taint=tainted)
        if is_news:
            self._tell_status(rule.name)
        return node

    def _done(self, decision: RuleDecision, node: Node) -> None:
        """Record events and metrics of a change made to the node."""
        rule, action = decision.rule, decision.action
        changed_ns = _last_change_ns(rule, node)
        if action is not RuleAction.COMPLETE:
            record_rule_event(self._recorder, node, rule, action)
            self._metrics.operations.inc(rule.name, action.value)
            if changed_ns is not None and not rule.is_leaving:
                seconds = max((self._clock.now_ns() - changed_ns) / SECOND_NS, 0.0)
                self._metrics.latency.observe(seconds, rule.name, f"{action.value}_taint")
        if completes(decision):
            self._metrics.completed.inc(rule.name)
            made = node.metadata.creation_timestamp
            if action is RuleAction.REMOVE and changed_ns is not None and made:
                seconds = (changed_ns - parse_rfc3339(made)) / SECOND_NS
                if seconds > 0:
                    self._metrics.bootstrap.observe(seconds, rule.name)

    def _fail(self, decision: RuleDecision, node: str, error: ApiError) -> None:
        rule = decision.rule
        word = "AddTaintError" if decision.action is RuleAction.ADD else "RemoveTaintError"
        self._metrics.failures.inc(rule.name, word)
        self._metrics.failures.inc(rule.name, "EvaluationError")
        record = self._known.records.get(rule.name)
        if record is not None:
            verb = "add" if decision.action is RuleAction.ADD else "remove"
            record.fail(node, f"failed to {verb} taint: {error}", rfc3339(self._clock.now_ns()))
            self._tell_status(rule.name)

    # -- one rule

    def _tell_status(self, name: str) -> None:
        record = self._known.records.get(name)
        if record is not None:
            count = len(record.evaluations)
            self._rule_queue.add_after(name, STATUS_SECONDS * (1 + count // STATUS_NODES))

    async def _tend(self, name: str) -> float | None:
        rule, mine = self._rule(name), self._known.get(name)
        record = self._known.records.get(name)
        if rule is None or mine is None or record is None:
            return None
        self._metrics.last.set(self._clock.now_ns() // SECOND_NS, name)
        try:
            if mine.is_leaving:
                return await self._let_go(rule, mine)
            if not mine.is_guarded:
                await self._set_finalizers(rule, [*rule.metadata.finalizers, FINALIZER])
                return None  # comes back as news
            record.prune(lambda node: self._nodes.get(node) is not None)
            record.dry_run = None
            if mine.is_dry_run:
                seen = forecast(mine, self._nodes.list(), self._pods.list(), numeric=self._numeric)
                record.dry_run = seen.results()
            await self._write_status(rule, record)
        except ApiError as error:
            if error.code == 409:
                return CONFLICT_SECONDS
            if error.code != 404:
                raise
        return None

    def _rule(self, name: str) -> NodeReadinessRule | None:
        return self._rules.get(name) if self._rules is not None else None

    async def _let_go(self, rule: NodeReadinessRule, mine: Rule) -> float | None:
        """Let a deleted rule go once its taints are removed from nodes, except taints another rule wants."""
        if not mine.is_guarded:
            return None
        for node in self._nodes.list():
            if mine.selects(node) and has_taint(mine, node):
                decisions = decide(self._known.all(), node, lambda _: False)
                if any(each.rule is mine and each.action is RuleAction.REMOVE for each in decisions):
                    return LEAVING_SECONDS
        left = [each for each in rule.metadata.finalizers if each != FINALIZER]
        await self._set_finalizers(rule, left)
        return None

    async def _set_finalizers(self, rule: NodeReadinessRule, finalizers: list[str]) -> None:
        meta = rule.metadata
        body = {
            "metadata": {
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
                "finalizers": finalizers or None,
            }
        }
        kind = self._client.kind_of(NodeReadinessRule)
        await self._client.patch(bytes, meta.name, body, kind=kind, patch_type=PatchType.MERGE)

    async def _write_status(self, rule: NodeReadinessRule, record: RuleRecord) -> None:
        status = record.status(rule)
        if is_told(status, rule.status):
            return
        # Whole, not as a merge patch: that would keep what is not named.
        await self._client.update(msgspec.structs.replace(rule, status=status), subresource="status")


def _statuses(node: Node) -> dict[str, str]:
    return {each.type: each.status for each in node.status.conditions}


def _last_change_ns(rule: Rule, node: Node) -> int | None:
    """Return when the last of the conditions that matter changed."""
    asked = {each.type for each in rule.requirements}
    times = [
        parse_rfc3339(each.last_transition_time)
        for each in node.status.conditions
        if each.type in asked and each.last_transition_time
    ]
    return max(times, default=None)

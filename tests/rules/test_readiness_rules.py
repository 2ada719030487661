"""One rule, one node: what follows, whatever they are."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.codec import encode, from_tree, to_tree
from nodeward.api.core_v1.node import Node
from nodeward.api.readiness_v1alpha1 import NodeReadinessRule
from nodeward.rules.readiness_preview import forecast
from nodeward.rules.readiness_rules import (
    FINALIZER,
    Rule,
    RuleAction,
    action_for,
    compiled,
    decide,
    find,
    has_taint,
    patch_for,
)

_STATUSES = st.sampled_from(("True", "False", "Unknown"))
_TYPES = ("A", "B", "C")
_TAINT = {"key": "readiness.k8s.io/x", "effect": "NoSchedule"}


@st.composite
def _rules(draw: st.DrawFn) -> Rule:
    is_bootstrap = draw(st.booleans())
    conditions = []
    for kind in draw(st.lists(st.sampled_from(_TYPES), min_size=1, unique=True)):
        condition = {"type": kind, "requiredStatus": draw(_STATUSES)}
        if not is_bootstrap and draw(st.booleans()):
            condition["defaultStatus"] = draw(_STATUSES)
        conditions.append(condition)
    metadata: dict[str, Any] = {"name": "r", "uid": "u", "finalizers": [FINALIZER]}
    if draw(st.booleans()) and draw(st.booleans()):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec = {
        "conditions": conditions,
        "enforcementMode": "bootstrap-only" if is_bootstrap else "continuous",
        "taint": _TAINT,
        "nodeSelector": {"matchLabels": {"a": "b"}},
        "conditionPolicy": "allOf" if is_bootstrap else draw(st.sampled_from(("", "allOf", "anyOf"))),
    }
    return compiled(from_tree({"metadata": metadata, "spec": spec}, NodeReadinessRule))


@st.composite
def _nodes(draw: st.DrawFn) -> Node:
    types = draw(st.lists(st.sampled_from(_TYPES), unique=True))
    conditions = [{"type": kind, "status": draw(_STATUSES)} for kind in types]
    taints = [{"key": "other", "effect": "NoSchedule"}, *([_TAINT] if draw(st.booleans()) else [])]
    metadata: dict[str, Any] = {"name": "n", "uid": "1", "resourceVersion": "7", "labels": {"a": "b"}}
    if draw(st.booleans()) and draw(st.booleans()):
        metadata["annotations"] = {"readiness.k8s.io/bootstrap-completed-u": "{}"}
    return from_tree(
        {"metadata": metadata, "spec": {"taints": taints}, "status": {"conditions": conditions}}, Node
    )


def _applied(node: Node, patch: dict[str, Any]) -> Node:
    """What the API makes of the patch."""
    tree, sent = to_tree(node), to_tree(patch)
    tree["spec"] = {**tree["spec"], **sent.get("spec", {})}
    new = sent["metadata"].get("annotations", {})
    tree["metadata"]["annotations"] = {**tree["metadata"].get("annotations", {}), **new}
    return from_tree(tree, Node)


@given(_rules(), _nodes())
def test_once_done_nothing_is_left_to_do_and_other_taints_are_untouched(rule: Rule, node: Node) -> None:
    (decision,) = decide([rule], node, lambda _: False)
    if decision.action is not RuleAction.NOTHING:
        node = _applied(node, patch_for(decision, node, "2026-01-01T00:00:00Z"))
    (again,) = decide([rule], node, lambda _: False)
    assert again.action is RuleAction.NOTHING
    assert [each.key for each in node.spec.taints].count("other") == 1
    finding = find(rule, node)
    if rule.is_leaving or finding.is_satisfied:
        assert not finding.has_taint
    elif not finding.is_completed:
        assert finding.has_taint
    if rule.is_bootstrap and finding.is_satisfied and not rule.is_leaving:
        assert finding.is_completed


@given(_rules(), _nodes())
def test_a_preview_foretells_what_is_done(rule: Rule, node: Node) -> None:
    (foretold,) = forecast(rule, [node], [], numeric=True).nodes
    assert foretold.action is action_for(rule, find(rule, node))
    (decision,) = decide([rule], node, lambda _: False)
    assert foretold.action is decision.action


@given(_rules(), _rules(), _nodes())
def test_of_two_rules_with_one_taint_the_one_that_holds_wins(one: Rule, other: Rule, node: Node) -> None:
    for _ in range(3):
        for decision in decide([one, other], node, lambda _: False):
            if decision.action is not RuleAction.NOTHING and decision.action is not RuleAction.COMPLETE:
                node = _applied(node, patch_for(decision, node, "2026-01-01T00:00:00Z"))
                break
    before = encode(node)
    for decision in decide([one, other], node, lambda _: False):
        assert decision.action in (RuleAction.NOTHING, RuleAction.COMPLETE)
    holders = [
        each
        for each in (one, other)
        if not each.is_leaving and not (found := find(each, node)).is_satisfied and not found.is_completed
    ]
    if holders:
        assert has_taint(one, node)
    assert encode(node) == before

"""Node selectors and node affinity choose nodes by label and name as Kubernetes does."""

from __future__ import annotations

import pytest

from nodeward.api.core_v1.affinity import Affinity, NodeAffinity, PreferredSchedulingTerm
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import PodSpec
from nodeward.api.core_v1.references import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from nodeward.api.meta import ObjectMeta
from nodeward.rules.affinity import fits_node, holds, named_nodes, preference, selects

_NODE = Node(metadata=ObjectMeta(name="n1", labels={"zone": "a", "cores": "16", "bad": "many"}))


def _wish(key: str, operator: str, *values: str) -> NodeSelectorRequirement:
    return NodeSelectorRequirement(key=key, operator=operator, values=list(values))


def _term(
    *wishes: NodeSelectorRequirement, fields: tuple[NodeSelectorRequirement, ...] = ()
) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=list(wishes), match_fields=list(fields))


def _required(*terms: NodeSelectorTerm) -> PodSpec:
    selector = NodeSelector(node_selector_terms=list(terms))
    return PodSpec(
        affinity=Affinity(
            node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=selector)
        )
    )


@pytest.mark.parametrize(
    ("wish", "answer"),
    [
        (_wish("zone", "In", "a", "b"), True),
        (_wish("zone", "In", "b"), False),
        (_wish("gone", "In", "a"), False),
        (_wish("zone", "NotIn", "b"), True),
        (_wish("zone", "NotIn", "a"), False),
        (_wish("gone", "NotIn", "a"), True),
        (_wish("zone", "Exists"), True),
        (_wish("gone", "Exists"), False),
        (_wish("zone", "DoesNotExist"), False),
        (_wish("gone", "DoesNotExist"), True),
        (_wish("cores", "Gt", "15"), True),
        (_wish("cores", "Gt", "16"), False),
        (_wish("cores", "Gt", "+015"), True),
        (_wish("cores", "Lt", "17"), True),
        (_wish("cores", "Lt", "16"), False),
        (_wish("cores", "Gt", "-1"), True),
        (_wish("cores", "Gt", "9223372036854775808"), False),
        (_wish("cores", "Lt", "many"), False),
        (_wish("bad", "Lt", "17"), False),
        (_wish("gone", "Gt", "1"), False),
        (_wish("cores", "Gt", "1", "2"), False),
        (_wish("zone", "Near", "a"), False),
    ],
)
def test_each_operator_on_labels(wish: NodeSelectorRequirement, answer: bool) -> None:
    assert holds(_term(wish), _NODE) is answer


def test_terms_are_alternatives_and_wishes_in_a_term_must_all_hold() -> None:
    good, bad = _wish("zone", "In", "a"), _wish("zone", "In", "b")
    assert fits_node(_required(_term(bad), _term(good)), _NODE)
    assert not fits_node(_required(_term(good, bad)), _NODE)


def test_what_says_nothing_selects_nothing() -> None:
    assert not holds(_term(), _NODE)
    assert not selects(NodeSelector(), _NODE)
    assert fits_node(PodSpec(), _NODE)


def test_nodes_are_chosen_by_name() -> None:
    here, there = _wish("metadata.name", "In", "n1"), _wish("metadata.name", "In", "n2")
    assert holds(_term(fields=(here,)), _NODE)
    assert not holds(_term(fields=(there,)), _NODE)
    assert holds(_term(fields=(_wish("metadata.name", "NotIn", "n2"),)), _NODE)
    assert not holds(_term(fields=(_wish("metadata.name", "Exists"),)), _NODE)
    assert not holds(_term(fields=(_wish("spec.x", "In", "n1"),)), _NODE)
    assert not holds(_term(_wish("zone", "In", "b"), fields=(here,)), _NODE)
    assert named_nodes(_required(_term(fields=(there,)), _term(fields=(here,)))) == ["n1", "n2"]
    assert named_nodes(_required(_term(fields=(here, there)))) == []
    assert named_nodes(_required(_term(fields=(here,)), _term(_wish("zone", "Exists")))) is None
    assert named_nodes(PodSpec()) is None


def test_the_plain_selector_must_hold_beside_the_affinity() -> None:
    spec = _required(_term(_wish("zone", "Exists")))
    spec.node_selector = {"zone": "b"}
    assert not fits_node(spec, _NODE)
    spec.node_selector = {"zone": "a"}
    assert fits_node(spec, _NODE)


def test_preferred_terms_that_hold_add_their_weights() -> None:
    preferred = [
        PreferredSchedulingTerm(weight=10, preference=_term(_wish("zone", "In", "a"))),
        PreferredSchedulingTerm(weight=20, preference=_term(_wish("zone", "In", "b"))),
        PreferredSchedulingTerm(weight=40, preference=_term(_wish("cores", "Gt", "8"))),
        PreferredSchedulingTerm(weight=80, preference=_term()),
    ]
    affinity = NodeAffinity(preferred_during_scheduling_ignored_during_execution=preferred)
    assert preference(PodSpec(affinity=Affinity(node_affinity=affinity)), _NODE) == 50
    assert preference(PodSpec(affinity=Affinity()), _NODE) == 0

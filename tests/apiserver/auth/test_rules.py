"""Policy rules as sets of permissions."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from nodeward.api.rbac_v1 import AggregationRule, ClusterRole, PolicyRule
from nodeward.apiserver.auth.rules import aggregate, compact, covers, describe, rule_allows
from nodeward.apiserver.auth.user import Attributes, User

VERBS = ("get", "list", "delete")
GROUPS = ("", "apps")
RESOURCES = ("pods", "pods/status", "nodes/status")
NAMES = ("", "a", "b")
PATHS = ("/healthz", "/api/v1", "/api", "/")

JANE = User("jane")


def some(*items: str) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(items), max_size=3, unique=True)


#: As validation lets them in: a rule is about resources or about paths, never both.
RULES = st.one_of(
    st.builds(
        PolicyRule,
        verbs=some(*VERBS, "*"),
        api_groups=some(*GROUPS, "*"),
        resources=some(*RESOURCES, "*", "*/status"),
        resource_names=some("a", "b"),
    ),
    st.builds(PolicyRule, verbs=some(*VERBS, "*"), non_resource_urls=some(*PATHS, "/api*", "*", "/api/*")),
)

#: Every question that can be asked about the small world above.
QUESTIONS = [
    Attributes(
        user=JANE,
        verb=verb,
        group=group,
        resource=resource.partition("/")[0],
        subresource=resource.partition("/")[2],
        name=name,
    )
    for verb, group, resource, name in itertools.product(
        (*VERBS, "other"), (*GROUPS, "other"), RESOURCES, NAMES
    )
] + [
    Attributes(user=JANE, verb=verb, path=path, is_resource_request=False)
    for verb, path in itertools.product((*VERBS, "other"), (*PATHS, "/api/v1/x", "/other"))
]


def slow_allows(rule: PolicyRule, question: Attributes) -> bool:
    """The obvious way: look for one combination in the rule that is the question."""
    if not question.is_resource_request:
        return any(
            verb in ("*", question.verb)
            and (url == question.path or (url[-1:] == "*" and question.path.startswith(url.rstrip("*"))))
            for verb in rule.verbs
            for url in rule.non_resource_urls
        )
    whole = question.resource + (f"/{question.subresource}" if question.subresource else "")
    wild = f"*/{question.subresource}" if question.subresource else whole
    return any(
        verb in ("*", question.verb)
        and group in ("*", question.group)
        and resource in ("*", whole, wild)
        and (name is None or name == question.name)
        for verb in rule.verbs
        for group in rule.api_groups
        for resource in rule.resources
        for name in (rule.resource_names or (None,))
    )


@given(RULES, st.sampled_from(QUESTIONS))
def test_a_rule_allows_exactly_what_one_of_its_combinations_says(
    rule: PolicyRule, question: Attributes
) -> None:
    assert rule_allows(rule, question) == slow_allows(rule, question)


def breakdown(rule: PolicyRule) -> list[PolicyRule]:
    """The atoms of a rule, one by one."""
    names = [[name] for name in rule.resource_names] or [[]]
    atoms = [
        PolicyRule(api_groups=[group], resources=[resource], verbs=[verb], resource_names=list(name))
        for group in rule.api_groups
        for resource in rule.resources
        for verb in rule.verbs
        for name in names
    ]
    paths = [(path, verb) for path in rule.non_resource_urls for verb in rule.verbs]
    return atoms + [PolicyRule(non_resource_urls=[path], verbs=[verb]) for path, verb in paths]


def grants(owner: PolicyRule, atom: PolicyRule) -> bool:
    """Whether one rule grants one atom, the obvious way."""
    if atom.verbs[0] not in owner.verbs and "*" not in owner.verbs:
        return False
    if atom.non_resource_urls:
        asked = Attributes(
            user=JANE, verb=atom.verbs[0], path=atom.non_resource_urls[0], is_resource_request=False
        )
        return not owner.resource_names and slow_allows(owner, asked)
    resource = atom.resources[0]
    wild = f"*/{resource.partition('/')[2]}" if "/" in resource else resource
    return (
        bool({"*", atom.api_groups[0]} & set(owner.api_groups))
        and bool({"*", resource, wild} & set(owner.resources))
        and (not owner.resource_names or atom.resource_names[:1] in [[name] for name in owner.resource_names])
    )


@given(st.lists(RULES, max_size=4), st.lists(RULES, max_size=2))
def test_the_uncovered_atoms_are_those_that_no_single_rule_grants(
    owner: list[PolicyRule], servant: list[PolicyRule]
) -> None:
    atoms = [atom for rule in servant for atom in breakdown(rule)]
    assert covers(owner, servant) == [atom for atom in atoms if not any(grants(o, atom) for o in owner)]


@given(RULES, st.sampled_from(QUESTIONS))
def test_the_atoms_of_a_rule_allow_what_the_rule_allows(rule: PolicyRule, question: Attributes) -> None:
    assert any(rule_allows(atom, question) for atom in breakdown(rule)) == rule_allows(rule, question)


@given(st.lists(RULES, max_size=3), st.lists(RULES, max_size=2))
def test_what_is_covered_gives_nothing_that_the_owner_does_not_have(
    owner: list[PolicyRule], servant: list[PolicyRule]
) -> None:
    uncovered = covers(owner, servant)
    for question in QUESTIONS:
        if any(slow_allows(rule, question) for rule in servant):
            held = any(slow_allows(rule, question) for rule in (*owner, *uncovered))
            assert held, f"{question} is granted, and neither held nor reported"


@given(st.lists(RULES, max_size=3))
def test_rules_cover_themselves_and_nothing_covers_only_nothing(rules: list[PolicyRule]) -> None:
    assert covers(rules, rules) == []
    assert covers([], rules) == [atom for rule in rules for atom in breakdown(rule)]


@given(st.lists(RULES, max_size=3), st.sampled_from(QUESTIONS))
def test_joining_atoms_neither_adds_nor_loses_permissions(
    rules: list[PolicyRule], question: Attributes
) -> None:
    atoms = [atom for rule in rules for atom in breakdown(rule)]
    joined = compact(atoms)
    assert any(rule_allows(r, question) for r in joined) == any(rule_allows(r, question) for r in atoms)
    assert len(joined) <= len(atoms)


def test_a_rule_is_described_without_its_empty_parts() -> None:
    rule = PolicyRule(verbs=["get", "list"], api_groups=[""], resources=["pods"])
    assert describe(rule) == '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}'
    assert (
        describe(PolicyRule(verbs=["get"], non_resource_urls=["/x"]))
        == '{NonResourceURLs:["/x"], Verbs:["get"]}'
    )


def role(
    name: str,
    labels: dict[str, str] | None = None,
    rules: list[PolicyRule] | None = None,
    selectors: list[LabelSelector] | None = None,
) -> ClusterRole:
    return ClusterRole(
        metadata=ObjectMeta(name=name, labels=labels or {}),
        rules=rules or [],
        aggregation_rule=None if selectors is None else AggregationRule(cluster_role_selectors=selectors),
    )


def test_aggregated_roles_feed_each_other_until_nothing_changes() -> None:
    view = PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"])
    edit = PolicyRule(verbs=["update"], api_groups=[""], resources=["pods"])
    roles = [
        role("admin", selectors=[LabelSelector(match_labels={"to-admin": "true"})]),
        role("edit", {"to-admin": "true"}, selectors=[LabelSelector(match_labels={"to-edit": "true"})]),
        role("one", {"to-edit": "true"}, [view, view]),
        role("two", {"to-edit": "true"}, [edit]),
    ]
    updated = aggregate(roles)
    assert [(item.metadata.name, item.rules) for item in updated] == [
        ("admin", [view, edit]),
        ("edit", [view, edit]),
    ]
    assert roles[0].rules == []
    assert aggregate([*updated, *roles[2:]]) == []


def test_aggregation_understands_every_operator_and_leaves_the_role_itself_out() -> None:
    rule = PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"])

    def gathered(operator: str, values: list[str]) -> bool:
        expression = LabelSelectorRequirement(key="k", operator=operator, values=values)
        target = role("target", {"k": "v"}, selectors=[LabelSelector(match_expressions=[expression])])
        return bool(aggregate([target, role("source", {"k": "v"}, [rule])]))

    assert gathered("In", ["v", "w"])
    assert not gathered("In", ["w"])
    assert gathered("NotIn", ["w"])
    assert not gathered("NotIn", ["v"])
    assert gathered("Exists", [])
    assert not gathered("DoesNotExist", [])
    assert not gathered("Nonsense", [])

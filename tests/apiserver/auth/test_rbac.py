"""RBAC: grants by bindings of roles."""

from __future__ import annotations

import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeward.api.errors import ApiError
from nodeward.api.meta import KubeObject, LabelSelector, ObjectMeta
from nodeward.api.rbac_v1 import (
    AggregationRule,
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    Role,
    RoleBinding,
    RoleRef,
    Subject,
)
from nodeward.apiserver.auth import rbac as rbac_module
from nodeward.apiserver.auth.escalation import check_binding, check_role
from nodeward.apiserver.auth.forbidden import forbidden, forbidden_message
from nodeward.apiserver.auth.rbac import RbacAuthorizer
from nodeward.apiserver.auth.rules import rule_allows
from nodeward.apiserver.auth.user import Attributes, Authorization, AuthorizerDecision, User
from nodeward.base.invariant import InvariantBroken

JANE = User("jane", groups=("devs", "system:authenticated"))
PODS = PolicyRule(verbs=["get", "list"], api_groups=[""], resources=["pods"])


def cluster_role(name: str, *rules: PolicyRule) -> ClusterRole:
    return ClusterRole(metadata=ObjectMeta(name=name), rules=list(rules))


def role(namespace: str, name: str, *rules: PolicyRule) -> Role:
    return Role(metadata=ObjectMeta(name=name, namespace=namespace), rules=list(rules))


def ref(kind: str, name: str) -> RoleRef:
    return RoleRef(api_group="rbac.authorization.k8s.io", kind=kind, name=name)


def cluster_binding(name: str, role_ref: RoleRef, *subjects: Subject) -> ClusterRoleBinding:
    return ClusterRoleBinding(metadata=ObjectMeta(name=name), role_ref=role_ref, subjects=list(subjects))


def binding(namespace: str, name: str, role_ref: RoleRef, *subjects: Subject) -> RoleBinding:
    return RoleBinding(
        metadata=ObjectMeta(name=name, namespace=namespace), role_ref=role_ref, subjects=list(subjects)
    )


def user(name: str) -> Subject:
    return Subject(kind="User", name=name)


def group(name: str) -> Subject:
    return Subject(kind="Group", name=name)


def authorizer(*objects: KubeObject) -> RbacAuthorizer:
    made = RbacAuthorizer()
    for item in objects:
        made.upsert(type(item).__name__, item)
    return made


def wants(
    verb: str, resource: str = "pods", namespace: str = "", name: str = "", who: User = JANE
) -> Attributes:
    return Attributes(user=who, verb=verb, version="v1", resource=resource, namespace=namespace, name=name)


def test_the_reason_names_the_binding_the_role_and_the_subject() -> None:
    rbac = authorizer(cluster_role("y", PODS), cluster_binding("x", ref("ClusterRole", "y"), group("devs")))
    assert rbac.authorize(wants("list")) == Authorization(
        AuthorizerDecision.ALLOW, 'RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "y" to Group "devs"'
    )


def test_the_reason_names_the_namespace_of_a_role_binding_and_of_a_service_account() -> None:
    bot = User("system:serviceaccount:ns:bot")
    rbac = authorizer(
        role("ns", "r", PODS),
        binding("ns", "b", ref("Role", "r"), user("other"), Subject(kind="ServiceAccount", name="bot")),
    )
    assert rbac.authorize(wants("get", namespace="ns", name="p", who=bot)) == Authorization(
        AuthorizerDecision.ALLOW, 'RBAC: allowed by RoleBinding "b/ns" of Role "r" to ServiceAccount "bot/ns"'
    )


def test_a_role_binding_grants_in_its_own_namespace_only() -> None:
    rbac = authorizer(cluster_role("y", PODS), binding("ns", "b", ref("ClusterRole", "y"), user("jane")))
    assert rbac.authorize(wants("list", namespace="ns")).is_allowed
    assert not rbac.authorize(wants("list", namespace="elsewhere")).is_allowed
    assert not rbac.authorize(wants("list")).is_allowed


def test_a_service_account_without_namespace_in_a_cluster_binding_is_nobody() -> None:
    nobody = Subject(kind="ServiceAccount", name="bot")
    rbac = authorizer(cluster_role("y", PODS), cluster_binding("x", ref("ClusterRole", "y"), nobody))
    assert not rbac.authorize(wants("list", who=User("system:serviceaccount::bot"))).is_allowed


def test_a_rule_with_names_allows_those_names_only() -> None:
    one = PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"], resource_names=["one"])
    rbac = authorizer(cluster_role("y", one), cluster_binding("x", ref("ClusterRole", "y"), user("jane")))
    assert rbac.authorize(wants("get", namespace="a", name="one")).is_allowed
    assert not rbac.authorize(wants("get", namespace="a", name="two")).is_allowed
    assert not rbac.authorize(wants("get", namespace="a")).is_allowed


def test_a_missing_role_is_named_in_the_refusal() -> None:
    rbac = authorizer(
        cluster_binding("x", ref("ClusterRole", "gone"), user("jane")),
        binding("ns", "b", ref("Role", "lost"), user("jane")),
        binding("ns", "c", ref("Nonsense", "r"), user("jane")),
    )
    assert rbac.authorize(wants("get")) == Authorization(
        AuthorizerDecision.NO_OPINION, 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found'
    )
    assert rbac.authorize(wants("get", namespace="ns")).reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "gone" not found, '
        'role.rbac.authorization.k8s.io "lost" not found, unsupported role reference kind: "Nonsense"]'
    )


def test_every_change_takes_effect_at_once() -> None:
    rbac = RbacAuthorizer()
    question = wants("list", namespace="ns")

    def is_allowed() -> bool:
        return rbac.authorize(question).is_allowed

    assert not is_allowed()
    rbac.upsert("ClusterRole", cluster_role("y", PODS))
    assert not is_allowed()
    rbac.upsert("ClusterRoleBinding", cluster_binding("x", ref("ClusterRole", "y"), user("jane")))
    assert is_allowed()
    rbac.upsert("ClusterRoleBinding", cluster_binding("x", ref("ClusterRole", "y"), user("joe")))
    assert not is_allowed()
    rbac.upsert("RoleBinding", binding("ns", "x", ref("ClusterRole", "y"), user("jane")))
    assert is_allowed()
    rbac.remove("ClusterRole", "", "y")
    assert not is_allowed()
    rbac.upsert("Role", role("ns", "z", PODS))
    rbac.replace("RoleBinding", [binding("ns", "w", ref("Role", "z"), user("jane"))])
    assert is_allowed()
    rbac.remove("Role", "ns", "z")
    assert not is_allowed()
    rbac.replace("Role", [role("ns", "z", PODS)])
    assert is_allowed()
    rbac.remove("RoleBinding", "ns", "w")
    assert not is_allowed()
    rbac.replace("ClusterRole", [cluster_role("y", PODS)])
    rbac.replace("ClusterRoleBinding", [cluster_binding("q", ref("ClusterRole", "y"), group("devs"))])
    assert is_allowed()
    rbac.remove("ClusterRoleBinding", "", "q")
    assert not is_allowed()


def test_an_object_of_another_kind_is_our_own_mistake() -> None:
    rbac = RbacAuthorizer()
    with pytest.raises(InvariantBroken):
        rbac.upsert("Role", cluster_role("y"))
    with pytest.raises(InvariantBroken):
        rbac.replace("Pod", [])
    with pytest.raises(InvariantBroken):
        rbac.remove("Pod", "", "p")


def test_remembered_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbac_module, "REMEMBERED", 10)
    rbac = authorizer(cluster_role("y", PODS), cluster_binding("x", ref("ClusterRole", "y"), user("jane")))
    assert all(rbac.authorize(wants("get", namespace=f"n{i}")).is_allowed for i in range(95))
    assert len(rbac._answers) <= 10


def test_a_remembered_answer_takes_less_than_a_microsecond_and_serves_every_name() -> None:
    rbac = authorizer(cluster_role("y", PODS), cluster_binding("x", ref("ClusterRole", "y"), group("devs")))
    questions = [wants("get", namespace="default", name=f"pod-{i}") for i in range(1000)]
    rbac.authorize(questions[0])
    best = min(timeit.repeat(lambda: [rbac.authorize(q) for q in questions], number=1, repeat=50))
    assert len(rbac._answers) == 1
    # A generous bound for a busy machine; it is about 0.4 µs on an idle one.
    assert best / 1000 < 1.5e-6


SMALL_RULES = st.builds(
    PolicyRule,
    verbs=st.lists(st.sampled_from(["get", "list", "*"]), max_size=2),
    api_groups=st.lists(st.sampled_from(["", "apps", "*"]), max_size=2),
    resources=st.lists(st.sampled_from(["pods", "pods/log", "*/log", "*"]), max_size=2),
    resource_names=st.lists(st.sampled_from(["a", "b"]), max_size=2),
    non_resource_urls=st.lists(st.sampled_from(["/x", "/x*", "*"]), max_size=1),
)
SUBJECTS = st.sampled_from(
    [user("jane"), user("joe"), group("devs"), Subject(kind="ServiceAccount", name="bot", namespace="ns")]
)
QUESTIONS = st.builds(
    Attributes,
    user=st.sampled_from([JANE, User("joe"), User("system:serviceaccount:ns:bot")]),
    verb=st.sampled_from(["get", "list", "delete"]),
    group=st.sampled_from(["", "apps"]),
    resource=st.just("pods"),
    subresource=st.sampled_from(["", "log"]),
    name=st.sampled_from(["", "a", "b"]),
    namespace=st.sampled_from(["", "ns", "other"]),
    path=st.sampled_from(["/x", "/xy", "/"]),
    is_resource_request=st.booleans(),
)


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "ns", "other"]), st.lists(SMALL_RULES, max_size=2), SUBJECTS),
        max_size=4,
    ),
    st.lists(QUESTIONS, min_size=1, max_size=8),
)
def test_indexed_and_remembered_answers_are_those_of_a_plain_search(
    grants: list[tuple[str, list[PolicyRule], Subject]], questions: list[Attributes]
) -> None:
    rbac = RbacAuthorizer()
    for i, (namespace, rules, subject) in enumerate(grants):
        rbac.upsert("ClusterRole", cluster_role(f"r{i}", *rules))
        target = ref("ClusterRole", f"r{i}")
        if namespace:
            rbac.upsert("RoleBinding", binding(namespace, f"b{i}", target, subject))
        else:
            rbac.upsert("ClusterRoleBinding", cluster_binding(f"b{i}", target, subject))

    def is_subject(subject: Subject, who: User) -> bool:
        if subject.kind == "Group":
            return subject.name in who.groups
        if subject.kind == "ServiceAccount":
            return who.name == f"system:serviceaccount:{subject.namespace}:{subject.name}"
        return who.name == subject.name

    for question in [*questions, *questions]:
        expected = any(
            namespace in ("", question.namespace)
            and is_subject(subject, question.user)
            and any(rule_allows(rule, question) for rule in rules)
            for namespace, rules, subject in grants
        )
        assert rbac.authorize(question).is_allowed == expected


def test_a_refusal_says_who_could_not_do_what_where() -> None:
    listing = wants("list", namespace="default")
    assert forbidden_message(listing) == (
        'User "jane" cannot list resource "pods" in API group "" in the namespace "default"'
    )
    logs = Attributes(
        user=JANE, verb="get", group="apps", resource="deployments", subresource="scale", name="d"
    )
    assert forbidden_message(logs) == (
        'User "jane" cannot get resource "deployments/scale" in API group "apps" at the cluster scope'
    )
    path = Attributes(user=JANE, verb="get", path="/foo", is_resource_request=False)
    assert forbidden_message(path) == 'User "jane" cannot get path "/foo"'
    assert str(forbidden(path)) == 'forbidden: User "jane" cannot get path "/foo"'
    assert str(forbidden(listing, "RBAC: lost")) == (
        'pods is forbidden: User "jane" cannot list resource "pods" in API group "" '
        'in the namespace "default": RBAC: lost'
    )
    html = Attributes(user=User("<b>"), verb="get", path="/&", is_resource_request=False)
    assert forbidden_message(html) == 'User "<b>" cannot get path "/&"'
    assert str(forbidden(html)) == 'forbidden: User "&lt;b&gt;" cannot get path "/&amp;"'


MANAGE = PolicyRule(
    verbs=["*"], api_groups=["rbac.authorization.k8s.io"], resources=["roles", "clusterroles"]
)


def test_nobody_writes_a_role_with_more_than_they_hold() -> None:
    rbac = authorizer(cluster_role("y", PODS), cluster_binding("x", ref("ClusterRole", "y"), user("jane")))
    check_role(rbac, rbac.authorize, JANE, role("ns", "fine", PODS))
    greedy = role(
        "ns", "greedy", PolicyRule(verbs=["get", "delete"], api_groups=[""], resources=["pods", "nodes"])
    )
    with pytest.raises(ApiError) as refused:
        check_role(rbac, rbac.authorize, JANE, greedy)
    assert refused.value.code == 403
    assert str(refused.value) == (
        'roles.rbac.authorization.k8s.io "greedy" is forbidden: '
        'user "jane" (groups=["devs" "system:authenticated"]) is attempting to grant RBAC permissions '
        "not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "delete"]}\n'
        '{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}'
    )
    check_role(rbac, rbac.authorize, User("root", groups=("system:masters",)), greedy)


def test_the_verb_escalate_lets_a_user_write_any_role() -> None:
    escalate = PolicyRule(verbs=["escalate"], api_groups=["rbac.authorization.k8s.io"], resources=["roles"])
    rbac = authorizer(role("ns", "y", escalate), binding("ns", "x", ref("Role", "y"), user("jane")))
    check_role(rbac, rbac.authorize, JANE, role("ns", "greedy", PODS))
    with pytest.raises(ApiError):
        check_role(rbac, rbac.authorize, JANE, role("elsewhere", "greedy", PODS))


def test_an_aggregated_role_needs_everything() -> None:
    aggregated = ClusterRole(
        metadata=ObjectMeta(name="all"),
        aggregation_rule=AggregationRule(cluster_role_selectors=[LabelSelector(match_labels={"a": "b"})]),
    )
    rbac = authorizer(cluster_role("y", PODS), cluster_binding("x", ref("ClusterRole", "y"), user("jane")))
    for new, old in ((aggregated, None), (cluster_role("all"), aggregated)):
        with pytest.raises(ApiError) as refused:
            check_role(rbac, rbac.authorize, JANE, new, old)
        assert str(refused.value) == (
            'clusterroles.rbac.authorization.k8s.io "all" is forbidden: '
            "must have cluster-admin privileges to use the aggregationRule"
        )
    everything = cluster_role(
        "y",
        PolicyRule(verbs=["*"], api_groups=["*"], resources=["*"]),
        PolicyRule(verbs=["*"], non_resource_urls=["*"]),
    )
    rbac.upsert("ClusterRole", everything)
    check_role(rbac, rbac.authorize, JANE, aggregated)


def test_nobody_binds_a_role_with_more_than_they_hold() -> None:
    rbac = authorizer(
        cluster_role("y", PODS),
        cluster_role("big", MANAGE),
        cluster_binding("x", ref("ClusterRole", "y"), user("jane")),
    )
    check_binding(rbac, rbac.authorize, JANE, binding("ns", "fine", ref("ClusterRole", "y"), user("joe")))
    with pytest.raises(
        ApiError, match=r'rolebindings.rbac.authorization.k8s.io "b" is forbidden: user "jane"'
    ):
        check_binding(rbac, rbac.authorize, JANE, binding("ns", "b", ref("ClusterRole", "big"), user("joe")))
    with pytest.raises(ApiError, match=r'clusterrolebindings.rbac.authorization.k8s.io "b" is forbidden'):
        check_binding(
            rbac, rbac.authorize, JANE, cluster_binding("b", ref("ClusterRole", "big"), user("joe"))
        )
    with pytest.raises(ApiError, match=r'roles.rbac.authorization.k8s.io "gone" not found'):
        check_binding(rbac, rbac.authorize, JANE, binding("ns", "b", ref("Role", "gone"), user("joe")))


def test_the_verb_bind_lets_a_user_bind_the_roles_it_names() -> None:
    bind = PolicyRule(
        verbs=["bind"],
        api_groups=["rbac.authorization.k8s.io"],
        resources=["clusterroles"],
        resource_names=["big"],
    )
    rbac = authorizer(
        cluster_role("binder", bind),
        cluster_role("big", MANAGE),
        cluster_role("huge", MANAGE),
        binding("ns", "x", ref("ClusterRole", "binder"), user("jane")),
    )
    check_binding(rbac, rbac.authorize, JANE, binding("ns", "b", ref("ClusterRole", "big"), user("joe")))
    with pytest.raises(ApiError):
        check_binding(rbac, rbac.authorize, JANE, binding("ns", "b", ref("ClusterRole", "huge"), user("joe")))
    with pytest.raises(ApiError):
        check_binding(
            rbac, rbac.authorize, JANE, cluster_binding("b", ref("ClusterRole", "big"), user("joe"))
        )

"""Acting as somebody else."""

from __future__ import annotations

import pytest

from nodeward.api.errors import ApiError
from nodeward.api.meta import ObjectMeta
from nodeward.api.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from nodeward.apiserver.auth.impersonate import impersonate, wanted_user
from nodeward.apiserver.auth.rbac import RbacAuthorizer
from nodeward.apiserver.auth.user import Attributes, User

CALLER = User("caller", groups=("system:authenticated",))
AGENT = User("system:serviceaccount:ns:agent", extra={"authentication.kubernetes.io/node-name": ("n1",)})
CORE, AUTHENTICATION = "", "authentication.k8s.io"


def granted(*grants: tuple[str, str, str, tuple[str, ...]]) -> RbacAuthorizer:
    """Verb, group, resource, names: each for both callers."""
    rbac = RbacAuthorizer()
    rules = [
        PolicyRule(verbs=[verb], api_groups=[group], resources=[resource], resource_names=list(names))
        for verb, group, resource, names in grants
    ]
    rbac.upsert("ClusterRole", ClusterRole(metadata=ObjectMeta(name="r"), rules=rules))
    subjects = [Subject(kind="User", name=user.name) for user in (CALLER, AGENT)]
    role_ref = RoleRef(kind="ClusterRole", name="r")
    binding = ClusterRoleBinding(metadata=ObjectMeta(name="b"), role_ref=role_ref, subjects=subjects)
    rbac.upsert("ClusterRoleBinding", binding)
    return rbac


def act(rbac: RbacAuthorizer, wanted: User, caller: User = CALLER, verb: str = "list") -> User:
    request = Attributes(user=caller, verb=verb, version="v1", resource="pods", namespace="ns")
    return impersonate(request, wanted, rbac.authorize)


def refusal(rbac: RbacAuthorizer, wanted: User, caller: User = CALLER) -> str:
    with pytest.raises(ApiError) as refused:
        act(rbac, wanted, caller)
    assert refused.value.code == 403
    return str(refused.value)


def test_the_headers_say_whom_to_act_as() -> None:
    headers = [
        (b"impersonate-user", b"jane"),
        (b"impersonate-group", b"devs"),
        (b"impersonate-group", b"ops"),
        (b"impersonate-uid", b"7"),
        (b"impersonate-extra-example.com%2fscope", b"a"),
        (b"impersonate-extra-example.com%2fscope", b"b"),
        (b"accept", b"*/*"),
    ]
    assert wanted_user(headers) == User("jane", "7", ("devs", "ops"), {"example.com/scope": ("a", "b")})
    assert wanted_user([(b"accept", b"*/*")]) is None
    assert wanted_user([(b"impersonate-user", b"")]) is None


def test_a_group_without_a_user_is_a_bad_request() -> None:
    with pytest.raises(ApiError) as refused:
        wanted_user([(b"impersonate-group", b"devs")])
    assert refused.value.code == 400
    assert str(refused.value) == (
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"devs"}, '
        "Extra:map[string][]string(nil)} without impersonating a user name"
    )
    with pytest.raises(ApiError, match=r'Extra:map\[string\]\[\]string{"a":\[\]string{"b"}}'):
        wanted_user([(b"impersonate-extra-a", b"b")])
    with pytest.raises(ApiError, match='UID:"7"'):
        wanted_user([(b"impersonate-uid", b"7")])


def test_the_old_verb_allows_each_thing_that_is_assumed() -> None:
    rbac = granted(
        ("impersonate", CORE, "users", ("jane",)),
        ("impersonate", CORE, "groups", ("devs",)),
        ("impersonate", AUTHENTICATION, "uids", ()),
        ("impersonate", AUTHENTICATION, "userextras/scope", ("a",)),
    )
    wanted = User("jane", "7", ("devs",), {"scope": ("a",)})
    assert act(rbac, wanted) == User("jane", "7", ("devs", "system:authenticated"), {"scope": ("a",)})
    for beyond in (
        User("joe"),
        User("jane", groups=("ops",)),
        User("jane", extra={"scope": ("b",)}),
        User("jane", extra={"other": ("a",)}),
    ):
        with pytest.raises(ApiError):
            act(rbac, beyond)


def test_groups_that_follow_from_the_name_are_added() -> None:
    rbac = granted(("impersonate", "*", "*", ()))
    assert act(rbac, User("system:serviceaccount:ns:bot")).groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:ns",
        "system:authenticated",
    )
    assert act(rbac, User("system:serviceaccount:ns:bot", groups=("g",))).groups == (
        "g",
        "system:authenticated",
    )
    assert act(rbac, User("system:anonymous")).groups == ("system:unauthenticated",)
    assert act(rbac, User("x", groups=("system:unauthenticated",))).groups == ("system:unauthenticated",)
    assert act(rbac, User("x", groups=("system:masters",))).groups == (
        "system:masters",
        "system:authenticated",
    )
    assert act(rbac, User("system:node:n1")).groups == ("system:authenticated",)


def test_who_may_nothing_sees_the_refusal_of_the_first_mode_that_fits() -> None:
    nothing = granted()
    assert refusal(nothing, User("jane")) == (
        'pods is forbidden: User "caller" cannot impersonate-on:user-info:list resource "pods" '
        'in API group "" in the namespace "ns"'
    )
    assert "impersonate-on:serviceaccount:list" in refusal(nothing, User("system:serviceaccount:ns:bot"))
    assert "impersonate-on:arbitrary-node:list" in refusal(nothing, User("system:node:n1"))
    assert "impersonate-on:associated-node:list" in refusal(nothing, User("system:node:n1"), AGENT)
    assert refusal(nothing, User("system:node:n1", groups=("system:nodes",))) == (
        'users "system:node:n1" is forbidden: User "caller" cannot impersonate resource "users" '
        'in API group "" at the cluster scope'
    )


def test_a_constrained_user_needs_both_the_user_and_the_action() -> None:
    rbac = granted(
        ("impersonate:user-info", AUTHENTICATION, "users", ("jane",)),
        ("impersonate:user-info", AUTHENTICATION, "groups", ("devs", "system:masters", "")),
        ("impersonate:user-info", AUTHENTICATION, "userextras/example.com/scope", ()),
        ("impersonate-on:user-info:list", CORE, "pods", ()),
    )
    assert act(rbac, User("jane", groups=("devs",))).groups == ("devs", "system:authenticated")
    assert act(rbac, User("jane", extra={"example.com/scope": ("a",)})).name == "jane"
    with pytest.raises(ApiError):
        act(rbac, User("jane"), verb="delete")
    assert "impersonating the system:masters group is not allowed" in refusal(
        rbac, User("jane", groups=("system:masters",))
    )
    assert "impersonating the empty string group is not allowed" in refusal(rbac, User("jane", groups=("",)))


@pytest.mark.parametrize(
    ("extra", "fault"),
    [
        ({"": ("a",)}, "the empty string key in extra"),
        ({"scope": ("a",)}, "an invalid key in extra"),
        ({"example.com/Scope": ("a",)}, "a non-lowercase key in extra"),
        ({"example.com/scope": ("",)}, "the empty string value in extra"),
    ],
)
def test_constrained_extra_keys_are_checked(extra: dict[str, tuple[str, ...]], fault: str) -> None:
    rbac = granted(
        ("impersonate:user-info", AUTHENTICATION, "*", ()),
        ("impersonate-on:user-info:list", CORE, "pods", ()),
    )
    assert fault in refusal(rbac, User("jane", extra=extra))


def test_many_groups_or_extras_may_be_allowed_by_one_grant_of_all() -> None:
    rbac = granted(
        ("impersonate:user-info", AUTHENTICATION, "users", ()),
        ("impersonate:user-info", AUTHENTICATION, "groups", ("*",)),
        ("impersonate:user-info", AUTHENTICATION, "userextras/*", ("*",)),
        ("impersonate-on:user-info:list", CORE, "pods", ()),
    )
    assert len(act(rbac, User("jane", groups=("a", "b", "c", "d"))).groups) == 5
    with pytest.raises(ApiError):
        act(rbac, User("jane", groups=("a", "b", "c")))
    assert act(rbac, User("jane", extra={"e.com/x": ("a", "b", "c", "d")})).name == "jane"


def test_a_service_account_may_act_as_its_own_node_only() -> None:
    rbac = granted(
        ("impersonate:associated-node", AUTHENTICATION, "nodes", ()),
        ("impersonate-on:associated-node:list", CORE, "pods", ()),
    )
    assert act(rbac, User("system:node:n1"), AGENT) == User(
        "system:node:n1", groups=("system:nodes", "system:authenticated")
    )
    with pytest.raises(ApiError):
        act(rbac, User("system:node:n2"), AGENT)
    with pytest.raises(ApiError):
        act(rbac, User("system:node:n1"), CALLER)
    by_name = granted(
        ("impersonate:associated-node", AUTHENTICATION, "nodes", ("n1",)),
        ("impersonate-on:associated-node:list", CORE, "pods", ()),
    )
    # The grant must be for all nodes: which one it is depends on where the pod runs.
    with pytest.raises(ApiError):
        act(by_name, User("system:node:n1"), AGENT)


def test_constrained_nodes_and_service_accounts_are_named_in_their_grants() -> None:
    rbac = granted(
        ("impersonate:arbitrary-node", AUTHENTICATION, "nodes", ("n2",)),
        ("impersonate-on:arbitrary-node:list", CORE, "pods", ()),
        ("impersonate:serviceaccount", AUTHENTICATION, "serviceaccounts", ("bot",)),
        ("impersonate-on:serviceaccount:list", CORE, "pods", ()),
    )
    assert act(rbac, User("system:node:n2")).groups == ("system:nodes", "system:authenticated")
    assert act(rbac, User("system:serviceaccount:ns:bot")).groups[0] == "system:serviceaccounts"
    for other in ("system:node:n3", "system:serviceaccount:ns:other"):
        with pytest.raises(ApiError):
            act(rbac, User(other))

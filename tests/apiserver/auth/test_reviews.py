"""Reviews answer in their status."""

from __future__ import annotations

import msgspec
import pytest

from nodeward.api.authentication_v1 import SelfSubjectReview, TokenReview, TokenReviewSpec
from nodeward.api.authorization_v1 import (
    FieldSelectorAttributes,
    LocalSubjectAccessReview,
    NonResourceAttributes,
    NonResourceRule,
    ResourceAttributes,
    ResourceRule,
    SelfSubjectAccessReview,
    SelfSubjectAccessReviewSpec,
    SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
)
from nodeward.api.errors import ApiError
from nodeward.api.meta import FieldSelectorRequirement, ObjectMeta
from nodeward.api.rbac_v1 import ClusterRole, ClusterRoleBinding, PolicyRule, RoleRef, Subject
from nodeward.apiserver.auth import reviews
from nodeward.apiserver.auth.authenticate import Authenticator
from nodeward.apiserver.auth.authorizers import Authorizers
from nodeward.apiserver.auth.rbac import RbacAuthorizer
from nodeward.apiserver.auth.user import (
    NO_OPINION,
    Attributes,
    Authorization,
    AuthorizerDecision,
    FieldTerm,
    User,
)
from nodeward.base.duration import SECOND_NS

JANE = User("jane", "7", ("devs",), {"b": ("2",), "a": ("1",)})
NOW = 1_767_225_600 * SECOND_NS
PODS = ResourceAttributes(verb="list", resource="pods", namespace="ns")


class Asked:
    """Remembers what was asked; answers as told."""

    def __init__(self, decision: Authorization = NO_OPINION) -> None:
        self.decision = decision
        self.questions: list[Attributes] = []

    def __call__(self, attributes: Attributes) -> Authorization:
        self.questions.append(attributes)
        return self.decision


def test_may_i_asks_for_the_caller() -> None:
    asked = Asked(Authorization(AuthorizerDecision.ALLOW, "because"))
    review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resource_attributes=PODS))
    out = reviews.self_subject_access_review(review, JANE, asked)
    assert out.status == SubjectAccessReviewStatus(allowed=True, reason="because")
    assert out.spec == review.spec
    assert review.status == SubjectAccessReviewStatus()
    assert asked.questions == [
        Attributes(user=JANE, verb="list", version="*", resource="pods", namespace="ns")
    ]


def test_may_they_asks_for_the_subject() -> None:
    asked = Asked(Authorization(AuthorizerDecision.DENY, "no"))
    spec = SubjectAccessReviewSpec(
        user="joe",
        groups=["g"],
        uid="8",
        extra={"k": ["v"]},
        non_resource_attributes=NonResourceAttributes(path="/x", verb="get"),
    )
    out = reviews.subject_access_review(SubjectAccessReview(spec=spec), asked)
    assert out.status == SubjectAccessReviewStatus(denied=True, reason="no")
    joe = User("joe", "8", ("g",), {"k": ("v",)})
    assert asked.questions == [Attributes(user=joe, verb="get", path="/x", is_resource_request=False)]


def test_a_local_review_must_be_about_the_namespace_it_is_sent_to() -> None:
    spec = SubjectAccessReviewSpec(user="joe", resource_attributes=PODS)
    review = LocalSubjectAccessReview(metadata=ObjectMeta(namespace="ns"), spec=spec)
    assert not reviews.local_subject_access_review(review, "ns", Asked()).status.allowed
    with pytest.raises(ApiError, match=r"spec.resourceAttributes.namespace must match namespace: other"):
        reviews.local_subject_access_review(review, "other", Asked())
    with pytest.raises(ApiError, match="exactly one of"):
        reviews.subject_access_review(SubjectAccessReview(), Asked())


def requirement(key: str, operator: str, *values: str) -> FieldSelectorRequirement:
    return FieldSelectorRequirement(key=key, operator=operator, values=list(values))


IGNORED = "spec.resourceAttributes.fieldSelector ignored due to parse error"
PARTLY = "spec.resourceAttributes.fieldSelector partially ignored due to parse error"


@pytest.mark.parametrize(
    ("selector", "terms", "fault"),
    [
        (
            FieldSelectorAttributes(raw_selector="a=b,c!=d,e==f"),
            [("a", "b", True), ("c", "d", False), ("e", "f", True)],
            "",
        ),
        (
            FieldSelectorAttributes(raw_selector=r"a=x\,y\=z\\,c=d"),
            [("a", "x,y=z\\", True), ("c", "d", True)],
            "",
        ),
        (FieldSelectorAttributes(raw_selector="a=b,nonsense"), [], IGNORED),
        (
            FieldSelectorAttributes(
                requirements=[requirement("a", "In", "b"), requirement("c", "NotIn", "d")]
            ),
            [("a", "b", True), ("c", "d", False)],
            "",
        ),
        (
            FieldSelectorAttributes(requirements=[requirement("a", "In", "b"), requirement("c", "Exists")]),
            [("a", "b", True)],
            PARTLY,
        ),
        (FieldSelectorAttributes(requirements=[requirement("a", "In", "b", "c")]), [], IGNORED),
    ],
)
def test_field_selectors_are_handed_on_as_far_as_understood(
    selector: FieldSelectorAttributes, terms: list[FieldTerm], fault: str
) -> None:
    asked = Asked()
    wanted = msgspec.structs.replace(PODS, field_selector=selector)
    review = SelfSubjectAccessReview(spec=SelfSubjectAccessReviewSpec(resource_attributes=wanted))
    out = reviews.self_subject_access_review(review, JANE, asked)
    assert asked.questions[0].field_selector == tuple(terms)
    assert out.status.evaluation_error == fault


def test_my_rules_are_listed_by_resources_and_paths() -> None:
    rbac = RbacAuthorizer()
    rules = [
        PolicyRule(verbs=["get"], api_groups=[""], resources=["pods"], resource_names=["a"]),
        PolicyRule(verbs=["get"], non_resource_urls=["/x"]),
    ]
    rbac.upsert("ClusterRole", ClusterRole(metadata=ObjectMeta(name="r"), rules=rules))
    for name, role in (("b", "r"), ("c", "gone"), ("d", "lost")):
        subjects = [Subject(kind="User", name="jane")]
        role_ref = RoleRef(kind="ClusterRole", name=role)
        binding = ClusterRoleBinding(metadata=ObjectMeta(name=name), role_ref=role_ref, subjects=subjects)
        rbac.upsert("ClusterRoleBinding", binding)
    review = SelfSubjectRulesReview(kind="K", spec=SelfSubjectRulesReviewSpec(namespace="ns"))
    out = reviews.self_subject_rules_review(review, JANE, Authorizers(rbac))
    assert out.kind == "K"
    assert out.status.resource_rules == [
        ResourceRule(verbs=["get"], api_groups=[""], resources=["pods"], resource_names=["a"])
    ]
    assert out.status.non_resource_rules == [NonResourceRule(verbs=["get"], non_resource_urls=["/x"])]
    assert not out.status.incomplete
    assert out.status.evaluation_error == (
        '[clusterrole.rbac.authorization.k8s.io "gone" not found, '
        'clusterrole.rbac.authorization.k8s.io "lost" not found]'
    )
    with pytest.raises(ApiError, match="no namespace on request"):
        reviews.self_subject_rules_review(SelfSubjectRulesReview(), JANE, Authorizers(rbac))


def test_who_am_i_shows_everything_known_of_the_caller() -> None:
    out = reviews.self_subject_review(SelfSubjectReview(), JANE, NOW)
    assert out.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    info = out.status.user_info
    assert (info.username, info.uid, info.groups) == ("jane", "7", ["devs"])
    assert list(info.extra.items()) == [("a", ["1"]), ("b", ["2"])]


def test_a_token_review_says_whose_token_it_is_or_why_not() -> None:
    check = Authenticator(tokens={"t": JANE}, audiences=["api"])
    good = reviews.token_review(TokenReview(spec=TokenReviewSpec(token="t")), check, ["api"], NOW)
    assert good.status.authenticated
    assert good.status.user.username == "jane"
    assert good.status.user.groups == ["devs", "system:authenticated"]
    assert good.status.audiences == ["api"]
    bad = reviews.token_review(TokenReview(spec=TokenReviewSpec(token="x")), check, ["api"], NOW)
    assert not bad.status.authenticated
    assert bad.status.error == "invalid bearer token"
    elsewhere = TokenReview(spec=TokenReviewSpec(token="t", audiences=["vault"]))
    assert not reviews.token_review(elsewhere, check, ["api"], NOW).status.authenticated
    with pytest.raises(ApiError, match="token is required for TokenReview in authentication"):
        reviews.token_review(TokenReview(), check, ["api"], NOW)

"""Roles, bindings, and the reviews that ask about them: what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api.authentication_v1 import TokenRequest
from nodeward.api.authorization_v1 import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SubjectAccessReview,
)
from nodeward.api.rbac_v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from tests.validation.tables import Case, case, check_create, check_update, edited

_META = {"name": "system:a", "namespace": "default"}
_GROUP = "rbac.authorization.k8s.io"
ROLE: dict[str, Any] = {
    "metadata": _META,
    "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
}
CLUSTER_ROLE = edited(ROLE, {"metadata": {"name": "a"}})
BINDING: dict[str, Any] = {
    "metadata": _META,
    "roleRef": {"kind": "Role", "name": "a"},
    "subjects": [{"kind": "User", "name": "u"}],
}
CLUSTER_BINDING = edited(BINDING, {"metadata": {"name": "a"}, "roleRef.kind": "ClusterRole"})


@pytest.mark.parametrize(
    "one",
    [
        case("a plain role is fine"),
        case(
            "names fit into a path",
            {"metadata.name": "a/b"},
            "metadata.name: Invalid value: \"a/b\": may not contain '/'",
        ),
        case(
            "a rule says what and where; that it says verbs is told last",
            {"rules": [{}, {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]},
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
            'rules[1].nonResourceURLs: Invalid value: ["/healthz"]: namespaced rules cannot apply to non-resource URLs',
            "rules[0].verbs: Required value",
        ),
    ],
    ids=str,
)
def test_a_new_role(one: Case) -> None:
    check_create(Role, ROLE, one)


@pytest.mark.parametrize(
    "one",
    [
        case("URLs are fine in a cluster", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]}),
        case(
            "but not beside resources",
            {"rules[0].nonResourceURLs": ["/x"]},
            'rules[0].nonResourceURLs: Invalid value: ["/x"]: '
            "rules cannot apply to both regular resources and non-resource URLs",
        ),
        case(
            "what is gathered is selected",
            {"aggregationRule": {}},
            "aggregationRule.clusterRoleSelectors: Required value: "
            "at least one clusterRoleSelector required if aggregationRule is non-nil",
        ),
    ],
    ids=str,
)
def test_a_new_cluster_role(one: Case) -> None:
    check_create(ClusterRole, CLUSTER_ROLE, one)


@pytest.mark.parametrize(
    "one",
    [
        case("a plain binding is fine"),
        case(
            "a binding names a role",
            {"roleRef": {"kind": "Pod", "name": "", "apiGroup": "x"}},
            f'roleRef.apiGroup: Unsupported value: "x": supported values: "{_GROUP}"',
            'roleRef.kind: Unsupported value: "Pod": supported values: "Role", "ClusterRole"',
            "roleRef.name: Required value",
        ),
        case(
            "subjects are of known kinds",
            {
                "subjects": [
                    {"kind": "Dog", "name": "d"},
                    {"kind": "ServiceAccount", "name": "A", "apiGroup": "x"},
                    {"kind": "Group"},
                ]
            },
            'subjects[0].kind: Unsupported value: "Dog": supported values: "ServiceAccount", "User", "Group"',
            'subjects[1].name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of...',
            'subjects[1].apiGroup: Unsupported value: "x": supported values: ""',
            "subjects[2].name: Required value",
        ),
    ],
    ids=str,
)
def test_a_new_binding(one: Case) -> None:
    check_create(RoleBinding, BINDING, one)


def test_accounts_in_a_cluster_binding_have_a_namespace() -> None:
    change = {"subjects": [{"kind": "ServiceAccount", "name": "a"}]}
    check_create(
        ClusterRoleBinding, CLUSTER_BINDING, case("bad", change, "subjects[0].namespace: Required value")
    )
    kind = 'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'
    check_create(ClusterRoleBinding, CLUSTER_BINDING, case("kind", {"roleRef.kind": "Role"}, kind))


def test_a_binding_keeps_its_role() -> None:
    error = f'roleRef: Invalid value: {{"apiGroup":"{_GROUP}","kind":"Role","name":"b"}}: field is immutable'
    check_update(RoleBinding, BINDING, case("kept", {"roleRef.name": "b"}, error))
    check_update(RoleBinding, BINDING, case("subjects", {"subjects": []}))


_ONE = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
REVIEW: dict[str, Any] = {"spec": {"user": "u", "resourceAttributes": {"verb": "get"}}}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain review is fine"),
        case(
            "a review asks about one thing for somebody",
            {"spec": {}},
            f"spec: Invalid value: null: {_ONE}",
            'spec.user: Invalid value: "": at least one of user or group must be specified',
        ),
        case(
            "a review has no metadata",
            {"metadata": {"name": "x"}},
            'metadata: Invalid value: {"name":"x"}: must be empty',
        ),
        case(
            "a selector is raw or not",
            {
                "spec.resourceAttributes.labelSelector": {},
                "spec.resourceAttributes.fieldSelector": {
                    "rawSelector": "a=b",
                    "requirements": [{"operator": "In"}],
                },
            },
            'spec.resourceAttributes.fieldSelector.rawSelector: Invalid value: "a=b": '
            "may not specified at the same time as requirements",
            "spec.resourceAttributes.fieldSelector.requirements[0].key: Required value: must be specified",
            "spec.resourceAttributes.fieldSelector.requirements[0].values: Required value: "
            "must be specified when `operator` is 'In' or 'NotIn'",
            "spec.resourceAttributes.labelSelector.requirements: Required value: when "
            "spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required",
        ),
    ],
    ids=str,
)
def test_an_access_review(one: Case) -> None:
    check_create(SubjectAccessReview, REVIEW, one)


def test_a_local_review_stays_in_its_namespace() -> None:
    local = {"metadata": {"namespace": "a"}, "spec": {"user": "u", "resourceAttributes": {"namespace": "b"}}}
    error = 'spec.resourceAttributes.namespace: Invalid value: "b": must match metadata.namespace'
    check_create(LocalSubjectAccessReview, local, case("elsewhere", {}, error))
    check_create(LocalSubjectAccessReview, local, case("here", {"spec.resourceAttributes.namespace": "a"}))


def test_a_review_of_oneself_asks_about_one_thing() -> None:
    check_create(SelfSubjectAccessReview, {"spec": {"nonResourceAttributes": {"path": "/"}}}, case("one"))
    both = {"spec": {"nonResourceAttributes": {"path": "/"}, "resourceAttributes": {}}}
    check_create(
        SelfSubjectAccessReview, both, case("two", {}, f'spec: Invalid value: {{"path":"/"}}: {_ONE}')
    )


@pytest.mark.parametrize(
    "one",
    [
        case("an hour is fine"),
        case(
            "a token lives ten minutes at least",
            {"spec.expirationSeconds": 599},
            "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
        ),
        case(
            "and not forever",
            {"spec.expirationSeconds": 2**32 + 1},
            "spec.expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32 seconds",
        ),
        case(
            "attestations are for webhooks",
            {"spec.attestations": {"a": ["b"]}},
            'spec.attestations: Invalid value: {"a":["b"]}: '
            "attestations may only be specified with a webhook bound object reference",
        ),
    ],
    ids=str,
)
def test_a_token_request(one: Case) -> None:
    check_create(TokenRequest, {"spec": {"audiences": ["api"]}}, one)

"""Kinds that are answered but never stored: access reviews, token reviews, self subject reviews. Called by `app.py`."""

from __future__ import annotations

from typing import Any

from nodeward.api.authentication_v1 import SelfSubjectReview, TokenReview
from nodeward.api.authorization_v1 import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
)
from nodeward.api.codec import encode
from nodeward.api.errors import method_not_supported
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.auth import reviews
from nodeward.apiserver.reading_body import check_options, read_object
from nodeward.apiserver.request import Call
from nodeward.apiserver.security import Security
from nodeward.machinery.serving.answer import Answer


def review(api: Api, security: Security, call: Call, kind: Kind) -> Answer:
    """Answer a review with its status filled in."""
    check_options(call, "CreateOptions")
    asked: Any = read_object(call, kind)
    answer = _answer(api, security, call, kind, asked)
    answer.kind, answer.api_version = kind.name, kind.api_version
    return Answer(201, encode(answer))


def _answer(api: Api, security: Security, call: Call, kind: Kind, asked: Any) -> Any:
    authorize, now_ns = security.authorizers.authorize, api.env.clock.now_ns()
    match asked:
        case SelfSubjectAccessReview():
            return reviews.self_subject_access_review(asked, call.user, authorize)
        case SubjectAccessReview():
            return reviews.subject_access_review(asked, authorize)
        case LocalSubjectAccessReview():
            if not asked.metadata.namespace:
                asked.metadata.namespace = call.namespace
            return reviews.local_subject_access_review(asked, call.namespace, authorize)
        case SelfSubjectRulesReview():
            return reviews.self_subject_rules_review(asked, call.user, security.authorizers)
        case SelfSubjectReview():
            return reviews.self_subject_review(asked, call.user, now_ns)
        case TokenReview():
            audiences = security.settings.audiences if security.settings else ()
            return reviews.token_review(asked, security.authenticator, audiences, now_ns)
    raise method_not_supported(kind.group, kind.resource, call.verb)

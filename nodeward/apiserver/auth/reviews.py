"""Access and token reviews: questions asked as objects and answered in their status. Called by `reviewing.py`.

Each function takes the object of a create request, already validated, and returns a copy with its status, or raises the
`ApiError` to answer with. Nothing is stored.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Final, TypeVar

from nodeward.api import errors
from nodeward.api.authentication_v1 import (
    SelfSubjectReview,
    SelfSubjectReviewStatus,
    TokenReview,
    TokenReviewStatus,
    UserInfo,
)
from nodeward.api.authorization_v1 import (
    FieldSelectorAttributes,
    LocalSubjectAccessReview,
    NonResourceRule,
    ResourceRule,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
    SubjectAccessReviewStatus,
    SubjectRulesReviewStatus,
)
from nodeward.api.meta import ObjectMeta
from nodeward.apiserver.auth.authenticate import Authenticator
from nodeward.apiserver.auth.authorizers import Authorizers
from nodeward.apiserver.auth.rules import ALL
from nodeward.apiserver.auth.user import Attributes, Authorize, AuthorizerDecision, FieldTerm, User
from nodeward.base.timestamp import rfc3339

_ReviewT = TypeVar("_ReviewT", SubjectAccessReview, LocalSubjectAccessReview, SelfSubjectAccessReview)


def self_subject_access_review(
    review: SelfSubjectAccessReview, user: User, authorize: Authorize
) -> SelfSubjectAccessReview:
    """Answer whether the caller may do something."""
    return _answered(review, user, authorize)


def subject_access_review(review: SubjectAccessReview, authorize: Authorize) -> SubjectAccessReview:
    """Answer whether a user may do something."""
    return _answered(review, _subject(review.spec), authorize)


def local_subject_access_review(
    review: LocalSubjectAccessReview, namespace: str, authorize: Authorize
) -> LocalSubjectAccessReview:
    """Answer whether a user may do something in `namespace`, which is the one in the URL."""
    if namespace != review.metadata.namespace:
        raise errors.bad_request(f"spec.resourceAttributes.namespace must match namespace: {namespace}")
    return _answered(review, _subject(review.spec), authorize)


def self_subject_rules_review(
    review: SelfSubjectRulesReview, user: User, authorizers: Authorizers
) -> SelfSubjectRulesReview:
    """List what the caller may do in a namespace."""
    if not review.spec.namespace:
        raise errors.bad_request("no namespace on request")
    rules, faults, is_incomplete = authorizers.rules_for(user, review.spec.namespace)
    status = SubjectRulesReviewStatus(incomplete=is_incomplete, evaluation_error=_joined(faults))
    for rule in rules:
        if rule.resources:
            status.resource_rules.append(
                ResourceRule(
                    verbs=rule.verbs,
                    api_groups=rule.api_groups,
                    resources=rule.resources,
                    resource_names=rule.resource_names,
                )
            )
        if rule.non_resource_urls:
            status.non_resource_rules.append(
                NonResourceRule(verbs=rule.verbs, non_resource_urls=rule.non_resource_urls)
            )
    # As upstream answers: the question is not repeated.
    return SelfSubjectRulesReview(kind=review.kind, api_version=review.api_version, status=status)


def self_subject_review(review: SelfSubjectReview, user: User, now_ns: int) -> SelfSubjectReview:
    """Answer who the caller is."""
    return SelfSubjectReview(
        kind=review.kind,
        api_version=review.api_version,
        metadata=ObjectMeta(creation_timestamp=rfc3339(now_ns)),
        status=SelfSubjectReviewStatus(user_info=user_info(user)),
    )


def token_review(
    review: TokenReview, authenticator: Authenticator, api_audiences: Sequence[str], now_ns: int
) -> TokenReview:
    """Answer whose token it is."""
    if not review.spec.token:
        raise errors.bad_request("token is required for TokenReview in authentication")
    asked = review.spec.audiences or api_audiences
    answer = authenticator.authenticate_token(review.spec.token, now_ns=now_ns, audiences=asked)
    out = copy.copy(review)
    if answer.user is None:
        out.status = TokenReviewStatus(error=answer.error)
    else:
        audiences = list(answer.audiences)
        out.status = TokenReviewStatus(authenticated=True, user=user_info(answer.user), audiences=audiences)
    return out


def user_info(user: User) -> UserInfo:
    """Return a user as objects show it."""
    extra = {key: list(user.extra[key]) for key in sorted(user.extra)}
    return UserInfo(username=user.name, uid=user.uid, groups=list(user.groups), extra=extra)


def _subject(spec: SubjectAccessReviewSpec) -> User:
    extra = {key: tuple(values) for key, values in spec.extra.items()}
    return User(spec.user, spec.uid, tuple(spec.groups), extra)


def _answered(review: _ReviewT, user: User, authorize: Authorize) -> _ReviewT:
    wanted, path = review.spec.resource_attributes, review.spec.non_resource_attributes
    fault = ""
    if wanted is not None:
        terms, fault = _field_terms(wanted.field_selector)
        attributes = Attributes(
            user=user,
            verb=wanted.verb,
            group=wanted.group,
            version=wanted.version or ALL,
            resource=wanted.resource,
            subresource=wanted.subresource,
            name=wanted.name,
            namespace=wanted.namespace,
            field_selector=terms,
        )
    elif path is not None:
        attributes = Attributes(user=user, verb=path.verb, path=path.path, is_resource_request=False)
    else:
        raise errors.bad_request(
            "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        )
    decision = authorize(attributes)
    out = copy.copy(review)
    out.status = SubjectAccessReviewStatus(
        allowed=decision.is_allowed,
        denied=decision.verdict is AuthorizerDecision.DENY,
        reason=decision.reason,
        evaluation_error=fault,
    )
    return out


_TERM: Final = re.compile(r"([^=!]*)(!=|==|=)((?:\\[\\,=]|[^\\,=])*)")
_COMMA: Final = re.compile(r"(?<!\\)((?:\\\\)*),")


def _field_terms(selector: FieldSelectorAttributes | None) -> tuple[tuple[FieldTerm, ...], str]:
    """Return the terms that were understood, and errors about the others. Label selectors are not considered."""
    if selector is None:
        return (), ""
    terms: list[FieldTerm] = []
    is_whole = True
    for part in _COMMA.sub("\\1\n", selector.raw_selector).split("\n") if selector.raw_selector else []:
        match = _TERM.fullmatch(part)
        if match is not None:
            terms.append((match[1], re.sub(r"\\(.)", r"\1", match[3]), match[2] != "!="))
        elif part:
            is_whole = False
    if not is_whole:
        # A text that cannot be read says nothing; a list may be understood in part.
        terms.clear()
    for requirement in selector.requirements:
        if requirement.operator in ("In", "NotIn") and len(requirement.values) == 1:
            terms.append((requirement.key, requirement.values[0], requirement.operator == "In"))
        else:
            is_whole = False
    if is_whole:
        return tuple(terms), ""
    how = "partially ignored" if terms else "ignored"
    return tuple(terms), f"spec.resourceAttributes.fieldSelector {how} due to parse error"


def _joined(faults: Sequence[str]) -> str:
    if len(faults) <= 1:
        return "".join(faults)
    return f"[{', '.join(faults)}]"

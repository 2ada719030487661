"""Token reviews, token requests and user info: authentication.k8s.io/v1."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.fields import REQUIRED, Int64, KubeStruct, Time, always, always_list, always_null, nested
from nodeward.api.meta import KubeObject


class BoundObjectReference(KubeStruct):
    kind: str = ""
    api_version: str = ""
    name: str = ""
    uid: str = ""


class UserInfo(KubeStruct):
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class SelfSubjectReviewStatus(KubeStruct):
    user_info: UserInfo = nested(UserInfo)


class SelfSubjectReview(KubeObject):
    status: SelfSubjectReviewStatus = nested(SelfSubjectReviewStatus)


class TokenRequestSpec(KubeStruct):
    audiences: list[str] = always_list()
    expiration_seconds: Int64 | None = None
    bound_object_ref: BoundObjectReference | None = None
    attestations: dict[str, list[str]] = {}


class TokenRequestStatus(KubeStruct):
    token: str = always("")
    expiration_timestamp: Time | None = always_null()


class TokenRequest(KubeObject):
    spec: TokenRequestSpec = nested(TokenRequestSpec)
    status: TokenRequestStatus = nested(TokenRequestStatus)


class TokenReviewSpec(KubeStruct):
    token: Annotated[str, REQUIRED] = ""
    audiences: list[str] = []


class TokenReviewStatus(KubeStruct):
    authenticated: bool = False
    user: UserInfo = nested(UserInfo)
    audiences: list[str] = []
    error: str = ""


class TokenReview(KubeObject):
    spec: Annotated[TokenReviewSpec, REQUIRED] = nested(TokenReviewSpec)
    status: TokenReviewStatus = nested(TokenReviewStatus)

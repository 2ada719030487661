"""serviceaccounts/token: issues a token for a service account with `auth/token_request.py`."""

from __future__ import annotations

from typing import cast

from nodeward.api.authentication_v1 import TokenRequest
from nodeward.api.codec import encode
from nodeward.api.errors import not_found
from nodeward.api.scheme import Kind
from nodeward.apiserver.admission.plugin import Write
from nodeward.apiserver.api import Api
from nodeward.apiserver.reading_body import check_options, read_object
from nodeward.apiserver.request import Call
from nodeward.machinery.serving.answer import Answer


async def issue_token(api: Api, call: Call, kind: Kind) -> Answer:
    """Sign a token for the account in the path."""
    check_options(call, "CreateOptions")
    request = cast(TokenRequest, read_object(call, kind, TokenRequest))
    if api.issuer is None:
        raise not_found("", "serviceaccounts/token", call.name)
    await api.env.hub.fresh()
    write = Write(
        "CREATE", kind, call.namespace, call.name, "token", call.user, request, None, call.is_dry_run
    )
    api.chain.admit(write)
    api.chain.validate(write)
    answer, warnings = api.issuer.issue(
        request, call.namespace, call.name, now_ns=api.env.clock.now_ns(), token_id=api.env.chance.uuid()
    )
    for text in warnings:
        call.warn(text)
    answer.kind, answer.api_version = "TokenRequest", "authentication.k8s.io/v1"
    return Answer(201, encode(answer))

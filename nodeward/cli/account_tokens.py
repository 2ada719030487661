"""Service-account tokens for controllers: each acts as its own account, with a token renewed before it expires."""

from __future__ import annotations

import asyncio
from typing import Final

from nodeward.api.authentication_v1 import TokenRequest, TokenRequestSpec
from nodeward.api.core_v1.cluster import ServiceAccount
from nodeward.api.errors import ApiError
from nodeward.api.meta import ObjectMeta
from nodeward.base.timestamp import parse_rfc3339
from nodeward.machinery.client import Client
from nodeward.machinery.credentials import ClientIdentity, bearer

NAMESPACE: Final = "kube-system"
#: The requested lifetime of a token, and the part of it that is used.
TOKEN_SECONDS: Final = 3600
_USED: Final = 0.8


class AccountToken:
    """The token of one account; `client` may create accounts and tokens. Implements `Credentials`."""

    def __init__(self, client: Client, account: str) -> None:
        self._client = client
        self._account = account
        self._identity: ClientIdentity | None = None
        self._until_ns = 0
        self._lock = asyncio.Lock()

    async def identity(self) -> ClientIdentity:
        async with self._lock:
            now_ns = self._client.clock.now_ns()
            if self._identity is None or now_ns >= self._until_ns:
                status = (await self._asked()).status
                end = parse_rfc3339(status.expiration_timestamp) if status.expiration_timestamp else now_ns
                self._until_ns = now_ns + int((end - now_ns) * _USED)
                self._identity = ClientIdentity(bearer(status.token))
            return self._identity

    def reject(self, identity: ClientIdentity) -> bool:
        if identity is self._identity:
            self._identity = None
        return True

    async def _asked(self) -> TokenRequest:
        body = TokenRequest(spec=TokenRequestSpec(expiration_seconds=TOKEN_SECONDS))
        for is_second in (False, True):
            try:
                return await self._client.create_below(
                    TokenRequest, ServiceAccount, self._account, NAMESPACE, "token", body
                )
            except ApiError as error:
                if is_second or error.reason != "NotFound":
                    raise
            await self._make_account()
        raise AssertionError("two tries")

    async def _make_account(self) -> None:
        try:
            await self._client.create(
                ServiceAccount(metadata=ObjectMeta(name=self._account, namespace=NAMESPACE))
            )
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise

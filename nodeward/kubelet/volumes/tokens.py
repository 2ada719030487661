"""Tokens of service accounts for pods: asked for, kept, and renewed when a fifth of their life is left.

A token is bound to its pod, so the API server stops believing it when the pod is gone. What must stay true: a token
that cannot be renewed is used until it has expired, and never after.
"""

from __future__ import annotations

from typing import Final

from nodeward.api.authentication_v1 import BoundObjectReference, TokenRequest, TokenRequestSpec
from nodeward.api.core_v1.cluster import ServiceAccount
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.volume import ServiceAccountTokenProjection
from nodeward.api.errors import ApiError
from nodeward.base.duration import HOUR_NS, SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.base.timestamp import parse_rfc3339
from nodeward.machinery.client import Client
from nodeward.machinery.clock import Chance, Clock
from nodeward.machinery.eager import own_task

#: A token that lasts longer is still renewed once a day.
_MAX_AGE_NS: Final = 24 * HOUR_NS
#: Not all pods of a node at the same moment.
_SPREAD_SECONDS: Final = 10.0
_DEFAULT_SECONDS: Final = 3600


class _Token:
    __slots__ = ("expires_ns", "renew_ns", "text")

    def __init__(self, text: str, renew_ns: int, expires_ns: int) -> None:
        self.text = text
        self.renew_ns = renew_ns
        self.expires_ns = expires_ns


class Tokens:
    """The tokens of one node's pods."""

    def __init__(self, client: Client, clock: Clock, chance: Chance) -> None:
        self._client = client
        self._clock = clock
        self._chance = chance
        self._kept: dict[tuple[str, str, int], _Token] = {}

    async def token(self, pod: Pod, wanted: ServiceAccountTokenProjection) -> str:
        """A token that holds for a while yet."""
        seconds = wanted.expiration_seconds or _DEFAULT_SECONDS
        key = (pod.metadata.uid, wanted.audience, seconds)
        kept = self._kept.get(key)
        now_ns = self._clock.now_ns()
        if kept is not None and now_ns < kept.renew_ns:
            return kept.text
        try:
            fresh = await self._ask(pod, wanted.audience, seconds)
        except (ApiError, WorldError) as error:
            if kept is None:
                raise WorldError(f"failed to fetch token: {error}") from error
            if now_ns >= kept.expires_ns:
                account = f"{pod.metadata.namespace}/{pod.spec.service_account_name}"
                raise WorldError(f"token of {account} expired and refresh failed: {error}") from error
            return kept.text
        self._kept[key] = fresh
        return fresh.text

    def forget(self, uid: str) -> None:
        for key in [key for key in self._kept if key[0] == uid]:
            del self._kept[key]

    @own_task
    async def _ask(self, pod: Pod, audience: str, seconds: int) -> _Token:
        meta = pod.metadata
        request = TokenRequest(
            kind="TokenRequest",
            api_version="authentication.k8s.io/v1",
            spec=TokenRequestSpec(
                audiences=[audience] if audience else [],
                expiration_seconds=seconds,
                bound_object_ref=BoundObjectReference(
                    api_version="v1", kind="Pod", name=meta.name, uid=meta.uid
                ),
            ),
        )
        account = pod.spec.service_account_name or "default"
        answer = await self._client.create_below(
            TokenRequest, ServiceAccount, account, meta.namespace, "token", request
        )
        expires_ns = parse_rfc3339(answer.status.expiration_timestamp or "")
        lasts_ns = (answer.spec.expiration_seconds or seconds) * SECOND_NS
        spread_ns = int(self._chance.uniform(0, min(_SPREAD_SECONDS, seconds / 100)) * SECOND_NS)
        renew_ns = min(expires_ns - lasts_ns // 5, expires_ns - lasts_ns + _MAX_AGE_NS) - spread_ns
        return _Token(answer.status.token, renew_ns, expires_ns)

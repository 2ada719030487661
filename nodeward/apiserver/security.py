"""Authentication and authorization of requests; RBAC and node authorizer follow the watch caches.

Called by `app.py` for every request; decides with `auth/`. It follows the caches like any other watcher, so a new
binding counts from the moment it is visible.

What must stay true: no other module turns a request into a user or allows one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec

from nodeward.api.codec import decoder
from nodeward.api.core_v1.cluster import Secret, ServiceAccount
from nodeward.api.core_v1.node import Node
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.storage import PersistentVolume
from nodeward.api.errors import unauthorized
from nodeward.api.meta import KubeObject
from nodeward.api.rbac_v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from nodeward.api.resource_v1 import ResourceSlice
from nodeward.api.storage_v1 import VolumeAttachment
from nodeward.apiserver.auth.authenticate import Authenticator, certificate_user
from nodeward.apiserver.auth.authorizers import Authorizers
from nodeward.apiserver.auth.impersonate import impersonate, wanted_user
from nodeward.apiserver.auth.node_authorizer import NodeAuthorizer
from nodeward.apiserver.auth.node_graph import NodeGraph
from nodeward.apiserver.auth.rbac import RbacAuthorizer
from nodeward.apiserver.auth.token_keys import TokenKey
from nodeward.apiserver.auth.token_request import TokenIssuer
from nodeward.apiserver.auth.tokens import BoundObject, TokenSigner, TokenVerifier
from nodeward.apiserver.auth.user import User
from nodeward.apiserver.cache import ChangeBatch
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.request import Call
from nodeward.base.timestamp import parse_rfc3339
from nodeward.machinery.serving.connection import Peer

LOG: Final = logging.getLogger(__name__)

_LOOKUPS: dict[str, type[KubeObject]] = {
    "ServiceAccount": ServiceAccount,
    "Pod": Pod,
    "Secret": Secret,
    "Node": Node,
}


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """How service-account tokens are issued and verified."""

    keys: Sequence[TokenKey]
    issuer: str = "https://kubernetes.default.svc.cluster.local"
    audiences: tuple[str, ...] = ("https://kubernetes.default.svc.cluster.local",)


class Security:
    """Authentication and authorization of one API server."""

    def __init__(
        self,
        env: Environment,
        tokens: TokenSettings | None,
        static: Mapping[str, User],
        *,
        allows_anonymous: bool = True,
    ) -> None:
        self._env = env
        self._graph = NodeGraph()
        self.rbac = RbacAuthorizer()
        self.settings = tokens
        verifier = None
        self.issuer: TokenIssuer | None = None
        if tokens is not None and tokens.keys:
            verifier = TokenVerifier([tokens.issuer], tokens.keys, tokens.audiences, self._lookup)
            signer = TokenSigner(tokens.issuer, tokens.keys[0])
            self.issuer = TokenIssuer(signer, tokens.audiences, self._lookup)
        audiences = tokens.audiences if tokens is not None else ()
        self.authenticator = Authenticator(
            tokens=static, verifier=verifier, audiences=audiences, allows_anonymous=allows_anonymous
        )
        self.authorizers = Authorizers(self.rbac, NodeAuthorizer(self._graph))

    def start(self) -> None:
        """Load the existing objects and follow their changes."""
        graph = self._graph
        for role in (ClusterRole, Role, ClusterRoleBinding, RoleBinding):
            _Follower(self._env, role, self._upsert_rule, self._remove_rule)
        _Follower(
            self._env,
            Pod,
            graph.upsert_pod,
            lambda kind, ns, name: graph.remove_pod(ns, name),
            only=b'"nodeName":',
        )
        _Follower(
            self._env, PersistentVolume, graph.upsert_volume, lambda kind, ns, name: graph.remove_volume(name)
        )
        _Follower(
            self._env,
            VolumeAttachment,
            graph.upsert_attachment,
            lambda kind, ns, name: graph.remove_attachment(name),
        )
        _Follower(
            self._env, ResourceSlice, graph.upsert_slice, lambda kind, ns, name: graph.remove_slice(name)
        )

    def _upsert_rule(self, obj: Any) -> None:
        self.rbac.upsert(type(obj).__name__, obj)

    def _remove_rule(self, kind: str, namespace: str, name: str) -> None:
        self.rbac.remove(kind, namespace, name)

    # -- a request

    def admit(self, call: Call, peer: Peer) -> None:
        """Authenticate and authorize a request; raises 401 or 403."""
        call.user = self._authenticate(call, peer)
        attributes = call.attributes()
        headers = call.request.headers
        if any(name.startswith("impersonate-") for name in headers):
            wanted = wanted_user(_pairs(headers))
            if wanted is not None:
                call.user = impersonate(attributes, wanted, self.authorizers.authorize)
                attributes = call.attributes()
        self.authorizers.require(attributes)

    def _authenticate(self, call: Call, peer: Peer) -> User:
        if peer.identity is None and peer.certificate:
            peer.identity = certificate_user(peer.certificate, peer.der)
        subject = cast(User | None, peer.identity)
        headers = call.request.headers
        shown = headers.get("authorization") if subject is None else None
        pairs = ((b"authorization", shown.encode("latin-1", "replace")),) if shown else ()
        user = self.authenticator.authenticate(
            peer_subject=subject, headers=pairs, now_ns=self._env.clock.now_ns()
        )
        if user is None:
            raise unauthorized()
        return user

    def _lookup(self, kind: str, namespace: str, name: str) -> BoundObject | None:
        obj = cast(Any, self._env.peek(_LOOKUPS[kind], name, namespace))
        if obj is None:
            return None
        deleted = obj.metadata.deletion_timestamp
        is_pod = isinstance(obj, Pod)
        return BoundObject(
            obj.metadata.uid,
            parse_rfc3339(deleted) if deleted else None,
            obj.spec.service_account_name if is_pod else "",
            obj.spec.node_name if is_pod else "",
        )


def _pairs(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [
        (name.encode("latin-1"), line.encode("latin-1"))
        for name, text in headers.items()
        for line in text.split("\n")
    ]


class _Follower:
    """Feeds the changes of one watch cache to an authorizer."""

    def __init__(
        self,
        env: Environment,
        type_: type[KubeObject],
        upsert: Callable[[Any], None],
        remove: Callable[[str, str, str], None],
        *,
        only: bytes = b"",
    ) -> None:
        self._kind = env.scheme.by_type(type_)
        self._decode = decoder(type_).decode
        self._upsert = upsert
        self._remove = remove
        #: objects without these bytes do not matter here and are not decoded
        self._only = only
        cache = env.hub.cache(self._kind)
        for item in cache.items():
            if only in item:
                self._take(item.data)
        cache.watch(self)

    def _take(self, data: bytes) -> None:
        try:
            obj = self._decode(data)
        except msgspec.DecodeError as error:
            # Nothing is granted by what cannot be read.
            LOG.error("a stored %s cannot be decoded and has no effect: %s", self._kind.name, error)
        else:
            self._upsert(obj)

    def changed(self, batch: ChangeBatch) -> None:
        for change in batch.changes:
            if change.type == "DELETED":
                namespace, _, name = change.key.rpartition("/")
                self._remove(self._kind.name, namespace, name)
            elif self._only in change.item:
                self._take(change.item.data)

    def relisted(self, batch: ChangeBatch) -> None:
        self.changed(batch)

"""One API server's parts, as the verbs see them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from nodeward.api.scheme import Kind
from nodeward.apiserver.admission.chain import Chain
from nodeward.apiserver.auth.token_request import TokenIssuer
from nodeward.apiserver.auth.user import Attributes
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.kubelet_access import KubeletAccess
from nodeward.apiserver.ownership import Ownership
from nodeward.apiserver.renewals import Renewals
from nodeward.apiserver.resources import make_strategy
from nodeward.apiserver.resources.selectable import Selecting
from nodeward.apiserver.resources.strategy import Strategy
from nodeward.apiserver.writing import Writer


class Api:
    """Strategies by kind, the writer, and what they stand on."""

    def __init__(self, env: Environment, chain: Chain, require: Callable[[Attributes], None]) -> None:
        """`require` raises 403 unless the user may."""
        self.env = env
        self.chain = chain
        self.require = require
        self.ownership = Ownership(env)
        self.renewals = Renewals(env)
        #: who makes service-account tokens, if anybody does
        self.issuer: TokenIssuer | None = None
        #: the way to kubelets
        self.kubelets = KubeletAccess()
        self.writer = Writer(env, chain, self.ownership, require)
        stored = [kind for kind in env.scheme.kinds if kind.is_stored]
        self._storage_kinds = {kind.resource: kind for kind in stored if not kind.stored_as}
        self._strategies: Mapping[Kind, Strategy] = {
            kind: make_strategy(kind, self.stored_kind(kind)) for kind in stored
        }
        self._selecting: dict[Kind, Selecting] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def stored_kind(self, kind: Kind) -> Kind:
        """Return the kind in whose form objects of `kind` are stored: itself, but for events.k8s.io/v1."""
        return self._storage_kinds[kind.stored_as] if kind.stored_as else kind

    def strategy(self, kind: Kind) -> Strategy:
        """Return the strategy of objects that clients write as `kind`."""
        return self._strategies[kind]

    def selecting(self, kind: Kind) -> Selecting:
        """How selectors read objects of this kind; made when first needed."""
        found = self._selecting.get(kind)
        if found is None:
            found = self._selecting[kind] = Selecting(self.strategy(kind).selectable)
        return found

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Let something go on after its request was answered; it ends with its connection."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

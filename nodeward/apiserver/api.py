"""The parts of one API server that the verbs use: strategies, writer, field manager, admission, caches.

Made by `server.py`, handed to every verb and subresource by `app.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from nodeward.api.scheme import Kind
from nodeward.apiserver.admission.chain import AdmissionChain
from nodeward.apiserver.auth.token_request import TokenIssuer
from nodeward.apiserver.auth.user import Attributes
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.field_manager import FieldManager
from nodeward.apiserver.kubelet_access import KubeletAccess
from nodeward.apiserver.lease_renewals import LeaseRenewals
from nodeward.apiserver.resources import make_strategy
from nodeward.apiserver.resources.selectable import SelectableFields
from nodeward.apiserver.resources.strategy import Strategy
from nodeward.apiserver.writing import Writer


class Api:
    """Strategies by kind, the writer, and the services they need."""

    def __init__(
        self, env: Environment, chain: AdmissionChain, require: Callable[[Attributes], None]
    ) -> None:
        """Make the parts. `require` raises 403 unless the user is authorized."""
        self.env = env
        self.chain = chain
        self.require = require
        self.field_manager = FieldManager(env)
        self.lease_renewals = LeaseRenewals(env)
        #: issues service-account tokens; None: this server issues none
        self.issuer: TokenIssuer | None = None
        #: addresses and TLS of kubelets, for logs and exec
        self.kubelets = KubeletAccess()
        self.writer = Writer(env, chain, self.field_manager, require)
        stored = [kind for kind in env.scheme.kinds if kind.is_stored]
        self._storage_kinds = {kind.resource: kind for kind in stored if not kind.stored_as}
        self._strategies: Mapping[Kind, Strategy] = {
            kind: make_strategy(kind, self.stored_kind(kind)) for kind in stored
        }
        self._selectable: dict[Kind, SelectableFields] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def stored_kind(self, kind: Kind) -> Kind:
        """Return the kind in whose form objects of `kind` are stored: itself, but for events.k8s.io/v1."""
        return self._storage_kinds[kind.stored_as] if kind.stored_as else kind

    def strategy(self, kind: Kind) -> Strategy:
        """Return the strategy of objects that clients write as `kind`."""
        return self._strategies[kind]

    def selectable_fields(self, kind: Kind) -> SelectableFields:
        """Return how selectors read objects of this kind; made when first needed."""
        found = self._selectable.get(kind)
        if found is None:
            found = self._selectable[kind] = SelectableFields(self.strategy(kind).selectable)
        return found

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task that outlives its request's answer; it ends with the connection."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

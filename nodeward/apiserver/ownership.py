"""managedFields: who set which field, kept up with every write.

The rules are in `nodeward.api.apply`; here they meet requests: which manager a request speaks for, and which trees to
compare. A write through a subresource owns fields under that subresource's name.
"""

from __future__ import annotations

from typing import Any

from nodeward.api.apply.managed import Handovers, update_managed
from nodeward.api.apply.merge import apply
from nodeward.api.codec import parse_tree, to_tree
from nodeward.api.meta import KubeObject, ManagedFieldsEntry
from nodeward.api.null_lists import tree_with_nulls
from nodeward.api.schema import schema_of
from nodeward.api.scheme import Kind
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.item import Item
from nodeward.apiserver.request import Call
from nodeward.apiserver.resources.event_view import tree_to_view

Paths = tuple[tuple[str, ...], ...]


def manager_of(call: Call) -> str:
    """The name a request writes under: what it says, or the first word of its user agent."""
    return call.query.get("fieldManager") or call.user_agent.partition("/")[0][:128] or "unknown"


def _seen(call: Call, kind: Kind) -> Kind:
    """The form in which the client writes objects that are stored as `kind`."""
    return call.kind if call.kind is not None and call.kind.stored_as else kind


def _as_seen(kind: Kind, tree: dict[str, Any]) -> dict[str, Any]:
    """A stored tree in the form that the client writes, which is the form in which fields are owned."""
    return tree_to_view(tree) if kind.stored_as else tree


class Ownership:
    """Keeps `metadata.managedFields`."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._memory = Handovers()

    def created(self, call: Call, kind: Kind, obj: KubeObject, *, reset: Paths) -> None:
        """A new object: everything in it belongs to whoever sent it."""
        meta = obj.metadata
        if call.applied is not None:
            # What was applied is in the form the client sees, which need not be the one that is stored.
            _, meta.managed_fields = self.applied(
                call, call.kind or kind, None, call.applied, [], reset=reset
            )
            return
        sent = meta.managed_fields
        meta.managed_fields = []
        seen = _seen(call, kind)
        meta.managed_fields = update_managed(
            _as_seen(seen, tree_with_nulls(obj, to_tree)),
            None,
            schema_of(seen.type),
            manager=manager_of(call),
            api_version=seen.api_version,
            now=self._env.now(),
            requested=sent or None,
            reset=reset,
        )

    def updated(
        self,
        call: Call,
        kind: Kind,
        new: KubeObject,
        old: KubeObject,
        item: Item,
        *,
        subresource: str,
        reset: Paths,
    ) -> None:
        """A changed object: what changed belongs to whoever changed it. An apply has settled this itself."""
        if call.applied is not None:
            return
        meta = new.metadata
        sent = meta.managed_fields
        meta.managed_fields = []
        seen = _seen(call, kind)
        meta.managed_fields = update_managed(
            _as_seen(seen, tree_with_nulls(new, to_tree)),
            _as_seen(seen, parse_tree(item.data)),
            schema_of(seen.type),
            manager=manager_of(call),
            api_version=seen.api_version,
            now=self._env.now(),
            subresource=subresource,
            existing=old.metadata.managed_fields,
            requested=sent or None,
            reset=reset,
            memory=self._memory,
        )

    def applied(
        self,
        call: Call,
        kind: Kind,
        live: Any,
        applied: Any,
        entries: list[ManagedFieldsEntry],
        *,
        reset: Paths,
        subresource: str = "",
        force: bool = False,
    ) -> tuple[Any, list[ManagedFieldsEntry]]:
        """Server-side apply: the live tree with what was applied, and who owns what then."""
        return apply(
            live,
            applied,
            schema_of(kind.type),
            manager=manager_of(call),
            force=force,
            api_version=kind.api_version,
            subresource=subresource,
            now=self._env.now(),
            existing=entries,
            reset=reset,
        )

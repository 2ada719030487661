"""managedFields: records on every write which manager set which field.

Called by `writing.py` and by server-side apply (`verbs/patch.py`); the rules are in `nodeward/api/apply`. Here they
meet requests: which manager a request speaks for, and which trees to compare. A write through a subresource owns fields
under that subresource's name.
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
from nodeward.apiserver.resources.strategy import Strategy

Paths = tuple[tuple[str, ...], ...]


def manager_of(call: Call) -> str:
    """Return the field manager of a request: its `fieldManager`, or the first word of its user agent."""
    return call.query.get("fieldManager") or call.user_agent.partition("/")[0][:128] or "unknown"


class FieldManager:
    """Keeps `metadata.managedFields`."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._memory = Handovers()

    def created(
        self,
        call: Call,
        strategy: Strategy,
        obj: KubeObject,
        *,
        reset: Paths,
        applied: dict[str, Any] | None = None,
    ) -> None:
        """Set the managedFields of a new object: its creator owns every field, or those of what was `applied`."""
        meta, served = obj.metadata, strategy.served_kind
        if applied is not None:
            # Fields are owned in the form the client sees, which need not be the one that is stored.
            _, meta.managed_fields = self.applied(call, served, None, applied, [], reset=reset)
            return
        sent = meta.managed_fields
        meta.managed_fields = []
        meta.managed_fields = update_managed(
            strategy.from_stored_form(tree_with_nulls(obj, to_tree)),
            None,
            schema_of(served.type),
            manager=manager_of(call),
            api_version=served.api_version,
            now=self._env.now(),
            requested=sent or None,
            reset=reset,
        )

    def updated(
        self,
        call: Call,
        strategy: Strategy,
        new: KubeObject,
        old: KubeObject,
        item: Item,
        *,
        subresource: str,
        reset: Paths,
    ) -> None:
        """Update the managedFields of a changed object: the caller owns what changed. Not called for an apply."""
        meta, served = new.metadata, strategy.served_kind
        sent = meta.managed_fields
        meta.managed_fields = []
        meta.managed_fields = update_managed(
            strategy.from_stored_form(tree_with_nulls(new, to_tree)),
            strategy.from_stored_form(parse_tree(item.data)),
            schema_of(served.type),
            manager=manager_of(call),
            api_version=served.api_version,
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
        """Merge what was applied into the live tree; return the merged tree and the managedFields that follow."""
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

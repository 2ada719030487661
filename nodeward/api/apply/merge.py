"""Server-side apply: an applied configuration merged into the live object.

Takes the live tree, the configuration, and the owners; returns the merged tree and the new owners. The configuration
decides every field it names; a field its manager applied before and names no longer is removed, unless another manager
owns it; a field another manager owns and that would change is a conflict, unless the apply is forced. Applying the same
value as another owner makes the manager an owner too. Defaults, admission and validation come after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nodeward.api.apply.configuration import as_message, complaints
from nodeward.api.apply.conflicts import Conflict, conflicts_with, not_in, refusal
from nodeward.api.apply.field_set import (
    FieldSet,
    difference,
    included,
    intersection,
    recursive_difference,
    union,
)
from nodeward.api.apply.last_applied import (
    KUBECTL,
    annotation_of,
    fields_of_kubectl,
    with_annotation,
)
from nodeward.api.apply.managed import (
    NEVER_OWNED,
    Names,
    patterns,
    reset_set,
    update_managed,
    visible,
)
from nodeward.api.apply.managers import Managers, Owner, applier, read, write
from nodeward.api.apply.ownership import empty_tree
from nodeward.api.apply.tree_merge import merge_trees, remove_fields, with_parents, without_nulls
from nodeward.api.apply.walk import compare, fields_of
from nodeward.api.errors import bad_request
from nodeward.api.meta import ManagedFieldsEntry
from nodeward.api.schema import Schema

#: Who owns what was there before anybody was tracked.
_BEFORE = "before-first-apply"


def apply(
    live_tree: dict[str, Any] | None,
    applied_tree: dict[str, Any],
    schema: Schema,
    *,
    manager: str,
    force: bool,
    api_version: str,
    now: str,
    subresource: str = "",
    existing: Sequence[ManagedFieldsEntry] = (),
    reset: Names = (),
    only: Names = (),
) -> tuple[dict[str, Any], list[ManagedFieldsEntry]]:
    """Return the merged tree and its entries. `live_tree` is None when the object is created by applying it.

    Refuses with a conflict (409), a bad request, or as Kubernetes does with 500 when the configuration does not have
    the form of its kind. The entries stand beside the tree, never in it.
    """
    check_configuration(applied_tree, schema, api_version)
    live = empty_tree(schema.python_type) if live_tree is None else _without_entries(live_tree)
    if not existing and live_tree is not None:
        existing = update_managed(
            live, None, schema, manager=_BEFORE, api_version=api_version, now=now, subresource=subresource,
            reset=reset, only=only,
        )  # fmt: skip
    applying = _Applying(
        live, applied_tree, schema, manager, api_version, now, subresource, existing, reset, only
    )
    conflicts = [] if force else applying.conflicts()
    if conflicts and manager == KUBECTL:
        conflicts = not_in(conflicts, fields_of_kubectl(live, schema, api_version))
    if conflicts:
        raise refusal(conflicts)
    merged, entries = applying.finish()
    if manager == KUBECTL and annotation_of(merged):
        merged = with_annotation(merged, applied_tree)
    return merged, entries


def check_configuration(applied: dict[str, Any], schema: Schema, api_version: str) -> None:
    """Refuse a tree that is no configuration of its kind, whatever it is applied to."""
    kind = schema.python_type.__name__
    said = _version_and_kind(applied.get("apiVersion"), applied.get("kind"))
    if said != _version_and_kind(api_version, kind):
        raise bad_request(f"invalid object type: {said}")
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
        raise bad_request("metadata.managedFields must be nil")
    if found := complaints(applied, schema):
        where = metadata if isinstance(metadata, dict) else {}
        about = f"{where.get('namespace', '')}/{where.get('name', '')}; {said}"
        # Unlike upstream, which answers the same text with 500: the mistake is the caller's.
        raise bad_request(f"failed to create typed patch object ({about}): {as_message(found)}")


def _version_and_kind(version: object, kind: object) -> str:
    version = version if isinstance(version, str) else ""
    return f"{version if '/' in version else '/' + version}, Kind={kind if isinstance(kind, str) else ''}"


def _without_entries(tree: dict[str, Any]) -> dict[str, Any]:
    metadata = tree.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return tree
    return tree | {"metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


class _Applying:
    """One apply: merged and compared once, then refused or completed."""

    def __init__(
        self,
        live: dict[str, Any],
        applied: dict[str, Any],
        schema: Schema,
        manager: str,
        api_version: str,
        now: str,
        subresource: str,
        existing: Sequence[ManagedFieldsEntry],
        reset: Names,
        only: Names,
    ) -> None:
        self._live, self._schema, self._now, self._api_version = live, schema, now, api_version
        self._me = applier(manager, subresource)
        self._managers: Managers = {
            identity: owner for identity, owner in read(existing).items() if owner.api_version == api_version
        }
        last = self._managers.get(self._me)
        # All the configuration says; what is never owned keeps its parents from being pruned.
        self._said: FieldSet = recursive_difference(fields_of(applied, schema), reset_set(reset))
        if only:
            self._said = included(self._said, patterns(only))
        self._claimed: FieldSet = difference(self._said, NEVER_OWNED)

        merged = merge_trees(live, applied, schema)
        self._merged = self._pruned(merged, last.fields) if last is not None else merged
        self._comparison = visible(compare(live, self._merged, schema), reset, only)

    def _pruned(self, merged: dict[str, Any], last: FieldSet) -> dict[str, Any]:
        """Remove what was applied last time, is not applied now, and has no other owner."""
        if not difference(last, self._said):
            return merged
        schema = self._schema
        owned = self._said
        for identity, owner in self._managers.items():
            if identity != self._me:
                owned = union(owned, owner.fields)
        last = with_parents(last, schema)
        everything = with_parents(fields_of(merged, schema), schema)
        pruned = remove_fields(merged, last, schema)
        kept = union(with_parents(fields_of(pruned, schema), schema), with_parents(owned, schema))
        pruned = remove_fields(merged, difference(everything, kept), schema)
        left = with_parents(fields_of(pruned, schema), schema)
        return remove_fields(merged, intersection(difference(everything, left), last), schema)

    def conflicts(self) -> list[Conflict]:
        """Return the fields of other managers that this apply would change."""
        changed = self._comparison.changed
        disputed = {
            identity: fields
            for identity, owner in self._managers.items()
            if identity != self._me and (fields := intersection(owner.fields, changed))
        }
        return conflicts_with(disputed)

    def finish(self) -> tuple[dict[str, Any], list[ManagedFieldsEntry]]:
        """Return the merged tree and its entries, taking fields from other managers."""
        changed, removed = self._comparison.changed, self._comparison.removed
        for identity, owner in self._managers.items():
            if identity != self._me:
                owner.drop(changed)
                owner.drop(removed)
        is_noop = self._merged == self._live
        before = self._managers.get(self._me)
        if before is None or before.fields != self._claimed or before.api_version != self._api_version:
            time = before.time if before is not None else None
            self._managers[self._me] = Owner(self._claimed, self._api_version, time)
        if not is_noop:
            self._managers[self._me].touch(self._now)
        tree = self._live if is_noop else without_nulls(self._merged, self._schema)
        return tree, write(self._managers)

"""managedFields after a create, an update or a patch (anything but apply).

Takes the trees before and after, and the entries before; returns the entries after. What the request changed belongs to
its manager, what it removed belongs to nobody, the rest keeps its owners. Fields that identify the object or that the
server sets (name, uid, generation, ...) are never owned.

An object without entries is not tracked again by an update: its owners were removed on purpose.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from nodeward.api.apply.create_fields import fields_v1_bytes
from nodeward.api.apply.field_set import FieldSet, Path, from_paths, named
from nodeward.api.apply.managers import (
    MAX_UPDATE_MANAGERS,
    Managers,
    Owner,
    cap_updaters,
    in_order,
    raw_fields,
    read,
    read_foreign,
    updater,
    write,
)
from nodeward.api.apply.ownership import NotIdentifiable, empty_tree
from nodeward.api.apply.walk import Comparison, compare
from nodeward.api.meta import ManagedFieldsEntry
from nodeward.api.schema import Schema

#: Paths as their users write them: names of fields, `*` for any list item or map entry.
Names: TypeAlias = tuple[tuple[str, ...], ...]

_NEVER_OWNED: Names = (
    ("apiVersion",),
    ("kind",),
    ("metadata", "name"),
    ("metadata", "namespace"),
    ("metadata", "creationTimestamp"),
    ("metadata", "selfLink"),
    ("metadata", "uid"),
    ("metadata", "clusterName"),
    ("metadata", "generation"),
    ("metadata", "managedFields"),
    ("metadata", "resourceVersion"),
)
#: What is taken out of the claims of an applier: the above, and `metadata` as a field of its own.
NEVER_OWNED: FieldSet = from_paths(named("metadata"), *(named(*path) for path in _NEVER_OWNED))


@functools.cache
def stripped_paths(reset: Names) -> tuple[Path, ...]:
    """Return the paths nobody owns through this resource."""
    return tuple(named(*path) for path in _NEVER_OWNED + reset)


@functools.cache
def _stripped_set(reset: Names) -> FieldSet:
    return from_paths(*stripped_paths(reset))


@functools.cache
def reset_set(reset: Names) -> FieldSet:
    return from_paths(*(named(*path) for path in reset))


@functools.cache
def patterns(only: Names) -> tuple[Path, ...]:
    return tuple(tuple(name if name == "*" else "f:" + name for name in path) for path in only)


def visible(comparison: Comparison, reset: Names, only: Names) -> Comparison:
    """Return the part of a comparison that can change owners through this resource."""
    return comparison.without(_stripped_set(reset)).only(patterns(only))


def update_managed(
    new_tree: dict[str, Any],
    old_tree: dict[str, Any] | None,
    schema: Schema,
    *,
    manager: str,
    api_version: str,
    now: str,
    subresource: str = "",
    existing: Sequence[ManagedFieldsEntry] = (),
    requested: Sequence[ManagedFieldsEntry] | None = None,
    reset: Names = (),
    only: Names = (),
    memory: Handovers | None = None,
) -> list[ManagedFieldsEntry]:
    """Return the entries of `new_tree`, which replaces `old_tree` (None: it is created).

    `existing` are the entries of the live object. `requested` are those the client sent (None: it sent none): an empty
    list or one empty entry removes all owners, invalid entries are ignored, others replace the existing. `reset` are
    paths this resource does not let one write; with `only`, it lets one write nothing but those. `memory` makes a
    change cheap that was seen before, on another object or at another time.
    """
    managers = _chosen(existing, requested, subresource)
    if old_tree is None:
        if managers is None and not existing and not only:
            return _created(new_tree, schema, manager, api_version, now, subresource, reset)
        old_tree = empty_tree(schema.python_type)
    elif not (existing if managers is None else managers):
        return []
    try:
        comparison = visible(compare(old_tree, new_tree, schema), reset, only)
    except NotIdentifiable:
        # Only an object that validation refuses anyway has such lists.
        return list(existing)
    if managers is None:
        if comparison.is_same and all(entry.api_version == api_version for entry in existing):
            return list(existing)
        if memory is not None and len(existing) < MAX_UPDATE_MANAGERS:
            return memory.after(existing, comparison, manager, api_version, subresource, now)
        managers = read(existing)
    _forget_other_versions(managers, api_version)
    _hand_over(managers, comparison, manager, api_version, subresource, now)
    cap_updaters(managers)
    return write(managers)


#: Changes about more bytes of managedFields are not remembered.
_LONGEST_REMEMBERED = 32 << 10


class Handovers:
    """A cache of ownership changes: the same fields changed by the same manager on objects with the same owners.

    Replicas, heartbeats and status updates are the same change thousands of times; only the time differs.
    """

    def __init__(self, most: int = 1024) -> None:
        self._most = most
        self._known: dict[tuple[Any, ...], tuple[tuple[ManagedFieldsEntry, int], ...]] = {}

    def after(
        self,
        existing: Sequence[ManagedFieldsEntry],
        comparison: Comparison,
        manager: str,
        api_version: str,
        subresource: str,
        now: str,
    ) -> list[ManagedFieldsEntry]:
        """Return the entries after the change."""
        key = (
            msgspec.json.encode(comparison),
            manager,
            api_version,
            subresource,
            *(
                (each.manager, each.operation, each.api_version, each.subresource, raw_fields(each))
                for each in existing
            ),
        )
        known = self._known.get(key)
        if known is None:
            known = self._work_out(existing, comparison, manager, api_version, subresource)
            if len(key[0]) + sum(len(raw_fields(each)) for each in existing) <= _LONGEST_REMEMBERED:
                if len(self._known) >= self._most:
                    self._known.clear()
                self._known[key] = known
        # What a client sees of the order depends on the times, so that is not remembered.
        times = [now, *(each.time for each in existing)]
        return in_order([msgspec.structs.replace(entry, time=times[at]) for entry, at in known])

    @staticmethod
    def _work_out(
        existing: Sequence[ManagedFieldsEntry],
        comparison: Comparison,
        manager: str,
        api_version: str,
        subresource: str,
    ) -> tuple[tuple[ManagedFieldsEntry, int], ...]:
        """Compute the entries, each with where its time comes from: 0 is now, others count from 1."""
        numbered = [
            msgspec.structs.replace(each, time=str(number)) for number, each in enumerate(existing, 1)
        ]
        managers = read(numbered)
        _forget_other_versions(managers, api_version)
        _hand_over(managers, comparison, manager, api_version, subresource, "0")
        return tuple((entry, int(entry.time or "0")) for entry in write(managers))


def _chosen(
    existing: Sequence[ManagedFieldsEntry], requested: Sequence[ManagedFieldsEntry] | None, subresource: str
) -> Managers | None:
    """Return the owners the client asks for; None: keep the existing ones."""
    if requested is None or subresource:
        return None
    if not requested or list(requested) == [ManagedFieldsEntry()]:
        return {}
    if len(requested) == len(existing) and all(
        one == two and raw_fields(one) == raw_fields(two)
        for one, two in zip(requested, existing, strict=True)
    ):
        return None
    try:
        return read_foreign(requested)
    except ValueError:
        return None


def _created(
    tree: dict[str, Any],
    schema: Schema,
    manager: str,
    api_version: str,
    now: str,
    subresource: str,
    reset: Names,
) -> list[ManagedFieldsEntry]:
    try:
        raw = fields_v1_bytes(tree, schema, stripped_paths(reset))
    except NotIdentifiable:
        return []
    if raw == b"{}":
        return []
    return [
        ManagedFieldsEntry(
            manager=manager or "unknown",
            operation="Update",
            api_version=api_version,
            time=now,
            fields_type="FieldsV1",
            fields_v1=msgspec.Raw(raw),
            subresource=subresource,
        )
    ]


def _forget_other_versions(managers: Managers, api_version: str) -> None:
    """Drop entries of other API versions: kinds are served in one version here."""
    for identity in [identity for identity, owner in managers.items() if owner.api_version != api_version]:
        del managers[identity]


def _hand_over(
    managers: Managers, comparison: Comparison, manager: str, api_version: str, subresource: str, now: str
) -> None:
    """Give what changed to the manager, and remove what is gone from all owners."""
    changed = comparison.changed
    me = updater(manager, api_version, subresource)
    for identity, owner in managers.items():
        if identity != me:
            owner.drop(changed)
        owner.drop(comparison.removed)
    if changed:
        mine = managers.setdefault(me, Owner({}, api_version, None))
        mine.add(changed)
        mine.touch(now)
    for identity in [identity for identity, owner in managers.items() if owner.is_empty]:
        del managers[identity]

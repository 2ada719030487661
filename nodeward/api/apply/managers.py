"""managedFields entries decoded into owners, and encoded again.

An owner is identified by manager, operation, subresource, and for updates by version. Decoding keeps each entry's
bytes; encoding returns unchanged entries as they were and puts the rest into the order clients know. An owner of
nothing is not written.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple, TypeAlias

import msgspec

from nodeward.api.apply.field_set import FieldSet, decode, decode_foreign, difference, encode, union
from nodeward.api.meta import ManagedFieldsEntry
from nodeward.base.duration import SECOND_NS
from nodeward.base.timestamp import TimestampError, parse_rfc3339

#: Beyond this many updating owners the oldest are merged.
MAX_UPDATE_MANAGERS = 10
_OLDEST_MANAGER = "ancient-changes"


class ManagerIdentity(NamedTuple):
    """What distinguishes owners."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    @property
    def text(self) -> str:
        """The identity as one string, by which owners are sorted in messages."""
        named = {"manager": self.manager, "operation": self.operation}
        if self.api_version:
            named["apiVersion"] = self.api_version
        if self.subresource:
            named["subresource"] = self.subresource
        return msgspec.json.encode(named).decode()


def updater(manager: str, api_version: str, subresource: str) -> ManagerIdentity:
    return ManagerIdentity(manager or "unknown", "Update", api_version, subresource)


def applier(manager: str, subresource: str) -> ManagerIdentity:
    """Return the identity of an applier, which is the same in every version."""
    return ManagerIdentity(manager or "unknown", "Apply", "", subresource)


class Owner:
    """The fields one manager owns. Entries are decoded only when needed."""

    __slots__ = ("_fields", "api_version", "entry", "time")

    def __init__(
        self,
        fields: FieldSet | None,
        api_version: str,
        time: str | None,
        entry: ManagedFieldsEntry | None = None,
    ) -> None:
        self._fields = fields
        self.api_version = api_version
        self.time = time
        #: The entry this was read from, as long as it still says what is owned.
        self.entry = entry

    @property
    def fields(self) -> FieldSet:
        if self._fields is None:
            self._fields = {} if self.entry is None else decode(raw_fields(self.entry))
        return self._fields

    def drop(self, fields: FieldSet) -> None:
        if not fields:
            return
        if self._fields is None and self.entry is not None:
            raw = raw_fields(self.entry)
            if not any(b'"%b":' % element.encode() in raw for element in fields):
                return
        left = difference(self.fields, fields)
        if left is not self._fields:
            self._fields, self.entry = left, None

    def add(self, fields: FieldSet) -> None:
        self._fields, self.entry = union(self.fields, fields), None

    def touch(self, time: str | None) -> None:
        if time != self.time:
            self._fields, self.time, self.entry = self.fields, time, None

    @property
    def is_empty(self) -> bool:
        if self._fields is None and self.entry is not None:
            return raw_fields(self.entry) == b"{}"
        return not self.fields


Managers: TypeAlias = dict[ManagerIdentity, Owner]


def raw_fields(entry: ManagedFieldsEntry) -> bytes:
    return b"{}" if entry.fields_v1 is None else bytes(entry.fields_v1)


def read(entries: Iterable[ManagedFieldsEntry]) -> Managers:
    """Return the owners in entries this server wrote."""
    managers: Managers = {}
    for entry in entries:
        managers[_identity(entry)] = Owner(None, entry.api_version, entry.time, entry)
    return managers


def read_foreign(entries: Iterable[ManagedFieldsEntry]) -> Managers:
    """Return the owners in entries a client sent; ValueError if one is invalid."""
    managers: Managers = {}
    for index, entry in enumerate(entries):
        if entry.operation not in ("Apply", "Update"):
            raise ValueError("operation must be `Apply` or `Update`")
        if not entry.api_version:
            raise ValueError("apiVersion must not be empty")
        if entry.fields_type != "FieldsV1":
            raise ValueError(f"invalid fieldsType {entry.fields_type!r} in managed fields entry {index}")
        fields = decode_foreign(raw_fields(entry))
        managers[_identity(entry)] = Owner(fields, entry.api_version, entry.time)
    return managers


def _identity(entry: ManagedFieldsEntry) -> ManagerIdentity:
    version = "" if entry.operation == "Apply" else entry.api_version
    return ManagerIdentity(entry.manager, entry.operation, version, entry.subresource)


def write(managers: Managers) -> list[ManagedFieldsEntry]:
    """Return the entries for these owners, in order."""
    entries = [
        owner.entry if owner.entry is not None else _entry(identity, owner)
        for identity, owner in managers.items()
        if not owner.is_empty
    ]
    return in_order(entries)


def in_order(entries: list[ManagedFieldsEntry]) -> list[ManagedFieldsEntry]:
    """Sort owners as clients know it: by operation, age, manager."""
    return sorted(entries, key=_place) if len(entries) > 1 else entries


def _entry(identity: ManagerIdentity, owner: Owner) -> ManagedFieldsEntry:
    return ManagedFieldsEntry(
        manager=identity.manager,
        operation=identity.operation,
        api_version=owner.api_version,
        time=owner.time,
        fields_type="FieldsV1",
        fields_v1=msgspec.Raw(encode(owner.fields)),
        subresource=identity.subresource,
    )


def _place(entry: ManagedFieldsEntry) -> tuple[str, int, str, str, str]:
    return entry.operation, _seconds(entry.time), entry.manager, entry.api_version, entry.subresource


@functools.lru_cache(1024)
def _seconds(time: str | None) -> int:
    if time is None:
        return 0
    try:
        return parse_rfc3339(time) // SECOND_NS
    except TimestampError:
        return 0


def cap_updaters(managers: Managers) -> None:
    """Merge the oldest updating owners into one per version, so that there are not too many."""
    updaters = [identity for identity in managers if identity.operation == "Update"]
    surplus = len(updaters) - MAX_UPDATE_MANAGERS
    if surplus <= 0:
        return
    updaters.sort(key=lambda identity: (_seconds(managers[identity].time), identity.text))
    first_of: dict[str, ManagerIdentity] = {}
    for identity in updaters:
        if surplus <= 0:
            return
        owner = managers[identity]
        first = first_of.setdefault(owner.api_version, identity)
        if first is identity:
            continue
        merged = updater(_OLDEST_MANAGER, owner.api_version, "")
        if merged == identity:
            continue
        if merged not in managers:
            managers[merged] = managers.pop(first)  # written anew: what follows adds to it
        managers[merged].add(owner.fields)
        managers[merged].touch(owner.time)
        del managers[identity]
        surplus -= 1


def equal_but_for_times(one: list[ManagedFieldsEntry], two: list[ManagedFieldsEntry]) -> bool:
    """Tell whether two lists of entries differ in nothing but their times."""
    if len(one) != len(two):
        return False
    return all(
        (a.manager, a.operation, a.api_version, a.subresource, a.fields_type)
        == (b.manager, b.operation, b.api_version, b.subresource, b.fields_type)
        and raw_fields(a) == raw_fields(b)
        for a, b in zip(one, two, strict=True)
    )

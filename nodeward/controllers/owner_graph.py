"""Who owns whom: every object by its uid, its owner references, and the way back from owners to dependents.

In go metadata, as informers tell it (`saw`, `lost`); out come calls of `look` with the uids of which something has
changed that the garbage collector must judge. Owners that are named but have not been seen are remembered as missing
for as long as somebody names them. Nothing here asks the API or deletes anything.

What must stay true: whatever can make an object garbage, or let an owner that waits for its dependents go, ends in a
`look` at that uid, in whatever order the kinds are heard of; an object costs its metadata and a few references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from nodeward.api.scheme import Kind
from nodeward.machinery.reading import ObjectReader, projection

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"


class Reference(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """An owner as its dependent names it."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    block_owner_deletion: bool | None = None


class Meta(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """What is kept of an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    owner_references: tuple[Reference, ...] | None = ()
    finalizers: tuple[str, ...] | None = ()

    @property
    def owners(self) -> tuple[Reference, ...]:
        return self.owner_references or ()

    @property
    def is_going(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def is_orphaning(self) -> bool:
        """Deleted, but first its dependents are to forget it."""
        return self.is_going and ORPHAN in (self.finalizers or ())

    @property
    def is_deleting_dependents(self) -> bool:
        """Deleted, but its dependents go first."""
        return self.is_going and FOREGROUND in (self.finalizers or ()) and not self.is_orphaning

    @property
    def waits(self) -> bool:
        return self.is_orphaning or self.is_deleting_dependents


class _Object(msgspec.Struct, gc=False):
    metadata: Meta = msgspec.field(default_factory=Meta)


_OBJECT: Final = msgspec.json.Decoder(_Object)


def _read(body: bytes) -> Meta:
    return _OBJECT.decode(body).metadata


#: One for all, so that informers are shared.
META: Final[ObjectReader[Meta]] = projection(_read)


class ObservedObject(NamedTuple):
    """An object that exists, with its owners and dependents."""

    kind: Kind
    meta: Meta


class OwnerLocation(NamedTuple):
    """Where a dependent says that its owner is; `namespace` is the dependent's own."""

    api_version: str
    kind: str
    namespace: str
    name: str


def place_of(reference: Reference, dependent: Meta) -> OwnerLocation:
    return OwnerLocation(reference.api_version, reference.kind, dependent.namespace, reference.name)


def is_in_wrong_namespace(owner: ObservedObject, dependent: Meta) -> bool:
    """Tell whether the owner is neither cluster-scoped nor in the namespace of its dependent."""
    return bool(owner.meta.namespace) and owner.meta.namespace != dependent.namespace


def fits(owner: ObservedObject, reference: Reference, dependent: Meta) -> bool:
    """Tell whether the owner with this uid is what the dependent says it is."""
    return not is_in_wrong_namespace(owner, dependent) and (
        owner.kind.api_version == reference.api_version
        and owner.kind.name == reference.kind
        and owner.meta.name == reference.name
    )


class _Missing:
    """An owner that is named and not there."""

    __slots__ = ("absent", "is_gone")

    def __init__(self, *, is_gone: bool = False) -> None:
        #: It was there: wherever dependents look for it, it is gone.
        self.is_gone = is_gone
        #: Where the API has been asked, and knew no object of this uid.
        self.absent: dict[OwnerLocation, None] = {}


class OwnerGraph:
    """All objects. `look` gets uids to judge; `report` hears of references across namespaces."""

    def __init__(
        self, look: Callable[[str], None], report: Callable[[ObservedObject, Reference], None]
    ) -> None:
        self._look = look
        self._report = report
        self._found: dict[str, ObservedObject] = {}
        self._missing: dict[str, _Missing] = {}
        #: owner -> dependents, both by uid; only owners that have any
        self._dependents: dict[str, dict[str, None]] = {}

    # -- reading --------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._found)

    def get(self, uid: str) -> ObservedObject | None:
        return self._found.get(uid)

    def dependents(self, uid: str) -> Sequence[ObservedObject]:
        return [self._found[each] for each in self._dependents.get(uid, ())]

    def has_dependents(self, uid: str) -> bool:
        return uid in self._dependents

    def is_held(self, uid: str) -> bool:
        """Tell whether an owner that deletes its dependents first still has to wait for one.

        Owners may wait for each other in a circle. When all that one of them waits for, directly or not, only waits
        as well, and itself is among those, then nothing would ever happen: it is free.

        Unlike upstream: there references in circles are made not to block, and owners that are in a circle and were
        all deleted by hand, or that own themselves, wait for ever.
        """
        is_in_circle = False
        seen: dict[str, None] = {}
        ahead = [*self._blocking(uid)]
        if not ahead:
            return False
        while ahead:
            each = ahead.pop()
            is_in_circle |= each == uid
            if each in seen:
                continue
            seen[each] = None
            if not self._found[each].meta.is_deleting_dependents:
                return True
            ahead += self._blocking(each)
        return not is_in_circle

    def _blocking(self, uid: str) -> Iterator[str]:
        """Return the dependents that insist on going first."""
        for each in self._dependents.get(uid, ()):
            for reference in self._found[each].meta.owners:
                if reference.uid == uid and reference.block_owner_deletion:
                    yield each
                    break

    def missing(self) -> Iterable[str]:
        """Return owners that are referenced and have not been seen."""
        return [*self._missing]

    def is_absent(self, uid: str, place: OwnerLocation) -> bool:
        """Tell whether it is known that no object of this uid is at that place."""
        missing = self._missing.get(uid)
        return missing is not None and (missing.is_gone or place in missing.absent)

    # -- changing -------------------------------------------------------------------------------------------------

    def mark_absent(self, uid: str, place: OwnerLocation) -> None:
        """Record that the API has no such object; every dependent that refers to it is enqueued."""
        missing = self._missing.get(uid)
        if missing is None or place in missing.absent:
            return
        missing.absent[place] = None
        for wanted, dependent in places(self.dependents(uid), uid):
            if wanted == place:
                self._look(dependent)

    def on_object_changed(self, kind: Kind, meta: Meta) -> None:
        """Record that the object exists with this state."""
        found = ObservedObject(kind, meta)
        old = self._found.get(meta.uid)
        self._found[meta.uid] = found
        was = () if old is None else old.meta.owners
        if old is None:
            self._appear(found)
        if was != meta.owners:
            self._relink(found, was)
        if meta.waits and (
            old is None
            or old.meta.is_orphaning != meta.is_orphaning
            or old.meta.is_deleting_dependents != meta.is_deleting_dependents
        ):
            self._look(meta.uid)
            for uid in self._dependents.get(meta.uid, ()):
                self._look(uid)

    def on_object_deleted(self, meta: Meta) -> None:
        """Record that the object no longer exists."""
        found = self._found.pop(meta.uid, None)
        if found is None:
            return
        for uid in dict.fromkeys(reference.uid for reference in found.meta.owners):
            self._unlink(uid, meta.uid)
            self._look_if_waiting(uid)
        if meta.uid in self._dependents:
            self._missing[meta.uid] = _Missing(is_gone=True)
            for uid in self._dependents[meta.uid]:
                self._look(uid)

    def _appear(self, owner: ObservedObject) -> None:
        """Connect dependents seen earlier that refer to this object."""
        self._missing.pop(owner.meta.uid, None)
        for uid in self._dependents.get(owner.meta.uid, ()):
            dependent = self._found[uid]
            for reference in dependent.meta.owners:
                if reference.uid == owner.meta.uid:
                    self._check(owner, reference, dependent)

    def _relink(self, found: ObservedObject, was: Sequence[Reference]) -> None:
        uid, owners = found.meta.uid, found.meta.owners
        still = dict.fromkeys(reference.uid for reference in owners)
        for reference in was:
            if reference.uid not in still:
                self._unlink(reference.uid, uid)
            # It may have been this one that kept the owner, also by a reference that no longer blocks.
            self._look_if_waiting(reference.uid)
        for reference in owners:
            if reference in was:
                continue
            self._dependents.setdefault(reference.uid, {})[uid] = None
            owner = self._found.get(reference.uid)
            if owner is not None:
                self._check(owner, reference, found)
            else:
                self._missing.setdefault(reference.uid, _Missing())
                is_absent = self.is_absent(reference.uid, place_of(reference, found.meta))
                self._look(uid if is_absent else reference.uid)

    def _check(self, owner: ObservedObject, reference: Reference, dependent: ObservedObject) -> None:
        if is_in_wrong_namespace(owner, dependent.meta):
            self._report(dependent, reference)
        if owner.meta.waits or not fits(owner, reference, dependent.meta):
            self._look(dependent.meta.uid)

    def _unlink(self, owner: str, dependent: str) -> None:
        dependents = self._dependents.get(owner)
        if dependents is None:
            return
        dependents.pop(dependent, None)
        if not dependents:
            del self._dependents[owner]
            self._missing.pop(owner, None)

    def _look_if_waiting(self, uid: str) -> None:
        owner = self._found.get(uid)
        if owner is not None and owner.meta.waits:
            self._look(uid)


def places(dependents: Iterable[ObservedObject], owner: str) -> Iterator[tuple[OwnerLocation, str]]:
    """Return where dependents look for an owner: place and dependent's uid."""
    for dependent in dependents:
        for reference in dependent.meta.owners:
            if reference.uid == owner:
                yield place_of(reference, dependent.meta), dependent.meta.uid

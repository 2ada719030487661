"""The history of a daemon set or stateful set: one ControllerRevision for each template it has had.

A revision holds a patch that puts its template back, which is what `kubectl rollout undo` sends. The current template's
revision has the highest number; going back to an old template gives its revision a new number.

The data is byte for byte what kube-controller-manager writes, since that compares bytes: a cluster that is handed over
from it, or back, keeps its revisions and so its pods. Stateful sets' revisions have its names too; those of daemon sets
have names of our own, because upstream's come from a dump of Go's structs, which changes with every field added there.
Existing revisions are found by what they hold, not by name.

What must stay true: a template has one revision (should there be more, the newest counts); two templates never share
a name; revisions in use are kept whatever the limit says.

Called by the daemon set and stateful set controllers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import msgspec

from nodeward.api.apps_v1 import ControllerRevision, DaemonSet, StatefulSet
from nodeward.api.codec import from_tree, to_tree
from nodeward.api.core_v1.pod import PodTemplateSpec
from nodeward.api.errors import ApiError, already_exists
from nodeward.api.meta import ObjectMeta
from nodeward.base.go_json import go_json, with_float_integers
from nodeward.controllers.controller import ControllerContext
from nodeward.controllers.pods.controller_ref_manager import ControllerRefManager, controller_reference
from nodeward.controllers.pods.index import OwnerIndex
from nodeward.controllers.pods.template_hash import safe_encoded, template_hash
from nodeward.rules.selectors import LabelRequirements

#: On pods: of which revision they are.
HASH_LABEL: Final = "controller-revision-hash"
#: No two templates of one owner should have so many others with the same hash.
_MAX_COLLISIONS: Final = 100
#: Of the owner's name, in the name of its revision.
_MAX_PREFIX: Final = 223
_FNV_BASIS: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193
_DEFAULT_LIMIT: Final = 10

W = TypeVar("W", DaemonSet, StatefulSet)


@dataclass(frozen=True, slots=True)
class RevisionHistory:
    """What one look found: the revision of the current template, and all others, oldest first."""

    current: ControllerRevision
    old: Sequence[ControllerRevision]
    #: Further revisions of the current template, to be deleted once no pod names them.
    doubles: Sequence[ControllerRevision]
    #: For the owner's status.
    collision_count: int | None


def data_of(owner: DaemonSet | StatefulSet) -> bytes:
    """Return the strategic merge patch that puts the owner's template back, as upstream writes it."""
    tree: Any = {"spec": {"template": {**to_tree(owner.spec.template), "$patch": "replace"}}}
    if isinstance(owner, StatefulSet):
        tree = with_float_integers(tree)
    return go_json(tree, is_sorted=True)


def hash_of_data(data: bytes, collision_count: int) -> str:
    """Return the suffix of a stateful set's revision name: FNV-1 of its data and the count, in safe letters."""
    number = _FNV_BASIS
    for byte in (*data, *str(collision_count).encode()):
        number = (number * _FNV_PRIME & 0xFFFFFFFF) ^ byte
    return safe_encoded(str(number))


def template_of(revision: ControllerRevision) -> PodTemplateSpec | None:
    """Return the template it remembers; None if what it holds is no such patch."""
    try:
        tree = revision.data["spec"]["template"]
        return from_tree({key: value for key, value in tree.items() if key != "$patch"}, PodTemplateSpec)
    except (TypeError, KeyError, AttributeError, msgspec.ValidationError):
        return None


def by_number(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """Sort revisions, oldest first."""
    return sorted(
        revisions,
        key=lambda each: (each.revision, each.metadata.creation_timestamp or "", each.metadata.name),
    )


def forgettable(
    old: Sequence[ControllerRevision], limit: int | None, in_use: Collection[str]
) -> list[ControllerRevision]:
    """Return those of `old` (oldest first) beyond the limit that are not in use; those in use do not count."""
    unused = [each for each in old if each.metadata.name not in in_use]
    return unused[: max(0, len(unused) - (_DEFAULT_LIMIT if limit is None else limit))]


class Revisions(Generic[W]):
    """Reads and writes the histories of one kind of owner."""

    def __init__(self, context: ControllerContext, type_: type[W], label: str) -> None:
        """`label`: where a revision keeps its own hash."""
        self._client = context.client
        self._label = label
        self._index = OwnerIndex(context.informers, ControllerRevision)
        self._ref_manager = ControllerRefManager(context.client, type_, ControllerRevision)

    async def read(self, owner: W, selector: LabelRequirements) -> RevisionHistory:
        """Return the history of `owner`, with its current template in it and numbered."""
        meta: ObjectMeta = owner.metadata
        candidates = [*self._index.controlled_by(meta.uid), *self._index.orphans(meta.namespace)]
        known = by_number(await self._ref_manager.claim(owner, selector, candidates))
        template = owner.spec.template
        data = msgspec.json.decode(data_of(owner))
        # Other versions write other data for the same template.
        same = [each for each in known if each.data == data or template_of(each) == template]
        names = [each.metadata.name for each in same]
        old = [each for each in known if each.metadata.name not in names]
        number = max((each.revision for each in old), default=0) + 1
        if not same:
            current, collisions = await self._create(owner, number)
            return RevisionHistory(current, old, (), collisions)
        current = same[-1]
        if current.revision < number:
            # What it holds may not change, not even by a byte.
            held = msgspec.Raw(go_json(current.data))
            current = await self._client.update(msgspec.structs.replace(current, revision=number, data=held))
        return RevisionHistory(current, old, same[:-1], owner.status.collision_count)

    def hash_of(self, revision: ControllerRevision) -> str:
        """Return the hash of a revision; the name serves as one where no label has it."""
        return revision.metadata.labels.get(self._label) or revision.metadata.name

    async def forget(self, revisions: Iterable[ControllerRevision]) -> None:
        for each in revisions:
            meta = each.metadata
            try:
                await self._client.delete(ControllerRevision, meta.name, meta.namespace, uid=meta.uid)
            except ApiError as error:
                if error.code not in (404, 409):
                    raise

    async def _create(self, owner: W, number: int) -> tuple[ControllerRevision, int | None]:
        data, collisions = msgspec.json.decode(data_of(owner)), owner.status.collision_count
        for _ in range(_MAX_COLLISIONS):
            wanted = self._new(owner, number, collisions)
            try:
                return await self._client.create(wanted), collisions
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
            name, namespace = wanted.metadata.name, wanted.metadata.namespace
            found = await self._client.get(ControllerRevision, name, namespace)
            uids = [each.uid for each in found.metadata.owner_references]
            if owner.metadata.uid in uids and found.data == data:
                # Ours, which the informer has not told of yet.
                return found, collisions
            collisions = (collisions or 0) + 1
        raise already_exists("apps", "controllerrevisions", wanted.metadata.name)

    def _new(self, owner: W, number: int, collisions: int | None) -> ControllerRevision:
        template, data = owner.spec.template, data_of(owner)
        if isinstance(owner, StatefulSet):
            hash_ = hash_of_data(data, collisions or 0)
        else:
            hash_ = template_hash(template, collisions)
        prefix = owner.metadata.name[:_MAX_PREFIX]
        return ControllerRevision(
            metadata=ObjectMeta(
                name=f"{prefix}-{hash_}",
                namespace=owner.metadata.namespace,
                labels={**template.metadata.labels, self._label: hash_},
                annotations=dict(owner.metadata.annotations),
                owner_references=[controller_reference(owner, self._ref_manager.kind)],
            ),
            data=msgspec.Raw(data),
            revision=number,
        )

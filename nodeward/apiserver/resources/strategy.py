"""How objects of one kind behave when they are written: what the server fills in, keeps, and refuses.

The writer (`apiserver/writing.py`) and the verbs call a strategy; it calls defaulting (`nodeward/api/defaults`) and
validation (`nodeward/validation`). `Strategy` is right for a kind without behaviour of its own; the others override
what differs.

What must stay true: nothing here does I/O. A strategy is given the new object, the old one and the `Environment`, and
changes the new one in place. All objects it is given are in the form that is stored; `to_stored_form` and
`from_stored_form` are the only places that know another form (events.k8s.io/v1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

import msgspec

from nodeward.api.codec import same
from nodeward.api.defaults import DEFAULTS
from nodeward.api.defaults.gated_fields import drop_gated_fields
from nodeward.api.defaults.two_forms import ONE_FORM
from nodeward.api.meta import KubeObject, ObjectMeta
from nodeward.api.scheme import Kind
from nodeward.apiserver.environment import Environment
from nodeward.base.fielderror import FieldError
from nodeward.validation.registry import VALIDATORS

Paths = tuple[tuple[str, ...], ...]

#: Paths that a write to the main resource (the first) or to /status (the second) does not change.
STATUS_PATHS: Paths = (("status",),)
SPEC_PATHS: Paths = (("spec",),)
#: The same for kinds whose /status changes nothing but the status.
METADATA_PATHS: Paths = (("metadata",), ("spec",))


class CreateReview(NamedTuple):
    """The result of validating a new object: errors refuse it; without errors, warnings go to the client."""

    errors: list[FieldError]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class UpdateMode:
    """The part of an object that an update writes: the object itself (`subresource` is empty) or one subresource."""

    subresource: str
    prepare: Callable[[Any, Any, Environment], None]
    validate: Callable[[Any, Any, Environment], list[FieldError]]
    #: paths that this update does not own in managedFields
    reset: Paths


class Strategy:
    """The strategy of one kind, and the base of all others."""

    #: PUT of an object that does not exist creates it
    creates_on_update: ClassVar[bool] = False
    #: PUT without a resourceVersion overwrites
    allows_unconditional_update: ClassVar[bool] = True
    #: the server counts changes of the spec in metadata.generation
    counts_generations: ClassVar[bool] = False
    #: DELETE answers with the object rather than with a Status
    answers_deleted: ClassVar[bool] = False
    #: fields a field selector may name beside metadata.name and metadata.namespace
    selectable: ClassVar[tuple[str, ...]] = ()
    #: the status a client creates an object with is kept
    keeps_created_status: ClassVar[bool] = False
    #: what a write to /status does not touch; the rest of what it changes it owns
    status_reset: ClassVar[Paths] = SPEC_PATHS
    #: other objects may be its dependents; propagation policies mean something
    has_dependents: ClassVar[bool] = True
    #: the warning for a delete without a propagation policy
    warns_of_orphans: ClassVar[str] = ""
    #: failed preconditions of a delete are answered with upstream's shorter message
    names_preconditions_shortly: ClassVar[bool] = False

    def __init__(self, kind: Kind, served: Kind | None = None) -> None:
        """Set up. `kind`: the kind whose form is stored. `served`: the kind clients see, if it is another one."""
        self.kind = kind
        self.served_kind = served or kind
        self.type = cast(type[KubeObject], kind.type)  # every stored kind is one
        self._one_form = ONE_FORM.get(self.type)
        self._default = DEFAULTS.get(self.type)
        self._validator = VALIDATORS.get(self.type)
        self._modes = {mode.subresource: mode for mode in self.update_modes()}

    # -- forms and subresources

    def to_stored_form(self, obj: KubeObject) -> KubeObject:
        """Convert an object from the form a client sends to the form that is stored."""
        return obj

    def from_stored_form(self, tree: dict[str, Any]) -> dict[str, Any]:
        """Convert the tree of a stored object to the form that clients of the served kind see."""
        return tree

    def update_modes(self) -> tuple[UpdateMode, ...]:
        """List what of an object can be updated: itself, its status, and subresources that are parts of the object."""
        reset = STATUS_PATHS if self.kind.has_status else ()
        return (
            UpdateMode("", self.prepare_update, self.validate_update, reset),
            UpdateMode("status", self.prepare_status, self.validate_status, self.status_reset),
        )

    def update_mode(self, subresource: str) -> UpdateMode:
        """Return how a subresource (or, with an empty name, the object) is updated."""
        return self._modes[subresource]

    # -- filling in

    def default(self, obj: Any) -> None:
        """Fill in defaults that depend on the object alone."""
        if self._one_form is not None:
            self._one_form(obj)
        if self._default is not None:
            self._default(obj)

    def set_times(self, obj: Any, now: str) -> None:
        """Fill in times that default to the time of the request."""

    def finish_write(self, obj: Any) -> None:
        """Release what `prepare_create` or `prepare_update` reserved: the write was stored or refused."""

    def prepare_create(self, obj: Any, env: Environment) -> None:
        """Reset and fill in fields of a new object, before validation."""
        if self.kind.has_status and not self.keeps_created_status:
            obj.status = type(obj)().status
        drop_gated_fields(obj, None, env.context)
        if self.counts_generations:
            obj.metadata.generation = 1

    def prepare_update(self, new: Any, old: Any, env: Environment) -> None:
        """Keep and reset fields of a changed object, before validation."""
        if self.kind.has_status:
            new.status = old.status
        drop_gated_fields(new, old, env.context)
        if self.counts_generations:
            self.count_generation(new, old)

    def prepare_status(self, new: Any, old: Any, env: Environment) -> None:
        """Keep everything but the status, before validation."""
        if hasattr(new, "spec"):
            new.spec = old.spec
        if ("metadata",) in self.status_reset:
            mine, theirs = new.metadata, old.metadata
            mine.labels, mine.annotations = theirs.labels, theirs.annotations
            mine.finalizers, mine.owner_references = theirs.finalizers, theirs.owner_references
        drop_gated_fields(new, old, env.context)

    def count_generation(self, new: Any, old: Any) -> None:
        """Increase metadata.generation if the desired state changed."""
        new.metadata.generation = old.metadata.generation
        if not same(self.desired(new), self.desired(old)):
            new.metadata.generation += 1

    def desired(self, obj: Any) -> Any:
        """Return the desired state, in a form that can be compared (the order of keys does not count)."""
        if hasattr(obj, "spec"):
            return obj.spec
        # System metadata is not part of the desired state.
        meta = ObjectMeta(labels=obj.metadata.labels)
        return msgspec.structs.replace(obj, kind="", api_version="", metadata=meta)

    # -- refusing

    def validate_create(self, obj: Any, env: Environment) -> list[FieldError]:
        return self._validator.create(obj, env.context) if self._validator else []

    def review_create(self, obj: Any, env: Environment) -> CreateReview:
        """Validate a new object and, if nothing is wrong with it, collect the warnings for its creator."""
        errors = self.validate_create(obj, env)
        return CreateReview(errors, [] if errors else self.warnings(obj, None, env))

    def validate_update(self, new: Any, old: Any, env: Environment) -> list[FieldError]:
        return self._validator.update(new, old, env.context) if self._validator else []

    def validate_status(self, new: Any, old: Any, env: Environment) -> list[FieldError]:
        if self._validator is None:
            return []
        rule = self._validator.status or self._validator.update
        return rule(new, old, env.context)

    def warnings(self, new: Any, old: Any | None, env: Environment) -> list[str]:
        if self._validator is None or self._validator.warnings is None:
            return []
        return self._validator.warnings(new, old, env.context)

    # -- deleting

    def grace_seconds(self, obj: Any, requested: int | None) -> int | None:
        """Return the grace period of a delete; None: the kind has none and is removed at once."""
        return None

    def orphans_by_default(self, obj: Any) -> bool:
        """Tell whether a delete without a propagation policy orphans the dependents."""
        return False

    def begin_delete(self, obj: Any, env: Environment) -> None:
        """Change an object whose deletion was accepted and that stays until its finalizers are gone."""

    def has_own_finalizers(self, obj: KubeObject) -> bool:
        """Tell whether something other than metadata.finalizers keeps a deleted object."""
        return False

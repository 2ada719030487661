"""The write path: default, set managedFields, admit, prepare, validate, store. Called by every verb that writes.

It calls the kind's strategy (`resources/`), the field manager, the admission chain and the store, and then waits for
the hub.

What must stay true: a write is stored whole or not at all, and is answered once the caches have seen it. When another
write was faster, the change is computed again on the newer object, unless the caller named a resourceVersion.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from nodeward.api.blanking import blank
from nodeward.api.codec import decoder, same, to_stored, with_revision
from nodeward.api.errors import (
    MODIFIED,
    ApiError,
    already_exists,
    bad_request,
    conflict,
    generate_name_conflict,
    invalid,
    not_found,
    request_entity_too_large,
    timeout,
    unavailable,
)
from nodeward.api.meta import KubeObject
from nodeward.api.scheme import Kind
from nodeward.apiserver.admission.chain import AdmissionChain
from nodeward.apiserver.admission.plugin import Write
from nodeward.apiserver.auth.user import Attributes
from nodeward.apiserver.environment import Environment
from nodeward.apiserver.field_manager import FieldManager
from nodeward.apiserver.item import Item
from nodeward.apiserver.reading_body import report_unknown
from nodeward.apiserver.request import Call
from nodeward.apiserver.resources.strategy import STATUS_PATHS, Strategy, UpdateMode
from nodeward.apiserver.resources.unknown_fields import unknown_fields
from nodeward.base.fielderror import in_order, limited_faults
from nodeward.base.fielderror import invalid as invalid_field
from nodeward.base.fieldpath import FieldPath
from nodeward.store.interface import OutcomeUnknown, StoreUnavailable, ValueTooLarge, WriteResult

#: How often a name is generated, and a change computed, before the write fails.
GENERATE_ATTEMPTS = 8
UPDATE_ATTEMPTS = 100
_MAX_GENERATED_PREFIX = 63 - 5
#: The largest object that is stored, whatever the store: etcd's usual limit.
MOST_STORED_BYTES = 3 << 19
#: How often, and how long, a write waits for an object a controller is about to create (default service account).
DEPENDENCY_ATTEMPTS = 10
DEPENDENCY_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Written:
    """The result of a write: the object's bytes, and whether it is new."""

    item: Item
    is_created: bool = False


class Writer:
    """The write path of one API server."""

    def __init__(
        self,
        env: Environment,
        chain: AdmissionChain,
        field_manager: FieldManager,
        require: Callable[[Attributes], None],
    ) -> None:
        """Make the write path. `require` raises 403 unless the user is authorized."""
        self._env = env
        self._require = require
        self._chain = chain
        self._field_manager = field_manager
        self._unknown_fields: dict[type[KubeObject], tuple[tuple[str, ...], ...]] = {}

    # -- create

    async def create(
        self, call: Call, strategy: Strategy, obj: KubeObject, *, applied: dict[str, Any] | None = None
    ) -> Written:
        """Store a new object. `applied`: the configuration a server-side apply creates it from."""
        kind = strategy.kind
        _take_namespace(call, kind, obj)
        self._drop_unknown_fields(call, strategy, obj, None)
        if obj.metadata.resource_version:
            raise bad_request("resourceVersion should not be set on objects to be created")
        strategy.default(obj)
        generated = not obj.metadata.name and bool(obj.metadata.generate_name)
        # Only a generated name is tried again, and then everything is computed from the start.
        blank = to_stored(obj) if generated else b""
        for _ in range(GENERATE_ATTEMPTS):
            if generated:
                obj.metadata.name = self._generate(obj.metadata.generate_name)
            try:
                written = await self._try_create(call, strategy, obj, applied)
            finally:
                strategy.finish_write(obj)
            if written is not None:
                return written
            if not generated:
                raise already_exists(kind.group, kind.resource, obj.metadata.name)
            obj = decoder(strategy.type).decode(blank)
        raise generate_name_conflict(kind.group, kind.resource, obj.metadata.name)

    async def _try_create(
        self, call: Call, strategy: Strategy, obj: KubeObject, applied: dict[str, Any] | None
    ) -> Written | None:
        env, kind, meta = self._env, strategy.kind, obj.metadata
        meta.deletion_timestamp = meta.deletion_grace_period_seconds = None
        meta.self_link = ""
        strategy.set_times(obj, env.now())
        reset = STATUS_PATHS if kind.has_status else ()
        size, run = len(call.request.body), env.worker.run
        await run(size, self._field_manager.created, call, strategy, obj, reset=reset, applied=applied)
        meta.uid = env.chance.uuid()
        meta.creation_timestamp = env.now()
        write = Write(
            "CREATE", kind, meta.namespace, meta.name, "", call.user, obj, None, is_dry_run=call.is_dry_run
        )
        for _ in range(DEPENDENCY_ATTEMPTS):
            if not self._chain.should_wait(write):
                break
            await env.clock.sleep(DEPENDENCY_SECONDS)
        self._chain.admit(write)
        strategy.prepare_create(obj, env)
        for text in await run(size, self._review_create, strategy, obj):
            call.warn(text)
        self._chain.validate(write)
        for text in write.warnings:
            call.warn(text)
        value = await run(size, to_stored, obj)
        key = env.hub.key(kind, meta.namespace, meta.name)
        if call.is_dry_run:
            inner = f"{meta.namespace}/{meta.name}" if kind.is_namespaced else meta.name
            return None if inner in env.hub.cache(kind).objects else Written(Item(0, value), is_created=True)
        result = await self._put(key, value, expected=0)
        if not result.succeeded:
            await env.hub.wait_for(result.revision)
            return None
        return Written(Item(result.revision, with_revision(value, result.revision)), is_created=True)

    def _review_create(self, strategy: Strategy, obj: KubeObject) -> list[str]:
        """Validate a new object; return the warnings for its creator, or raise 422."""
        kind, meta = strategy.kind, obj.metadata
        with limited_faults() as found:
            faults, warnings = strategy.review_create(obj, self._env)
            if "\0" in meta.name:
                # Some kinds allow any path segment as a name, but no store can hold NUL in a key.
                faults = [
                    *faults,
                    invalid_field(FieldPath("metadata.name"), meta.name, "may not contain NUL"),
                ]
            found.complete(faults)
        if found.faults:
            raise invalid(kind.group, kind.name, meta.name, in_order(found.faults))
        return warnings

    def _review_update(
        self, strategy: Strategy, mode: UpdateMode, name: str, new: KubeObject, old: KubeObject
    ) -> list[str]:
        """Validate a changed object; return the warnings for whoever changed it, or raise 422."""
        with limited_faults() as found:
            found.complete(mode.validate(new, old, self._env))
        if found.faults:
            raise invalid(strategy.kind.group, strategy.kind.name, name, in_order(found.faults))
        return strategy.warnings(new, old, self._env)

    def _generate(self, prefix: str) -> str:
        return f"{prefix[:_MAX_GENERATED_PREFIX]}{self._env.chance.name_suffix(5)}"

    # -- update

    async def update(
        self,
        call: Call,
        strategy: Strategy,
        mode: UpdateMode,
        make: Callable[[Item, Any], Any],
        *,
        may_create: Callable[[], KubeObject] | None = None,
        applied: dict[str, Any] | None = None,
    ) -> Written:
        """Store a changed object.

        `make(item, old)` returns the new object; it is called again when another write was faster. `may_create` returns
        the object to create when there is none. `applied`: the configuration of a server-side apply, whose `make` has
        set managedFields already.
        """
        env, kind = self._env, strategy.kind
        await env.hub.fresh()
        cache = env.hub.cache(kind)
        inner = f"{call.namespace}/{call.name}" if kind.is_namespaced else call.name
        is_apply = applied is not None
        for _ in range(UPDATE_ATTEMPTS):
            item = cache.objects.get(inner)
            if item is None:
                if may_create is None:
                    raise not_found(kind.group, kind.resource, call.name)
                try:
                    return await self._create_instead(call, strategy, may_create(), applied)
                except ApiError as error:
                    if error.reason != "AlreadyExists":
                        raise
                continue  # another was faster, so there is something to update now
            old, new = await env.worker.run(_size(call, item), _changed, strategy, make, item)
            self._drop_unknown_fields(call, strategy, new, old)
            if not new.metadata.resource_version.strip("0"):
                new.metadata.resource_version = ""  # version 0 is any
            insists = bool(new.metadata.resource_version)
            try:
                written = await self._try_update(call, strategy, mode, item, old, new, is_apply=is_apply)
            finally:
                strategy.finish_write(new)
            if written is not None:
                return written
            if insists:
                raise conflict(kind.group, kind.resource, call.name, MODIFIED)
        raise timeout("the object changes faster than it can be written", 1)

    async def _create_instead(
        self, call: Call, strategy: Strategy, new: KubeObject, applied: dict[str, Any] | None
    ) -> Written:
        """Create the object that an update did not find, if the caller may create it and named no uid."""
        kind, meta = strategy.kind, new.metadata
        _match_name(call, new)
        if meta.uid:
            why = f"Precondition failed: UID in precondition: {meta.uid}, UID in object meta: "
            if applied is not None:
                why = f"uid mismatch: the provided object specified uid {meta.uid}, and no existing object was found"
            raise conflict(kind.group, kind.resource, call.name, why)
        meta.resource_version = ""
        self._require(msgspec.structs.replace(call.attributes(), verb="create"))
        return await self.create(call, strategy, new, applied=applied)

    async def _try_update(
        self,
        call: Call,
        strategy: Strategy,
        mode: UpdateMode,
        item: Item,
        old: Any,
        new: Any,
        *,
        is_apply: bool,
    ) -> Written | None:
        env, kind = self._env, strategy.kind
        _match_identity(call, kind, new, old, item, strategy, mode)
        strategy.set_times(new, env.now())
        size, run = _size(call, item), env.worker.run
        if not is_apply:
            updated, subresource = self._field_manager.updated, mode.subresource
            await run(
                size, updated, call, strategy, new, old, item, subresource=subresource, reset=mode.reset
            )
        write = Write(
            "UPDATE", kind, call.namespace if kind.is_namespaced else "", call.name, mode.subresource, call.user,
            new, old, is_dry_run=call.is_dry_run,
        )  # fmt: skip
        self._chain.admit(write)
        _keep_system_metadata(new, old)
        mode.prepare(new, old, env)
        for text in await run(size, self._review_update, strategy, mode, call.name, new, old):
            call.warn(text)
        self._chain.validate(write)
        for text in write.warnings:
            call.warn(text)
        value, is_same = await run(size, _compared, new, old, item)
        if is_same:
            return Written(item)
        if call.is_dry_run:
            return Written(Item(item.revision, with_revision(value, item.revision)))
        key = env.hub.key(kind, new.metadata.namespace, new.metadata.name)
        if _is_finished(new, old) and not strategy.has_own_finalizers(new):
            result = await self._delete(key, expected=item.revision)
        else:
            result = await self._put(key, value, expected=item.revision)
        if not result.succeeded:
            await env.hub.wait_for(result.revision)
            return None
        return Written(Item(result.revision, with_revision(value, result.revision)))

    # -- writes that a verb has prepared and admitted itself: deletion marks, bindings, evictions, lease renewals

    async def replace(self, kind: Kind, obj: Any, item: Item) -> Written | None:
        """Store an object in the place of `item`, without admission or validation; None if another write was faster."""
        key = self._env.hub.key(kind, obj.metadata.namespace, obj.metadata.name)
        return await self.replace_value(key, to_stored(obj), item)

    async def replace_value(self, key: str, value: bytes, item: Item) -> Written | None:
        """Store an object's bytes in the place of `item`, as `replace` does; None if another write was faster."""
        result = await self._put(key, value, expected=item.revision)
        if not result.succeeded:
            await self._env.hub.wait_for(result.revision)
            return None
        return Written(Item(result.revision, with_revision(value, result.revision)))

    async def remove(self, kind: Kind, obj: Any, item: Item) -> int | None:
        """Delete an object from the store; return the revision, or None if another write was faster."""
        key = self._env.hub.key(kind, obj.metadata.namespace, obj.metadata.name)
        result = await self._delete(key, expected=item.revision)
        if not result.succeeded:
            await self._env.hub.wait_for(result.revision)
            return None
        return result.revision

    # -- the store

    async def _put(self, key: str, value: bytes, *, expected: int) -> WriteResult:
        if len(value) > MOST_STORED_BYTES:
            raise request_entity_too_large(
                f"the object would take {len(value)} bytes, limit is {MOST_STORED_BYTES}"
            )
        self._env.hub.health.require()
        return await self._answered(self._env.hub.store.put(key, value, expected=expected))

    async def _delete(self, key: str, *, expected: int) -> WriteResult:
        self._env.hub.health.require()
        return await self._answered(self._env.hub.store.delete(key, expected=expected))

    async def _answered(self, writing: Awaitable[WriteResult]) -> WriteResult:
        """Wait for a write and until the caches have seen it; 503 only if it was certainly not stored."""
        try:
            result = await writing
        except OutcomeUnknown as error:
            raise timeout(f"{error}; read the object before trying again") from error
        except StoreUnavailable as error:
            raise unavailable(str(error), 1) from error
        except ValueTooLarge as error:
            raise request_entity_too_large(str(error)) from error
        if result.succeeded:
            try:
                await self._env.hub.wait_for(result.revision)
            except ApiError as error:
                text = (
                    f"the write was stored at revision {result.revision}, but this server has not seen it yet"
                )
                raise timeout(f"{text}: {error}") from error
        return result

    def _drop_unknown_fields(self, call: Call, strategy: Strategy, new: Any, old: Any) -> None:
        """Drop fields that the emulated version does not know, and report them to the client."""
        paths = self._unknown_fields.get(strategy.type)
        if paths is None:
            paths = self._unknown_fields[strategy.type] = unknown_fields(strategy.type, self._env.context)
        if paths:
            known = blank(old, paths) if old is not None else []
            told = [path for path in blank(new, paths) if path not in known]
            report_unknown(call, strategy.kind, type(new).__name__, told)


def _take_namespace(call: Call, kind: Kind, obj: KubeObject) -> None:
    """Set the namespace the URL names; a cluster-scoped object loses the one it was sent with."""
    if not kind.is_namespaced:
        obj.metadata.namespace = ""
    elif not obj.metadata.namespace:
        obj.metadata.namespace = call.namespace
    elif obj.metadata.namespace != call.namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _match_name(call: Call, new: KubeObject) -> None:
    meta = new.metadata
    if not meta.name:
        meta.name = call.name
    elif meta.name != call.name:
        text = f"the name of the object ({meta.name}) does not match the name on the URL ({call.name})"
        raise bad_request(text)


def _match_identity(
    call: Call, kind: Kind, new: KubeObject, old: KubeObject, item: Item, strategy: Strategy, mode: UpdateMode
) -> None:
    """Refuse an object whose name, namespace, uid or resourceVersion is not the one of the URL and the store."""
    meta = new.metadata
    _match_name(call, new)
    _take_namespace(call, kind, new)
    if meta.uid and meta.uid != old.metadata.uid:
        why = f"Precondition failed: UID in precondition: {meta.uid}, UID in object meta: {old.metadata.uid}"
        raise conflict(kind.group, kind.resource, call.name, why)
    if meta.resource_version:
        if not (meta.resource_version.isascii() and meta.resource_version.isdigit()):
            detail = f'strconv.ParseUint: parsing "{meta.resource_version}": invalid syntax'
            fault = invalid_field(FieldPath("metadata.resourceVersion"), meta.resource_version, detail)
            raise invalid(kind.group, kind.name, call.name, [fault])
        if meta.resource_version.lstrip("0") != str(item.revision):
            raise conflict(kind.group, kind.resource, call.name, MODIFIED)
    elif not strategy.allows_unconditional_update and call.verb == "update":
        fault = invalid_field(FieldPath("metadata.resourceVersion"), 0, "must be specified for an update")
        raise invalid(kind.group, kind.resource, call.name, [fault])  # upstream names the resource here


def _keep_system_metadata(new: KubeObject, old: KubeObject) -> None:
    """Keep the metadata that a client cannot change, or cannot change by leaving it out."""
    mine, theirs = new.metadata, old.metadata
    mine.uid = mine.uid or theirs.uid
    mine.resource_version = theirs.resource_version
    mine.creation_timestamp = theirs.creation_timestamp
    mine.self_link = ""
    mine.generation = theirs.generation
    if theirs.deletion_timestamp:
        mine.deletion_timestamp = theirs.deletion_timestamp
    if mine.deletion_grace_period_seconds is None:
        mine.deletion_grace_period_seconds = theirs.deletion_grace_period_seconds


def _size(call: Call, item: Item) -> int:
    """Return how many bytes the work on a change is about: those that were sent, or those that are there."""
    return max(len(call.request.body), len(item.data))


def _changed(strategy: Strategy, make: Callable[[Item, Any], Any], item: Item) -> tuple[Any, Any]:
    """Return an object as it is stored and as the request wants it."""
    old = decoder(strategy.type).decode(item.data)
    return old, make(item, old)


def _compared(new: KubeObject, old: KubeObject, item: Item) -> tuple[bytes, bool]:
    """Return the bytes to store, and whether they say the same as those that are stored."""
    value = to_stored(new)
    return value, with_revision(value, item.revision) == item.data or _is_same(new, old)


def _is_same(new: KubeObject, old: KubeObject) -> bool:
    """Tell whether two objects differ in nothing but the order of keys."""
    old.kind, old.api_version = new.kind, new.api_version
    return same(new, old)


def _is_finished(new: KubeObject, old: KubeObject) -> bool:
    """Tell whether a deleted object is past its grace period and has lost its last finalizer with this write."""
    was = old.metadata
    return (
        bool(was.deletion_timestamp) and not was.deletion_grace_period_seconds and not new.metadata.finalizers
    )

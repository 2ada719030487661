"""DELETE of one object or of a collection: preconditions, grace period, finalizers, propagation.

An object with a grace period or a finalizer is marked for deletion and stays until the last finalizer is removed; all
others are gone when the answer is sent. Also called for evictions.
"""

from __future__ import annotations

from typing import Any

import msgspec

from nodeward.api.codec import decoder, encode, read
from nodeward.api.errors import ApiError, bad_request, conflict, invalid, not_found, timeout
from nodeward.api.meta import DeleteOptions, StatusDetails
from nodeward.api.scheme import Kind
from nodeward.apiserver.admission.plugin import Write
from nodeward.apiserver.api import Api
from nodeward.apiserver.item import Item
from nodeward.apiserver.negotiation import accepted, json_body
from nodeward.apiserver.presenting import ListHead, present_list, present_one
from nodeward.apiserver.request import Call
from nodeward.apiserver.resources.strategy import Strategy
from nodeward.apiserver.selection import selection_of
from nodeward.apiserver.writing import UPDATE_ATTEMPTS
from nodeward.base.duration import SECOND_NS
from nodeward.base.fielderror import FieldError, not_supported
from nodeward.base.fielderror import invalid as invalid_field
from nodeward.base.fieldpath import FieldPath
from nodeward.base.timestamp import parse_rfc3339, rfc3339
from nodeward.machinery.serving.answer import Answer, success

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_MAX_GENERATION = 2**63 - 1
#: The last time that RFC 3339 can express; a grace period ends there at the latest.
_LAST = parse_rfc3339("9999-12-31T23:59:59Z")


async def delete(api: Api, call: Call, kind: Kind) -> Answer:
    """Delete one object, or mark it for deletion."""
    wanted = accepted(call.request.headers.get("accept", ""))
    options = read_options(call)
    stored = api.stored_kind(kind)
    _warn(api, call, stored, options)
    item, obj, is_gone = await delete_one(api, call, stored, call.namespace, call.name, options)
    strategy = api.strategy(stored)
    if is_gone and not strategy.answers_deleted:
        meta = obj.metadata
        return success(200, StatusDetails(name=meta.name, group=kind.group, kind=kind.resource, uid=meta.uid))
    # 202 for the deprecated orphanDependents=false, while the object still exists.
    status = 202 if not is_gone and options.orphan_dependents is False else 200
    return present_one(api, call, kind, item, wanted, status=status)


async def delete_collection(api: Api, call: Call, kind: Kind) -> Answer:
    """Delete every selected object, one after the other; objects that are gone already are skipped."""
    wanted = accepted(call.request.headers.get("accept", ""))
    options = read_options(call)
    selection = selection_of(api, call, kind)
    _warn(api, call, api.stored_kind(kind), options)
    await api.env.hub.fresh()
    cache = api.env.hub.cache(kind)
    prefix = f"{call.namespace}/" if kind.is_namespaced and call.namespace else ""
    keys = [
        key for key in cache.keys(prefix) if selection.is_everything or selection.takes(cache.objects[key])
    ]
    deleted: list[Item] = []
    for key in keys:
        namespace, _, name = key.rpartition("/")
        if key not in cache.objects:
            continue
        own = msgspec.structs.replace(options)
        try:
            item, _, _ = await delete_one(api, call, api.stored_kind(kind), namespace, name, own)
        except ApiError as error:
            if error.reason != "NotFound":
                raise
            continue
        deleted.append(item)
    return present_list(api, call, kind, deleted, ListHead(api.env.hub.revision), wanted)


def _warn(api: Api, call: Call, kind: Kind, options: DeleteOptions) -> None:
    """Warn that this kind orphans its dependents unless the client names a propagation policy."""
    text = api.strategy(kind).warns_of_orphans
    if text and options.propagation_policy is None and options.orphan_dependents is None:
        call.warn(text)


def read_options(call: Call) -> DeleteOptions:
    """Read DeleteOptions from the body or, without one, from the query."""
    options = DeleteOptions()
    if call.request.body:
        body = json_body(call.request.headers.get("content-type", ""), call.request.body)
        try:
            options = read(body, DeleteOptions)
        except msgspec.DecodeError as error:
            raise bad_request(f"cannot read DeleteOptions: {error}") from None
        if options.kind not in ("", "DeleteOptions"):
            raise bad_request(f"decoded object cannot be converted to DeleteOptions: it is a {options.kind}")
    else:
        options.grace_period_seconds = call.query.number("gracePeriodSeconds")
        options.propagation_policy = call.query.get("propagationPolicy") or None
        if call.query.has("orphanDependents"):
            options.orphan_dependents = call.query.flag("orphanDependents")
        options.dry_run = list(call.query.all("dryRun"))
    check_delete_options(options)
    return options


def check_delete_options(options: DeleteOptions) -> None:
    """Refuse unknown or contradictory options."""
    faults: list[FieldError] = []
    policy = options.propagation_policy
    where = FieldPath("propagationPolicy")
    if policy is not None and options.orphan_dependents is not None:
        detail = "orphanDependents and deletionPropagation cannot be both set"
        faults.append(invalid_field(where, policy, detail))
    if policy is not None and policy not in ("Foreground", "Background", "Orphan"):
        faults.append(not_supported(where, policy, ("Foreground", "Background", "Orphan", "nil")))
    if any(value != "All" for value in options.dry_run):
        faults.append(not_supported(FieldPath("dryRun"), options.dry_run, ("All",)))
    if faults:
        raise invalid("meta.k8s.io", "DeleteOptions", "", faults)


async def delete_one(
    api: Api, call: Call, kind: Kind, namespace: str, name: str, options: DeleteOptions
) -> tuple[Item, Any, bool]:
    """Mark or remove an object; return its last state, the decoded object, and whether it is removed."""
    hub, strategy = api.env.hub, api.strategy(kind)
    await hub.fresh()
    inner = f"{namespace}/{name}" if kind.is_namespaced else name
    is_dry_run = "All" in options.dry_run or call.is_dry_run
    for _ in range(UPDATE_ATTEMPTS):
        item = hub.cache(kind).objects.get(inner)
        if item is None:
            raise not_found(kind.group, kind.resource, name)
        obj = decoder(strategy.type).decode(item.data)
        check_preconditions(strategy, obj, options)
        write = Write("DELETE", kind, namespace, name, "", call.user, None, obj, is_dry_run=is_dry_run)
        api.chain.validate(write)
        before = encode(obj)
        stays = _mark(api, strategy, obj, options)
        if is_dry_run:
            return Item(item.revision, _bare(obj)), obj, not stays
        if not stays:
            revision = await api.writer.remove(kind, obj, item)
            if revision is not None:
                return Item(revision, _bare(obj)), obj, True
        elif encode(obj) == before:
            return item, obj, False
        else:
            written = await api.writer.replace(kind, obj, item)
            if written is not None:
                return written.item, obj, False
    raise timeout("the object changes faster than it can be deleted", 1)


def _bare(obj: Any) -> bytes:
    """Encode the object as a list item, without kind and apiVersion."""
    obj.kind = obj.api_version = ""
    return encode(obj)


def check_preconditions(strategy: Strategy, obj: Any, options: DeleteOptions) -> None:
    """Refuse the delete if the object is not the one the preconditions name."""
    wanted = options.preconditions
    if wanted is None:
        return
    meta, kind = obj.metadata, strategy.kind
    pairs = (
        ("UID", wanted.uid, meta.uid, "deleted and then recreated"),
        ("ResourceVersion", wanted.resource_version, meta.resource_version, "modified"),
    )
    for name, asked, found, what in pairs:
        if asked is None or asked == found:
            continue
        if strategy.names_preconditions_shortly:
            why = f"Precondition failed: {name} in precondition: {asked}, {name} in object meta: {found}"
            raise conflict(kind.group, kind.resource, meta.name, why)
        why = (
            f"the {name} in the precondition ({asked}) does not match the {name} in record ({found}). "
            f"The object might have been {what}"
        )
        raise conflict(kind.group, kind.name, meta.name, why)


def _mark(api: Api, strategy: Strategy, obj: Any, options: DeleteOptions) -> bool:
    """Write grace period and finalizers into the object; return whether it stays for now."""
    meta, env = obj.metadata, api.env
    meta.finalizers = _finalizers(strategy, obj, options)
    requested = options.grace_period_seconds
    if requested is not None and requested < 0:
        requested = 1
    grace = _grace(strategy, obj, requested, env.clock.now_ns())
    if grace is None and not meta.finalizers and not strategy.has_own_finalizers(obj):
        return False
    if grace is None or grace == 0:
        if not meta.finalizers and not strategy.has_own_finalizers(obj):
            return False
        if meta.deletion_timestamp is None:
            _next_generation(meta)
            meta.deletion_timestamp = env.now()
        elif parse_rfc3339(meta.deletion_timestamp) > env.clock.now_ns():
            meta.deletion_timestamp = env.now()
        meta.deletion_grace_period_seconds = 0
    strategy.begin_delete(obj, env)
    return True


def _grace(strategy: Strategy, obj: Any, requested: int | None, now_ns: int) -> int | None:
    """Set the deletion time in the metadata and return the remaining grace period; None: the kind has none."""
    meta = obj.metadata
    current = meta.deletion_grace_period_seconds
    if meta.deletion_timestamp is not None:
        if not current:
            return 0 if current == 0 else None
        if strategy.grace_seconds(obj, requested) is None:
            return None
        if requested is None or requested >= current:
            return int(current)
        # A shorter grace moves the deadline, but never into the past.
        deadline = parse_rfc3339(meta.deletion_timestamp) + (requested - current) * SECOND_NS
        if deadline < now_ns:
            deadline, requested = now_ns, 1 if requested else 0
        meta.deletion_timestamp = rfc3339(min(deadline, _LAST))
        meta.deletion_grace_period_seconds = requested
        return requested
    grace = strategy.grace_seconds(obj, requested)
    if grace:
        _next_generation(meta)
        meta.deletion_timestamp = rfc3339(min(now_ns + grace * SECOND_NS, _LAST))
        meta.deletion_grace_period_seconds = grace
    return grace


def _next_generation(meta: Any) -> None:
    # Unlike upstream: the largest generation, which only a client can have sent, stays; there it becomes negative.
    if 0 < meta.generation < _MAX_GENERATION:
        meta.generation += 1


def _finalizers(strategy: Strategy, obj: Any, options: DeleteOptions) -> list[str]:
    """Return the finalizers that follow from the propagation policy."""
    current: list[str] = obj.metadata.finalizers
    others = [name for name in current if name not in (ORPHAN, FOREGROUND)]
    if not strategy.has_dependents:
        return others
    match options.propagation_policy, options.orphan_dependents:
        case "Orphan", _:
            return [*others, ORPHAN]
        case "Foreground", _:
            return [*others, FOREGROUND]
        case "Background", _:
            return others
        case None, True:
            return [*others, ORPHAN]
        case None, False:
            return others
    if current != others:
        return current
    return [*others, ORPHAN] if strategy.orphans_by_default(obj) else others

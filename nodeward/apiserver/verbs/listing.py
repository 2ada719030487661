"""LIST: all objects of a kind in key order, whole or in pages, from the watch cache; older revisions from the store."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

import msgspec

from nodeward.api.errors import ApiError, bad_request, expired, invalid, unavailable
from nodeward.api.scheme import Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.item import Item
from nodeward.apiserver.negotiation import accepted
from nodeward.apiserver.presenting import ListHead, present_list
from nodeward.apiserver.request import Call
from nodeward.apiserver.selection import Selectors, selection_of
from nodeward.base.fielderror import FieldError, forbidden, not_supported
from nodeward.base.fieldpath import FieldPath
from nodeward.machinery.serving.answer import Answer
from nodeward.store.interface import Compacted, FutureRevision, StoreUnavailable

_EXPIRED = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
#: The revision in a token that continues at whatever revision is the newest then.
_WHATEVER = -1


class _Continue(msgspec.Struct):
    """The continue token: where the next page starts, and at which revision."""

    v: str
    rv: int
    start: str


async def list_objects(api: Api, call: Call, kind: Kind) -> Answer:
    """List objects, in the form the client wants."""
    wanted = accepted(call.request.headers.get("accept", ""))
    selection = selection_of(api, call, kind)
    limit = max(0, call.query.number("limit") or 0)
    token = call.query.get("continue")
    revision = _revision(call)
    exactly = await _settle_revision(api, call, revision, token)
    if exactly is None and not limit and not token:
        items = _matching(api.env.hub.cache(kind).items(_prefix(call, kind)), selection)
        head = ListHead(api.env.hub.revision)
    else:
        items, head = await _page(api, call, kind, selection, limit, token, exactly)
    return present_list(api, call, kind, items, head, wanted)


def _prefix(call: Call, kind: Kind) -> str:
    return f"{call.namespace}/" if kind.is_namespaced and call.namespace else ""


def _matching(items: Sequence[Item], selection: Selectors) -> Sequence[Item]:
    if selection.is_everything:
        return items
    return [item for item in items if selection.takes(item)]


def _revision(call: Call) -> int | None:
    """Read and check resourceVersion and resourceVersionMatch; None if no version was asked for."""
    text, match = call.query.get("resourceVersion"), call.query.get("resourceVersionMatch")
    faults: list[FieldError] = []
    where = FieldPath("resourceVersionMatch")
    if match:
        if not text:
            faults.append(
                forbidden(where, "resourceVersionMatch is forbidden unless resourceVersion is provided")
            )
        if call.query.get("continue"):
            faults.append(forbidden(where, "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            faults.append(not_supported(where, match, ("Exact", "NotOlderThan", "")))
        elif match == "Exact" and text == "0":
            faults.append(
                forbidden(where, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
            )
    if call.query.has("sendInitialEvents"):
        faults.append(forbidden(FieldPath("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
    if faults:
        raise invalid("meta.k8s.io", "ListOptions", "", faults)
    return call.query.revision("resourceVersion")


async def _settle_revision(api: Api, call: Call, revision: int | None, token: str) -> int | None:
    """Wait until the caches are new enough; return the exact revision the list must have, if any."""
    hub = api.env.hub
    if token:
        if revision:
            raise bad_request("specifying resource version is not allowed when using continue")
        return None
    if revision is None:
        await hub.fresh()
        return None
    match = call.query.get("resourceVersionMatch")
    is_page = (call.query.number("limit") or 0) > 0
    is_exact = match == "Exact" or (is_page and revision > 0 and not match)
    await hub.at_least(revision)
    return revision if is_exact else None


async def _page(
    api: Api, call: Call, kind: Kind, selection: Selectors, limit: int, token: str, exactly: int | None
) -> tuple[Sequence[Item], ListHead]:
    hub = api.env.hub
    prefix, start, revision = hub.prefix(kind, _prefix(call, kind).rstrip("/")), "", exactly or hub.revision
    if token:
        place = _read_token(token)
        # A negative revision asks for the rest of the list as it is now.
        revision, start = place.rv if place.rv > 0 else hub.revision, place.start
        await hub.at_least(revision)
    if revision == hub.revision and not token:
        return _first_page(api, call, kind, selection, limit)
    found: list[Item] = []
    open_ = hub.cache(kind).opened
    start_key = f"{prefix}{start}" if start else ""
    while True:
        wanted = limit - len(found) if limit else 0
        try:
            page = await hub.store.range(prefix, start=start_key, limit=wanted, revision=revision)
        except Compacted:
            raise _too_old(start) from None
        except FutureRevision as error:
            raise bad_request(str(error)) from None
        except StoreUnavailable as error:
            raise unavailable(str(error), 1) from error
        read = [Item(kv.mod_revision, open_(kv.value, kv.mod_revision)) for kv in page.items]
        found.extend(_matching(read, selection))
        if not page.remaining:
            return found, ListHead(revision)
        last = page.items[-1].key[len(prefix) :]
        if len(found) >= limit > 0:
            remaining = page.remaining if selection.is_everything else None
            return found, ListHead(revision, _token(revision, last + "\0"), remaining)
        start_key = f"{prefix}{last}\0"


def _first_page(
    api: Api, call: Call, kind: Kind, selection: Selectors, limit: int
) -> tuple[Sequence[Item], ListHead]:
    """List the first page from the cache."""
    hub = api.env.hub
    cache = hub.cache(kind)
    prefix = _prefix(call, kind)
    keys = cache.keys(prefix)
    found: list[Item] = []
    for position, key in enumerate(keys):
        item = cache.objects[key]
        if not selection.is_everything and not selection.takes(item):
            continue
        found.append(item)
        if len(found) == limit and position + 1 < len(keys):
            remaining = len(keys) - position - 1 if selection.is_everything else None
            return found, ListHead(hub.revision, _token(hub.revision, key[len(prefix) :] + "\0"), remaining)
    return found, ListHead(hub.revision)


def _too_old(start: str) -> ApiError:
    """Make the 410 for a compacted revision, with a token that continues the list at the newest one."""
    if not start:
        return expired("The resourceVersion for the provided list is too old.")
    error = expired(_EXPIRED)
    error.status.metadata.continue_ = _token(_WHATEVER, start)
    return error


def _token(revision: int, start: str) -> str:
    raw = msgspec.json.encode(_Continue("meta.k8s.io/v1", revision, start))
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _read_token(token: str) -> _Continue:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        place = msgspec.json.decode(raw, type=_Continue)
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise bad_request(f"continue key is not valid: {error}") from None
    if place.v != "meta.k8s.io/v1":
        raise bad_request(
            f'continue key is not valid: server does not recognize this encoded version "{place.v}"'
        )
    if not place.rv or not -(2**63) <= place.rv < 2**63:
        raise bad_request("continue key is not valid: incorrect encoded start resourceVersion")
    if not place.start or any(part in (".", "..") for part in place.start.split("/")):
        raise bad_request("continue key is not valid: start key is not within the list")
    return place

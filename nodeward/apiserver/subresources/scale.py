"""The scale subresource: the number of replicas of a workload, in one form for all kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from nodeward.api.apply.managers import equal_but_for_times
from nodeward.api.autoscaling_v1 import Scale, ScaleSpec, ScaleStatus
from nodeward.api.codec import (
    decoder,
    encode,
    from_tree,
    parse_tree,
    stand_alone,
    to_stored,
    with_revision,
)
from nodeward.api.core_v1.pod import ReplicationController
from nodeward.api.errors import MODIFIED, conflict, invalid, not_found
from nodeward.api.meta import KubeObject, ObjectMeta
from nodeward.api.scheme import SCALE, Kind
from nodeward.apiserver.api import Api
from nodeward.apiserver.item import Item
from nodeward.apiserver.negotiation import Accepted, accepted
from nodeward.apiserver.presenting import present_one
from nodeward.apiserver.reading_body import check_options, read_object
from nodeward.apiserver.request import Call
from nodeward.apiserver.resources.strategy import STATUS_PATHS, UpdateMode
from nodeward.apiserver.verbs.patch import (
    APPLY_PATCH,
    apply_patch,
    object_from,
    parse_patch,
    patch_type,
    patched_object,
    read_applied,
)
from nodeward.machinery.serving.answer import Answer
from nodeward.rules.selectors import LabelRequirements, Requirement, from_label_selector
from nodeward.validation.autoscaling import validate_scale

_SCALE_KIND = Kind("autoscaling", "v1", "Scale", Scale, "scale", subresources=(SCALE,))


async def get_scale(api: Api, call: Call, kind: Kind) -> Answer:
    """Return the wanted and the current number of replicas."""
    wanted = accepted(call.request.headers.get("accept", ""))
    await api.env.hub.fresh()
    item = api.env.hub.cache(kind).objects.get(f"{call.namespace}/{call.name}")
    if item is None:
        raise not_found(kind.group, kind.resource, call.name)
    return _answer(api, call, decoder(api.strategy(kind).type).decode(item.data), wanted)


async def change_scale(api: Api, call: Call, kind: Kind) -> Answer:
    """PUT or PATCH the number of replicas."""
    wanted = accepted(call.request.headers.get("accept", ""))
    is_patch = call.verb == "patch"
    check_options(call, "PatchOptions" if is_patch else "UpdateOptions")
    strategy = api.strategy(kind)
    media = patch_type(call) if is_patch else ""
    applied: dict[str, Any] | None = None
    if media == APPLY_PATCH:
        applied, make = _applying(api, call, kind)
    else:
        sent = parse_patch(call.request.body) if is_patch else None

        def make(item: Item, old: Any) -> Any:
            current = scale_of(old)
            if is_patch:
                tree = apply_patch(parse_tree(encode(current)), sent, media, _SCALE_KIND)
                scale = cast(Scale, patched_object(call, _SCALE_KIND, tree, sent, media))
                if scale.metadata.resource_version == current.metadata.resource_version:
                    scale.metadata.resource_version = ""
            else:
                scale = cast(Scale, read_object(call, _SCALE_KIND, Scale))
            _check(call, kind, scale, old)
            new = decoder(strategy.type).decode(item.data)
            new.metadata.resource_version = scale.metadata.resource_version
            cast(Any, new).spec.replicas = scale.spec.replicas
            return new

    mode = UpdateMode("scale", strategy.prepare_update, strategy.validate_update, STATUS_PATHS)
    written = await api.writer.update(call, strategy, mode, make, applied=applied)
    return _answer(api, call, decoder(strategy.type).decode(written.item.data), wanted)


def _applying(api: Api, call: Call, kind: Kind) -> tuple[dict[str, Any], Callable[[Item, Any], Any]]:
    """Turn an apply to the scale into an apply to the workload: its configuration, and what makes the new workload."""
    sent = read_applied(call, _SCALE_KIND)
    scale = cast(Scale, object_from(call, _SCALE_KIND, sent))
    spec = {"replicas": scale.spec.replicas} if "replicas" in (sent.get("spec") or {}) else {}
    applied: dict[str, Any] = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": call.name, "namespace": call.namespace},
        "spec": spec,
    }

    def make(item: Item, old: Any) -> Any:
        _check(call, kind, scale, old)
        merged, entries = api.field_manager.applied(
            call,
            kind,
            parse_tree(stand_alone(kind, item.data)),
            applied,
            old.metadata.managed_fields,
            subresource="scale",
            force=call.query.flag("force"),
            reset=STATUS_PATHS,
        )
        new = from_tree(merged, api.strategy(kind).type)
        is_same = equal_but_for_times(entries, old.metadata.managed_fields)
        if is_same and cast(Any, new).spec.replicas == old.spec.replicas:
            entries = old.metadata.managed_fields  # nothing changed, so nothing is written
        new.metadata.managed_fields = entries
        new.metadata.resource_version = scale.metadata.resource_version
        return new

    return applied, make


def _check(call: Call, kind: Kind, scale: Scale, old: Any) -> None:
    if scale.metadata.uid and scale.metadata.uid != old.metadata.uid:
        raise conflict(kind.group, kind.resource, call.name, MODIFIED)
    faults = validate_scale(scale)
    if faults:
        raise invalid("autoscaling", "Scale", call.name, faults)


def scale_of(workload: Any) -> Scale:
    """Make the Scale of a workload."""
    meta, spec = workload.metadata, workload.spec
    return Scale(
        kind="Scale",
        api_version="autoscaling/v1",
        metadata=ObjectMeta(
            name=meta.name,
            namespace=meta.namespace,
            uid=meta.uid,
            resource_version=meta.resource_version,
            creation_timestamp=meta.creation_timestamp,
        ),
        spec=ScaleSpec(replicas=spec.replicas or 0),
        status=ScaleStatus(replicas=workload.status.replicas, selector=str(_selector(workload))),
    )


def _selector(workload: Any) -> LabelRequirements:
    if isinstance(workload, ReplicationController):
        pairs = sorted(workload.spec.selector.items())
        return LabelRequirements(tuple(Requirement(key, "=", (value,)) for key, value in pairs))
    return from_label_selector(workload.spec.selector) or LabelRequirements()


def _answer(api: Api, call: Call, workload: KubeObject, wanted: Accepted) -> Answer:
    scale = scale_of(workload)
    revision = int(scale.metadata.resource_version)
    item = Item(revision, with_revision(to_stored(scale), revision))
    return present_one(api, call, _SCALE_KIND, item, wanted)

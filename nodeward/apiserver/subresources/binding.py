"""pods/binding: assigns a pod to a node, once. Called by schedulers."""

from __future__ import annotations

from typing import Any, cast

from nodeward.api.codec import decoder
from nodeward.api.core_v1.pod import Binding, Pod
from nodeward.api.core_v1.pod_status import PodCondition
from nodeward.api.errors import MODIFIED, bad_request, conflict, invalid, not_found, timeout
from nodeward.api.scheme import Kind
from nodeward.apiserver.admission.plugin import Write
from nodeward.apiserver.api import Api
from nodeward.apiserver.reading_body import check_options, read_object
from nodeward.apiserver.request import Call
from nodeward.apiserver.writing import UPDATE_ATTEMPTS
from nodeward.base.fielderror import FieldError, not_supported, required
from nodeward.base.fieldpath import ROOT
from nodeward.machinery.serving.answer import Answer, success


async def bind(api: Api, call: Call, kind: Kind) -> Answer:
    """Assign the pod in the path to the node in the body."""
    check_options(call, "CreateOptions")
    binding = cast(Binding, read_object(call, kind, Binding))
    name = call.name or binding.metadata.name
    if binding.metadata.name and binding.metadata.name != name:
        raise bad_request("name in URL does not match name in Binding object")
    faults = _faults(binding)
    if faults:
        raise invalid("", "Binding", name, faults)
    hub = api.env.hub
    await hub.fresh()
    for _ in range(UPDATE_ATTEMPTS):
        item = hub.cache(kind).objects.get(f"{call.namespace}/{name}")
        if item is None:
            raise not_found("", "pods", name)
        pod = decoder(Pod).decode(item.data)
        _check(binding, pod)
        write = Write(
            "CREATE",
            kind,
            call.namespace,
            name,
            "binding",
            call.user,
            None,
            pod,
            call.is_dry_run,
            sent=binding,
        )
        api.chain.admit(write)
        _assign(api, pod, binding)
        api.chain.validate(write)
        if call.is_dry_run or await api.writer.replace(kind, pod, item) is not None:
            return success(201)
    raise timeout("the pod changes faster than it can be bound", 1)


def _faults(binding: Binding) -> list[FieldError]:
    faults: list[FieldError] = []
    where = ROOT.child("target")
    if binding.target.kind not in ("", "Node"):
        faults.append(not_supported(where.child("kind"), binding.target.kind, ("Node", "<empty>")))
    if not binding.target.name:
        faults.append(required(where.child("name")))
    return faults


def _check(binding: Binding, pod: Pod) -> None:
    name, meta = pod.metadata.name, binding.metadata
    if meta.uid and meta.uid != pod.metadata.uid:
        why = f"Precondition failed: UID in precondition: {meta.uid}, UID in object meta: {pod.metadata.uid}"
        raise conflict("", "pods", name, why)
    if meta.resource_version and meta.resource_version != pod.metadata.resource_version:
        raise conflict("", "pods", name, MODIFIED)
    if pod.metadata.deletion_timestamp:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif pod.spec.node_name:
        why = f'pod {name} is already assigned to node "{pod.spec.node_name}"'
    elif pod.spec.scheduling_gates:
        why = f"pod {name} has non-empty .spec.schedulingGates"
    else:
        return
    raise conflict("", "pods/binding", name, why)


def _assign(api: Api, pod: Pod, binding: Binding) -> None:
    pod.spec.node_name = binding.target.name
    pod.status.nominated_node_name = ""
    pod.metadata.annotations.update(binding.metadata.annotations)
    pod.metadata.labels.update(binding.metadata.labels)
    set_condition(pod, PodCondition(type="PodScheduled", status="True"), api.env.now())


def set_condition(pod: Any, wanted: PodCondition, now: str) -> None:
    """Add or replace a condition; its transition time moves only when its status does."""
    for position, found in enumerate(pod.status.conditions):
        if found.type == wanted.type:
            is_same = found.status == wanted.status
            wanted.last_transition_time = found.last_transition_time if is_same else now
            pod.status.conditions[position] = wanted
            return
    wanted.last_transition_time = now
    pod.status.conditions.append(wanted)

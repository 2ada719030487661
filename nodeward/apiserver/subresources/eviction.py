"""pods/eviction: a delete that the pod's disruption budget must allow. Called by kubectl drain and controllers."""

from __future__ import annotations

from typing import cast

import msgspec

from nodeward.api.codec import decoder
from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import TERMINAL, is_terminal
from nodeward.api.core_v1.pod_status import PodCondition
from nodeward.api.errors import (
    ApiError,
    bad_request,
    forbidden,
    invalid,
    not_found,
    timeout,
    too_many_requests,
)
from nodeward.api.meta import DeleteOptions, Preconditions, Status, StatusCause, StatusDetails
from nodeward.api.policy_v1 import Eviction, PodDisruptionBudget
from nodeward.api.scheme import Kind
from nodeward.apiserver.admission.plugin import Write
from nodeward.apiserver.api import Api
from nodeward.apiserver.reading_body import check_options, read_object
from nodeward.apiserver.request import Call
from nodeward.apiserver.subresources.binding import set_condition
from nodeward.apiserver.verbs.delete import check_delete_options, check_preconditions, delete_one
from nodeward.apiserver.writing import UPDATE_ATTEMPTS
from nodeward.machinery.serving.answer import Answer, success
from nodeward.rules.disruption import SYNC_FAILED, allowed_condition, is_healthy, set_allowed_condition
from nodeward.rules.selectors import from_label_selector
from nodeward.validation.policy import validate_eviction

_TOO_MANY = "Cannot evict pod as it would violate the pod's disruption budget."
_SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
MAX_DISRUPTED = 2000


async def evict(api: Api, call: Call, kind: Kind) -> Answer:
    """Delete the pod if its budget allows."""
    check_options(call, "CreateOptions")
    eviction = cast(Eviction, read_object(call, kind, Eviction))
    if eviction.metadata.name and eviction.metadata.name != call.name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = eviction.delete_options or DeleteOptions()
    check_delete_options(options)
    faults = validate_eviction(eviction)
    if faults:
        raise invalid("policy", "Eviction", call.name, faults)
    is_dry_run = call.is_dry_run or "All" in options.dry_run
    if is_dry_run:
        options.dry_run = ["All"]
    await api.env.hub.fresh()
    write = Write(
        "CREATE",
        kind,
        call.namespace,
        call.name,
        "eviction",
        call.user,
        None,
        _pod(api, kind, call),
        is_dry_run,
        sent=eviction,
    )
    api.chain.admit(write)
    api.chain.validate(write)
    for _ in range(UPDATE_ATTEMPTS):
        if await _try(api, call, kind, options, is_dry_run=is_dry_run):
            return success(201)
    raise timeout(f'couldn\'t evict pod "{call.name}": it changes faster than that', 10)


async def _try(api: Api, call: Call, kind: Kind, options: DeleteOptions, *, is_dry_run: bool) -> bool:
    """Check the budget and delete; False: the pod changed meanwhile, and everything must be checked again."""
    pod, budget = _pod(api, kind, call), None
    if _is_exempt(pod):
        # A pending pod may be evicted, but not if it has started by then: its version becomes a precondition.
        only_this = pod.status.phase == "Pending" and pod.metadata.deletion_timestamp is None
    else:
        budget = _budget_of(api, pod)
        only_this = budget is not None and _ignores_unready(pod, budget)
        if budget is not None and not only_this:
            await _spend(api, call, budget, pod, is_dry_run=is_dry_run)
    own, only_this = _own_options(options, pod, only_this)
    try:
        if not is_dry_run:
            await _mark(api, kind, call, own)
        await delete_one(api, call, kind, call.namespace, call.name, own)
    except ApiError as error:
        is_another = own.preconditions is not None and own.preconditions.uid not in (None, pod.metadata.uid)
        if error.reason != "Conflict" or not only_this or is_another:
            raise
        if budget is not None:
            raise _still_processed(budget) from None
        return False
    return True


def _own_options(options: DeleteOptions, pod: Pod, only_this: bool) -> tuple[DeleteOptions, bool]:
    """Return the options with the pod's version as a precondition if `only_this` asks for one, and whether it was."""
    wanted = options.preconditions
    given = Preconditions() if wanted is None else msgspec.structs.replace(wanted)
    only_this = only_this and given.resource_version is None
    if only_this:
        given.resource_version = pod.metadata.resource_version
    has_any = wanted is not None or only_this
    return msgspec.structs.replace(options, preconditions=given if has_any else None), only_this


def _pod(api: Api, kind: Kind, call: Call) -> Pod:
    item = api.env.hub.cache(kind).objects.get(f"{call.namespace}/{call.name}")
    if item is None:
        raise not_found("", "pods", call.name)
    return decoder(Pod).decode(item.data)


def _is_exempt(pod: Pod) -> bool:
    """Tell whether the pod needs no budget: it has ended, has not started, or is being deleted."""
    return pod.status.phase in (*TERMINAL, "Pending") or pod.metadata.deletion_timestamp is not None


def _budget_of(api: Api, pod: Pod) -> PodDisruptionBudget | None:
    found: list[PodDisruptionBudget] = []
    for budget in api.env.peek_all(PodDisruptionBudget, pod.metadata.namespace):
        selector = from_label_selector(budget.spec.selector)
        if selector is not None and selector.matches(pod.metadata.labels):
            found.append(budget)
    if len(found) > 1:
        # Without a reason, as Kubernetes answers.
        raise ApiError(Status(kind="Status", api_version="v1", status="Failure", message=_SEVERAL, code=500))
    return found[0] if found else None


def _ignores_unready(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Tell whether an unready pod may be evicted: enough others are ready, or the budget always allows it."""
    if is_healthy(pod):
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return budget.status.current_healthy >= budget.status.desired_healthy > 0


def _refusal(budget: PodDisruptionBudget) -> ApiError | None:
    status, name = budget.status, budget.metadata.name
    if status.observed_generation < budget.metadata.generation:
        return _still_processed(budget)
    if status.disruptions_allowed < 0:
        error = forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative")
        why = "pdb disruptions allowed is negative"
        text = f"The disruption budget {name} does not allow evicting pods currently: {why}"
        return _because(error, text)
    if len(status.disrupted_pods) > MAX_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        error = forbidden("policy", "poddisruptionbudget", name, why)
        why = "too many pending evictions not confirmed by PDB controller"
        return _because(error, f"The disruption budget {name} does not allow evicting pods currently: {why}")
    if status.disruptions_allowed == 0:
        return _because(too_many_requests(_TOO_MANY), _why_none(budget))
    return None


def _still_processed(budget: PodDisruptionBudget) -> ApiError:
    text = f"The disruption budget {budget.metadata.name} is still being processed by the server."
    return _because(too_many_requests(_TOO_MANY, 10), text)


def _why_none(budget: PodDisruptionBudget) -> str:
    """Return why the budget allows no disruption now. While its sync fails its numbers mean nothing."""
    status, name = budget.status, budget.metadata.name
    start = f"The disruption budget {name} does not allow evicting pods currently"
    condition = allowed_condition(status)
    has_reason = condition is not None and condition.status == "False" and bool(condition.message)
    if condition is not None and has_reason and condition.reason == SYNC_FAILED:
        return f"{start} because it failed sync: {condition.message}"
    if status.current_healthy <= status.desired_healthy:
        return (
            f"The disruption budget {name} needs {status.desired_healthy} healthy pods "
            f"and has {status.current_healthy} currently"
        )
    if condition is not None and has_reason:
        return f"{start} ({condition.reason}): {condition.message}"
    return start


def _because(error: ApiError, text: str) -> ApiError:
    error.status.details = error.status.details or StatusDetails()
    error.status.details.causes.append(StatusCause(reason="DisruptionBudget", message=text))
    return error


async def _spend(api: Api, call: Call, budget: PodDisruptionBudget, pod: Pod, *, is_dry_run: bool) -> None:
    """Take one disruption off the budget before the delete, so that two evictions never share one."""
    kind = api.env.kind(PodDisruptionBudget)
    key = f"{budget.metadata.namespace}/{budget.metadata.name}"
    for _ in range(UPDATE_ATTEMPTS):
        item = api.env.hub.cache(kind).objects.get(key)
        if item is None:
            return
        current = decoder(PodDisruptionBudget).decode(item.data)
        refusal = _refusal(current)
        if refusal is not None:
            raise refusal
        if is_dry_run:
            return
        current.status.disruptions_allowed -= 1
        if current.status.disruptions_allowed == 0:
            set_allowed_condition(current.status, api.env.now())
        current.status.disrupted_pods[pod.metadata.name] = api.env.now()
        if await api.writer.replace(kind, current, item) is not None:
            return
    raise timeout(f'couldn\'t update PodDisruptionBudget "{budget.metadata.name}" due to conflicts', 10)


async def _mark(api: Api, kind: Kind, call: Call, options: DeleteOptions) -> None:
    """Set the pod's DisruptionTarget condition, which tells its controller why it was deleted."""
    strategy = api.strategy(kind)
    for _ in range(UPDATE_ATTEMPTS):
        item = api.env.hub.cache(kind).objects.get(f"{call.namespace}/{call.name}")
        if item is None:
            raise not_found("", "pods", call.name)
        pod = decoder(Pod).decode(item.data)
        check_preconditions(strategy, pod, options)
        if pod.metadata.deletion_timestamp is not None or is_terminal(pod):
            return
        condition = PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="EvictionByEvictionAPI",
            message="Eviction API: evicting",
        )
        set_condition(pod, condition, api.env.now())
        written = await api.writer.replace(kind, pod, item)
        if written is not None:
            if options.preconditions is not None and options.preconditions.resource_version is not None:
                # The version in the precondition was right; this write has just changed it.
                options.preconditions.resource_version = str(written.item.revision)
            return

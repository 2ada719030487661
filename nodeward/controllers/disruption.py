"""Pod disruption budgets: their status says how many more pods may be evicted, and is kept true.

Keys are budgets, and in a queue of its own pods whose condition says that they are about to be disrupted: if nothing
came of it, the condition is taken back (as long as nobody but this controller could).

What must stay true: a budget that cannot be worked out allows nothing, and says why; evictions that the API has counted
are taken for granted until their pods are gone, or two minutes have passed.

Run by `controllers.runner`; calls `disruption_scale`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from nodeward.api.core_v1.pod import Pod
from nodeward.api.core_v1.pod_phase import is_terminal
from nodeward.api.errors import ApiError
from nodeward.api.meta import LabelSelector
from nodeward.api.policy_v1 import PodDisruptionBudget
from nodeward.base.duration import SECOND_NS
from nodeward.base.errors import WorldError
from nodeward.base.timestamp import parse_rfc3339, rfc3339
from nodeward.controllers.controller import ControllerContext, Work
from nodeward.controllers.disruption_scale import ScaleFinder
from nodeward.controllers.pods.index import NamespaceIndex
from nodeward.controllers.pods.pod_event_handlers import settle_seconds
from nodeward.machinery.recorder import NORMAL, WARNING
from nodeward.machinery.workqueue import WorkQueue
from nodeward.rules.disruption import (
    DELETION_TIMEOUT_NS,
    healthy_count,
    is_healthy,
    set_allowed_condition,
    status_of,
    still_disrupted,
)
from nodeward.rules.int_or_percent import scaled
from nodeward.rules.selectors import LabelRequirements, SelectorError, from_label_selector

#: How long a pod may be said to be disrupted without being deleted.
STALE_NS: Final = 120 * SECOND_NS
TARGET: Final = "DisruptionTarget"
_BY_KUBELET: Final = "TerminationByKubelet"


class DisruptionController:
    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._gates = context.gates
        self._recorder = context.recorder
        self._scales = ScaleFinder(context)
        self._queue: WorkQueue[str] = WorkQueue(context.clock, name="disruption")
        self._stale: WorkQueue[str] = WorkQueue(context.clock, name="stale_pod_disruption")
        self._budgets = context.informers.informer(PodDisruptionBudget)
        self._pods = context.informers.informer(Pod)
        self._budgets_in = NamespaceIndex(self._budgets)
        self._pods_in = NamespaceIndex(self._pods)
        #: The selector of each budget, as of a generation.
        self._selectors: dict[str, tuple[str, int, LabelRequirements | None]] = {}
        self._sizes: dict[str, int] = {}
        self._budgets.add_handler(
            self._on_budget_changed, lambda _, new: self._on_budget_changed(new), self._removed
        )
        self._pods.add_handler(self._pod_seen, self._pod_changed, self._pod_gone)

    def work(self) -> Sequence[Work[Any]]:
        return (Work(self._queue, self._handle), Work(self._stale, self._take_back))

    # -- listening ------------------------------------------------------------------------------------------------

    def _on_budget_changed(self, budget: PodDisruptionBudget) -> None:
        self._queue.add(_key(budget))

    def _removed(self, budget: PodDisruptionBudget) -> None:
        self._selectors.pop(_key(budget), None)
        self._sizes.pop(_key(budget), None)

    def _pod_seen(self, pod: Pod) -> None:
        self._warn_of_several(pod, self._wake_budgets(pod))
        if self._stale_in_ns(pod) is not None:
            self._stale.add(_key(pod))

    def _pod_changed(self, old: Pod, new: Pod) -> None:
        if _is_another(old, new):
            if old.metadata.labels != new.metadata.labels:
                self._wake_budgets(old)
            self._warn_of_several(new, self._wake_budgets(new))
        if self._stale_in_ns(new) is not None:
            self._stale.add(_key(new))

    def _pod_gone(self, pod: Pod) -> None:
        self._wake_budgets(pod)

    def _wake_budgets(self, pod: Pod) -> list[str]:
        """Return the names of the budgets that have to be looked at again."""
        names: list[str] = []
        for budget in self._budgets_in[pod.metadata.namespace]:
            try:
                selector = self._selector(budget)
            except SelectorError:
                continue
            if selector is not None and selector.matches(pod.metadata.labels):
                # News of pods come in crowds; to look at all pods for each would be too much.
                key = _key(budget)
                self._queue.add_after(key, settle_seconds(self._sizes.get(key, 0)))
                names.append(budget.metadata.name)
        return names

    def _warn_of_several(self, pod: Pod, names: Sequence[str]) -> None:
        """Record an event for a pod with several budgets: it cannot be evicted, which blocks a drain."""
        if len(names) > 1:
            meta = pod.metadata
            # Every budget is kept up to date here; the words are those people look for.
            text = f'Pod "{meta.namespace}"/"{meta.name}" matches multiple PodDisruptionBudgets.'
            text += f'  Chose "{names[0]}" arbitrarily.'
            self._recorder.event(pod, WARNING, "MultiplePodDisruptionBudgets", text)

    def _selector(self, budget: PodDisruptionBudget) -> LabelRequirements | None:
        key, meta = _key(budget), budget.metadata
        known = self._selectors.get(key)
        if known is None or known[:2] != (meta.uid, meta.generation):
            known = (meta.uid, meta.generation, from_label_selector(budget.spec.selector))
            self._selectors[key] = known
        return known[2]

    # -- budgets --------------------------------------------------------------------------------------------------

    async def _handle(self, key: str) -> float | None:
        budget = self._budgets.by_key(key)
        if budget is None:
            return None
        try:
            return await self._bring_up_to_date(budget)
        except (ApiError, WorldError, SelectorError) as error:
            if isinstance(error, ApiError) and error.reason in ("Conflict", "NotFound"):
                # Somebody else wrote, most likely an eviction: their news is on the way, or the budget is gone.
                if error.reason == "Conflict":
                    raise
                return None
            await self._fail_safe(budget, str(error))
            return None

    async def _bring_up_to_date(self, budget: PodDisruptionBudget) -> float | None:
        pods = self._pods_of(budget)
        self._sizes[_key(budget)] = len(pods)
        if not pods:
            self._recorder.event(budget, NORMAL, "NoPods", "No matching pods found")
        expected, desired = await self._expected(budget, pods)
        now_ns = self._clock.now_ns()
        disrupted, overdue = still_disrupted(pods, budget.status.disrupted_pods, now_ns)
        name = f"{budget.metadata.namespace}/{budget.metadata.name}"
        for pod in overdue:
            message = f"Pod was expected by PDB {name} to be deleted but it wasn't"
            self._recorder.event(pod, WARNING, "NotDeleted", message)
        status = status_of(
            budget,
            rfc3339(now_ns),
            healthy=healthy_count(pods, disrupted, now_ns),
            desired=desired,
            expected=expected,
            disrupted=disrupted,
        )
        if status != budget.status:
            await self._client.update(msgspec.structs.replace(budget, status=status), subresource="status")
        if not disrupted:
            return None
        first = min(parse_rfc3339(since) for since in disrupted.values())
        # A second more: the times of evictions are whole seconds.
        return max(first + DELETION_TIMEOUT_NS - now_ns, 0) / SECOND_NS + 1

    def _pods_of(self, budget: PodDisruptionBudget) -> list[Pod]:
        selector = self._selector(budget)
        if selector is None:
            return []
        return [
            pod for pod in self._pods_in[budget.metadata.namespace] if selector.matches(pod.metadata.labels)
        ]

    async def _expected(self, budget: PodDisruptionBudget, pods: Sequence[Pod]) -> tuple[int, int]:
        """Return how many pods there should be, and how many healthy ones."""
        least, most_missing = budget.spec.min_available, budget.spec.max_unavailable
        if most_missing is None and not isinstance(least, str):
            return len(pods) if least is not None else 0, least or 0
        try:
            count, unmanaged = await self._scales.expected(pods)
        except (ApiError, WorldError) as error:
            message = f"Failed to calculate the number of expected pods: {error}"
            self._recorder.event(budget, WARNING, "CalculateExpectedPodCountFailed", message)
            raise
        if unmanaged:
            message = (
                f"Pods selected by this PodDisruptionBudget (selector: {_written(budget.spec.selector)}) were found "
                "to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may "
                'result in undefined behavior. To account for these pods please set ".spec.minAvailable" '
                "field of the PDB to an integer value."
            )
            self._recorder.event(budget, WARNING, "UnmanagedPods", message)
        if most_missing is not None:
            return count, max(count - scaled(most_missing, count, round_up=True), 0)
        return count, scaled(least, count, round_up=True)

    async def _fail_safe(self, budget: PodDisruptionBudget, why: str) -> None:
        """Allow no disruption while the expected number of pods cannot be computed."""
        status = msgspec.structs.replace(budget.status, disruptions_allowed=0)
        set_allowed_condition(status, rfc3339(self._clock.now_ns()), failure=why)
        if status != budget.status:
            await self._client.update(msgspec.structs.replace(budget, status=status), subresource="status")

    # -- pods that were to be disrupted and were not --------------------------------------------------------------

    def _stale_in_ns(self, pod: Pod) -> int | None:
        """Return how long until the condition of a pod is stale; None: it has none that could be."""
        if pod.metadata.deletion_timestamp is not None or is_terminal(pod):
            return None
        for each in pod.status.conditions:
            if each.type == TARGET and each.status == "True":
                # The kubelet takes as long as it takes.
                if each.reason == _BY_KUBELET:
                    return None
                since = parse_rfc3339(each.last_transition_time) if each.last_transition_time else 0
                return max(since + STALE_NS - self._clock.now_ns(), 0)
        return None

    async def _take_back(self, key: str) -> float | None:
        pod = self._pods.by_key(key)
        left_ns = None if pod is None else self._stale_in_ns(pod)
        if pod is None or left_ns is None:
            return None
        if left_ns:
            return left_ns / SECOND_NS
        meta = pod.metadata
        condition: dict[str, Any] = {
            "type": TARGET,
            "status": "False",
            "lastTransitionTime": rfc3339(self._clock.now_ns()),
            "reason": None,
            "message": None,
        }
        if self._gates.enabled("PodObservedGenerationTracking"):
            condition["observedGeneration"] = meta.generation
        identity = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"metadata": identity, "status": {"conditions": [condition]}}
        try:
            await self._client.patch(Pod, meta.name, body, namespace=meta.namespace, subresource="status")
        except ApiError as error:
            if error.code != 404:
                raise
        return None


def _key(obj: Pod | PodDisruptionBudget) -> str:
    return f"{obj.metadata.namespace}/{obj.metadata.name}"


def _is_another(old: Pod, new: Pod) -> bool:
    """Tell whether a budget could count the pod differently."""
    before, after = old.metadata, new.metadata
    return (
        before.labels != after.labels
        or before.deletion_timestamp != after.deletion_timestamp
        or before.uid != after.uid
        or before.owner_references != after.owner_references
        or is_healthy(old) != is_healthy(new)
    )


def _written(selector: LabelSelector | None) -> str:
    """Return a selector as Kubernetes writes it into messages."""
    if selector is None:
        return "nil"
    labels = "".join(f"{name}: {value}," for name, value in sorted(selector.match_labels.items()))
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{''.join(_requirements(selector))}}},}}"
    )


def _requirements(selector: LabelSelector) -> Iterator[str]:
    for each in selector.match_expressions:
        values = " ".join(each.values)
        yield f"LabelSelectorRequirement{{Key:{each.key},Operator:{each.operator},Values:[{values}],}},"

"""Quotas, limits, events, budgets, priorities, leases, runtime classes, scales: what is refused, in which words."""

from __future__ import annotations

from typing import Any

import pytest

from nodeward.api import events_v1
from nodeward.api.autoscaling_v1 import Scale
from nodeward.api.coordination_v1 import Lease
from nodeward.api.core_v1 import cluster
from nodeward.api.core_v1.cluster import LimitRange, ResourceQuota
from nodeward.api.node_v1 import RuntimeClass
from nodeward.api.policy_v1 import Eviction, PodDisruptionBudget
from nodeward.api.scheduling_v1 import PriorityClass
from nodeward.validation.autoscaling import validate_scale
from nodeward.validation.policy import validate_eviction
from tests.validation.tables import (
    DROP,
    Case,
    case,
    check,
    check_create,
    check_status,
    check_update,
    read,
)

_META = {"name": "a", "namespace": "default"}
QUOTA: dict[str, Any] = {"metadata": _META, "spec": {"hard": {"pods": "3", "requests.cpu": "1"}}}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain quota is fine"),
        case("vendors' resources are counted too", {"spec.hard": {"requests.example.com/gpu": "1"}}),
        case(
            "what is counted is known, whole and not negative",
            {"spec.hard": {"storage": "1", "pods": "500m", "cpu": "-1", "things": "1"}},
            'spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota',
            'spec.hard[pods]: Invalid value: "500m": must be an integer',
            'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            'spec.hard[things]: Invalid value: "things": must be a standard resource type or fully qualified',
            'spec.hard[things]: Invalid value: "things": must be a standard resource for quota',
        ),
        case(
            "scopes are known, fit, and agree",
            {"spec.scopes": ["Weird", "BestEffort", "NotBestEffort"]},
            'spec.scopes: Invalid value: ["Weird","BestEffort","NotBestEffort"]: unsupported scope',
            'spec.scopes: Invalid value: ["Weird","BestEffort","NotBestEffort"]: '
            "unsupported scope applied to resource",
            'spec.scopes: Invalid value: ["Weird","BestEffort","NotBestEffort"]: conflicting scopes',
        ),
        case(
            "scope selectors are complete",
            {
                "spec.scopeSelector.matchExpressions": [
                    {"scopeName": "PriorityClass", "operator": "In"},
                    {"scopeName": "Terminating", "operator": "Sometimes"},
                ]
            },
            "spec.scopeSelector.matchExpressions.values: Required value: "
            "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            "spec.scopeSelector.matchExpressions.operator: Invalid value: \"Sometimes\": must be 'Exists' when...",
            'spec.scopeSelector.matchExpressions.operator: Invalid value: "Sometimes": not a valid selector operator',
        ),
    ],
    ids=str,
)
def test_a_new_quota(one: Case) -> None:
    check_create(ResourceQuota, QUOTA, one)


def test_the_scopes_of_a_quota_stay() -> None:
    error = 'spec.scopes: Invalid value: ["NotBestEffort"]: field is immutable'
    check_update(ResourceQuota, QUOTA, case("stay", {"spec.scopes": ["NotBestEffort"]}, error))


def _limits(**item: Any) -> dict[str, Any]:
    return {"metadata": _META, "spec": {"limits": [{"type": "Container", **item}]}}


_ITEM = "spec.limits[0]"


@pytest.mark.parametrize(
    ("good", "errors"),
    [
        pytest.param(_limits(max={"cpu": "2"}, min={"cpu": "1"}), (), id="a plain range is fine"),
        pytest.param(
            _limits(max={"cpu": "1"}, min={"cpu": "2"}),
            (
                f'{_ITEM}.min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
                f'{_ITEM}.defaultRequest[cpu]: Invalid value: "1": '
                "min value 2 is greater than default request value 1",
                f'{_ITEM}.default[cpu]: Invalid value: "2": min value 2 is greater than default value 1',
            ),
            id="the least is not more than the most",
        ),
        pytest.param(
            _limits(type="Pod", default={"cpu": "1"}),
            (f"{_ITEM}.default: Forbidden: may not be specified when `type` is 'Pod'",),
            id="pods have no defaults",
        ),
        pytest.param(
            _limits(type="PersistentVolumeClaim"),
            (
                f"{_ITEM}.limits: Required value: "
                "either minimum or maximum storage value is required, but neither was provided",
            ),
            id="claims have a size",
        ),
        pytest.param(
            _limits(maxLimitRequestRatio={"cpu": "500m"}),
            (f'{_ITEM}.maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1',),
            id="a limit is at least the request",
        ),
        pytest.param(
            _limits(max={"cpu": "2"}, min={"cpu": "1"}, maxLimitRequestRatio={"cpu": "3"}),
            (
                f'{_ITEM}.maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000',
            ),
            id="the ratio can be reached",
        ),
        pytest.param(
            _limits(type="Galaxy", max={"stars": "1"}),
            (
                f'{_ITEM}.type: Invalid value: "Galaxy": must be a standard limit type or fully qualified',
                f'{_ITEM}.max[stars]: Invalid value: "stars": must be a standard resource type or fully qualified',
            ),
            id="types and resources are known",
        ),
    ],
)
def test_a_new_limit_range(good: dict[str, Any], errors: tuple[str, ...]) -> None:
    check_create(LimitRange, good, Case("", errors=errors))


EVENT: dict[str, Any] = {
    "metadata": _META,
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reason": "Why",
}
NEW_EVENT: dict[str, Any] = {
    "metadata": _META,
    "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reason": "Why",
    "action": "Do",
    "type": "Normal",
    "eventTime": "2026-01-01T00:00:00.000000Z",
    "reportingController": "example.com/me",
    "reportingInstance": "me-1",
}


@pytest.mark.parametrize(
    "one",
    [
        case("an event of old is fine"),
        case(
            "it stands in the namespace of its object",
            {"involvedObject.namespace": "other"},
            'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
        ),
        case("of things without a namespace in default", {"involvedObject.namespace": ""}),
        case(
            "with a time of its own more is asked",
            {"eventTime": "2026-01-01T00:00:00.000000Z", "reportingComponent": "a b", "reason": "x" * 129},
            'reportingComponent: Invalid value: "a b": name part must consist of...',
            "reportingInstance: Required value",
            "action: Required value",
            'reason: Invalid value: "": can have at most 128 characters',
        ),
    ],
    ids=str,
)
def test_a_new_event_of_the_core_group(one: Case) -> None:
    check_create(cluster.Event, EVENT, one)


@pytest.mark.parametrize(
    "one",
    [
        case("a new event is fine"),
        case("it says when", {"eventTime": DROP}, "eventTime: Required value"),
        case(
            "it leaves the old fields alone and is of a known type",
            {
                "deprecatedCount": 1,
                "deprecatedSource": {"component": "x"},
                "type": "Odd",
                "series": {"count": 1},
            },
            'series.count: Invalid value: "": should be at least 2',
            "series.lastObservedTime: Required value",
            'type: Invalid value: "": has invalid value: Odd',
            'count: Invalid value: "": needs to be unset',
            'source: Invalid value: "": needs to be unset',
        ),
    ],
    ids=str,
)
def test_a_new_event(one: Case) -> None:
    check_create(events_v1.Event, NEW_EVENT, one)


def test_only_the_series_of_an_event_changes() -> None:
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}}
    check_update(events_v1.Event, NEW_EVENT, case("series", series))
    error = 'reason: Invalid value: "Other": field is immutable'
    check_update(events_v1.Event, NEW_EVENT, case("reason", {"reason": "Other"}, error))


BUDGET: dict[str, Any] = {
    "metadata": _META,
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}},
}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain budget is fine"),
        case(
            "a budget says one thing",
            {"spec": {"minAvailable": 1, "maxUnavailable": "5%"}},
            'spec: Invalid value: {"minAvailable":1,"maxUnavailable":"5%"}: '
            "minAvailable and maxUnavailable cannot be both set",
        ),
        case(
            "amounts are amounts",
            {"spec.minAvailable": "101%"},
            'spec.minAvailable: Invalid value: "101%": must not be greater than 100%',
        ),
        case(
            "policies are known ones",
            {"spec.unhealthyPodEvictionPolicy": "x"},
            'spec.unhealthyPodEvictionPolicy: Unsupported value: "x": '
            'supported values: "AlwaysAllow", "IfHealthyBudget"',
        ),
    ],
    ids=str,
)
def test_a_new_budget(one: Case) -> None:
    check_create(PodDisruptionBudget, BUDGET, one)


def test_the_status_of_a_budget_has_counts_and_conditions() -> None:
    status = {"disruptionsAllowed": -1, "conditions": [{"type": "A", "status": "Maybe", "reason": "1"}]}
    errors = (
        'status.conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
        "status.conditions[0].lastTransitionTime: Required value",
        'status.conditions[0].reason: Invalid value: "1": a condition reason must start with...',
        "status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0",
    )
    check_status(PodDisruptionBudget, BUDGET, case("bad", {"status": status}, *errors))


def test_an_eviction_is_no_way_around_a_broken_store() -> None:
    field = "ignoreStoreReadErrorWithClusterBreakingPotential"
    eviction = read(Eviction, {"metadata": _META, "deleteOptions": {field: True}})
    detail = "can not be set for pod eviction, try after removing the option"
    check(validate_eviction(eviction), (f"deleteOptions.{field}: Invalid value: true: {detail}",))
    check(validate_eviction(read(Eviction, {"metadata": _META})), ())


def test_a_scale_is_not_negative() -> None:
    error = "spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    check(validate_scale(read(Scale, {"spec": {"replicas": -1}})), (error,))
    check(validate_scale(read(Scale, {"spec": {"replicas": 0}})), ())


PRIORITY: dict[str, Any] = {"metadata": {"name": "high"}, "value": 1000}
_RULE = "priority class names with 'system-' prefix are reserved for system use only"
_RESERVED = f"metadata.name: Forbidden: {_RULE}. error: "


@pytest.mark.parametrize(
    "one",
    [
        case("a plain class is fine"),
        case("the system's own are fine", {"metadata.name": "system-node-critical", "value": 2000001000}),
        case(
            "the system's own have one value",
            {"metadata.name": "system-cluster-critical"},
            f"{_RESERVED}value of system-cluster-critical PriorityClass must be 2000000000",
        ),
        case(
            "nobody else is of the system",
            {"metadata.name": "system-me"},
            f"{_RESERVED}system-me is not a known...",
        ),
        case(
            "users end at a billion",
            {"value": 1000000001},
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        case(
            "policies are known ones",
            {"preemptionPolicy": "x"},
            'preemptionPolicy: Unsupported value: "x": supported values: "PreemptLowerPriority", "Never"',
        ),
    ],
    ids=str,
)
def test_a_new_priority_class(one: Case) -> None:
    check_create(PriorityClass, PRIORITY, one)


def test_a_priority_stays() -> None:
    errors = (
        "value: Forbidden: may not be changed in an update.",
        'preemptionPolicy: Invalid value: "Never": field is immutable',
    )
    check_update(PriorityClass, PRIORITY, case("stays", {"value": 1, "preemptionPolicy": "Never"}, *errors))


@pytest.mark.parametrize(
    "one",
    [
        case("a plain lease is fine", {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}),
        case(
            "a lease lasts, and changes hands forward",
            {"spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}},
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
            "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
        ),
        case(
            "a preference needs a strategy",
            {"spec": {"preferredHolder": "me"}},
            "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined",
        ),
        case(
            "strategies are known or qualified",
            {"spec": {"strategy": "Oldest"}},
            'spec.strategy.strategy: Unsupported value: "Oldest": supported values: "OldestEmulationVersion"',
        ),
    ],
    ids=str,
)
def test_a_lease(one: Case) -> None:
    check_create(Lease, {"metadata": _META}, one)


RUNTIME: dict[str, Any] = {"metadata": {"name": "kata"}, "handler": "kata"}


@pytest.mark.parametrize(
    "one",
    [
        case("a plain runtime is fine", {"overhead": {"podFixed": {"cpu": "100m"}}}),
        case("a handler is needed", {"handler": ""}, "handler: Required value"),
        case(
            "a handler is a label", {"handler": "a.b"}, 'handler: Invalid value: "a.b": must not contain dots'
        ),
        case(
            "overhead is of what containers use",
            {"overhead": {"podFixed": {"pods": "1"}}},
            'overhead.limits[pods]: Invalid value: "pods": must be a standard resource for containers',
        ),
        case(
            "tolerations differ, and compare no numbers",
            {
                "scheduling.tolerations": [
                    {"operator": "Exists"},
                    {"operator": "Exists"},
                    {"key": "a", "operator": "Gt", "value": "1"},
                ]
            },
            'scheduling.tolerations[2].operator: Unsupported value: "Gt": ...',
            'scheduling.tolerations[1]: Duplicate value: {"operator":"Exists"}',
        ),
    ],
    ids=str,
)
def test_a_new_runtime_class(one: Case) -> None:
    check_create(RuntimeClass, RUNTIME, one)


def test_a_handler_stays() -> None:
    error = "handler: Invalid value: null: field is immutable"
    check_update(RuntimeClass, RUNTIME, case("stays", {"handler": "gvisor"}, error))

"""Namespaces, limits, quotas, events, and the plain data kinds."""

from __future__ import annotations

from typing import Annotated, ClassVar

from nodeward.api.core_v1.references import LocalObjectReference, ObjectReference
from nodeward.api.fields import (
    REQUIRED,
    Int32,
    Keyed,
    KubeStruct,
    MicroTime,
    OneOf,
    RequiredList,
    Time,
    WithRequiredLists,
    always,
    always_null,
    nested,
    required_list,
)
from nodeward.api.meta import KubeObject
from nodeward.base.quantity import Quantity


class ComponentCondition(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    status: Annotated[str, REQUIRED] = always("")
    message: str = ""
    error: str = ""


class ComponentStatus(KubeObject):
    conditions: Annotated[list[ComponentCondition], Keyed("type")] = []


class ConfigMap(KubeObject):
    immutable: bool | None = None
    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = {}


class EventSeries(KubeStruct):
    count: Int32 = 0
    last_observed_time: MicroTime | None = always_null()


class EventSource(KubeStruct):
    component: str = ""
    host: str = ""


class Event(KubeObject):
    involved_object: Annotated[ObjectReference, REQUIRED] = nested(ObjectReference)
    reason: str = ""
    message: str = ""
    source: EventSource = nested(EventSource)
    first_timestamp: Time | None = always_null()
    last_timestamp: Time | None = always_null()
    count: Int32 = 0
    type: str = ""
    event_time: MicroTime | None = always_null()
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = always("")
    reporting_instance: str = always("")


class LimitRangeItem(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    max: dict[str, Quantity] = {}
    min: dict[str, Quantity] = {}
    default: dict[str, Quantity] = {}
    default_request: dict[str, Quantity] = {}
    max_limit_request_ratio: dict[str, Quantity] = {}


class LimitRangeSpec(WithRequiredLists):
    limits: Annotated[RequiredList[LimitRangeItem], REQUIRED] = required_list()


class LimitRange(KubeObject):
    spec: LimitRangeSpec = nested(LimitRangeSpec)


class NamespaceSpec(KubeStruct):
    finalizers: list[str] = []


class NamespaceCondition(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    status: Annotated[str, REQUIRED] = always("")
    last_transition_time: Time | None = always_null()
    reason: str = ""
    message: str = ""


class NamespaceStatus(KubeStruct):
    phase: Annotated[str, OneOf("Active", "Terminating")] = ""
    conditions: Annotated[list[NamespaceCondition], Keyed("type")] = []


class Namespace(KubeObject):
    spec: NamespaceSpec = nested(NamespaceSpec)
    status: NamespaceStatus = nested(NamespaceStatus)


class ScopedResourceSelectorRequirement(KubeStruct):
    scope_name: Annotated[
        str,
        OneOf(
            "BestEffort",
            "CrossNamespacePodAffinity",
            "NotBestEffort",
            "NotTerminating",
            "PriorityClass",
            "Terminating",
            "VolumeAttributesClass",
        ),
        REQUIRED,
    ] = always("")
    operator: Annotated[str, OneOf("DoesNotExist", "Exists", "In", "NotIn"), REQUIRED] = always("")
    values: list[str] = []


class ScopeSelector(KubeStruct):
    is_atomic: ClassVar[bool] = True

    match_expressions: list[ScopedResourceSelectorRequirement] = []


class ResourceQuotaSpec(KubeStruct):
    hard: dict[str, Quantity] = {}
    scopes: list[str] = []
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(KubeStruct):
    hard: dict[str, Quantity] = {}
    used: dict[str, Quantity] = {}


class ResourceQuota(KubeObject):
    spec: ResourceQuotaSpec = nested(ResourceQuotaSpec)
    status: ResourceQuotaStatus = nested(ResourceQuotaStatus)


class Secret(KubeObject):
    immutable: bool | None = None
    data: dict[str, bytes] = {}
    string_data: dict[str, str] = {}
    type: str = ""


class ServiceAccount(KubeObject):
    secrets: Annotated[list[ObjectReference], Keyed("name")] = []
    image_pull_secrets: list[LocalObjectReference] = []
    automount_service_account_token: bool | None = None

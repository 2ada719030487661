"""References from one object to another, and the small selectors that many kinds share."""

from __future__ import annotations

from typing import Annotated, ClassVar

from nodeward.api.fields import (
    REQUIRED,
    Int32,
    Int64,
    KubeStruct,
    OneOf,
    RequiredList,
    Time,
    WithRequiredLists,
    always,
    always_null,
    always_zero_quantity,
    required_list,
)
from nodeward.base.quantity import Quantity


class ObjectReference(KubeStruct):
    is_atomic: ClassVar[bool] = True

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class LocalObjectReference(KubeStruct):
    is_atomic: ClassVar[bool] = True

    name: str = ""


class TypedLocalObjectReference(KubeStruct):
    is_atomic: ClassVar[bool] = True

    api_group: str | None = always_null()
    kind: Annotated[str, REQUIRED] = always("")
    name: Annotated[str, REQUIRED] = always("")


class TypedObjectReference(KubeStruct):
    api_group: str | None = always_null()
    kind: Annotated[str, REQUIRED] = always("")
    name: Annotated[str, REQUIRED] = always("")
    namespace: str | None = None


class SecretReference(KubeStruct):
    is_atomic: ClassVar[bool] = True

    name: str = ""
    namespace: str = ""


class ObjectFieldSelector(KubeStruct):
    is_atomic: ClassVar[bool] = True

    api_version: str = ""
    field_path: Annotated[str, REQUIRED] = always("")


class ResourceFieldSelector(KubeStruct):
    is_atomic: ClassVar[bool] = True

    container_name: str = ""
    resource: Annotated[str, REQUIRED] = always("")
    divisor: Quantity = always_zero_quantity()


class ConfigMapKeySelector(KubeStruct):
    is_atomic: ClassVar[bool] = True

    name: str = ""
    key: Annotated[str, REQUIRED] = always("")
    optional: bool | None = None


class SecretKeySelector(KubeStruct):
    is_atomic: ClassVar[bool] = True

    name: str = ""
    key: Annotated[str, REQUIRED] = always("")
    optional: bool | None = None


class FileKeySelector(KubeStruct):
    is_atomic: ClassVar[bool] = True

    volume_name: Annotated[str, REQUIRED] = always("")
    path: Annotated[str, REQUIRED] = always("")
    key: Annotated[str, REQUIRED] = always("")
    optional: bool | None = None


class KeyToPath(KubeStruct):
    key: Annotated[str, REQUIRED] = always("")
    path: Annotated[str, REQUIRED] = always("")
    mode: Int32 | None = None
    user: Int64 | None = None


class NodeSelectorRequirement(KubeStruct):
    key: Annotated[str, REQUIRED] = always("")
    operator: Annotated[
        str,
        OneOf("DoesNotExist", "Exists", "Gt", "In", "Lt", "NotIn"),
        REQUIRED,
    ] = always("")
    values: list[str] = []


class NodeSelectorTerm(KubeStruct):
    is_atomic: ClassVar[bool] = True

    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(WithRequiredLists):
    is_atomic: ClassVar[bool] = True

    node_selector_terms: Annotated[RequiredList[NodeSelectorTerm], REQUIRED] = required_list()


class Taint(KubeStruct):
    key: Annotated[str, REQUIRED] = always("")
    value: str = ""
    effect: Annotated[str, OneOf("NoExecute", "NoSchedule", "PreferNoSchedule"), REQUIRED] = always("")
    time_added: Time | None = None


class Toleration(KubeStruct):
    key: str = ""
    operator: Annotated[str, OneOf("Equal", "Exists", "Gt", "Lt")] = ""
    value: str = ""
    effect: Annotated[str, OneOf("NoExecute", "NoSchedule", "PreferNoSchedule")] = ""
    toleration_seconds: Int64 | None = None


class TopologySelectorLabelRequirement(WithRequiredLists):
    key: Annotated[str, REQUIRED] = always("")
    values: Annotated[RequiredList[str], REQUIRED] = required_list()


class TopologySelectorTerm(KubeStruct):
    is_atomic: ClassVar[bool] = True

    match_label_expressions: list[TopologySelectorLabelRequirement] = []

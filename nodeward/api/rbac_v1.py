"""Roles and bindings: rbac.authorization.k8s.io/v1."""

from __future__ import annotations

from typing import Annotated, ClassVar

from nodeward.api.fields import (
    REQUIRED,
    KubeStruct,
    RequiredList,
    WithRequiredLists,
    always,
    field,
    nested,
    required_list,
)
from nodeward.api.meta import KubeObject, LabelSelector


class AggregationRule(KubeStruct):
    cluster_role_selectors: list[LabelSelector] = []


class PolicyRule(WithRequiredLists):
    verbs: Annotated[RequiredList[str], REQUIRED] = required_list()
    api_groups: list[str] = []
    resources: list[str] = []
    resource_names: list[str] = []
    non_resource_urls: list[str] = field(default_factory=list, name="nonResourceURLs")


class ClusterRole(KubeObject, WithRequiredLists):
    rules: RequiredList[PolicyRule] = required_list()
    aggregation_rule: AggregationRule | None = None


class RoleRef(KubeStruct):
    is_atomic: ClassVar[bool] = True

    api_group: str = always("")
    kind: Annotated[str, REQUIRED] = always("")
    name: Annotated[str, REQUIRED] = always("")


class Subject(KubeStruct):
    is_atomic: ClassVar[bool] = True

    kind: Annotated[str, REQUIRED] = always("")
    api_group: str = ""
    name: Annotated[str, REQUIRED] = always("")
    namespace: str = ""


class ClusterRoleBinding(KubeObject):
    subjects: list[Subject] = []
    role_ref: Annotated[RoleRef, REQUIRED] = nested(RoleRef)


class Role(KubeObject, WithRequiredLists):
    rules: RequiredList[PolicyRule] = required_list()


class RoleBinding(KubeObject):
    subjects: list[Subject] = []
    role_ref: Annotated[RoleRef, REQUIRED] = nested(RoleRef)

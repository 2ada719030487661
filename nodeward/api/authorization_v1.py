"""Access reviews: authorization.k8s.io/v1."""

from __future__ import annotations

from typing import Annotated

from nodeward.api.fields import REQUIRED, KubeStruct, always, always_list, field, nested
from nodeward.api.meta import FieldSelectorRequirement, KubeObject, LabelSelectorRequirement


class FieldSelectorAttributes(KubeStruct):
    raw_selector: str = ""
    requirements: list[FieldSelectorRequirement] = []


class LabelSelectorAttributes(KubeStruct):
    raw_selector: str = ""
    requirements: list[LabelSelectorRequirement] = []


class NonResourceAttributes(KubeStruct):
    path: str = ""
    verb: str = ""


class ResourceAttributes(KubeStruct):
    namespace: str = ""
    verb: str = ""
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    field_selector: FieldSelectorAttributes | None = None
    label_selector: LabelSelectorAttributes | None = None


class SubjectAccessReviewSpec(KubeStruct):
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None
    user: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}
    uid: str = ""


class SubjectAccessReviewStatus(KubeStruct):
    allowed: Annotated[bool, REQUIRED] = always(False)
    denied: bool = False
    reason: str = ""
    evaluation_error: str = ""


class LocalSubjectAccessReview(KubeObject):
    spec: Annotated[SubjectAccessReviewSpec, REQUIRED] = nested(SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = nested(SubjectAccessReviewStatus)


class NonResourceRule(KubeStruct):
    verbs: Annotated[list[str], REQUIRED] = always_list()
    non_resource_urls: list[str] = field(default_factory=list, name="nonResourceURLs")


class ResourceRule(KubeStruct):
    verbs: Annotated[list[str], REQUIRED] = always_list()
    api_groups: list[str] = []
    resources: list[str] = []
    resource_names: list[str] = []


class SelfSubjectAccessReviewSpec(KubeStruct):
    resource_attributes: ResourceAttributes | None = None
    non_resource_attributes: NonResourceAttributes | None = None


class SelfSubjectAccessReview(KubeObject):
    spec: Annotated[SelfSubjectAccessReviewSpec, REQUIRED] = nested(SelfSubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = nested(SubjectAccessReviewStatus)


class SelfSubjectRulesReviewSpec(KubeStruct):
    namespace: str = ""


class SubjectRulesReviewStatus(KubeStruct):
    resource_rules: Annotated[list[ResourceRule], REQUIRED] = always_list()
    non_resource_rules: Annotated[list[NonResourceRule], REQUIRED] = always_list()
    incomplete: Annotated[bool, REQUIRED] = always(False)
    evaluation_error: str = ""


class SelfSubjectRulesReview(KubeObject):
    spec: Annotated[SelfSubjectRulesReviewSpec, REQUIRED] = nested(SelfSubjectRulesReviewSpec)
    status: SubjectRulesReviewStatus = nested(SubjectRulesReviewStatus)


class SubjectAccessReview(KubeObject):
    spec: Annotated[SubjectAccessReviewSpec, REQUIRED] = nested(SubjectAccessReviewSpec)
    status: SubjectAccessReviewStatus = nested(SubjectAccessReviewStatus)

"""What every object carries: metadata, selectors, conditions, options, Status: meta/v1."""

from __future__ import annotations

from typing import Annotated, ClassVar

from nodeward.api.fields import (
    REQUIRED,
    SET,
    Int32,
    Int64,
    Keyed,
    KubeStruct,
    KubeTop,
    Merge,
    RawJson,
    Time,
    always,
    always_null,
    field,
    nested,
)


class Condition(KubeStruct):
    type: Annotated[str, REQUIRED] = always("")
    status: Annotated[str, REQUIRED] = always("")
    observed_generation: Int64 = 0
    last_transition_time: Annotated[Time | None, REQUIRED] = always_null()
    reason: Annotated[str, REQUIRED] = always("")
    message: Annotated[str, REQUIRED] = always("")


class Preconditions(KubeStruct):
    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(KubeTop):
    grace_period_seconds: Int64 | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] = []
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None


class FieldSelectorRequirement(KubeStruct):
    key: Annotated[str, REQUIRED] = always("")
    operator: Annotated[str, REQUIRED] = always("")
    values: list[str] = []


class LabelSelectorRequirement(KubeStruct):
    key: Annotated[str, REQUIRED] = always("")
    operator: Annotated[str, REQUIRED] = always("")
    values: list[str] = []


class LabelSelector(KubeStruct):
    is_atomic: ClassVar[bool] = True

    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class ShardInfo(KubeStruct):
    selector: Annotated[str, REQUIRED] = always("")


class ListMeta(KubeStruct):
    self_link: str = ""
    resource_version: str = ""
    continue_: str = field(default="", name="continue")
    remaining_item_count: Int64 | None = None
    shard_info: ShardInfo | None = None


class ManagedFieldsEntry(KubeStruct):
    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Time | None = None
    fields_type: str = ""
    # Not `| None`: msgspec cannot decode raw JSON inside a union.
    fields_v1: RawJson = RawJson()
    subresource: str = ""


class OwnerReference(KubeStruct):
    is_atomic: ClassVar[bool] = True

    api_version: Annotated[str, REQUIRED] = always("")
    kind: Annotated[str, REQUIRED] = always("")
    name: Annotated[str, REQUIRED] = always("")
    uid: Annotated[str, REQUIRED] = always("")
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(KubeStruct):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: Annotated[list[OwnerReference], Keyed("uid")] = []
    finalizers: Annotated[list[str], SET, Merge("")] = []
    managed_fields: list[ManagedFieldsEntry] = []


class StatusCause(KubeStruct):
    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(KubeStruct):
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] = []
    retry_after_seconds: Int32 = 0


class Status(KubeTop):
    metadata: ListMeta = nested(ListMeta)
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: Int32 = 0


class KubeObject(KubeTop):
    """Something that is stored: it has metadata."""

    metadata: ObjectMeta = nested(ObjectMeta)

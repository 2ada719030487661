"""CSI drivers, what they say about nodes, and the attachments made through them."""

from __future__ import annotations

from typing import Final

import msgspec

from nodeward.api.context import Context
from nodeward.api.storage_v1 import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    StorageHealth,
    StorageHealthCondition,
    TokenRequest,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeError,
)
from nodeward.base.fielderror import (
    FieldError,
    duplicate,
    forbidden,
    invalid,
    required,
    too_long,
    too_many,
)
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import (
    dns_subdomain,
    dns_subdomain_any_case,
    in_range,
    size,
)
from nodeward.validation.authentication import validate_token_lifetime
from nodeward.validation.checks import (
    IMMUTABLE,
    check_each,
    check_form,
    check_immutable,
    check_not_negative,
    check_one_of,
    check_present,
    check_qualified,
    check_size,
    check_subdomain,
)
from nodeward.validation.core.persistent_volume import validate_volume_spec
from nodeward.validation.meta.conditions import condition_reason
from nodeward.validation.meta.metadata import (
    validate_metadata,
    validate_metadata_update,
)
from nodeward.validation.pod.volume_claim import ACCESS_MODES
from nodeward.validation.pod.volume_network import validate_csi_driver_name
from nodeward.validation.validator import Validator

_SPEC: Final = ROOT.child("spec")
_NODE_ID_LIMIT: Final = 256
_ATTACHER_LIMIT: Final = 63
_METADATA_LIMIT: Final = 256 * 1024
_MESSAGE_LIMIT: Final = 1024
_HEALTH_LIMIT: Final = 16
_REASON_LIMIT: Final = 256
_SHORTEST_PERIOD: Final = 10
_FS_GROUP: Final = ("File", "None", "ReadWriteOnceWithFSType")
_HEALTH: Final = ("StorageDegraded", "StorageUnreachable")
_ONE_SOURCE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


def _driver(spec: CSIDriverSpec, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.attach_required is None:
        errors.append(required(_SPEC.child("attachedRequired")))
    if spec.pod_info_on_mount is None:
        errors.append(required(_SPEC.child("podInfoOnMount")))
    if spec.storage_capacity is None:
        errors.append(required(_SPEC.child("storageCapacity")))
    errors += check_one_of(spec.fs_group_policy, _SPEC.child("fsGroupPolicy"), _FS_GROUP)
    errors += _tokens(spec.token_requests, _SPEC.child("tokenRequests"))
    modes = ("Persistent", "Ephemeral")
    for mode in spec.volume_lifecycle_modes:
        errors += check_one_of(mode, _SPEC.child("volumeLifecycleModes"), modes)
    if spec.se_linux_mount is None and ctx.on("SELinuxMountReadWriteOncePod"):
        errors.append(required(_SPEC.child("seLinuxMount")))
    period = spec.node_allocatable_update_period_seconds
    if period is not None and period < _SHORTEST_PERIOD:
        at = _SPEC.child("nodeAllocatableUpdatePeriodSeconds")
        errors.append(invalid(at, period, "must be greater than or equal to 10 seconds"))
    in_secrets = spec.service_account_token_in_secrets
    if in_secrets is not None and not spec.token_requests:
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid(_SPEC.child("serviceAccountTokenInSecrets"), in_secrets, detail))
    if spec.prevent_pod_scheduling_if_missing is None and ctx.on("VolumeLimitScaling"):
        errors.append(required(_SPEC.child("preventPodSchedulingIfMissing")))
    return errors


def _tokens(requests: list[TokenRequest], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, request in enumerate(requests):
        at = path.index(i)
        if any(request.audience == other.audience for other in requests[:i]):
            errors.append(duplicate(at.child("audience"), request.audience))
        elif request.expiration_seconds is not None:
            errors += validate_token_lifetime(request.expiration_seconds, at.child("expirationSeconds"))
    return errors


def _create_driver(driver: CSIDriver, ctx: Context) -> list[FieldError]:
    return validate_metadata(driver.metadata, dns_subdomain, namespaced=False) + _driver(driver.spec, ctx)


def _update_driver(new: CSIDriver, old: CSIDriver, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata) + _driver(new.spec, ctx)
    at = _SPEC.child("attachedRequired")
    errors += check_immutable(new.spec.attach_required, old.spec.attach_required, at)
    at = _SPEC.child("volumeLifecycleModes")
    return errors + check_immutable(new.spec.volume_lifecycle_modes, old.spec.volume_lifecycle_modes, at)


def _create_node(node: CSINode, ctx: Context) -> list[FieldError]:
    errors = validate_metadata(node.metadata, dns_subdomain, namespaced=False)
    for i, driver in enumerate(node.spec.drivers):
        at = _SPEC.child("drivers").index(i)
        errors += _node_driver(driver, at)
        if any(driver.name == other.name for other in node.spec.drivers[:i]):
            errors.append(duplicate(at.child("name"), driver.name))
        errors += _topology_keys(driver.topology_keys, at)
    return errors


def _node_driver(driver: CSINodeDriver, path: FieldPath) -> list[FieldError]:
    errors = validate_csi_driver_name(driver.name, path.child("name"))
    at = path.child("nodeID")
    errors += check_present(driver.node_id, at)
    if size(driver.node_id) > _NODE_ID_LIMIT:
        errors.append(invalid(at, driver.node_id, f"must be {_NODE_ID_LIMIT} characters or less"))
    if driver.allocatable is not None and driver.allocatable.count is not None:
        errors += check_not_negative(driver.allocatable.count, path.child("allocatable", "count"))
    return errors


def _topology_keys(keys: list[str], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, key in enumerate(keys):
        errors += check_present(key, path)
        if key in keys[:i]:
            errors.append(duplicate(path, key))
        errors += check_qualified(key, path)
    return errors


def _update_node(new: CSINode, old: CSINode, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata) + _create_node(new, ctx)
    before = {driver.name: driver for driver in old.spec.drivers}
    for now in new.spec.drivers:
        was = before.get(now.name)
        if was is None:
            continue
        if ctx.on("MutableCSINodeAllocatableCount"):
            now = msgspec.structs.replace(now, allocatable=None)
            was = msgspec.structs.replace(was, allocatable=None)
        errors += check_immutable(now, was, _SPEC.child("drivers"))
    return errors


def _node_status(new: CSINode, old: CSINode, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata)
    listed = new.status.storage_health
    for i, health in enumerate(listed):
        at = ROOT.child("status", "storageHealth").index(i)
        if any(health.name == other.name for other in listed[:i]):
            errors.append(duplicate(at, health.name))
        errors += _health(health, at)
    return errors


def _health(health: StorageHealth, path: FieldPath) -> list[FieldError]:
    errors = validate_csi_driver_name(health.name, path.child("name"))
    at, conditions = path.child("healthConditions"), health.health_conditions
    if len(conditions) > _HEALTH_LIMIT:
        return [*errors, too_many(at, len(conditions), _HEALTH_LIMIT)]
    return errors + check_each(conditions, at, _health_condition)


def _health_condition(condition: StorageHealthCondition, path: FieldPath) -> list[FieldError]:
    errors = check_one_of(condition.status, path.child("status"), _HEALTH)
    at = path.child("reason")
    if not condition.reason:
        errors.append(required(at))
    else:
        errors += check_form(condition.reason, at, condition_reason)
        errors += check_size(condition.reason, at, _REASON_LIMIT)
    errors += check_size(condition.message, path.child("message"), _MESSAGE_LIMIT)
    errors += check_one_of(condition.access_mode, path.child("accessMode"), ACCESS_MODES)
    modes = ("Filesystem", "Block")
    return errors + check_one_of(condition.volume_mode, path.child("volumeMode"), modes)


def _attachment(attachment: VolumeAttachment) -> list[FieldError]:
    spec, status = attachment.spec, attachment.status
    errors = validate_metadata(attachment.metadata, dns_subdomain, namespaced=False)
    errors += _source(spec.source, _SPEC.child("source"))
    errors += check_subdomain(spec.node_name, _SPEC.child("nodeName"))
    at = ROOT.child("status")
    if sum(size(k) + size(v) for k, v in status.attachment_metadata.items()) > _METADATA_LIMIT:
        errors.append(too_long(at.child("attachmentMetadata"), _METADATA_LIMIT))
    errors += _error(status.attach_error, at.child("attachError"))
    errors += _error(status.detach_error, at.child("detachError"))
    name = spec.source.persistent_volume_name
    return errors + check_subdomain(name, _SPEC.child("source", "persistentVolumeName"))


def _source(source: VolumeAttachmentSource, path: FieldPath) -> list[FieldError]:
    inline, name = source.inline_volume_spec, source.persistent_volume_name
    if inline is None and name is None:
        return [required(path, _ONE_SOURCE)]
    if inline is not None and name is not None:
        return [forbidden(path, _ONE_SOURCE)]
    if inline is not None:
        return validate_volume_spec(inline, path.child("inlineVolumeSpec"), is_inline=True)
    return (
        []
        if name
        else [required(path.child("persistentVolumeName"), "must specify non empty persistentVolumeName")]
    )


def _error(error: VolumeError | None, path: FieldPath) -> list[FieldError]:
    if error is None:
        return []
    errors = check_size(error.message, path.child("message"), _MESSAGE_LIMIT)
    return errors + check_not_negative(error.error_code, path.child("errorCode"), in_range(0, 2**31 - 1))


def _attacher(name: str) -> list[FieldError]:
    """Checked by declaration, hence last."""
    at = _SPEC.child("attacher")
    if not name:
        return [required(at)]
    errors = [invalid(at, name, fault) for fault in dns_subdomain_any_case(name)]
    return (
        errors if len(name) <= _ATTACHER_LIMIT else [*errors, too_long(at, _ATTACHER_LIMIT, unit="character")]
    )


def _create_attachment(attachment: VolumeAttachment, ctx: Context) -> list[FieldError]:
    return _attachment(attachment) + _attacher(attachment.spec.attacher)


def _update_attachment(new: VolumeAttachment, old: VolumeAttachment, ctx: Context) -> list[FieldError]:
    errors = validate_metadata_update(new.metadata, old.metadata) + _attachment(new)
    return errors if new.spec == old.spec else [*errors, invalid(_SPEC, None, IMMUTABLE)]


CSI_DRIVER: Final = Validator(create=_create_driver, update=_update_driver, status=None, name=dns_subdomain)
CSI_NODE: Final = Validator(create=_create_node, update=_update_node, status=_node_status, name=dns_subdomain)
VOLUME_ATTACHMENT: Final = Validator(
    create=_create_attachment, update=_update_attachment, status=_update_attachment, name=dns_subdomain
)

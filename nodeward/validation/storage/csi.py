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
    forbidden,
    invalid,
    required,
    too_long,
)
from nodeward.base.fieldpath import ROOT, FieldPath
from nodeward.rules.names import (
    dns_subdomain,
    size,
)
from nodeward.validation.authentication import validate_token_lifetime
from nodeward.validation.checks import (
    Distinct,
    Fields,
    between,
    both,
    check_count,
    check_each,
    check_immutable,
    check_kept,
    check_not_negative,
    check_one_of,
    check_present,
    check_qualified,
    check_subdomain,
    given,
    most,
    named,
    one_of,
    under,
)
from nodeward.validation.core.persistent_volume import validate_volume_spec
from nodeward.validation.kinds import changed, kind, made
from nodeward.validation.meta.conditions import condition_reason
from nodeward.validation.pod.volume_claim import ACCESS_MODES
from nodeward.validation.pod.volume_network import validate_csi_driver_name, validate_declared_driver

_SPEC: Final = ROOT.child("spec")
_NODE_ID_LIMIT: Final = 256
_METADATA_LIMIT: Final = 256 * 1024
_MESSAGE_LIMIT: Final = 1024
_HEALTH_LIMIT: Final = 16
_REASON_LIMIT: Final = 256
_SHORTEST_PERIOD: Final = 10
_ONE_SOURCE: Final = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


_DRIVER: Final = Fields(
    CSIDriverSpec,
    attach_required=under("attachedRequired", given),
    pod_info_on_mount=given,
    storage_capacity=given,
    fs_group_policy=one_of("File", "None", "ReadWriteOnceWithFSType"),
)


def _driver(new: CSIDriver, old: CSIDriver | None, ctx: Context) -> list[FieldError]:
    spec = new.spec
    errors = _DRIVER(spec, _SPEC) + _tokens(spec.token_requests, _SPEC.child("tokenRequests"))
    for mode in spec.volume_lifecycle_modes:
        errors += check_one_of(mode, _SPEC.child("volumeLifecycleModes"), ("Persistent", "Ephemeral"))
    if ctx.on("SELinuxMountReadWriteOncePod"):
        errors += given(spec.se_linux_mount, _SPEC.child("seLinuxMount"))
    period = spec.node_allocatable_update_period_seconds
    if period is not None and period < _SHORTEST_PERIOD:
        at = _SPEC.child("nodeAllocatableUpdatePeriodSeconds")
        errors.append(invalid(at, period, "must be greater than or equal to 10 seconds"))
    in_secrets = spec.service_account_token_in_secrets
    if in_secrets is not None and not spec.token_requests:
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        errors.append(invalid(_SPEC.child("serviceAccountTokenInSecrets"), in_secrets, detail))
    if ctx.on("VolumeLimitScaling"):
        errors += given(spec.prevent_pod_scheduling_if_missing, _SPEC.child("preventPodSchedulingIfMissing"))
    return errors


def _driver_change(new: CSIDriver, old: CSIDriver, ctx: Context) -> list[FieldError]:
    modes, before = new.spec.volume_lifecycle_modes, old.spec.volume_lifecycle_modes
    errors = check_immutable(
        new.spec.attach_required, old.spec.attach_required, _SPEC.child("attachedRequired")
    )
    return errors + check_immutable(modes, before, _SPEC.child("volumeLifecycleModes"))


def _tokens(requests: list[TokenRequest], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    audiences = Distinct()
    for i, request in enumerate(requests):
        at = path.index(i)
        if repeated := audiences.add(request.audience, at.child("audience")):
            errors += repeated
        elif request.expiration_seconds is not None:
            errors += validate_token_lifetime(request.expiration_seconds, at.child("expirationSeconds"))
    return errors


def _node(new: CSINode, old: CSINode | None, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
    names = Distinct()
    for i, driver in enumerate(new.spec.drivers):
        at = _SPEC.child("drivers").index(i)
        errors += _node_driver(driver, at)
        errors += names.add(driver.name, at.child("name"))
        keys = Distinct()
        for key in driver.topology_keys:
            errors += check_present(key, at) + keys.add(key, at) + check_qualified(key, at)
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


def _node_change(new: CSINode, old: CSINode, ctx: Context) -> list[FieldError]:
    errors: list[FieldError] = []
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
    errors: list[FieldError] = []
    names = Distinct()
    for i, health in enumerate(new.status.storage_health):
        at = ROOT.child("status", "storageHealth").index(i)
        errors += names.add(health.name, at) + _health(health, at)
    return errors


def _health(health: StorageHealth, path: FieldPath) -> list[FieldError]:
    errors = validate_csi_driver_name(health.name, path.child("name"))
    at, conditions = path.child("healthConditions"), health.health_conditions
    return errors + (
        check_count(conditions, at, _HEALTH_LIMIT) or check_each(conditions, at, _HEALTH_CONDITION)
    )


_HEALTH_CONDITION: Final = Fields(
    StorageHealthCondition,
    status=one_of("StorageDegraded", "StorageUnreachable"),
    reason=both(named(condition_reason), most(_REASON_LIMIT)),
    message=most(_MESSAGE_LIMIT),
    access_mode=one_of(*ACCESS_MODES),
    volume_mode=one_of("Filesystem", "Block"),
)


def _attachment(new: VolumeAttachment, old: VolumeAttachment | None, ctx: Context) -> list[FieldError]:
    spec, status = new.spec, new.status
    errors = _source(spec.source, _SPEC.child("source"))
    errors += check_subdomain(spec.node_name, _SPEC.child("nodeName"))
    at = ROOT.child("status")
    if sum(size(k) + size(v) for k, v in status.attachment_metadata.items()) > _METADATA_LIMIT:
        errors.append(too_long(at.child("attachmentMetadata"), _METADATA_LIMIT))
    errors += _ERROR(status.attach_error, at.child("attachError"))
    errors += _ERROR(status.detach_error, at.child("detachError"))
    return errors + check_subdomain(
        spec.source.persistent_volume_name, _SPEC.child("source", "persistentVolumeName")
    )


def _source(source: VolumeAttachmentSource, path: FieldPath) -> list[FieldError]:
    inline, name = source.inline_volume_spec, source.persistent_volume_name
    if inline is None and name is None:
        return [required(path, _ONE_SOURCE)]
    if inline is not None and name is not None:
        return [forbidden(path, _ONE_SOURCE)]
    if inline is not None:
        return validate_volume_spec(inline, path.child("inlineVolumeSpec"), is_inline=True)
    return check_present(
        name, path.child("persistentVolumeName"), "must specify non empty persistentVolumeName"
    )


_ERROR: Final = Fields(VolumeError, message=most(_MESSAGE_LIMIT), error_code=between(0, 2**31 - 1))


def _attacher(new: VolumeAttachment, old: VolumeAttachment | None, ctx: Context) -> list[FieldError]:
    """Checked by declaration, hence last."""
    return validate_declared_driver(new.spec.attacher, _SPEC.child("attacher"))


def _attachment_change(new: VolumeAttachment, old: VolumeAttachment, ctx: Context) -> list[FieldError]:
    return check_kept(new.spec, old.spec, _SPEC)


CSI_DRIVER: Final = kind(dns_subdomain, _driver, namespaced=False, update=(changed, _driver, _driver_change))
_MADE: Final = made(dns_subdomain, namespaced=False)
CSI_NODE: Final = kind(
    dns_subdomain, _node, namespaced=False, update=(changed, _MADE, _node, _node_change), status=_node_status
)
VOLUME_ATTACHMENT: Final = kind(
    dns_subdomain,
    _attachment,
    namespaced=False,
    create=(_MADE, _attachment, _attacher),
    update=(changed, _MADE, _attachment, _attachment_change),
    status=lambda new, old, ctx: (
        _MADE(new, old, ctx) + _attachment(new, old, ctx) + _attachment_change(new, old, ctx)
    ),
)

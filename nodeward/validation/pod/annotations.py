"""Annotations of pods that Kubernetes itself reads: mirror pods, deletion cost, old seccomp and AppArmor settings.

The old settings must agree with the fields that replaced them, for as long as both can be set.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from nodeward.api.core_v1.container import AppArmorProfile, SeccompProfile
from nodeward.api.core_v1.pod import PodSpec
from nodeward.api.core_v1.references import Toleration
from nodeward.api.meta import ObjectMeta
from nodeward.base.fielderror import FieldError, forbidden, invalid, quote
from nodeward.base.fieldpath import FieldPath
from nodeward.validation.meta.paths import validate_descending
from nodeward.validation.pod.options import PodOptions, containers_of, containers_with_path
from nodeward.validation.pod.tolerations import validate_tolerations

MIRROR: Final = "kubernetes.io/config.mirror"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER: Final = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"
APPARMOR_DEPRECATED: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_LOCALHOST: Final = "localhost/"
_COST: Final = re.compile("0|-[0-9]+|[1-9][0-9]*")


def is_mirror(meta: ObjectMeta | None) -> bool:
    """A copy of a static pod, made by the kubelet that runs it."""
    return meta is not None and MIRROR in meta.annotations


def validate_pod_annotations(
    annotations: dict[str, str], spec: PodSpec, path: FieldPath, options: PodOptions
) -> list[FieldError]:
    if not annotations:
        return []
    errors: list[FieldError] = []
    if MIRROR in annotations and not spec.node_name:
        detail = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(path.key(MIRROR), annotations[MIRROR], detail))
    if annotations.get(TOLERATIONS):
        errors += _tolerations(annotations[TOLERATIONS], path, options)
    cost = annotations.get(DELETION_COST)
    if cost is not None and not _is_cost(cost) and not _may_be_no_cost(options):
        errors.append(invalid(path.key(DELETION_COST), cost, "must be a 32bit integer"))
    if SECCOMP_POD in annotations:
        errors += _seccomp(annotations[SECCOMP_POD], path.child(SECCOMP_POD))
    for key, value in annotations.items():
        if key.startswith(SECCOMP_CONTAINER):
            errors += _seccomp(value, path.child(key))
    apparmor = {key: value for key, value in annotations.items() if key.startswith(APPARMOR)}
    names = {container.name for container in containers_of(spec)} if apparmor else set()
    for key, value in apparmor.items():
        errors += _apparmor(key, value, names, path.key(key))
    return errors


def _is_cost(text: str) -> bool:
    return _COST.fullmatch(text) is not None and -(2**31) <= int(text) < 2**31


def _may_be_no_cost(options: PodOptions) -> bool:
    if options.invalid_deletion_cost():
        return True
    old = options.old_meta.annotations.get(DELETION_COST) if options.old_meta is not None else None
    return old is not None and not _is_cost(old)


def _tolerations(text: str, path: FieldPath, options: PodOptions) -> list[FieldError]:
    try:
        tolerations = msgspec.json.decode(text.encode(), type=list[Toleration])
    except msgspec.MsgspecError as error:
        return [invalid(path, TOLERATIONS, str(error))]
    return validate_tolerations(tolerations, path.child(TOLERATIONS), options.comparison_operators)


def _seccomp(profile: str, path: FieldPath) -> list[FieldError]:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return []
    if profile.startswith(_LOCALHOST):
        return validate_descending(profile.removeprefix(_LOCALHOST), path)
    return [invalid(path, profile, "must be a valid seccomp profile")]


def _apparmor(key: str, profile: str, names: set[str], path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    name = key.removeprefix(APPARMOR)
    if name not in names:
        errors.append(invalid(path, name, "container not found"))
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(_LOCALHOST):
        errors.append(invalid(path, profile, f"invalid AppArmor profile name: {quote(profile)}"))
    return errors


def apparmor_profile_of(annotation: str) -> AppArmorProfile | None:
    """The profile the old annotation stands for; None if it stands for none."""
    if annotation == "unconfined":
        return AppArmorProfile(type="Unconfined")
    if annotation == "runtime/default":
        return AppArmorProfile(type="RuntimeDefault")
    name = annotation.removeprefix(_LOCALHOST)
    if name and name != annotation:
        return AppArmorProfile(type="Localhost", localhost_profile=name)
    return None


def validate_annotation_changes(
    new: dict[str, str], old: dict[str, str], path: FieldPath
) -> list[FieldError]:
    """What says how a pod was started cannot be said differently later."""
    if new == old:
        return []
    errors: list[FieldError] = []
    for key, value in old.items():
        if new.get(key) != value:
            if key.startswith(APPARMOR):
                errors.append(forbidden(path.key(key), "may not remove or update AppArmor annotations"))
            if key == MIRROR:
                errors.append(forbidden(path.key(key), "may not remove or update mirror pod annotation"))
    for key in new:
        if key not in old:
            if key.startswith(APPARMOR):
                errors.append(forbidden(path.key(key), "may not add AppArmor annotations"))
            if key == MIRROR:
                errors.append(forbidden(path.key(key), "may not add mirror pod annotation"))
    return errors


def validate_annotations_match_fields(meta: ObjectMeta, spec: PodSpec, path: FieldPath) -> list[FieldError]:
    """seccomp and AppArmor: annotation and field, where both are set, say the same."""
    annotations = meta.annotations
    if not any("seccomp" in key or "apparmor" in key for key in annotations):
        return []
    errors: list[FieldError] = []
    context = spec.security_context
    if context is not None and context.seccomp_profile is not None and SECCOMP_POD in annotations:
        at = path.child("securityContext", "seccompProfile")
        errors += _match("seccomp", annotations[SECCOMP_POD], context.seccomp_profile, at)
    for container, at in containers_with_path(spec, path):
        own = container.security_context
        value = annotations.get(SECCOMP_CONTAINER + container.name)
        if value is not None and own is not None and own.seccomp_profile is not None:
            where = at.child("securityContext", "seccompProfile")
            errors += _match("seccomp", value, own.seccomp_profile, where)
    if spec.os is not None and spec.os.name == "windows":
        return errors
    of_pod = context.app_armor_profile if context is not None else None
    for container, at in containers_with_path(spec, path):
        own = container.security_context
        profile = own.app_armor_profile if own is not None and own.app_armor_profile is not None else of_pod
        value = annotations.get(APPARMOR + container.name)
        if value is not None and profile is not None:
            errors += _match("apparmor", value, profile, at.child("securityContext", "appArmorProfile"))
    return errors


def _match(
    what: str, annotation: str, profile: SeccompProfile | AppArmorProfile, path: FieldPath
) -> list[FieldError]:
    same_type = True
    if profile.type == "Unconfined":
        same_type = annotation == "unconfined"
    elif profile.type == "RuntimeDefault":
        same_type = annotation == "runtime/default" or (what == "seccomp" and annotation == "docker/default")
    elif profile.type == "Localhost":
        same_type = annotation.startswith(_LOCALHOST)
        if same_type and annotation.removeprefix(_LOCALHOST) != profile.localhost_profile:
            return [
                forbidden(
                    path.child("localhostProfile"), f"{what} profile in annotation and field must match"
                )
            ]
    if same_type:
        return []
    return [forbidden(path.child("type"), f"{what} type in annotation and field must match")]

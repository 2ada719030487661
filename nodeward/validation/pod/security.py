"""Rights of pods and containers: users and groups, privileges, seccomp, AppArmor, sysctls.

Unlike upstream: privileged containers are never refused here. Upstream has a flag for it that every cluster sets; who
wants to forbid them does so at admission.
"""

from __future__ import annotations

import re
from typing import Final

from nodeward.api.core_v1.container import AppArmorProfile, SeccompProfile, SecurityContext
from nodeward.api.core_v1.pod import PodSecurityContext, PodSpec
from nodeward.base.fielderror import FieldError, duplicate, invalid, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import group_id, size, user_id
from nodeward.validation.checks import (
    Fields,
    check_one_of,
    check_present,
    check_size,
    each,
    form,
    one_of,
    unless_none,
)
from nodeward.validation.meta.paths import validate_descending
from nodeward.validation.pod.options import PodOptions
from nodeward.validation.pod.security_windows import validate_windows_options

PROFILE_TYPES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_APPARMOR_PROFILE_LIMIT: Final = 4095
_SYSCTL_LIMIT: Final = 253
_SYSCTL: Final = "([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_IS_SYSCTL: Final = re.compile(_SYSCTL).fullmatch
_IPC_SYSCTLS: Final = frozenset(
    {
        "kernel.sem",
        "kernel.shmall",
        "kernel.shmmax",
        "kernel.shmmni",
        "kernel.shm_rmid_forced",
        "kernel.shm",
        "kernel.msgmax",
        "kernel.msgmnb",
        "kernel.msgmni",
        "kernel.msg",
    }
)


def validate_security_context(
    context: SecurityContext, path: FieldPath, *, host_users: bool, options: PodOptions
) -> list[FieldError]:
    """A container's."""
    errors = _CONTAINER(context, path)
    if host_users and context.proc_mount == "Unmasked":
        detail = "`hostUsers` must be false to use `Unmasked`"
        errors.append(invalid(path.child("procMount"), context.proc_mount, detail))
    errors += validate_seccomp(context.seccomp_profile, path.child("seccompProfile"))
    if context.allow_privilege_escalation is False:
        if context.privileged:
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(path, context, detail))
        added = context.capabilities.add if context.capabilities is not None else []
        if "CAP_SYS_ADMIN" in added and not options.sys_admin_without_escalation():
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors += [invalid(path, context, detail) for name in added if name == "CAP_SYS_ADMIN"]
    return errors + _PROFILES(context, path)


def validate_pod_security_context(
    context: PodSecurityContext, spec: PodSpec, path: FieldPath, options: PodOptions
) -> list[FieldError]:
    """A whole pod's."""
    if context == _UNSET:  # what every pod gets by default: it must cost nothing
        return []
    errors = _IDS(context, path)
    if context.sysctls:
        errors += _sysctls(context, spec, path.child("sysctls"), options)
    errors += _POD(context, path) + _PROFILES(context, path)
    errors += check_one_of(
        context.supplemental_groups_policy, path.child("supplementalGroupsPolicy"), ("Merge", "Strict")
    )
    policy = context.se_linux_change_policy
    if policy is not None and policy != "Recursive":
        only_recursive = options.only_recursive_selinux_change()
        known = ("Recursive",) if only_recursive else ("MountOption", "Recursive")
        errors += check_one_of(policy, path.child("seLinuxChangePolicy"), known)
    return errors


def validate_seccomp(profile: SeccompProfile | None, path: FieldPath) -> list[FieldError]:
    if profile is None:
        return []
    at = path.child("type")
    errors = check_one_of(profile.type or None, at, PROFILE_TYPES)
    errors += check_present(profile.type, at, "type is required when seccompProfile is set")
    at = path.child("localhostProfile")
    if profile.type == "Localhost":
        if profile.localhost_profile is None:
            return [*errors, required(at, "must be set when seccomp type is Localhost")]
        return errors + validate_descending(profile.localhost_profile, at)
    if profile.localhost_profile is not None:
        errors.append(invalid(at, profile, "can only be set when seccomp type is Localhost"))
    return errors


def validate_apparmor(profile: AppArmorProfile | None, path: FieldPath) -> list[FieldError]:
    if profile is None:
        return []
    at, name = path.child("localhostProfile"), profile.localhost_profile
    if profile.type == "Localhost":
        if not name:
            return [required(at, "must be set when AppArmor type is Localhost")]
        errors = check_size(name, at, _APPARMOR_PROFILE_LIMIT)
        if name.strip() != name:
            errors.insert(0, invalid(at, name, "must not be padded with whitespace"))
        return errors
    if not profile.type:
        return [required(path.child("type"), "type is required when appArmorProfile is set")]
    if profile.type in PROFILE_TYPES and name is not None:
        return [invalid(at, name, "can only be set when AppArmor type is Localhost")]
    return check_one_of(profile.type, path.child("type"), PROFILE_TYPES)


_CONTAINER: Final = Fields(
    SecurityContext,
    run_as_user=form(user_id),
    run_as_group=form(group_id),
    proc_mount=one_of("Default", "Unmasked"),
)
_UNSET: Final = PodSecurityContext()
_IDS: Final = Fields(
    PodSecurityContext,
    fs_group=form(user_id),
    run_as_user=form(user_id),
    run_as_group=form(user_id),
    supplemental_groups=each(form(group_id)),
)
_POD: Final = Fields(
    PodSecurityContext,
    fs_group_change_policy=one_of("Always", "OnRootMismatch"),
    seccomp_profile=validate_seccomp,
)
#: In both kinds of contexts.
_PROFILES: Final = Fields(
    SecurityContext,
    windows_options=unless_none(validate_windows_options),
    app_armor_profile=validate_apparmor,
)


def _sysctls(
    context: PodSecurityContext, spec: PodSpec, path: FieldPath, options: PodOptions
) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    is_lenient = _old_has_conflict(options)
    for i, sysctl in enumerate(context.sysctls):
        at = path.index(i).child("name")
        if not sysctl.name:
            errors.append(required(at))
        elif size(sysctl.name) > _SYSCTL_LIMIT or not _IS_SYSCTL(sysctl.name):
            detail = f"must have at most {_SYSCTL_LIMIT} characters and match regex ^{_SYSCTL}$"
            errors.append(invalid(at, sysctl.name, detail))
        elif sysctl.name in names:
            errors.append(duplicate(at, sysctl.name))
        names.add(sysctl.name)
        conflict = _host_conflict(sysctl.name, spec)
        if conflict and not is_lenient:
            errors.append(invalid(at, sysctl.name, conflict))
    return errors


def _host_conflict(sysctl: str, spec: PodSpec) -> str:
    """A sysctl of a namespace the pod shares with its host would change the host."""
    name = _dotted(sysctl)
    if spec.host_network and name.startswith("net."):
        return "may not be specified when 'hostNetwork' is true"
    if spec.host_ipc and (name in _IPC_SYSCTLS or name.startswith("fs.mqueue.")):
        return "may not be specified when 'hostIPC' is true"
    return ""


def _old_has_conflict(options: PodOptions) -> bool:
    old = options.old
    if old is None or old.security_context is None:
        return False
    return any(_host_conflict(sysctl.name, old) for sysctl in old.security_context.sysctls)


def _dotted(sysctl: str) -> str:
    """Both `a.b` and `a/b` are in use; when the slash comes first, dots and slashes change places."""
    first = re.search(r"[./]", sysctl)
    if first is None or first.group() == ".":
        return sysctl
    return sysctl.translate({ord("."): "/", ord("/"): "."})

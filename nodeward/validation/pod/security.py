"""Rights of pods and containers: users and groups, privileges, seccomp, AppArmor, sysctls.

Unlike upstream: privileged containers are never refused here. Upstream has a flag for it that every cluster sets; who
wants to forbid them does so at admission.
"""

from __future__ import annotations

import re
from typing import Final

from nodeward.api.core_v1.container import AppArmorProfile, SeccompProfile, SecurityContext
from nodeward.api.core_v1.pod import PodSecurityContext, PodSpec
from nodeward.base.fielderror import FieldError, duplicate, invalid, not_supported, required
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import group_id, size, user_id
from nodeward.validation.checks import check_form, check_one_of, check_size
from nodeward.validation.meta.paths import validate_descending
from nodeward.validation.pod.options import PodOptions
from nodeward.validation.pod.security_windows import validate_windows_options

PROFILE_TYPES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS: Final = ("Default", "Unmasked")
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
    errors = check_form(context.run_as_user, path.child("runAsUser"), user_id)
    errors += check_form(context.run_as_group, path.child("runAsGroup"), group_id)
    if context.proc_mount is not None:
        at = path.child("procMount")
        errors += check_one_of(context.proc_mount, at, _PROC_MOUNTS)
        if host_users and context.proc_mount == "Unmasked":
            errors.append(invalid(at, context.proc_mount, "`hostUsers` must be false to use `Unmasked`"))
    if context.seccomp_profile is not None:
        errors += validate_seccomp(context.seccomp_profile, path.child("seccompProfile"))
    if context.allow_privilege_escalation is False:
        if context.privileged:
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(path, context, detail))
        added = context.capabilities.add if context.capabilities is not None else []
        if "CAP_SYS_ADMIN" in added and not options.sys_admin_without_escalation():
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors += [invalid(path, context, detail) for name in added if name == "CAP_SYS_ADMIN"]
    if context.windows_options is not None:
        errors += validate_windows_options(context.windows_options, path.child("windowsOptions"))
    if context.app_armor_profile is not None:
        errors += validate_apparmor(context.app_armor_profile, path.child("appArmorProfile"))
    return errors


def validate_pod_security_context(
    context: PodSecurityContext, spec: PodSpec, path: FieldPath, options: PodOptions
) -> list[FieldError]:
    """A whole pod's."""
    errors: list[FieldError] = []
    for name, number in (
        ("fsGroup", context.fs_group),
        ("runAsUser", context.run_as_user),
        ("runAsGroup", context.run_as_group),
    ):
        errors += check_form(number, path.child(name), user_id)
    for i, group in enumerate(context.supplemental_groups):
        errors += check_form(group, path.child("supplementalGroups").index(i), group_id)
    if context.sysctls:
        errors += _sysctls(context, spec, path.child("sysctls"), options)
    policy = context.fs_group_change_policy
    errors += check_one_of(policy, path.child("fsGroupChangePolicy"), ("Always", "OnRootMismatch"))
    if context.seccomp_profile is not None:
        errors += validate_seccomp(context.seccomp_profile, path.child("seccompProfile"))
    if context.windows_options is not None:
        errors += validate_windows_options(context.windows_options, path.child("windowsOptions"))
    if context.app_armor_profile is not None:
        errors += validate_apparmor(context.app_armor_profile, path.child("appArmorProfile"))
    policy = context.supplemental_groups_policy
    errors += check_one_of(policy, path.child("supplementalGroupsPolicy"), ("Merge", "Strict"))
    policy = context.se_linux_change_policy
    if policy is not None and policy != "Recursive":
        at = path.child("seLinuxChangePolicy")
        if options.only_recursive_selinux_change():
            errors.append(not_supported(at, policy, ("Recursive",)))
        elif policy != "MountOption":
            errors.append(not_supported(at, policy, ("MountOption", "Recursive")))
    return errors


def validate_seccomp(profile: SeccompProfile, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if not profile.type:
        errors.append(required(path.child("type"), "type is required when seccompProfile is set"))
    elif profile.type not in PROFILE_TYPES:
        errors.append(not_supported(path.child("type"), profile.type, PROFILE_TYPES))
    at = path.child("localhostProfile")
    if profile.type == "Localhost":
        if profile.localhost_profile is None:
            errors.append(required(at, "must be set when seccomp type is Localhost"))
        else:
            errors += validate_descending(profile.localhost_profile, at)
    elif profile.localhost_profile is not None:
        errors.append(invalid(at, profile, "can only be set when seccomp type is Localhost"))
    return errors


def validate_apparmor(profile: AppArmorProfile, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    at = path.child("localhostProfile")
    name = profile.localhost_profile
    if profile.type == "Localhost":
        if name is None:
            return [required(at, "must be set when AppArmor type is Localhost")]
        if name.strip() != name:
            errors.append(invalid(at, name, "must not be padded with whitespace"))
        elif not name:
            errors.append(required(at, "must be set when AppArmor type is Localhost"))
        errors += check_size(name, at, _APPARMOR_PROFILE_LIMIT)
    elif profile.type in ("RuntimeDefault", "Unconfined"):
        if name is not None:
            errors.append(invalid(at, name, "can only be set when AppArmor type is Localhost"))
    elif not profile.type:
        errors.append(required(path.child("type"), "type is required when appArmorProfile is set"))
    else:
        errors.append(not_supported(path.child("type"), profile.type, PROFILE_TYPES))
    return errors


def _sysctls(
    context: PodSecurityContext, spec: PodSpec, path: FieldPath, options: PodOptions
) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
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
        if conflict and not _old_has_conflict(options):
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

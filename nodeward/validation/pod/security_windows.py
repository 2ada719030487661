"""What only Windows pods may say, and what they may not say at all."""

from __future__ import annotations

import re
from typing import Final

from nodeward.api.core_v1.container import SecurityContext, WindowsSecurityContextOptions
from nodeward.api.core_v1.pod import PodSecurityContext, PodSpec
from nodeward.base.fielderror import FieldError, forbidden, invalid
from nodeward.base.fieldpath import FieldPath
from nodeward.rules.names import size
from nodeward.validation.checks import check_subdomain, check_unset
from nodeward.validation.pod.options import containers_of, containers_with_path

_GMSA_KIB: Final = 64
_DOMAIN_LIMIT: Final = 256
_USER_LIMIT: Final = 104
_HAS_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]").search
_IS_NETBIOS: Final = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}').fullmatch
_LABEL: Final = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_IS_DNS: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*").fullmatch
_HAS_BAD_CHARACTER: Final = re.compile(r'["/\\:;|=,+*?<>@\[\]]').search
_IS_DOTS: Final = re.compile(r"[. ]+").fullmatch
_NOT_FOR_WINDOWS: Final = "cannot be set for a windows pod"
_NOT_FOR_LINUX: Final = "windows options cannot be set for a linux pod"


def validate_windows_options(options: WindowsSecurityContextOptions, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    name = options.gmsa_credential_spec_name
    errors += check_subdomain(name, path.child("gmsaCredentialSpecName"))
    credentials = options.gmsa_credential_spec
    if credentials is not None:
        at = path.child("gmsaCredentialSpec")
        if not credentials:
            errors.append(invalid(at, credentials, "gmsaCredentialSpec cannot be an empty string"))
        elif size(credentials) > _GMSA_KIB * 1024:
            errors.append(invalid(at, credentials, f"gmsaCredentialSpec size must be under {_GMSA_KIB} KiB"))
    if options.run_as_user_name is not None:
        at = path.child("runAsUserName")
        faults = _user_name_faults(options.run_as_user_name)
        errors += [invalid(at, options.run_as_user_name, fault) for fault in faults]
    return errors


def _user_name_faults(name: str) -> list[str]:
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if _HAS_CONTROL(name):
        return ["runAsUserName cannot contain control characters"]
    if name.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, backslash, user = name.rpartition("\\")
    faults: list[str] = []
    if size(domain) >= _DOMAIN_LIMIT:
        faults.append(f"runAsUserName's Domain length must be under {_DOMAIN_LIMIT} characters")
    if backslash and not _IS_NETBIOS(domain) and not _IS_DNS(domain):
        faults.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        faults.append("runAsUserName's User cannot be empty")
    elif size(user) > _USER_LIMIT:
        faults.append(f"runAsUserName's User length must not be longer than {_USER_LIMIT} characters")
    if _IS_DOTS(user):
        faults.append("runAsUserName's User cannot contain only periods or spaces")
    if _HAS_BAD_CHARACTER(user):
        faults.append("runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return faults


def validate_host_process(spec: PodSpec, path: FieldPath) -> list[FieldError]:
    """Containers that run as processes of the host: all or none, and with its network."""
    context = spec.security_context
    of_pod = (
        context.windows_options.host_process
        if context is not None and context.windows_options is not None
        else None
    )
    if of_pod is None and not any(
        c.security_context is not None and c.security_context.windows_options is not None
        for c in containers_of(spec)
    ):
        return []
    errors: list[FieldError] = []
    total = hosted = 0
    for container, at in containers_with_path(spec, path):
        total += 1
        own = container.security_context
        of_container = (
            own.windows_options.host_process if own is not None and own.windows_options is not None else None
        )
        if of_pod is not None and of_container is not None and of_pod != of_container:
            shown = "true" if of_pod else "false"
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            errors.append(
                invalid(at.child("securityContext", "windowsOptions", "hostProcess"), of_container, detail)
            )
        if of_container or (of_container is None and of_pod):
            hosted += 1
    if hosted:
        if hosted != total:
            detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
            errors.append(invalid(path, "", detail))
        if not spec.host_network:
            detail = "hostNetwork must be true if pod contains any hostProcess containers"
            errors.append(invalid(path.child("hostNetwork"), spec.host_network, detail))
    return errors


def validate_linux_pod(spec: PodSpec, path: FieldPath) -> list[FieldError]:
    errors: list[FieldError] = []
    if spec.security_context is not None and spec.security_context.windows_options is not None:
        errors.append(forbidden(path.child("securityContext", "windowsOptions"), _NOT_FOR_LINUX))
    for container, at in containers_with_path(spec, path):
        if container.security_context is not None and container.security_context.windows_options is not None:
            errors.append(forbidden(at.child("securityContext", "windowsOptions"), _NOT_FOR_LINUX))
    return errors


#: What a Linux pod or container may set and a Windows one may not: attribute and JSON name.
_OF_POD: Final = (
    ("app_armor_profile", "appArmorProfile"),
    ("se_linux_options", "seLinuxOptions"),
    ("seccomp_profile", "seccompProfile"),
    ("fs_group", "fsGroup"),
    ("fs_group_change_policy", "fsGroupChangePolicy"),
    ("sysctls", "sysctls"),
    ("run_as_user", "runAsUser"),
    ("run_as_group", "runAsGroup"),
    ("supplemental_groups", "supplementalGroups"),
    ("supplemental_groups_policy", "supplementalGroupsPolicy"),
    ("se_linux_change_policy", "seLinuxChangePolicy"),
)
_OF_CONTAINER: Final = (
    ("app_armor_profile", "appArmorProfile"),
    ("se_linux_options", "seLinuxOptions"),
    ("seccomp_profile", "seccompProfile"),
    ("capabilities", "capabilities"),
    ("read_only_root_filesystem", "readOnlyRootFilesystem"),
    ("privileged", "privileged"),
    ("allow_privilege_escalation", "allowPrivilegeEscalation"),
    ("proc_mount", "procMount"),
    ("run_as_user", "runAsUser"),
    ("run_as_group", "runAsGroup"),
)


def _refuse(
    context: PodSecurityContext | SecurityContext | None, fields: tuple[tuple[str, str], ...], path: FieldPath
) -> list[FieldError]:
    return [
        forbidden(path.child("securityContext", name), _NOT_FOR_WINDOWS)
        for attribute, name in fields
        if context is not None and getattr(context, attribute) not in (None, [])
    ]


def validate_windows_pod(spec: PodSpec, path: FieldPath) -> list[FieldError]:
    errors = _refuse(spec.security_context, _OF_POD, path)
    errors += check_unset(
        path,
        _NOT_FOR_WINDOWS,
        hostUsers=spec.host_users is not None,
        hostPID=spec.host_pid,
        hostIPC=spec.host_ipc,
        shareProcessNamespace=spec.share_process_namespace is not None,
    )
    for container, at in containers_with_path(spec, path):
        errors += _refuse(container.security_context, _OF_CONTAINER, at)
    return errors

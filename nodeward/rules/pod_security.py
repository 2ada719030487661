"""The Pod Security Standards: what a pod asks for beyond the level that is allowed.

`violations` takes a pod's spec and annotations and one of the three levels; returns what is wrong, in upstream's words
and order: baseline's checks, then restricted's, each by name. A check of restricted takes the place of the one of
baseline that it is stricter than. Of older versions only this is known: which checks they did not have yet since 1.30.

Called by the admission plugin PodSecurity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from nodeward.api.core_v1.pod import PodSpec
from nodeward.base.fielderror import quote

PRIVILEGED, BASELINE, RESTRICTED = "privileged", "baseline", "restricted"
LEVELS: Final = (PRIVILEGED, BASELINE, RESTRICTED)
LATEST: Final = "latest"
_NEWEST: Final = 1 << 31

_CAPABILITIES: Final = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
_SELINUX_TYPES: Final = frozenset(
    ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
)
_SYSCTLS: Final = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_notsent_lowat",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_slow_start_after_idle",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    )
)
#: These came later than the others, in this minor version.
_BUFFERS: Final = frozenset(("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"))
_BUFFERS_SINCE: Final = 32
#: Kinds of volumes that the restricted level allows, as the struct names them.
_VOLUMES: Final = (
    "config_map",
    "csi",
    "downward_api",
    "empty_dir",
    "ephemeral",
    "image",
    "persistent_volume_claim",
    "projected",
    "secret",
)
_APPARMOR_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"


class Violation(NamedTuple):
    """One rule that a pod breaks, and how."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


class _Pod(NamedTuple):
    spec: PodSpec
    annotations: Mapping[str, str]
    #: the minor version whose rules count
    minor: int

    def containers(self) -> Iterator[Any]:
        yield from self.spec.init_containers
        yield from self.spec.containers
        yield from self.spec.ephemeral_containers

    def contexts(self) -> Iterator[tuple[str, Any]]:
        """Return every container's name and security context, which may be None."""
        for container in self.containers():
            yield container.name, container.security_context

    @property
    def is_windows(self) -> bool:
        return self.spec.os is not None and self.spec.os.name == "windows"

    def own(self, field: str) -> Any:
        """Return a field of the pod's own security context."""
        return getattr(self.spec.security_context, field, None)


def violations(
    spec: PodSpec, annotations: Mapping[str, str], level: str, version: str = LATEST
) -> list[Violation]:
    """Return how a pod goes beyond a level as of a version (`latest` or `v1.30`); empty: it is within."""
    if level == PRIVILEGED:
        return []
    checks = _BASELINE if level == BASELINE else _RESTRICTED
    minor = _NEWEST if version == LATEST else int(version.removeprefix("v1."))
    pod = _Pod(spec, annotations, minor)
    asked = (check for check in checks if minor >= _SINCE.get(check, 0))
    return [found for check in asked if (found := check(pod)) is not None]


def describe(found: Sequence[Violation]) -> str:
    return ", ".join(map(str, found))


def _quoted(words: Iterable[str]) -> str:
    return ", ".join(f'"{word}"' for word in words)


def _plural(one: str, many: str, words: Sequence[object]) -> str:
    return one if len(words) == 1 else many


def _named(names: Sequence[str]) -> str:
    return f"{_plural('container', 'containers', names)} {_quoted(names)}"


def _setters(is_pod: bool, containers: Sequence[str]) -> str:
    """Name who sets what must not be set: the pod, containers, or both."""
    return " and ".join((["pod"] if is_pod else []) + ([_named(containers)] if containers else []))


def _context(context: Any, *path: str) -> Any:
    for step in path:
        context = getattr(context, step, None)
    return context


# -- baseline


def _app_armor(pod: _Pod) -> Violation | None:
    allowed = (None, "", "RuntimeDefault", "Localhost")
    own = _context(pod.own("app_armor_profile"), "type")
    bad = {own: None} if own not in allowed else {}
    containers = []
    for name, context in pod.contexts():
        kind = _context(context, "app_armor_profile", "type")
        if kind not in allowed:
            containers.append(name)
            bad[kind] = None
    marks = sorted(
        f"{key}={quote(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(_APPARMOR_ANNOTATION)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    if not bad and not marks:
        return None
    setters = [each for each in (_setters(own not in allowed, containers),) if each]
    if marks:
        setters.append(_plural("annotation", "annotations", marks))
    values = sorted({*bad, *marks})
    reason = _plural("forbidden AppArmor profile", "forbidden AppArmor profiles", values)
    return Violation(
        reason, f"{' and '.join(setters)} must not set AppArmor profile type to {_quoted(values)}"
    )


def _capabilities_baseline(pod: _Pod) -> Violation | None:
    bad, added = _adding(pod, _CAPABILITIES)
    if not bad:
        return None
    detail = f"{_named(bad)} must not include {_quoted(sorted(added))} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def _adding(pod: _Pod, allowed: frozenset[str]) -> tuple[list[str], set[str]]:
    """Return the containers that add other capabilities than the allowed, and those capabilities."""
    bad, added = [], set()
    for name, context in pod.contexts():
        wrong = {each for each in _context(context, "capabilities", "add") or () if each not in allowed}
        if wrong:
            bad.append(name)
            added |= wrong
    return bad, added


def _host_namespaces(pod: _Pod) -> Violation | None:
    spec = pod.spec
    asked = {"hostNetwork": spec.host_network, "hostPID": spec.host_pid, "hostIPC": spec.host_ipc}
    found = [f"{name}=true" for name, is_set in asked.items() if is_set]
    return Violation("host namespaces", ", ".join(found)) if found else None


def _host_path_volumes(pod: _Pod) -> Violation | None:
    found = [volume.name for volume in pod.spec.volumes if volume.host_path is not None]
    if not found:
        return None
    return Violation("hostPath volumes", f"{_plural('volume', 'volumes', found)} {_quoted(found)}")


def _host_ports(pod: _Pod) -> Violation | None:
    bad, ports = [], set()
    for container in pod.containers():
        used = {str(port.host_port) for port in container.ports if port.host_port}
        if used:
            bad.append(container.name)
            ports |= used
    if not bad:
        return None
    shown = sorted(ports)
    uses, noun = _plural("uses", "use", bad), _plural("hostPort", "hostPorts", shown)
    return Violation("hostPort", f"{_named(bad)} {uses} {noun} {', '.join(shown)}")


def _handlers(container: Any) -> Iterator[Any]:
    for probe in ("liveness_probe", "readiness_probe", "startup_probe"):
        yield getattr(container, probe, None)
    for hook in ("post_start", "pre_stop"):
        yield _context(getattr(container, "lifecycle", None), hook)


def _host_probes(pod: _Pod) -> Violation | None:
    bad, hosts = set(), set()
    for container in pod.containers():
        for handler in _handlers(container):
            for action in ("http_get", "tcp_socket"):
                if host := _context(handler, action, "host"):
                    bad.add(container.name)
                    hosts.add(host)
    if not bad:
        return None
    names, shown = sorted(bad), sorted(hosts)
    uses, noun = (
        _plural("uses", "use", names),
        _plural("probe or lifecycle host", "probe or lifecycle hosts", shown),
    )
    return Violation("probe or lifecycle host", f"{_named(names)} {uses} {noun} {_quoted(shown)}")


def _privileged(pod: _Pod) -> Violation | None:
    bad = [name for name, context in pod.contexts() if _context(context, "privileged")]
    if not bad:
        return None
    return Violation("privileged", f"{_named(bad)} must not set securityContext.privileged=true")


def _proc_mount(pod: _Pod) -> Violation | None:
    bad, kinds = [], set()
    for name, context in pod.contexts():
        kind = _context(context, "proc_mount")
        if kind not in (None, "", "Default"):
            bad.append(name)
            kinds.add(kind)
    if not bad:
        return None
    return Violation(
        "procMount", f"{_named(bad)} must not set securityContext.procMount to {_quoted(sorted(kinds))}"
    )


def _selinux(pod: _Pod) -> Violation | None:
    types: set[str] = set()
    has_user = has_role = False

    def is_bad(options: Any) -> bool:
        nonlocal has_user, has_role
        if options is None:
            return False
        wrong = options.type not in _SELINUX_TYPES
        if wrong:
            types.add(options.type)
        has_user, has_role = has_user or bool(options.user), has_role or bool(options.role)
        return wrong or bool(options.user) or bool(options.role)

    is_pod = is_bad(pod.own("se_linux_options"))
    bad = [name for name, context in pod.contexts() if is_bad(_context(context, "se_linux_options"))]
    if not is_pod and not bad:
        return None
    shown = sorted(types)
    data = [f"{_plural('type', 'types', shown)} {_quoted(shown)}"] if shown else []
    data += ["user may not be set"] * has_user + ["role may not be set"] * has_role
    return Violation(
        "seLinuxOptions",
        f"{_setters(is_pod, bad)} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}",
    )


def _seccomp(pod: _Pod) -> tuple[bool, list[str], list[str], list[str]]:
    """Return whether the pod sets a bad profile, which containers do, which set none, and the bad types."""
    own = _context(pod.own("seccomp_profile"), "type")
    allowed = ("RuntimeDefault", "Localhost")
    is_pod = own is not None and own not in allowed
    bad, without, kinds = [], [], {own} if is_pod else set()
    for name, context in pod.contexts():
        kind = _context(context, "seccomp_profile", "type")
        if kind is None:
            if own is None:
                without.append(name)
        elif kind not in allowed:
            bad.append(name)
            kinds.add(kind)
    return is_pod, bad, without, sorted(str(kind) for kind in kinds)


def _seccomp_baseline(pod: _Pod) -> Violation | None:
    is_pod, bad, _, kinds = _seccomp(pod)
    if not is_pod and not bad:
        return None
    detail = f"{_setters(is_pod, bad)} must not set securityContext.seccompProfile.type to {_quoted(kinds)}"
    return Violation("seccompProfile", detail)


def _sysctls(pod: _Pod) -> Violation | None:
    allowed = _SYSCTLS if pod.minor >= _BUFFERS_SINCE else _SYSCTLS - _BUFFERS
    found = [each.name for each in pod.own("sysctls") or () if each.name not in allowed]
    return Violation("forbidden sysctls", ", ".join(found)) if found else None


def _windows_host_process(pod: _Pod) -> Violation | None:
    is_pod = bool(_context(pod.own("windows_options"), "host_process"))
    bad = [name for name, context in pod.contexts() if _context(context, "windows_options", "host_process")]
    if not is_pod and not bad:
        return None
    detail = f"{_setters(is_pod, bad)} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", detail)


# -- restricted


def _escalation(pod: _Pod) -> Violation | None:
    if pod.is_windows:
        return None
    bad = [
        name
        for name, context in pod.contexts()
        if _context(context, "allow_privilege_escalation") is not False
    ]
    if not bad:
        return None
    detail = f"{_named(bad)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def _capabilities_restricted(pod: _Pod) -> Violation | None:
    if pod.is_windows:
        return None
    keeping = [
        name
        for name, context in pod.contexts()
        if "ALL" not in (_context(context, "capabilities", "drop") or ())
    ]
    adding, added = _adding(pod, frozenset(("NET_BIND_SERVICE",)))
    details = []
    if keeping:
        details.append(f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]')
    if adding:
        shown = _quoted(sorted(added))
        details.append(f"{_named(adding)} must not include {shown} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def _volumes(pod: _Pod) -> Violation | None:
    bad, kinds = [], set()
    for volume in pod.spec.volumes:
        kind = next(
            (f for f in volume.__struct_fields__ if f != "name" and getattr(volume, f) is not None), None
        )
        if kind in _VOLUMES:
            continue
        bad.append(volume.name)
        names = dict(zip(volume.__struct_fields__, volume.__struct_encode_fields__, strict=True))
        kinds.add(names[kind] if kind is not None else "unknown")
    if not bad:
        return None
    shown = sorted(kinds)
    uses, noun = (
        _plural("uses", "use", bad),
        _plural("restricted volume type", "restricted volume types", shown),
    )
    named = f"{_plural('volume', 'volumes', bad)} {_quoted(bad)}"
    return Violation("restricted volume types", f"{named} {uses} {noun} {_quoted(shown)}")


def _non_root(pod: _Pod) -> Violation | None:
    own = pod.own("run_as_non_root")
    bad, without = [], []
    for name, context in pod.contexts():
        said = _context(context, "run_as_non_root")
        if said is False:
            bad.append(name)
        elif said is None and own is None:
            without.append(name)
    is_pod = own is False
    if is_pod or bad:
        detail = f"{_setters(is_pod, bad)} must not set securityContext.runAsNonRoot=false"
        return Violation("runAsNonRoot != true", detail)
    if without:
        detail = f"pod or {_named(without)} must set securityContext.runAsNonRoot=true"
        return Violation("runAsNonRoot != true", detail)
    return None


def _user(pod: _Pod) -> Violation | None:
    is_pod = pod.own("run_as_user") == 0
    bad = [name for name, context in pod.contexts() if _context(context, "run_as_user") == 0]
    if not is_pod and not bad:
        return None
    return Violation("runAsUser=0", f"{_setters(is_pod, bad)} must not set runAsUser=0")


def _seccomp_restricted(pod: _Pod) -> Violation | None:
    if pod.is_windows:
        return None
    _, _, without, _ = _seccomp(pod)
    found = _seccomp_baseline(pod)
    if found is not None or not without:
        return found
    detail = f'pod or {_named(without)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", detail)


_Check = Callable[[_Pod], Violation | None]
_COMMON: Final[tuple[_Check, ...]] = (
    _app_armor,
    _capabilities_baseline,
    _host_namespaces,
    _host_path_volumes,
    _host_ports,
    _host_probes,
    _privileged,
    _proc_mount,
    _selinux,
    _seccomp_baseline,
    _sysctls,
    _windows_host_process,
)
_BASELINE: Final = _COMMON
#: What a check of the restricted level takes the place of.
_REPLACED: Final = (_capabilities_baseline, _host_path_volumes, _seccomp_baseline)
_RESTRICTED: Final[tuple[_Check, ...]] = (
    *(check for check in _COMMON if check not in _REPLACED),
    _escalation,
    _capabilities_restricted,
    _volumes,
    _non_root,
    _user,
    _seccomp_restricted,
)
#: The minor version that brought a check, where that is not long ago.
_SINCE: Final[Mapping[_Check, int]] = {_host_probes: 34}

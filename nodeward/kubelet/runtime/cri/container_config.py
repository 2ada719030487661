"""What a container is to be like: image, command, environment, mounts, rights, resources, log.

In goes a `ContainerRequest`, out comes CRI's `ContainerConfig`. Nothing is looked up: what the request does not say,
the container does not get.

What must stay true: a container never gets more rights than its pod's spec gives it.
"""

from __future__ import annotations

import os
from typing import Any, Final

from nodeward.api.core_v1.container import AppArmorProfile, Container, SecurityContext
from nodeward.api.core_v1.pod import Pod
from nodeward.kubelet.runtime.cri.labels import container_annotations, container_labels
from nodeward.kubelet.runtime.cri.linux_resources import resources
from nodeward.kubelet.runtime.cri.messages import TARGET, message
from nodeward.kubelet.runtime.cri.sandbox_config import NodeSettings, groups, namespaces, seccomp, selinux
from nodeward.kubelet.runtime.interface import ContainerRequest

#: What of the kernel's files containers must not see, or not change, unless they ask (`procMount: Unmasked`).
_MASKED: Final = (
    "/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
    "/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi",
    "/sys/firmware", "/sys/devices/virtual/powercap",
)  # fmt: skip
_READ_ONLY: Final = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")

_APPARMOR: Final = {"RuntimeDefault": 0, "Unconfined": 1, "Localhost": 2}
#: CRI numbers signals by name, in alphabetical order, whatever the machine's own numbers are.
_SIGNALS: Final = (
    "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO",
    "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGSEGV", "SIGSTKFLT", "SIGSTOP",
    "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1", "SIGUSR2", "SIGVTALRM",
    "SIGWINCH", "SIGXCPU", "SIGXFSZ", "SIGRTMIN", *(f"SIGRTMIN+{number}" for number in range(1, 16)),
    *(f"SIGRTMAX-{number}" for number in range(14, 0, -1)), "SIGRTMAX",
)  # fmt: skip


def container_config(
    request: ContainerRequest, settings: NodeSettings, *, is_on_host_network: bool, target_id: str = ""
) -> Any:
    """The whole configuration. `target_id`: the container whose processes a debugging container looks at."""
    pod, container = request.pod, request.container
    config = message("ContainerConfig")(
        metadata={"name": container.name, "attempt": request.attempt},
        image={"image": container.image, "user_specified_image": container.image},
        command=request.command,
        args=request.args,
        working_dir=container.working_dir,
        labels=container_labels(pod, container.name),
        annotations=container_annotations(pod, container, request.attempt),
        log_path=os.path.basename(request.log_path),
        stdin=container.stdin,
        stdin_once=container.stdin_once,
        tty=container.tty,
        stop_signal=_stop_signal(container),
    )
    for name, value in request.env.items():
        config.envs.add(key=name, value=value.encode())
    for mount in request.mounts:
        config.mounts.add(
            container_path=mount.target,
            host_path=mount.source,
            readonly=mount.is_read_only,
            mount_options=mount.options,
        )
    for device in request.cdi_ids:
        config.CDI_devices.add(name=device)
    last_words = container.termination_message_path
    if request.termination_log and last_words not in ("", *(each.container_path for each in config.mounts)):
        config.mounts.add(container_path=last_words, host_path=request.termination_log)
    limited = resources(
        pod, container, request.cpuset, settings.memory_capacity, has_quota=request.has_cpu_quota
    )
    config.linux.resources.CopyFrom(limited)
    config.linux.security_context.CopyFrom(_security(pod, container, settings, is_on_host_network))
    if target_id:
        config.linux.security_context.namespace_options.pid = TARGET
        config.linux.security_context.namespace_options.target_id = target_id
    return config


def target_of(pod: Pod, name: str) -> str:
    """The container whose processes a debugging container wants to see; empty: none."""
    for each in pod.spec.ephemeral_containers:
        if each.name == name:
            return each.target_container_name
    return ""


def runs_as(pod: Pod, container: Container) -> int | None:
    """The user the spec says; None: the image's."""
    own, shared = container.security_context, pod.spec.security_context
    if own is not None and own.run_as_user is not None:
        return own.run_as_user
    return shared.run_as_user if shared is not None else None


def must_not_be_root(pod: Pod, container: Container) -> bool:
    own, shared = container.security_context, pod.spec.security_context
    if own is not None and own.run_as_non_root is not None:
        return own.run_as_non_root
    return shared is not None and bool(shared.run_as_non_root)


def _security(pod: Pod, container: Container, settings: NodeSettings, is_on_host_network: bool) -> Any:
    own = container.security_context or SecurityContext()
    shared = pod.spec.security_context
    is_privileged = bool(own.privileged)
    made = message("LinuxContainerSecurityContext")(
        privileged=is_privileged,
        namespace_options=namespaces(pod, is_on_host_network),
        readonly_rootfs=bool(own.read_only_root_filesystem),
        no_new_privs=own.allow_privilege_escalation is False,
        supplemental_groups=groups(pod),
    )
    user = runs_as(pod, container)
    if user is not None:
        made.run_as_user.value = user
    group = own.run_as_group
    if group is None and shared is not None:
        group = shared.run_as_group
    if group is not None:
        made.run_as_group.value = group
    if own.capabilities is not None:
        made.capabilities.add_capabilities.extend(own.capabilities.add)
        made.capabilities.drop_capabilities.extend(own.capabilities.drop)
    if not is_privileged:
        if own.proc_mount != "Unmasked":
            made.masked_paths.extend(_MASKED)
            made.readonly_paths.extend(_READ_ONLY)
        profile = own.seccomp_profile or (shared.seccomp_profile if shared is not None else None)
        if profile is not None:
            made.seccomp.CopyFrom(seccomp(profile, settings.seccomp_root))
    armor = own.app_armor_profile or (shared.app_armor_profile if shared is not None else None)
    if armor is not None:
        made.apparmor.CopyFrom(_apparmor(armor))
    labels = own.se_linux_options or (shared.se_linux_options if shared is not None else None)
    if labels is not None:
        made.selinux_options.CopyFrom(selinux(labels))
    return made


def _apparmor(profile: AppArmorProfile) -> Any:
    return message("SecurityProfile")(
        profile_type=_APPARMOR[profile.type], localhost_ref=profile.localhost_profile or ""
    )


def _stop_signal(container: Container) -> int:
    """0: the image's own. Runtimes that do not know the field (containerd 1.6) use the image's own, too."""
    wanted = container.lifecycle.stop_signal if container.lifecycle is not None else None
    if not wanted:
        return 0
    return _SIGNALS.index(wanted) + 1 if wanted in _SIGNALS else 0
